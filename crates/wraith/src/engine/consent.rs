//! The answer to an offer: given beforehand, or by whoever is asked, once for all connections of a transfer.
//!
//! Invariants: nothing is written before there is a yes; an answer holds on every later connection, so nobody is asked twice,
//! and for what was shown only: a sender that comes back with more is refused;
//! a question outlives the connection it came by, and whoever drops it unanswered has said "later".

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, watch};
use wraith_crypto::NodeId;
use wraith_transfer::{Decision, Offer, Preview, Proposal};
use wraith_transport::{Addr, block_on};

/// An offer that somebody is to decide on. Owned: the transfer's thread waits elsewhere.
#[derive(Debug)]
pub(crate) struct Asked {
    pub offer: Offer,
    pub sender: NodeId,
    pub remote: Addr,
    pub preview: Option<Preview>,
}

impl Asked {
    fn of(proposal: &Proposal<'_>) -> Self {
        let preview = proposal.preview.map(|preview| Preview {
            entries: preview.entries.clone(),
            complete: preview.complete,
        });
        let Proposal { offer, sender, remote, .. } = proposal;
        Self { offer: (*offer).clone(), sender: *sender, remote: remote.clone(), preview }
    }
}

/// What was shown, as far as a later offer is measured by it.
#[derive(Clone, Debug)]
pub(crate) struct Shown(Offer);

impl Shown {
    pub fn of(offer: &Offer) -> Self {
        Self(offer.clone())
    }

    /// Whether an answer to what was shown is one to this offer too: it is no more, and nothing of another kind.
    pub fn covers(&self, offer: &Offer) -> bool {
        let Self(shown) = self;
        let counts =
            |offer: &Offer| [offer.files, offer.dirs, offer.links, offer.bytes, offer.largest];
        // The length of a stream is not known beforehand, and its offer says 0 each time.
        offer.stream == shown.stream
            && offer.name == shown.name
            && counts(offer).iter().zip(counts(shown)).all(|(now, then)| *now <= then)
    }
}

/// See the module. Clones are of the same.
#[derive(Clone, Debug)]
pub(crate) struct Consent {
    decision: watch::Sender<Option<Decision>>,
    ask: Option<mpsc::UnboundedSender<Asked>>,
    /// What was put to whoever is asked, once it was.
    shown: Arc<OnceLock<Shown>>,
    /// A later offer was another one.
    is_changed: Arc<AtomicBool>,
}

impl Consent {
    /// Decided already.
    pub fn given(decision: Decision) -> Self {
        Self::new(Some(decision), None)
    }

    /// To be asked for; the question comes out of the receiver.
    pub fn open() -> (Self, mpsc::UnboundedReceiver<Asked>) {
        let (ask, asked) = mpsc::unbounded_channel();
        (Self::new(None, Some(ask)), asked)
    }

    fn new(decision: Option<Decision>, ask: Option<mpsc::UnboundedSender<Asked>>) -> Self {
        let (shown, is_changed) = (Arc::default(), Arc::default());
        Self { decision: watch::Sender::new(decision), ask, shown, is_changed }
    }

    /// The sender came back with another offer than the one that was put to the user.
    pub fn is_changed(&self) -> bool {
        self.is_changed.load(Relaxed)
    }

    pub fn is_open(&self) -> bool {
        self.decision.borrow().is_none()
    }

    /// What was put to whoever is asked, if anything was.
    pub fn shown(&self) -> Option<Shown> {
        self.shown.get().cloned()
    }

    /// The answer, if there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.decision.borrow().clone()
    }

    /// Waits until there is an answer.
    pub async fn decided(&self) {
        // This keeps the sending half, so the wait does not fail.
        drop(self.decision.subscribe().wait_for(Option::is_some).await);
    }

    /// The answer, which counts if it is the first.
    pub fn decide(&self, decision: Decision) {
        self.decision.send_if_modified(|now| {
            let is_first = now.is_none();
            if is_first {
                *now = Some(decision);
            }
            is_first
        });
    }

    /// On the transfer's thread: the decision, asked for if need be. The end of the connection ends the wait, and a transfer that
    /// is cancelled closes it first; what is said then is of no use to anybody.
    pub fn wait(&self, proposal: &Proposal<'_>) -> Decision {
        if let Some(shown) = self.shown.get()
            && !shown.covers(proposal.offer)
        {
            self.is_changed.store(true, Relaxed);
            return Decision::Refuse("this is not what was offered before".into());
        }
        if let Some(decision) = self.decision.borrow().clone() {
            return decision;
        }
        if self.shown.set(Shown::of(proposal.offer)).is_ok() {
            let heard = self.ask.as_ref().is_some_and(|ask| ask.send(Asked::of(proposal)).is_ok());
            if !heard {
                return Decision::Later;
            }
        }
        let mut decided = self.decision.subscribe();
        block_on(async {
            tokio::select! {
                decided = decided.wait_for(Option::is_some) => {
                    decided.ok().and_then(|decision| decision.clone()).unwrap_or(Decision::Later)
                }
                _ = proposal.connection.closed() => Decision::Later,
            }
        })
    }
}
