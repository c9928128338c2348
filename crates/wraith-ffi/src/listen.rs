//! A listener: receives offers from contacts without a code.

use std::sync::Arc;

use tokio::sync::{Mutex, Notify};

use crate::event::{Event, EventReader};
use crate::fetch::Incoming;
use crate::runtime::in_runtime;

/// The accept filter of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, uniffi::Enum)]
pub enum AcceptFilter {
    /// Contacts only. The listener does not answer any other peer.
    #[default]
    Contacts,
    /// Any peer that has the NodeId, but few strangers at a time.
    AskUser,
    /// Any peer that has the NodeId.
    AnyPeer,
}

impl From<AcceptFilter> for wraith::AcceptFilter {
    fn from(filter: AcceptFilter) -> Self {
        match filter {
            AcceptFilter::Contacts => Self::Contacts,
            AcceptFilter::AskUser => Self::AskUser,
            AcceptFilter::AnyPeer => Self::AnyPeer,
        }
    }
}

/// Receives offers until it is stopped or freed. One transfer runs at a time.
#[derive(Debug, uniffi::Object)]
pub struct Listener {
    address: String,
    /// Locked while a call waits for the next offer.
    listener: Mutex<wraith::Listener>,
    /// Makes the waiting call release the listener.
    ending: Notify,
    events: EventReader,
}

impl Listener {
    pub(crate) fn new(listener: wraith::Listener) -> Arc<Self> {
        Arc::new(Self {
            address: listener.address().to_string(),
            events: EventReader::new(listener.events()),
            listener: Mutex::new(listener),
            ending: Notify::new(),
        })
    }
}

#[uniffi::export]
impl Listener {
    /// Returns the local address and port.
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Waits for the next offer. Returns null after [`Listener::stop`]. Concurrent calls are served
    /// in turn.
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
        let incoming = in_runtime(next).await?;
        Some(Incoming::new(incoming, None))
    }

    /// Returns the next event of the listener itself, or null after its end.
    pub async fn next_event(&self) -> Option<Event> {
        in_runtime(self.events.next()).await
    }

    /// Stops the listener without waiting. A running transfer is cancelled.
    pub fn stop(&self) {
        match self.listener.try_lock() {
            Ok(listener) => listener.stop(),
            Err(_) => self.ending.notify_one(),
        }
    }
}
