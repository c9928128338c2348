//! A listener: offers from contacts, without a code.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify};

use crate::event::{Event, Pull};
use crate::fetch::Incoming;
use crate::runtime::entered;

/// Who may come to a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, uniffi::Enum)]
pub enum Admit {
    /// Contacts; to everybody else this machine is silent.
    #[default]
    Contacts,
    /// Everybody who knows the NodeId, few strangers at a time.
    AfterAsking,
    /// Everybody who knows the NodeId.
    Everybody,
}

impl From<Admit> for wraith::Admit {
    fn from(admit: Admit) -> Self {
        match admit {
            Admit::Contacts => Self::Contacts,
            Admit::AfterAsking => Self::AfterAsking,
            Admit::Everybody => Self::Everybody,
        }
    }
}

/// Takes offers until it is stopped or freed. One transfer moves at a time.
#[derive(Debug, uniffi::Object)]
pub struct Listener {
    address: String,
    /// Whoever holds it waits for the next offer.
    listener: Mutex<wraith::Listener>,
    /// Tells who waits for an offer to let go of the listener.
    ending: Notify,
    events: Pull,
    runtime: Handle,
}

impl Listener {
    pub(crate) fn new(listener: wraith::Listener, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            address: listener.address().to_string(),
            events: Pull::new(listener.events()),
            listener: Mutex::new(listener),
            ending: Notify::new(),
            runtime,
        })
    }
}

#[uniffi::export]
impl Listener {
    /// The address and port it listens on.
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// The next offer; none after [`Listener::stop`]. Several calls at the same time take turns.
    pub async fn next_offer(&self) -> Option<Arc<Incoming>> {
        let next = async {
            let mut listener = self.listener.lock().await;
            tokio::select! {
                incoming = listener.next() => incoming,
                () = self.ending.notified() => {
                    listener.stop();
                    None
                }
            }
        };
        let incoming = entered(self.runtime.clone(), next).await?;
        Some(Incoming::new(incoming, None, self.runtime.clone()))
    }

    /// The next thing that happens to the listener itself; none after its end.
    pub async fn next_event(&self) -> Option<Event> {
        entered(self.runtime.clone(), self.events.next()).await
    }

    /// Answers nobody any more, and does not wait for that; a transfer under way is stopped.
    pub fn stop(&self) {
        match self.listener.try_lock() {
            Ok(listener) => listener.stop(),
            Err(_) => self.ending.notify_one(),
        }
    }
}
