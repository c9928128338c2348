//! An offer that the receiver has not answered yet, and the fetch that led to it.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_transfer::{Conflicts, Decision, Preview, Role};
use wraith_transport::{Addr, Suite};

use super::Transfer;
use super::source::AcceptOptions;
use crate::engine::consent::{Consent, PendingOffer};
use crate::error::Error;
use crate::event::{Observer, OfferInfo};
use crate::event_publisher::Events;

/// A search for the sender and its offer. Drop stops it.
#[derive(Debug)]
pub struct OfferRequest {
    consent: Consent,
    asked: UnboundedReceiver<PendingOffer>,
    transfer: Option<Transfer>,
}

impl OfferRequest {
    pub(super) fn new(
        consent: Consent,
        asked: UnboundedReceiver<PendingOffer>,
        transfer: Option<Transfer>,
    ) -> Self {
        Self { consent, asked, transfer }
    }

    /// Returns a stream of the events of the search and of the transfer ([`Transfer::events`]);
    /// `None` once [`Self::incoming`] has returned the offer, which owns the transfer.
    pub fn events(&self) -> Option<Events> {
        self.transfer.as_ref().map(Transfer::events)
    }

    /// Returns the offer. Cancel-safe.
    ///
    /// # Errors
    /// The sender was not found, the code is wrong, or the connection was lost and not restored.
    pub async fn incoming(&mut self) -> Result<Incoming, Error> {
        let ended = async {
            match &self.transfer {
                // Without an answer, the transfer can end only with an error.
                Some(transfer) => transfer.finished().await.err(),
                None => None,
            }
            .unwrap_or_else(|| Error::cancelled(Role::Receiver))
        };
        tokio::select! {
            Some(asked) = self.asked.recv() => {
                let (consent, gone) = (self.consent.clone(), CancellationToken::new());
                Ok(Incoming::new(asked, consent, self.transfer.take(), gone))
            }
            error = ended => Err(error),
        }
    }

    /// Cancels the search and waits until the sender is notified.
    pub async fn cancel(mut self) -> Error {
        match self.transfer.take() {
            Some(transfer) => transfer.cancel().await.err(),
            None => None,
        }
        .unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }
}

/// An offer that waits for an answer. Drop without an answer postpones it: the sender keeps
/// waiting, and the same code or ticket can fetch it later.
#[must_use = "dropping it postpones the offer"]
#[derive(Debug)]
pub struct Incoming {
    asked: PendingOffer,
    consent: Consent,
    transfer: Option<Transfer>,
    gone: CancellationToken,
    accepted_before: Option<Conflicts>,
}

impl Incoming {
    pub(crate) fn new(
        asked: PendingOffer,
        consent: Consent,
        transfer: Option<Transfer>,
        gone: CancellationToken,
    ) -> Self {
        Self { asked, consent, transfer, gone, accepted_before: None }
    }

    /// Sets the answer that a listener gave to this transfer before its connection was lost.
    pub(crate) fn accepted(mut self, before: Option<Conflicts>) -> Self {
        self.accepted_before = before;
        self
    }

    /// Returns the options with which this transfer was accepted before its connection was lost;
    /// the user need not be asked again. Set only for offers of a listener, because a fetch resumes
    /// automatically.
    pub fn accepted_before(&self) -> Option<AcceptOptions> {
        self.accepted_before.clone().map(AcceptOptions::from)
    }

    /// Returns the NodeId of the sender.
    pub fn sender(&self) -> NodeId {
        self.asked.sender
    }

    /// Returns the address of the sender.
    pub fn remote(&self) -> &Addr {
        &self.asked.remote
    }

    /// Returns the cipher suite of the connection.
    pub fn suite(&self) -> Suite {
        self.asked.suite
    }

    /// Returns the summary of the offer, as the sender declares it.
    pub fn offer(&self) -> OfferInfo {
        (&self.asked.offer).into()
    }

    /// Returns the offer in the form of the transfer engine.
    pub fn offer_message(&self) -> &wraith_transfer::Offer {
        &self.asked.offer
    }

    /// Returns the previewed names, each with its conflict in the target folder. The preview is
    /// bounded in number, bytes and time.
    pub fn preview(&self) -> Option<&Preview> {
        self.asked.preview.as_ref()
    }

    /// Also reports all later events of this transfer to `observer`, unless an observer is already
    /// set.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        if let Some(transfer) = &self.transfer {
            transfer.0.observe(observer);
        }
    }

    /// Returns true if [`Self::withdrawn`] would return at once.
    pub fn is_withdrawn(&self) -> bool {
        let is_over = |transfer: &Transfer| transfer.0.is_over();
        self.gone.is_cancelled() || self.transfer.as_ref().is_some_and(is_over)
    }

    /// Waits until the offer can no longer be answered: the transfer has ended, or (for a listener)
    /// the sender left or was evicted.
    pub async fn withdrawn(&self) {
        let over = async {
            match &self.transfer {
                Some(transfer) => drop(transfer.finished().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.gone.cancelled() => {}
            () = over => {}
        }
    }

    /// Accepts the offer and starts the transfer.
    pub fn accept(mut self, options: impl Into<AcceptOptions>) -> Transfer {
        let AcceptOptions { conflicts, any_offer, ask_again } = options.into();
        if any_offer {
            self.consent.cover_any_offer();
        }
        if ask_again {
            self.consent.ask_again();
        }
        self.consent.decide(Decision::AcceptWith(conflicts));
        self.transfer.take().expect("an offer is answered once, and that takes it")
    }

    /// Declines the offer with a reason, which may be empty, and waits until the sender is
    /// notified.
    pub async fn refuse(mut self, why: &str) -> Error {
        self.consent.decide(Decision::Refuse(why.to_owned()));
        self.end().await
    }

    /// Postpones the offer and waits until the sender is notified.
    pub async fn postpone(mut self) {
        self.consent.decide(Decision::Postpone);
        drop(self.end().await);
    }

    /// Cancels without an answer and waits until the sender is notified.
    pub async fn cancel(mut self) -> Error {
        let transfer = self.transfer.take().expect("an offer is answered once, and that takes it");
        transfer.cancel().await.err().unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }

    async fn end(&mut self) -> Error {
        let transfer = self.transfer.take().expect("an offer is answered once, and that takes it");
        transfer.finished().await.err().unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(transfer) = self.transfer.take() {
            self.consent.decide(Decision::Postpone);
            transfer.detach();
        }
    }
}
