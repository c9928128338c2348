//! The answer to an offer: given beforehand, or by whoever is asked, once for all connections of a transfer.
//!
//! Invariants: nothing is written before there is a yes; an answer holds on every later connection, so nobody is asked twice;
//! a question outlives the connection it came by, and whoever drops it unanswered has said "later".

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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

/// See the module. Clones are of the same.
#[derive(Clone, Debug)]
pub(crate) struct Consent {
    decision: watch::Sender<Option<Decision>>,
    ask: Option<mpsc::UnboundedSender<Asked>>,
    asked: Arc<AtomicBool>,
}

impl Consent {
    /// Decided already.
    pub fn given(decision: Decision) -> Self {
        Self { decision: watch::Sender::new(Some(decision)), ask: None, asked: Arc::default() }
    }

    /// To be asked for; the question comes out of the receiver.
    pub fn open() -> (Self, mpsc::UnboundedReceiver<Asked>) {
        let (ask, asked) = mpsc::unbounded_channel();
        let consent =
            Self { decision: watch::Sender::new(None), ask: Some(ask), asked: Arc::default() };
        (consent, asked)
    }

    pub fn is_open(&self) -> bool {
        self.decision.borrow().is_none()
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
        if let Some(decision) = self.decision.borrow().clone() {
            return decision;
        }
        if !self.asked.swap(true, Relaxed) {
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
