//! One caller of a listener, from its connection to the end of its transfer.

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
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::limits::NEGOTIATION_TIMEOUT;
use wraith_transfer::{
    Decision, Offer, Progress, Shown, TransferError, close, receive_dialler_hello,
};
use wraith_transport::Connection;

use super::callers::Callers;
use super::question_limit::QuestionLimit;
use super::{Admit, Question};
use crate::engine::consent::{Asked, Consent};
use crate::engine::session::Carried;
use crate::engine::task::Shared;
use crate::error::Error;
use crate::event::Event;
use crate::fetch::{FetchJob, Target};
use crate::hub::Hub;
use crate::node::Node;
use crate::report::Received;
use crate::settings::FetchSettings;

/// Offers that were answered, so that one that comes back after a lost connection is not asked about again.
const ANSWERED_MAX: usize = 256;
/// Offers whose names are looked at at the same time, each of up to 32 MiB.
const PREVIEWS_MAX: usize = 2;
/// How often who waits for the turn looks at who has it. Nobody waits, nobody looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What all callers share.
#[derive(Debug)]
pub(super) struct ListenContext {
    node: Node,
    folder: PathBuf,
    rate: Option<u64>,
    preview: bool,
    admit: Admit,
    callers: Callers,
    /// Held by the caller whose transfer is decided on and moves.
    turn: Arc<Turn<()>>,
    answered: Answered,
    previews: Arc<AtomicUsize>,
    /// Where somebody is asked.
    questions: Option<Mutex<QuestionLimit>>,
    /// Offers that were refused because there were too many.
    unread: AtomicU64,
    /// What happens to the listener itself is told here.
    hub: Arc<Hub>,
}

impl ListenContext {
    pub fn new(
        node: Node,
        folder: PathBuf,
        rate: Option<u64>,
        preview: bool,
        admit: Admit,
        hub: Arc<Hub>,
    ) -> Self {
        let (callers, turn) = (Callers::default(), Arc::default());
        let (answered, previews) = (Answered::default(), Arc::default());
        let questions = (admit == Admit::AfterAsking).then(Mutex::default);
        let unread = AtomicU64::new(0);
        Self {
            node,
            folder,
            rate,
            preview,
            admit,
            callers,
            turn,
            answered,
            previews,
            questions,
            unread,
            hub,
        }
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    pub fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Whether somebody may come who is a contact or not.
    pub fn admits(&self, is_contact: bool) -> bool {
        is_contact || self.admit != Admit::Contacts
    }

    /// Who cannot be told is a stranger. Read anew each time: a contact may have been removed.
    pub fn is_contact(&self, peer: NodeId) -> bool {
        self.node.contacts().load().is_ok_and(|book| book.with(peer).is_some())
    }

    /// Whether a stranger from there may put one more question to whoever listens. If not, that is counted and told.
    fn may_ask(&self, from: Option<IpAddr>) -> bool {
        let Some(questions) = &self.questions else { return true };
        let mut questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
        let may = questions.allow(from, Instant::now());
        if !may {
            let total = self.unread.fetch_add(1, Relaxed) + 1;
            self.hub.tell(Event::RefusedUnread { total });
        }
        may
    }

    /// Whether the names of one more offer may be looked at, until what this returns is dropped.
    fn take_preview(&self) -> Option<PreviewSlot> {
        let room = |n: usize| (n < PREVIEWS_MAX).then_some(n + 1);
        self.previews
            .try_update(Relaxed, Relaxed, room)
            .is_ok()
            .then(|| PreviewSlot(Arc::clone(&self.previews)))
    }
}

/// One of the offers whose names are looked at.
struct PreviewSlot(Arc<AtomicUsize>);

impl Drop for PreviewSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// What was said to offers. A yes is remembered while its transfer is broken off, a no to a stranger as long as there is room.
#[derive(Debug, Default)]
struct Answered(Mutex<VecDeque<Answer>>);

/// What was said to one offer.
struct Answer {
    peer: NodeId,
    secret: Capability,
    shown: Shown,
    decision: Decision,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Answered {
    /// What holds for this offer. A yes is for one transfer, until it is complete, and for no more than was shown. A stranger who
    /// was told no has had its question; a contact may try again.
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
        // A no to another offer takes back no yes.
        let answer = of_peer().find(is_same).or_else(|| of_peer().find(is_no));
        answer.map(|answer| answer.decision.clone())
    }

    /// What was shown when this transfer was accepted.
    fn shown(&self, peer: NodeId, secret: &Capability) -> Option<Shown> {
        let is_same = |answer: &&Answer| answer.peer == peer && answer.secret == *secret;
        self.lock().iter().rev().find(is_same).map(|answer| answer.shown.clone())
    }

    fn remember(&self, answer: Answer) {
        self.forget(answer.peer, &answer.secret);
        let mut list = self.lock();
        if list.len() >= ANSWERED_MAX {
            // Strangers, of whom there are as many as anybody likes, take no yes away.
            let no = list.iter().position(|answer| !is_yes(&answer.decision));
            list.remove(no.unwrap_or(0));
        }
        list.push_back(answer);
    }

    /// The transfer is over: its secret is good for no other.
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

/// One caller.
pub(super) struct Caller {
    pub context: Arc<ListenContext>,
    pub id: u64,
    pub connection: Connection,
    pub shared: Shared,
    pub gone: CancellationToken,
    /// It was refused because there were too many, and nobody has seen what it offers.
    pub is_unread: AtomicBool,
}

impl Caller {
    /// Until its transfer is over.
    pub async fn run(self, ask: UnboundedSender<Question>) -> Result<Received, Error> {
        let _left = Leave { context: Arc::clone(&self.context), id: self.id };
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
        self.attend(secret, ask).await
    }

    async fn attend(
        &self,
        secret: Capability,
        ask: UnboundedSender<Question>,
    ) -> Result<Received, Error> {
        let (consent, mut questions) = Consent::open();
        // The first questions are with all names. Those take memory, so whoever comes meanwhile is asked about without.
        let mut slot = self.context.preview.then(|| self.context.take_preview()).flatten();
        let settings = FetchSettings {
            rate: self.context.rate,
            preview: slot.is_some(),
            ..FetchSettings::default()
        };
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
        let carried = loop {
            tokio::select! {
                carried = &mut transfer => break carried,
                Some(asked) = questions.recv() => {
                    // The transfer goes on noticing meanwhile whether its peer is still there.
                    turn = tokio::select! {
                        held = self.take_turn() => held,
                        carried = &mut transfer => break carried,
                    };
                    match turn {
                        Some(_) => self.put(asked, &secret, &consent, &ask),
                        // It has gone, or was sent away: that is no answer to remember.
                        None => consent.decide(Decision::Later),
                    }
                }
                () = consent.decided(), if !is_decided => {
                    is_decided = true;
                    slot = None;
                    self.context.callers.moves(self.id, &progress);
                }
            }
        };
        drop((turn, slot));
        self.ended(secret, &consent, carried)
    }

    /// Waits for the turn, looking at who has it meanwhile; `None` if the connection ends first.
    async fn take_turn(&self) -> Option<OwnedMutexGuard<()>> {
        let _waiting = self.context.callers.wait_begins();
        let mut held = std::pin::pin!(Arc::clone(&self.context.turn).lock_owned());
        loop {
            tokio::select! {
                held = &mut held => return Some(held),
                _ = self.connection.closed() => return None,
                () = self.gone.cancelled() => return None,
                () = tokio::time::sleep(LOOK_INTERVAL) => self.context.callers.press(Instant::now()),
            }
        }
    }

    /// It is its turn: what was said to this offer before counts, else it is put to whoever listens.
    fn put(
        &self,
        asked: Asked,
        secret: &Capability,
        consent: &Consent,
        ask: &UnboundedSender<Question>,
    ) {
        self.context.callers.has_turn(self.id);
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
                        consent.narrow(shown);
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
        // If nobody listens any more, the caller is told by the end of the listener.
        let _ = ask.send(Question { id: self.id, asked, consent, gone, accepted_before });
    }

    /// Whether a transfer that ended so was broken off, and not ended by anybody.
    fn comes_back(&self, error: &TransferError) -> bool {
        let is_lost = matches!(error, TransferError::NetworkLost { .. });
        is_lost || self.context.callers.is_over_limit(self.id)
    }

    fn ended(
        &self,
        secret: Capability,
        consent: &Consent,
        carried: Carried<(wraith_transfer::ReceiveReport, u64)>,
    ) -> Result<Received, Error> {
        let peer = self.connection.peer();
        match (consent.decision(), consent.shown(), &carried.result) {
            (_, _, Ok(_)) => self.context.answered.forget(peer, &secret),
            (Some(Decision::Later) | None, ..) | (_, None, _) => {}
            // What was lost may come back and go on; what was stopped, or failed for good, is over, and so is its yes.
            (Some(decision), _, Err(error)) if is_yes(&decision) && !self.comes_back(error) => {
                self.context.answered.forget(peer, &secret);
            }
            (Some(decision), Some(shown), _) if !self.is_unread.load(Relaxed) => {
                self.context.answered.remember(Answer { peer, secret, shown, decision });
            }
            _ => {}
        }
        let remote = self.connection.remote();
        match carried.result {
            Ok((report, bytes)) => {
                self.context.node.remember_meeting(report.sender, &remote);
                Ok(Received { sender: report.sender, report, bytes, remote })
            }
            Err(error) => {
                let error = Error::from(error);
                if self.context.callers.is_over_limit(self.id) {
                    let why = "sent away because others wait; it may come back and go on";
                    return Err(Error::new(error.kind(), why));
                }
                Err(error)
            }
        }
    }
}

/// However a caller ends, it leaves.
struct Leave {
    context: Arc<ListenContext>,
    id: u64,
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.context.callers.leave(self.id);
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
    fn a_stranger_who_was_refused_is_not_asked_about_again_and_a_contact_is() {
        let answered = Answered::default();
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
