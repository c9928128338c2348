//! The answer to an offer. The caller gives it in advance, or the user gives it once for all
//! connections of a transfer.
//!
//! Invariants:
//!
//! - Nothing is written before the offer is accepted.
//! - An answer holds on every later connection, so no user is asked twice.
//! - An answer covers only the offer that was shown ([`Shown`]). If the sender reconnects with a
//!   larger offer, that offer is refused or the user is asked again. Names that were not shown are
//!   left out.
//! - A question outlives the connection on which the offer came. Dropping the question unanswered
//!   postpones the offer.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use wraith_crypto::NodeId;
use wraith_transfer::{Decision, Offer, Preview, Proposal, Shown};
use wraith_transport::{Addr, Suite, block_on};

/// An offer that awaits a decision. It is owned, because the transfer's thread waits elsewhere.
#[derive(Debug)]
pub(crate) struct PendingOffer {
    pub offer: Offer,
    pub sender: NodeId,
    pub remote: Addr,
    pub suite: Suite,
    pub preview: Option<Preview>,
}

impl PendingOffer {
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

/// The answer to an offer (see the module docs). Clones share the same answer.
#[derive(Clone, Debug)]
pub(crate) struct Consent {
    decision: watch::Sender<Option<Decision>>,
    ask: Option<mpsc::UnboundedSender<PendingOffer>>,
    /// The offer as shown to the user, once it was.
    shown: Arc<Mutex<Option<Shown>>>,
    /// The answer covers any offer.
    covers_any: Arc<AtomicBool>,
    /// A later offer differed.
    is_changed: Arc<AtomicBool>,
    /// The user is asked again about a different offer, so its sender is not refused.
    asks_again: Arc<AtomicBool>,
}

impl Consent {
    /// Creates a consent with a decision given in advance.
    pub fn given(decision: Decision) -> Self {
        Self::new(Some(decision), None)
    }

    /// Creates a consent without a decision. The receiver yields the questions.
    pub fn open() -> (Self, mpsc::UnboundedReceiver<PendingOffer>) {
        let (ask, asked) = mpsc::unbounded_channel();
        (Self::new(None, Some(ask)), asked)
    }

    fn new(decision: Option<Decision>, ask: Option<mpsc::UnboundedSender<PendingOffer>>) -> Self {
        let decision = watch::Sender::new(decision);
        let (shown, covers_any) = (Arc::default(), Arc::default());
        let (is_changed, asks_again) = (Arc::default(), Arc::default());
        Self { decision, ask, shown, covers_any, is_changed, asks_again }
    }

    /// Returns true if the sender reconnected with another offer than the one shown to the user.
    pub fn is_changed(&self) -> bool {
        self.is_changed.load(Relaxed)
    }

    pub fn is_open(&self) -> bool {
        self.decision.borrow().is_none()
    }

    /// Returns the offer as shown to the user, if any was.
    pub fn shown(&self) -> Option<Shown> {
        self.lock_shown().clone()
    }

    /// Limits the answer to the offer that was shown when this transfer was accepted earlier.
    pub fn limit_to(&self, shown: Shown) {
        *self.lock_shown() = Some(shown);
    }

    fn lock_shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Declares that a different offer is not refused: the caller fetches again, and the user is
    /// asked again.
    pub fn ask_again(&self) {
        self.asks_again.store(true, Relaxed);
    }

    pub fn asks_again(&self) -> bool {
        self.asks_again.load(Relaxed)
    }

    /// Returns the answer, if there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.decision.borrow().clone()
    }

    /// Waits for the answer.
    pub async fn decided(&self) {
        // `self` holds the sender, so the wait cannot fail.
        drop(self.decision.subscribe().wait_for(Option::is_some).await);
    }

    /// Extends the answer to any later offer.
    pub fn cover_any_offer(&self) {
        self.covers_any.store(true, Relaxed);
    }

    /// Sets the answer, unless there is one already.
    pub fn decide(&self, decision: Decision) {
        self.decision.send_if_modified(|now| {
            let is_first = now.is_none();
            if is_first {
                *now = Some(decision);
            }
            is_first
        });
    }

    /// Returns the decision, on the transfer's thread; asks the user if necessary. The wait ends
    /// with the connection. A cancelled transfer closes its connection first, so a later decision
    /// has no effect.
    pub fn wait(&self, proposal: &Proposal<'_>) -> Decision {
        let shown = self.shown();
        if let Some(shown) = &shown
            && !shown.covers(proposal.sender, proposal.offer)
            && !self.covers_any.load(Relaxed)
        {
            self.is_changed.store(true, Relaxed);
            return match self.asks_again() {
                true => Decision::Postpone,
                false => Decision::Refuse("the offer differs from the accepted one".into()),
            };
        }
        if let Some(decision) = self.decision() {
            return self.limit_to_shown(decision);
        }
        if shown.is_none() {
            self.limit_to(Shown::of_proposal(proposal));
            let heard =
                self.ask.as_ref().is_some_and(|ask| ask.send(PendingOffer::of(proposal)).is_ok());
            if !heard {
                return Decision::Postpone;
            }
        }
        let mut decided = self.decision.subscribe();
        let decision = block_on(async {
            tokio::select! {
                decided = decided.wait_for(Option::is_some) => {
                    decided.ok().and_then(|decision| decision.clone()).unwrap_or(Decision::Postpone)
                }
                _ = proposal.connection.closed() => Decision::Postpone,
            }
        });
        self.limit_to_shown(decision)
    }

    /// Limits a yes to the offer that was shown.
    fn limit_to_shown(&self, decision: Decision) -> Decision {
        match (decision, self.shown()) {
            (Decision::AcceptWith(conflicts), Some(shown)) if !self.covers_any.load(Relaxed) => {
                Decision::AcceptShown(conflicts, shown)
            }
            (decision, _) => decision,
        }
    }
}
