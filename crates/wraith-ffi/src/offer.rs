//! An offer under way.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::content::address;
use crate::error::WraithError;
use crate::event::{Event, Pull};
use crate::progress::{Progress, Reader};
use crate::runtime::entered;

/// How something is offered.
#[derive(Clone, Debug, uniffi::Record)]
pub struct OfferOptions {
    /// So many receivers get it; 0 is 1.
    #[uniffi(default = 1)]
    pub receivers: u32,
    /// Whoever comes gets it, until it is stopped, whatever `receivers` says. So does the greatest number there, as in C.
    #[uniffi(default = false)]
    pub any_number: bool,
    /// How long a code is good: an hour, or a day for any number of receivers, unless this says something else.
    #[uniffi(default = None)]
    pub expires: Option<Duration>,
    /// How long a receiver is waited for, or a contact looked for.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// How long a receiver that was lost is waited for: 10 min, unless this says something else.
    #[uniffi(default = None)]
    pub reconnect: Option<Duration>,
    /// No more than this many bytes a second, to all receivers together.
    #[uniffi(default = None)]
    pub bytes_per_second: Option<u64>,
    /// Listens on this address and port, in place of the node's.
    #[uniffi(default = None)]
    pub listen: Option<String>,
    /// Goes on with nothing of an earlier run.
    #[uniffi(default = false)]
    pub anew: bool,
}

impl Default for OfferOptions {
    fn default() -> Self {
        Self {
            receivers: 1,
            any_number: false,
            expires: None,
            timeout: None,
            reconnect: None,
            bytes_per_second: None,
            listen: None,
            anew: false,
        }
    }
}

impl OfferOptions {
    /// `offer` with these options; `listen` is the address of the node.
    pub(crate) fn apply(
        self,
        mut offer: wraith::OfferBuilder,
        listen: Option<&str>,
    ) -> Result<wraith::OfferBuilder, WraithError> {
        offer = match self.receivers {
            _ if self.any_number => offer.any_number(),
            u32::MAX => offer.any_number(),
            receivers => offer.receivers(receivers.max(1)),
        };
        if let Some(life) = self.expires {
            offer = offer.expires(life);
        }
        if let Some(timeout) = self.timeout {
            offer = offer.timeout(timeout);
        }
        if let Some(reconnect) = self.reconnect {
            offer = offer.reconnect(reconnect);
        }
        if let Some(rate) = self.bytes_per_second {
            offer = offer.rate(rate);
        }
        if let Some(listen) = self.listen.as_deref().or(listen) {
            offer = offer.bind_to(address(listen)?);
        }
        Ok(if self.anew { offer.anew() } else { offer })
    }
}

/// What became of an offer.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Sent {
    /// Receivers that have confirmed everything they could be sent.
    pub receivers: u32,
    /// Those of them that lack files that could not be sent.
    pub lacking: u32,
    /// The NodeId of the last of them.
    pub receiver: Option<String>,
    /// Files that the last one was sent, or had.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of file content that went over the connection to it.
    pub bytes_moved: u64,
}

impl From<&wraith::Sent> for Sent {
    fn from(sent: &wraith::Sent) -> Self {
        let report = sent.report.as_deref();
        Self {
            receivers: sent.receivers,
            lacking: sent.lacking,
            receiver: sent.last.as_ref().map(|(receiver, _)| receiver.to_string()),
            files: report.map_or(0, |report| report.files),
            bytes: report.map_or(0, |report| report.bytes),
            bytes_moved: report.map_or(0, |report| report.bytes_moved),
        }
    }
}

/// An offer under way. Freeing it withdraws the code and stops what is being sent.
#[derive(Debug, uniffi::Object)]
pub struct Offer {
    offer: wraith::Offer,
    events: Pull,
    progress: Reader,
    runtime: Handle,
}

impl Offer {
    pub(crate) fn new(offer: wraith::Offer, runtime: Handle) -> Arc<Self> {
        let (events, progress) = (Pull::new(offer.events()), Reader::new(offer.progress()));
        Arc::new(Self { offer, events, progress, runtime })
    }
}

#[uniffi::export]
impl Offer {
    /// The code, for the receiver to say. None of an offer by ticket or to a contact, and where there is no place to meet: then there is
    /// a ticket.
    pub fn code(&self) -> Option<String> {
        self.offer.code().map(ToString::to_string)
    }

    /// The ticket, which holds everything a receiver needs: a secret, good for whoever has it.
    pub fn ticket(&self) -> Option<String> {
        self.offer.ticket().map(ToString::to_string)
    }

    /// Where receivers can reach it, the most useful address first.
    pub fn addresses(&self) -> Vec<String> {
        self.offer.addresses().iter().map(ToString::to_string).collect()
    }

    /// The next thing that happens, from the beginning; none after [`Event::Done`] or [`Event::Failed`]. Who reads too slowly is told how
    /// much was missed, and always hears the end. Readers that wait at the same time share the events.
    pub async fn next_event(&self) -> Option<Event> {
        entered(self.runtime.clone(), self.events.next()).await
    }

    /// How far the transfers are, together; none before anybody came.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.read()
    }

    /// Waits until as many receivers as were wanted have confirmed everything.
    ///
    /// # Errors
    /// Why it failed; [`WraithError::Partial`] if a receiver lacks files that could not be sent.
    pub async fn finished(&self) -> Result<Sent, WraithError> {
        entered(self.runtime.clone(), async {
            let sent = self.offer.finished().await?;
            sent.complete()?;
            Ok(Sent::from(&*sent))
        })
        .await
    }

    /// Stops it, and waits until the receivers were told. The same offer another time continues where the node has a state folder.
    /// True if this ended it; false if it had come to its end before.
    pub async fn cancel(&self) -> bool {
        self.offer.stop();
        entered(self.runtime.clone(), self.offer.finished()).await.is_err_and(is_cancelled)
    }
}

/// Whether something ended because this side stopped it.
pub(crate) fn is_cancelled(error: wraith::Error) -> bool {
    error.kind() == wraith::ErrorKind::Cancelled
}
