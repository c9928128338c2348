//! An offer before its answer: the sender that is asked, and the question.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_transfer::{Conflicts, Decision, Preview, Role};
use wraith_transport::{Addr, Suite};

use super::Transfer;
use super::source::AcceptOptions;
use crate::engine::consent::{Asked, Consent};
use crate::error::Error;
use crate::event::{Observer, OfferInfo};

/// A sender that is being found and asked what it offers. Dropping it stops it.
#[derive(Debug)]
pub struct Asking {
    consent: Consent,
    asked: UnboundedReceiver<Asked>,
    transfer: Option<Transfer>,
}

impl Asking {
    pub(super) fn new(
        consent: Consent,
        asked: UnboundedReceiver<Asked>,
        transfer: Option<Transfer>,
    ) -> Self {
        Self { consent, asked, transfer }
    }

    /// The offer. Cancel-safe.
    ///
    /// # Errors
    /// Nobody was found, the code is wrong, or the connection was lost and did not come back.
    pub async fn incoming(&mut self) -> Result<Incoming, Error> {
        let ended = async {
            match &self.transfer {
                // Without an answer it ends with an error only.
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

    /// Stops it, and waits until the sender was told.
    pub async fn cancel(mut self) -> Error {
        match self.transfer.take() {
            Some(transfer) => transfer.cancel().await.err(),
            None => None,
        }
        .unwrap_or_else(|| Error::cancelled(Role::Receiver))
    }
}

/// An offer that waits for an answer. Dropped without one, it is put off: the sender goes on waiting, and the same code or
/// ticket fetches another time.
#[must_use = "dropping it puts the offer off"]
#[derive(Debug)]
pub struct Incoming {
    asked: Asked,
    consent: Consent,
    transfer: Option<Transfer>,
    gone: CancellationToken,
    accepted_before: Option<Conflicts>,
}

impl Incoming {
    pub(crate) fn new(
        asked: Asked,
        consent: Consent,
        transfer: Option<Transfer>,
        gone: CancellationToken,
    ) -> Self {
        Self { asked, consent, transfer, gone, accepted_before: None }
    }

    /// The same, of a transfer that a listener has accepted before.
    pub(crate) fn accepted(mut self, before: Option<Conflicts>) -> Self {
        self.accepted_before = before;
        self
    }

    /// How this very transfer was accepted before its connection was lost: nobody needs to be asked again. Of a listener only; a
    /// fetch goes on by itself.
    pub fn accepted_before(&self) -> Option<AcceptOptions> {
        self.accepted_before.clone().map(AcceptOptions::from)
    }

    /// Who offers it.
    pub fn sender(&self) -> NodeId {
        self.asked.sender
    }

    /// From where.
    pub fn remote(&self) -> &Addr {
        &self.asked.remote
    }

    /// What packets of the connection are sealed with.
    pub fn suite(&self) -> Suite {
        self.asked.suite
    }

    /// What is offered, as the sender says.
    pub fn offer(&self) -> OfferInfo {
        (&self.asked.offer).into()
    }

    /// The same as the transfer engine has it.
    pub fn offer_message(&self) -> &wraith_transfer::Offer {
        &self.asked.offer
    }

    /// The names and what each would meet here, as far as they were looked at; bounded in number, bytes and time.
    pub fn preview(&self) -> Option<&Preview> {
        self.asked.preview.as_ref()
    }

    /// Tells everything that happens to this transfer from now on to `observer` too, if there is none yet.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        if let Some(transfer) = &self.transfer {
            transfer.0.observe(observer);
        }
    }

    /// Whether [`Self::gone`] would return at once.
    pub fn is_gone(&self) -> bool {
        let is_over = |transfer: &Transfer| transfer.0.is_over();
        self.gone.is_cancelled() || self.transfer.as_ref().is_some_and(is_over)
    }

    /// Waits until the question is of no use any more: the transfer has ended, or (of a listener) the sender has gone or must
    /// make room.
    pub async fn gone(&self) {
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

    /// Fetches it.
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

    /// Says no, and why (may be empty), and waits until the sender was told.
    pub async fn refuse(mut self, why: &str) -> Error {
        self.consent.decide(Decision::Refuse(why.to_owned()));
        self.end().await
    }

    /// Says "not now", and waits until the sender was told.
    pub async fn later(mut self) {
        self.consent.decide(Decision::Later);
        drop(self.end().await);
    }

    /// Stops it without an answer, and waits until the sender was told.
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
            self.consent.decide(Decision::Later);
            transfer.detach();
        }
    }
}
