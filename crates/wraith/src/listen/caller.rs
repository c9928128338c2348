//! One caller of a listener (a sender that dials it), from its connection to the end of its
//! transfer.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wraith_crypto::{NodeId, redacted_debug};
use wraith_discovery::Capability;
use wraith_transfer::limits::NEGOTIATION_TIMEOUT;
use wraith_transfer::{
    Decision, Offer, Progress, Shown, TransferError, close, receive_dialler_hello,
};
use wraith_transport::Connection;

use super::callers::Callers;
use super::question_limit::QuestionLimit;
use super::{AcceptFilter, Question};
use crate::engine::consent::{Consent, PendingOffer};
use crate::engine::session::SessionResult;
use crate::engine::task::TaskState;
use crate::error::Error;
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::fetch::{FetchJob, Target};
use crate::node::Node;
use crate::report::FetchSummary;
use crate::settings::{FetchSettings, TransferOptions};

/// Maximum number of remembered answers. An offer that returns after a lost connection is not asked
/// about again.
const ANSWERED_MAX: usize = 256;
/// Maximum number of concurrent previews, each of up to 32 MiB.
const PREVIEWS_MAX: usize = 2;
/// Poll interval of a caller that waits for the turn. It checks whether the holder has exceeded its
/// limit. Without a waiting caller, nothing polls.
const TURN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// State shared by all callers.
#[derive(Debug)]
pub(super) struct ListenContext {
    node: Node,
    folder: PathBuf,
    rate: Option<u64>,
    preview: bool,
    filter: AcceptFilter,
    callers: Callers,
    /// Held by the caller whose transfer is being decided or is in progress.
    turn: Arc<Turn<()>>,
    answered: AnswerCache,
    previews: Arc<AtomicUsize>,
    /// Set if the user is asked about strangers.
    questions: Option<Mutex<QuestionLimit>>,
    /// Number of offers refused because there were too many.
    unread: AtomicU64,
    /// Receives the events of the listener itself.
    publisher: Arc<EventPublisher>,
}

impl ListenContext {
    pub fn new(
        node: Node,
        folder: PathBuf,
        rate: Option<u64>,
        preview: bool,
        filter: AcceptFilter,
        publisher: Arc<EventPublisher>,
    ) -> Self {
        let (callers, turn) = (Callers::default(), Arc::default());
        let (answered, previews) = (AnswerCache::default(), Arc::default());
        let questions = (filter == AcceptFilter::AskUser).then(Mutex::default);
        let unread = AtomicU64::new(0);
        Self {
            node,
            folder,
            rate,
            preview,
            filter,
            callers,
            turn,
            answered,
            previews,
            questions,
            unread,
            publisher,
        }
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    pub fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Returns whether a peer may connect, given whether it is a contact.
    pub fn admits(&self, is_contact: bool) -> bool {
        is_contact || self.filter != AcceptFilter::Contacts
    }

    /// Returns whether the peer is a contact; false if the contacts cannot be read. Read anew each
    /// time, because a contact may have been removed.
    pub fn is_contact(&self, peer: NodeId) -> bool {
        self.node.contacts().load().is_ok_and(|book| book.with(peer).is_some())
    }

    /// Returns whether a stranger from this address may ask the user one more question. A refusal
    /// is counted and reported.
    fn may_ask(&self, from: Option<IpAddr>) -> bool {
        let Some(questions) = &self.questions else { return true };
        let mut questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
        let may = questions.allow(from, Instant::now());
        if !may {
            let total = self.unread.fetch_add(1, Relaxed) + 1;
            self.publisher.publish(Event::RefusedUnread { total });
        }
        may
    }

    /// Reserves one preview, until the returned slot is dropped. `None` if all are taken.
    fn take_preview(&self) -> Option<PreviewSlot> {
        let room = |n: usize| (n < PREVIEWS_MAX).then_some(n + 1);
        self.previews
            .try_update(Relaxed, Relaxed, room)
            .is_ok()
            .then(|| PreviewSlot(Arc::clone(&self.previews)))
    }
}

/// A reserved preview.
struct PreviewSlot(Arc<AtomicUsize>);

impl Drop for PreviewSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Answers to earlier offers. A yes is remembered while its transfer is interrupted; a no to a
/// stranger is remembered while there is room.
#[derive(Debug, Default)]
struct AnswerCache(Mutex<VecDeque<Answer>>);

/// The answer to one offer.
struct Answer {
    peer: NodeId,
    secret: Capability,
    shown: Shown,
    decision: Decision,
}

redacted_debug!(Answer, peer);

impl AnswerCache {
    /// Returns the earlier answer that applies to this offer.
    ///
    /// - A yes applies to one transfer, until it is complete, and to no more than was shown.
    /// - A no to a stranger applies to all its later offers. A contact may ask again.
    fn find(
        &self,
        peer: NodeId,
        secret: &Capability,
        is_contact: bool,
        offer: &Offer,
    ) -> Option<Decision> {
        let list = self.lock();
        let of_peer = || list.iter().rev().filter(|answer| answer.peer == peer);
        let is_same = |answer: &&Answer| {
            is_yes(&answer.decision) && answer.secret == *secret && answer.shown.covers(peer, offer)
        };
        let is_no = |answer: &&Answer| !is_contact && !is_yes(&answer.decision);
        // A no to another offer does not revoke a yes.
        let answer = of_peer().find(is_same).or_else(|| of_peer().find(is_no));
        answer.map(|answer| answer.decision.clone())
    }

    /// Returns the offer that was shown when this transfer was accepted.
    fn shown(&self, peer: NodeId, secret: &Capability) -> Option<Shown> {
        let is_same = |answer: &&Answer| answer.peer == peer && answer.secret == *secret;
        self.lock().iter().rev().find(is_same).map(|answer| answer.shown.clone())
    }

    fn remember(&self, answer: Answer) {
        self.forget(answer.peer, &answer.secret);
        let mut list = self.lock();
        if list.len() >= ANSWERED_MAX {
            // Evict a no first: strangers can come in any number and must not evict a yes.
            let no = list.iter().position(|answer| !is_yes(&answer.decision));
            list.remove(no.unwrap_or(0));
        }
        list.push_back(answer);
    }

    /// Removes the answer of a transfer that is over. Its secret is valid for no other transfer.
    fn forget(&self, peer: NodeId, secret: &Capability) {
        self.lock().retain(|answer| answer.peer != peer || answer.secret != *secret);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_yes(decision: &Decision) -> bool {
    matches!(decision, Decision::AcceptWith(_))
}

/// One caller of a listener.
pub(super) struct Caller {
    pub context: Arc<ListenContext>,
    pub id: u64,
    pub connection: Connection,
    pub shared: TaskState,
    pub gone: CancellationToken,
    /// The offer was refused because there were too many, and the user has not seen it.
    pub is_unread: AtomicBool,
}

impl Caller {
    /// Runs until the caller's transfer is over.
    pub async fn run(self, ask: UnboundedSender<Question>) -> Result<FetchSummary, Error> {
        let _left = RemoveOnDrop { context: Arc::clone(&self.context), id: self.id };
        let secret = tokio::select! {
            secret = timeout(NEGOTIATION_TIMEOUT, receive_dialler_hello(&self.connection)) => {
                secret.ok().flatten().map(Capability::from_bytes)
            }
            () = self.gone.cancelled() => None,
        };
        let Some(secret) = secret else {
            self.connection.close(close::OTHER, "");
            return Err(Error::cancelled(wraith_transfer::Role::Receiver));
        };
        self.context.callers.identify(self.id, secret.clone());
        self.receive_offer(secret, ask).await
    }

    async fn receive_offer(
        &self,
        secret: Capability,
        ask: UnboundedSender<Question>,
    ) -> Result<FetchSummary, Error> {
        let (consent, mut questions) = Consent::open();
        // The first questions include all names. Names take memory, so further callers are asked
        // about without them.
        let mut slot = self.context.preview.then(|| self.context.take_preview()).flatten();
        let transfer = TransferOptions { rate: self.context.rate, ..TransferOptions::default() };
        let settings = FetchSettings { transfer, keep_modes: false, preview: slot.is_some() };
        let job = FetchJob {
            secret: secret.clone(),
            target: Target::folder(self.context.folder.clone()),
            settings,
            consent: consent.clone(),
            shared: self.shared.clone(),
            receiver: None,
            receiving: None,
        };
        let (node, progress) = (self.context.node.clone(), Arc::<Progress>::default());
        let run = job.run(&node, self.connection.clone(), true, Arc::clone(&progress));
        let mut transfer = std::pin::pin!(run);
        let (mut turn, mut is_decided) = (None, false);
        let session = loop {
            tokio::select! {
                session = &mut transfer => break session,
                Some(asked) = questions.recv() => {
                    // Meanwhile, the transfer still notices the loss of its peer.
                    turn = tokio::select! {
                        held = self.take_turn() => held,
                        session = &mut transfer => break session,
                    };
                    match turn {
                        Some(_) => self.answer_offer(asked, &secret, &consent, &ask),
                        // The caller left or was evicted. That is no answer to remember.
                        None => consent.decide(Decision::Postpone),
                    }
                }
                () = consent.decided(), if !is_decided => {
                    is_decided = true;
                    slot = None;
                    self.context.callers.set_progress(self.id, &progress);
                }
            }
        };
        drop((turn, slot));
        self.finish(secret, &consent, session)
    }

    /// Waits for the turn and meanwhile checks its holder. Returns `None` if the connection ends
    /// first.
    async fn take_turn(&self) -> Option<OwnedMutexGuard<()>> {
        let _waiting = self.context.callers.register_waiting();
        let mut held = std::pin::pin!(Arc::clone(&self.context.turn).lock_owned());
        loop {
            tokio::select! {
                held = &mut held => return Some(held),
                _ = self.connection.closed() => return None,
                () = self.gone.cancelled() => return None,
                () = tokio::time::sleep(TURN_POLL_INTERVAL) => {
                    self.context.callers.enforce_turn_limit(Instant::now());
                }
            }
        }
    }

    /// Answers the offer when its turn has come: with the earlier answer if there is one, otherwise
    /// by a question to the user.
    fn answer_offer(
        &self,
        asked: PendingOffer,
        secret: &Capability,
        consent: &Consent,
        ask: &UnboundedSender<Question>,
    ) {
        self.context.callers.mark_turn_holder(self.id);
        let peer = self.connection.peer();
        let is_contact = self.context.is_contact(peer);
        if !self.context.admits(is_contact) {
            consent.decide(Decision::Refuse(String::new()));
            return;
        }
        let accepted_before =
            match self.context.answered.find(peer, secret, is_contact, &asked.offer) {
                Some(Decision::AcceptWith(conflicts)) => {
                    if let Some(shown) = self.context.answered.shown(peer, secret) {
                        consent.limit_to(shown);
                    }
                    Some(conflicts)
                }
                Some(refused) => {
                    consent.decide(refused);
                    return;
                }
                None => None,
            };
        let is_new = accepted_before.is_none() && !is_contact;
        if is_new && !self.context.may_ask(self.connection.remote().ip().map(|at| at.ip())) {
            self.is_unread.store(true, Relaxed);
            consent.decide(Decision::Refuse(String::new()));
            return;
        }
        let (consent, gone) = (consent.clone(), self.gone.clone());
        // If the listener's user is gone, the end of the listener notifies the caller.
        let _ = ask.send(Question { id: self.id, asked, consent, gone, accepted_before });
    }

    /// Returns whether this error means an interrupted transfer that may come back, rather than one
    /// that a side ended.
    fn is_interrupted(&self, error: &TransferError) -> bool {
        let is_lost = matches!(error, TransferError::NetworkLost { .. });
        is_lost || self.context.callers.is_over_limit(self.id)
    }

    fn finish(
        &self,
        secret: Capability,
        consent: &Consent,
        session: SessionResult<wraith_transfer::ReceiveReport>,
    ) -> Result<FetchSummary, Error> {
        let peer = self.connection.peer();
        match (consent.decision(), consent.shown(), &session.result) {
            (_, _, Ok(_)) => self.context.answered.forget(peer, &secret),
            (Some(Decision::Postpone) | None, ..) | (_, None, _) => {}
            // An interrupted transfer may resume. A cancelled or failed transfer is over, and its
            // yes with it.
            (Some(decision), _, Err(error)) if is_yes(&decision) && !self.is_interrupted(error) => {
                self.context.answered.forget(peer, &secret);
            }
            (Some(decision), Some(shown), _) if !self.is_unread.load(Relaxed) => {
                self.context.answered.remember(Answer { peer, secret, shown, decision });
            }
            _ => {}
        }
        let remote = self.connection.remote();
        match session.result {
            Ok(report) => {
                self.context.node.store_last_seen(report.sender, &remote);
                Ok(FetchSummary { sender: report.sender, report, remote })
            }
            Err(error) => {
                let error = Error::from(error);
                if self.context.callers.is_over_limit(self.id) {
                    let why =
                        "closed because other senders are waiting; it may reconnect and resume";
                    return Err(Error::new(error.kind(), why));
                }
                Err(error)
            }
        }
    }
}

/// Removes the caller from the list on drop, however it ends.
struct RemoveOnDrop {
    context: Arc<ListenContext>,
    id: u64,
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        self.context.callers.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use wraith_crypto::SecretIdentity;
    use wraith_transfer::Conflicts;

    use super::*;

    fn offer(bytes: u64) -> Offer {
        Offer { name: "film".into(), files: 1, bytes, largest: bytes, ..Offer::default() }
    }

    fn answer(peer: NodeId, secret: u8, decision: Decision) -> Answer {
        Answer {
            peer,
            secret: Capability::from_bytes([secret; 16]),
            shown: Shown::of(&offer(10)),
            decision,
        }
    }

    #[test]
    fn a_refusal_is_remembered_for_a_stranger_but_not_for_a_contact() {
        let answered = AnswerCache::default();
        let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]).node_id());
        let (yes, no) =
            (Decision::AcceptWith(Conflicts::default()), Decision::Refuse(String::new()));
        answered.remember(answer(a, 1, no.clone()));
        answered.remember(answer(b, 1, yes.clone()));
        assert_eq!(answered.find(a, &Capability::from_bytes([2; 16]), false, &offer(10)), Some(no));
        assert_eq!(answered.find(a, &Capability::from_bytes([1; 16]), true, &offer(10)), None);
        assert_eq!(
            answered.find(b, &Capability::from_bytes([1; 16]), false, &offer(10)),
            Some(yes.clone())
        );
        assert_eq!(
            answered.find(b, &Capability::from_bytes([1; 16]), false, &offer(11)),
            None,
            "that was not shown"
        );
        assert_eq!(
            answered.find(b, &Capability::from_bytes([2; 16]), false, &offer(10)),
            None,
            "a yes is for one transfer"
        );
        answered.forget(b, &Capability::from_bytes([1; 16]));
        assert_eq!(
            answered.find(b, &Capability::from_bytes([1; 16]), false, &offer(10)),
            None,
            "it is complete"
        );
        answered.remember(answer(b, 1, yes.clone()));
        answered.remember(answer(b, 1, yes.clone()));
        assert_eq!(answered.lock().iter().filter(|answer| answer.peer == b).count(), 1);
        for n in 0..2 * ANSWERED_MAX {
            let stranger = NodeId([n as u8; 32]);
            answered.remember(answer(stranger, n as u8, Decision::Refuse(String::new())));
            answered.remember(answer(stranger, (n >> 8) as u8, Decision::Refuse(String::new())));
            assert!(answered.lock().len() <= ANSWERED_MAX);
        }
        assert_eq!(
            answered.find(b, &Capability::from_bytes([1; 16]), false, &offer(10)),
            Some(yes),
            "strangers take no yes away"
        );
    }
}
