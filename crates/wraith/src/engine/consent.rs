//! The answer to an offer: given beforehand, or by whoever is asked, once for all connections of a transfer.
//!
//! Invariants: nothing is written before there is a yes; an answer holds on every later connection, so nobody is asked twice,
//! and for what was shown only ([`Shown`]): a sender that comes back with more is refused, or asked about anew, and names that were not
//! shown are left out;
//! a question outlives the connection it came by, and whoever drops it unanswered has said "later".

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use wraith_crypto::NodeId;
use wraith_transfer::{Decision, Offer, Preview, Proposal, Shown};
use wraith_transport::{Addr, Suite, block_on};

/// An offer that somebody is to decide on. Owned: the transfer's thread waits elsewhere.
#[derive(Debug)]
pub(crate) struct Asked {
    pub offer: Offer,
    pub sender: NodeId,
    pub remote: Addr,
    pub suite: Suite,
    pub preview: Option<Preview>,
}

impl Asked {
    fn of(proposal: &Proposal<'_>) -> Self {
        let preview = proposal.preview.map(|preview| Preview {
            entries: preview.entries.clone(),
            complete: preview.complete,
        });
        let Proposal { offer, sender, remote, connection, .. } = proposal;
        Self {
            offer: (*offer).clone(),
            sender: *sender,
            remote: remote.clone(),
            suite: connection.suite(),
            preview,
        }
    }
}

/// See the module. Clones are of the same.
#[derive(Clone, Debug)]
pub(crate) struct Consent {
    decision: watch::Sender<Option<Decision>>,
    ask: Option<mpsc::UnboundedSender<Asked>>,
    /// What was put to whoever is asked, once it was.
    shown: Arc<Mutex<Option<Shown>>>,
    /// The answer is one to every offer.
    covers_any: Arc<AtomicBool>,
    /// A later offer was another one.
    is_changed: Arc<AtomicBool>,
    /// Whoever was asked is asked anew about such an offer, so its sender is not told no.
    asks_again: Arc<AtomicBool>,
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
        let decision = watch::Sender::new(decision);
        let (shown, covers_any) = (Arc::default(), Arc::default());
        let (is_changed, asks_again) = (Arc::default(), Arc::default());
        Self { decision, ask, shown, covers_any, is_changed, asks_again }
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
        self.lock_shown().clone()
    }

    /// The answer is one to what was shown before, when this very transfer was accepted.
    pub fn narrow(&self, shown: Shown) {
        *self.lock_shown() = Some(shown);
    }

    fn lock_shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An offer that differs is not refused: whoever was asked fetches anew, and is asked anew.
    pub fn ask_again(&self) {
        self.asks_again.store(true, Relaxed);
    }

    pub fn asks_again(&self) -> bool {
        self.asks_again.load(Relaxed)
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

    /// From now on the answer is one to every offer, whatever was shown.
    pub fn cover_any_offer(&self) {
        self.covers_any.store(true, Relaxed);
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
        let shown = self.shown();
        if let Some(shown) = &shown
            && !shown.covers(proposal.sender, proposal.offer)
            && !self.covers_any.load(Relaxed)
        {
            self.is_changed.store(true, Relaxed);
            return match self.asks_again() {
                true => Decision::Later,
                false => Decision::Refuse("this is not what was offered before".into()),
            };
        }
        if let Some(decision) = self.decision() {
            return self.within_what_was_shown(decision);
        }
        if shown.is_none() {
            self.narrow(Shown::of_proposal(proposal));
            let heard = self.ask.as_ref().is_some_and(|ask| ask.send(Asked::of(proposal)).is_ok());
            if !heard {
                return Decision::Later;
            }
        }
        let mut decided = self.decision.subscribe();
        let decision = block_on(async {
            tokio::select! {
                decided = decided.wait_for(Option::is_some) => {
                    decided.ok().and_then(|decision| decision.clone()).unwrap_or(Decision::Later)
                }
                _ = proposal.connection.closed() => Decision::Later,
            }
        });
        self.within_what_was_shown(decision)
    }

    /// A yes to what was shown is one to that alone.
    fn within_what_was_shown(&self, decision: Decision) -> Decision {
        match (decision, self.shown()) {
            (Decision::AcceptWith(conflicts), Some(shown)) if !self.covers_any.load(Relaxed) => {
                Decision::AcceptShown(conflicts, shown)
            }
            (decision, _) => decision,
        }
    }
}
