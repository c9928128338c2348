//! One caller, from its connection to the end of its transfer.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use wraith::state::{ContactStore, Name, Recorder, StateDir};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_transfer::{
    Cancel, Decision, Event as Happened, Progress, Proposal, ReceiveOptions, ReceiveReport, Role,
    TransferError, answer, close, receive,
};
use wraith_transport::Connection;
use zeroize::Zeroizing;

use super::callers::Callers;
use super::turn::{Held, Turn};
use crate::args::{Accept, MeetingArgs, OnConflict};
use crate::ask::Answers;
use crate::contacts::{Keep, Other, after_transfer};
use crate::interrupt::Interrupt;
use crate::lanes;
use crate::offer::{self, Answer};
use crate::output::{Event, Meter, Reporter, Ticker};
use crate::report::{self, Story, short_id};

/// Offers that were answered, so that one that comes back after a lost connection is not asked about again.
const MAX_ANSWERED: usize = 256;

/// Offers whose names are looked at at the same time, each of up to 32 MiB.
const MAX_PREVIEWS: usize = 2;

/// What all callers share.
pub struct Hall {
    pub out: PathBuf,
    pub accept: Accept,
    pub on_conflict: OnConflict,
    /// Bytes a second that a sender is asked to keep to.
    pub rate: Option<u64>,
    pub meeting: MeetingArgs,
    pub seed: Zeroizing<[u8; 32]>,
    pub store: ContactStore,
    pub home: StateDir,
    /// Bytes of the record of what arrives; None: none is kept.
    pub record: Option<u64>,
    pub callers: Arc<Callers>,
    pub turn: Turn,
    pub answers: Answers,
    pub answered: Answered,
    /// Offers whose names are looked at.
    pub previews: AtomicUsize,
    pub stop: Arc<AtomicBool>,
    pub interrupt: Interrupt,
    pub reporter: Arc<Reporter>,
}

/// What the user said to offers. Who was refused once is not asked about again: no stranger can fill the screen with
/// questions.
#[derive(Debug, Default)]
pub struct Answered(Mutex<VecDeque<(NodeId, [u8; 16], bool)>>);

impl Answered {
    fn find(&self, peer: NodeId, secret: &[u8; 16], is_contact: bool) -> Option<bool> {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |entry: &&(NodeId, [u8; 16], bool)| {
            // A yes is for one transfer. A stranger who was told no has had its question; a contact may try again.
            entry.0 == peer && if entry.2 { entry.1 == *secret } else { !is_contact }
        };
        list.iter().rev().find(is_same).map(|entry| entry.2)
    }

    fn remember(&self, peer: NodeId, secret: [u8; 16], yes: bool) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= MAX_ANSWERED {
            list.pop_front();
        }
        list.push_back((peer, secret, yes));
    }
}

/// One caller.
struct Caller<'a> {
    hall: &'a Hall,
    id: u64,
    connection: Connection,
    secret: [u8; 16],
    cancel: Cancel,
    story: Arc<Story>,
    recorder: Arc<Recorder>,
    /// Nothing is told before it is the caller's turn, so that two transfers are not mixed up.
    may_tell: Arc<AtomicBool>,
    turn: Mutex<Option<Held<'a>>>,
}

impl Hall {
    /// Attends to a new connection on a thread of its own.
    pub fn admit(self: &Arc<Self>, connection: Connection) {
        let is_contact = self.name_of(connection.peer()).is_some();
        let Some((id, cancel)) = self.callers.admit(&connection, is_contact) else { return };
        let hall = Arc::clone(self);
        let attend = move || {
            if let Some(secret) = answer(&connection) {
                hall.callers.identify(id, secret);
                hall.attend(id, connection, secret, cancel);
            } else {
                connection.close(close::OTHER, "");
            }
            hall.callers.leave(id);
        };
        if thread::Builder::new().name("caller".into()).spawn(attend).is_err() {
            self.callers.leave(id);
        }
    }

    /// Whether the names of one more offer may be looked at; then `previews` is to be given back.
    fn take_preview(&self) -> bool {
        let room = |n: usize| (n < MAX_PREVIEWS).then_some(n + 1);
        self.previews.try_update(Relaxed, Relaxed, room).is_ok()
    }

    fn name_of(&self, peer: NodeId) -> Option<Name> {
        // Who cannot be told is a stranger.
        Some(self.store.load().ok()?.with(peer)?.name.clone())
    }

    fn attend(&self, id: u64, connection: Connection, secret: [u8; 16], cancel: Cancel) {
        let caller = Caller {
            hall: self,
            id,
            connection,
            secret,
            cancel,
            story: Arc::new(Story::new(Role::Receiver, &self.reporter)),
            recorder: Arc::new(Recorder::new(&self.home, &self.out, self.record)),
            may_tell: Arc::default(),
            turn: Mutex::default(),
        };
        caller.run();
    }
}

impl Caller<'_> {
    fn run(&self) {
        let (meter, mut ticker) = (Arc::<Meter>::default(), None);
        let identity = SecretIdentity::from_seed(*self.hall.seed);
        let progress = Arc::<Progress>::default();
        let mut options = ReceiveOptions::new(self.hall.out.clone(), self.secret, identity);
        options.cancel = self.cancel.clone();
        options.lanes = lanes::to_receive(None, *self.hall.seed);
        options.on_conflict = self.hall.on_conflict.policy().unwrap_or_default();
        options.rate = self.hall.rate;
        options.progress = Arc::clone(&progress);
        let (may_tell, story) = (Arc::clone(&self.may_tell), Arc::clone(&self.story));
        let recorder = Arc::clone(&self.recorder);
        options.events = Arc::new(move |event: Happened<'_>| {
            recorder.tell(&event);
            if may_tell.load(Relaxed) {
                story.tell(&event);
            }
        });
        meter.watch(Arc::clone(&progress));
        // The first questions are with all names. Those take memory, so whoever comes meanwhile is asked about without.
        let previewing = self.hall.accept == Accept::Ask && self.hall.take_preview();
        options.preview = previewing;
        options.decide = Box::new(|proposal| {
            let decision = self.decide(proposal);
            if matches!(decision, Decision::Accept | Decision::AcceptWith(_)) {
                self.hall.callers.moves(self.id, &progress);
                let reporter = Arc::clone(&self.hall.reporter);
                ticker = Some(Ticker::start(reporter, Arc::clone(&meter)));
            }
            decision
        });
        let result = receive(self.connection.clone(), options);
        drop(ticker);
        if previewing {
            self.hall.previews.fetch_sub(1, Relaxed);
        }
        match result {
            Ok(report) => self.received(&report, progress.bytes()),
            Err(error) => self.failed(&error),
        }
    }

    /// Waits for the turn, tells who is there with what, and answers by the policy.
    fn decide(&self, proposal: &Proposal<'_>) -> Decision {
        let no = || Decision::Refuse(String::new());
        let Some(held) = self.hall.turn.take(|| self.is_pointless()) else { return no() };
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        let (peer, remote) = (self.connection.peer(), self.connection.remote());
        self.hall.callers.has_turn(self.id);
        // Read anew: the contact may have been removed while it waited.
        let contact = self.hall.name_of(peer);
        let answered = self.hall.answered.find(peer, &self.secret, contact.is_some());
        if answered == Some(false) || self.hall.accept == Accept::Contacts && contact.is_none() {
            return no();
        }
        self.may_tell.store(true, Relaxed);
        self.story.tell(&Happened::Connected { peer, remote, instance: None });
        self.story.tell(&Happened::Offer(proposal.offer));
        match self.hall.accept {
            Accept::Contacts | Accept::Always => Decision::Accept,
            Accept::Ask if answered == Some(true) => Decision::Accept,
            Accept::Ask => self.ask(proposal),
        }
    }

    fn ask(&self, proposal: &Proposal<'_>) -> Decision {
        let question = offer::Question {
            proposal,
            out: &self.hall.out,
            reporter: &self.hall.reporter,
            conflicts: self.hall.on_conflict.policy(),
            terminal: io::stdin().is_terminal(),
            ask: |question: String| self.hall.answers.ask(&question, || self.is_gone()),
        };
        let (decision, yes) = match question.put() {
            Answer::Yes(conflicts) => (Decision::AcceptWith(conflicts), true),
            Answer::No => (Decision::Refuse(String::new()), false),
            // It went, or we stop: that is no answer to remember.
            Answer::None => {
                if !self.is_gone() {
                    let hint =
                        "no answer; --accept contacts takes what contacts send without asking";
                    self.hall.reporter.warn(hint);
                }
                return Decision::Refuse(String::new());
            }
        };
        self.hall.answered.remember(self.connection.peer(), self.secret, yes);
        decision
    }

    /// Looks at whoever has the turn, too.
    fn is_pointless(&self) -> bool {
        self.hall.callers.press(Instant::now());
        self.is_gone()
    }

    fn is_gone(&self) -> bool {
        self.connection.close_reason().is_some() || self.hall.stop.load(Relaxed)
    }

    fn received(&self, report: &ReceiveReport, bytes: u64) {
        self.story.received(report, bytes);
        let identity = SecretIdentity::from_seed(*self.hall.seed);
        report::record(&self.recorder, report, &identity, &self.hall.reporter);
        if let Err(error) = report.outcome() {
            self.failed(&error);
            return;
        }
        let remote: SocketAddr = self.connection.remote();
        let other = Other::seen(report.sender, Role::Sender, remote, &self.hall.meeting);
        let may_ask = self.hall.accept == Accept::Ask;
        let (answers, interrupt) = (&self.hall.answers, &self.hall.interrupt);
        // Without a name it cannot fail.
        let keep = Keep::of(None, may_ask);
        let _ = after_transfer(&other, keep, answers, interrupt, &self.hall.reporter);
    }

    fn failed(&self, error: &TransferError) {
        if !self.may_tell.load(Relaxed) || self.hall.stop.load(Relaxed) {
            return;
        }
        let peer = self.connection.peer();
        let contact = report::name_of(peer);
        let mut failure = report::failure(error, "");
        if self.hall.callers.is_pressed_out(self.id) {
            failure.message = "sent away because others wait; it may come back and go on".into();
        }
        let peer = peer.to_string();
        self.hall.reporter.event(&Event::Failed {
            code: failure.exit.name(),
            exit: failure.exit as u8,
            message: &failure.message,
            peer: &peer,
            contact: contact.as_ref().map(Name::as_str),
        });
        let who = contact.as_ref().map_or(short_id(&peer), Name::as_str);
        self.hall.reporter.warn(format!("{who}: {}", failure.message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_who_was_refused_is_not_asked_about_again_and_a_contact_is() {
        let answered = Answered::default();
        let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]).node_id());
        answered.remember(a, [1; 16], false);
        answered.remember(b, [1; 16], true);
        assert_eq!(answered.find(a, &[2; 16], false), Some(false));
        assert_eq!(answered.find(a, &[1; 16], true), None);
        assert_eq!(answered.find(b, &[1; 16], false), Some(true));
        assert_eq!(answered.find(b, &[2; 16], false), None, "a yes is for one transfer");
        for n in 0..2 * MAX_ANSWERED {
            answered.remember(a, [n as u8; 16], true);
        }
        assert_eq!(answered.0.lock().unwrap().len(), MAX_ANSWERED);
    }
}
