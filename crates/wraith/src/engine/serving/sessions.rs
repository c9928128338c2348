//! The connections of a dialled sender: which of them belong to receivers, which are evicted, and
//! how each connection ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};
use wraith_crypto::NodeId;
use wraith_transfer::{
    Event as TransferEvent, Role, SendOptions, SendReport, TransferError, close, serve,
};
use wraith_transport::{CloseReason, Connection};

use super::{News, Serving};
use crate::engine::retry::may_come_back;
use crate::error::Error;
use crate::event::Event;
use crate::state::{Keeper, StateError, UnfinishedSend};

/// Maximum number of connections without the secret, nearly all of them strangers. Enough that a
/// few strangers cannot keep the receiver out, and few enough that their threads cost little.
const STRANGERS_MAX: usize = 16;
/// Maximum number of receivers served in parallel; more are asked to come back later. Each has its
/// own threads and read-ahead.
const RECEIVERS_MAX: usize = 64;
/// Close reason sent to rejected and evicted peers.
const BUSY: &str = "too many callers at once";
/// How long the shutdown waits for transfers to notify their peers and store their data.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// One served connection.
pub(super) struct Session {
    pub id: u64,
    pub peer: NodeId,
    pub connection: Connection,
    pub options: Arc<SendOptions>,
    pub instance: Option<u64>,
    pub standing: Standing,
    /// The receiver's user has accepted.
    pub has_accepted: bool,
}

/// The role of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not sent the secret.
    Stranger,
    /// It is being served.
    Receiver,
    /// Its receiver reconnected on another session, or it has the secret and was rejected.
    Former,
}

impl Serving {
    /// Returns the options and the number for a new session.
    pub(super) fn prepare(&mut self) -> (u64, Arc<SendOptions>) {
        let id = self.next_id;
        self.next_id += 1;
        let secret = (self.node.id(), self.unfinished.capability());
        let mut options =
            self.settings.options(&self.payload, secret, &self.parallel, &self.sent_roots);
        let (tell, publisher) = (self.tell.clone(), Arc::clone(&self.shared.publisher));
        let receiver = self.is_several().then_some(id);
        if self.unfinished.allowed().is_some() {
            let unfinished = Arc::clone(&self.unfinished);
            options.admits = Some(Arc::new(move |peer| unfinished.admits(peer)));
        }
        let is_chosen = AtomicBool::new(false);
        let keeper = self.settings.receipt.as_deref().map(Keeper::at);
        options.events = Arc::new(move |event: TransferEvent<'_>| {
            if let TransferEvent::Connected { instance, .. } = event {
                let (verdict, given) = std::sync::mpsc::channel();
                let _ = tell.send(News::Knows(id, instance, verdict));
                // Without a verdict, the session was rejected or the sender has ended.
                is_chosen.store(given.recv().is_ok(), Relaxed);
            }
            if matches!(event, TransferEvent::Accepted) {
                let _ = tell.send(News::Accepted(id));
            }
            if is_chosen.load(Relaxed) {
                publisher.tell_transfer(receiver, &event);
                publisher.keep(&keeper, receiver, &event);
            }
        });
        (id, Arc::new(options))
    }

    /// Serves a new connection on its own thread. The peer becomes a receiver when it sends the
    /// secret.
    pub(super) fn admit(&mut self, connection: Connection) {
        if self.sessions.len() - self.receivers().count() >= STRANGERS_MAX
            && !self.send_away_a_stranger()
        {
            connection.close(close::OTHER, BUSY);
            return;
        }
        let (id, options) = self.surveyed.take().unwrap_or_else(|| self.prepare());
        let (peer, theirs) = (connection.peer(), connection.clone());
        let (wanted, tell) = (Arc::clone(&options), self.tell.clone());
        let work = move || {
            let result = serve(theirs, &wanted);
            drop(tell.send(News::Ended(id, Box::new(result))));
        };
        let name = "wraith-send".to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(work) {
            tracing::warn!(%error, "no thread for a connection");
            connection.close(close::OTHER, "no room");
            self.surveyed = Some((id, options));
            return;
        }
        let (instance, standing, has_accepted) = (None, Standing::Stranger, false);
        let session = Session { id, peer, connection, options, instance, standing, has_accepted };
        self.sessions.push(session);
    }

    /// Evicts the stranger that has been connected longest without sending the secret. It is the
    /// least likely to be the receiver, which needs one round trip for that. So silent strangers
    /// keep no receiver out.
    ///
    /// Returns false if all strangers were evicted already and are still ending.
    fn send_away_a_stranger(&self) -> bool {
        // Sessions are in the order of their arrival.
        let mut strangers = self.sessions.iter().filter(|s| s.standing != Standing::Receiver);
        let stranger = strangers.find(|s| s.connection.close_reason().is_none());
        stranger.inspect(|s| s.connection.close(close::OTHER, BUSY)).is_some()
    }

    /// Decides about a session whose peer has sent the secret. It becomes a receiver if one is
    /// wanted.
    ///
    /// - If the same instance of a receiver reconnects, its earlier connection is dead and is
    ///   replaced.
    /// - If two instances of one receiver compete for one place, the later one gets it, until the
    ///   user of one has accepted.
    /// - A session without an instance number may be any instance.
    ///
    /// Returns false if the session was rejected.
    pub(super) async fn choose(&mut self, id: u64, instance: Option<u64>) -> bool {
        let Some(at) = self.sessions.iter().position(|s| s.id == id) else { return false };
        self.sessions[at].instance = instance;
        self.forget_those_who_stopped();
        let peer = self.sessions[at].peer;
        // Another peer may have taken its place since it sent the secret.
        if !self.unfinished.admits(peer) {
            self.send_away(at, close::WRONG_SECRET, "");
            return false;
        }
        let served = self.receivers().count();
        let left = |n: u32| (n - self.sent.receivers) as usize;
        let wanted = self.settings.receivers.map_or(RECEIVERS_MAX, left);
        let has_room = served < wanted.min(RECEIVERS_MAX);
        // A ticket delivered by a code is for one identity, which has one place.
        let is_one = self.unfinished.allowed().is_some();
        let is_same = |s: &Session| instance.is_some() && s.instance == instance;
        let is_earlier = |s: &&Session| s.peer == peer && (is_same(s) || !has_room || is_one);
        let may_stay = |s: &Session| s.has_accepted && instance.and(s.instance).is_some();
        let earlier = self.receivers().filter(is_earlier);
        let earlier = earlier.max_by_key(|s| (is_same(s), !may_stay(s)));
        let earlier = earlier.map(|s| (s.id, is_same(s), may_stay(s)));
        if let Some((earlier, is_same, may_stay)) = earlier {
            if may_stay && !is_same {
                self.send_away(at, close::ELSEWHERE, "");
                return false;
            }
            self.replace(earlier, is_same);
        } else if !has_room {
            let why = if self.is_several() {
                "the sender is already serving its maximum number of receivers; try again later"
            } else {
                "the sender is serving another receiver with this ticket"
            };
            self.send_away(at, close::REFUSED, why);
            return false;
        }
        let newcomer = &mut self.sessions[at];
        newcomer.standing = Standing::Receiver;
        self.shared.meter.join(Arc::clone(&newcomer.options.progress));
        self.remembers(|unfinished| unfinished.remember_receiver(peer));
        self.deadline = None;
        self.share_rate();
        self.rediscovery.back(peer).await;
        true
    }

    fn send_away(&mut self, at: usize, code: u64, why: &str) {
        self.sessions[at].connection.close(code, why);
        self.sessions[at].standing = Standing::Former;
    }

    /// Replaces the receiver with this number by the same one on another connection.
    fn replace(&mut self, id: u64, is_same_run: bool) {
        let Some(at) = self.sessions.iter().position(|s| s.id == id) else { return };
        match is_same_run {
            true => self.send_away(at, close::OTHER, "you have come back on another connection"),
            false => self.send_away(at, close::ELSEWHERE, ""),
        }
        self.shared.meter.leave(&self.sessions[at].options.progress);
        let number = self.settings.receivers.is_none_or(|n| n > 1).then_some(id);
        self.shared.publisher.tell_of(number, Event::Replaced);
    }

    /// Applies a change to the stored state. A failure is only reported: the transfer works all the
    /// same.
    fn remembers(&self, change: impl FnOnce(&UnfinishedSend) -> Result<(), StateError>) {
        if let Err(error) = change(&self.unfinished) {
            self.shared
                .publisher
                .tell(Event::Note { path: String::new(), what: error.to_string() });
        }
    }

    /// Records that a receiver accepted and its files begin to move.
    pub(super) fn accepted(&mut self, id: u64) {
        let is_it = |s: &&mut Session| s.id == id && s.standing == Standing::Receiver;
        if let Some(session) = self.sessions.iter_mut().find(is_it) {
            session.has_accepted = true;
            let peer = session.peer;
            self.remembers(|unfinished| unfinished.has_begun(peer));
        }
    }

    /// Disconnects receivers that are no longer allowed. A new peer that proved the words of the
    /// code may have taken the place of an earlier one.
    pub(super) fn send_away_who_lost_their_place(&mut self) {
        let mut is_any = false;
        for session in &mut self.sessions {
            if session.standing == Standing::Receiver && !self.unfinished.admits(session.peer) {
                session.standing = Standing::Former;
                session.connection.close(close::WRONG_SECRET, "");
                self.shared.meter.leave(&session.options.progress);
                is_any = true;
            }
        }
        if is_any {
            self.share_rate();
        }
        // The new peer is awaited as the first one was.
        if is_any && self.receivers().next().is_none() {
            self.deadline = self.settings.patience.first.map(|first| Instant::now() + first);
        }
    }

    /// Frees the places of receivers whose user cancelled, although their threads may still be
    /// ending.
    fn forget_those_who_stopped(&mut self) {
        for session in &mut self.sessions {
            let reason = session.connection.close_reason();
            let stopped = matches!(reason, Some(CloseReason::Peer { code: close::CANCELLED, .. }));
            if session.standing == Standing::Receiver && stopped {
                session.standing = Standing::Former;
                self.shared.meter.leave(&session.options.progress);
            }
        }
    }

    /// Splits the rate limit, which is for all receivers together.
    fn share_rate(&self) {
        let Some(rate) = self.settings.rate else { return };
        let share = rate / self.receivers().count().max(1) as u64;
        self.receivers().for_each(|session| session.options.rate.limit(Some(share)));
    }

    /// Handles the end of a session. Returns the result of the offer if the offer ends with it.
    pub(super) async fn ended(
        &mut self,
        id: u64,
        result: Result<SendReport, TransferError>,
        news: &mut UnboundedReceiver<News>,
    ) -> Option<Result<(), Error>> {
        let at = self.sessions.iter().position(|s| s.id == id)?;
        let session = self.sessions.remove(at);
        if session.standing != Standing::Receiver {
            if matches!(result, Err(TransferError::WrongSecret)) {
                self.shared.publisher.tell(Event::Stranger);
            }
            if self.surveyed.is_none() && session.standing == Standing::Stranger {
                self.surveyed = Some((id, session.options));
            }
            return None;
        }
        if result.is_err() {
            self.shared.meter.leave(&session.options.progress);
        }
        self.share_rate();
        let end = match result {
            Ok(report) => self.served(&session, report, news).await,
            Err(TransferError::Later) => {
                let number = self.is_several().then_some(id);
                self.shared.publisher.tell_of(number, Event::OnlyLooked);
                self.lost = None;
                None
            }
            Err(error) if self.is_several() => {
                let is_lost = may_come_back(&error, Role::Sender);
                self.shared.publisher.tell_of(Some(id), Event::ReceiverFailed(error.into()));
                if is_lost {
                    self.rediscovery.lost(session.peer).await;
                }
                None
            }
            Err(error)
                if may_come_back(&error, Role::Sender)
                    && !self.settings.patience.reconnect.is_zero() =>
            {
                self.rediscovery.lost(session.peer).await;
                self.await_return(error, session.options.progress.bytes());
                return None;
            }
            Err(error) => Some(Err(error.into())),
        };
        if end.is_none() && self.receivers().next().is_none() {
            if let Some(failure) = self.closing.take() {
                self.stop_all(news).await;
                return Some(Err(failure));
            }
            self.deadline = self.settings.patience.first.map(|first| Instant::now() + first);
        }
        end
    }

    /// Handles a receiver that has confirmed everything. Returns the result of the offer if it was
    /// the last one wanted.
    async fn served(
        &mut self,
        session: &Session,
        report: SendReport,
        news: &mut UnboundedReceiver<News>,
    ) -> Option<Result<(), Error>> {
        let receiver = self.count(session, report);
        if !self.is_several() {
            return Some(Ok(()));
        }
        self.remembers(|unfinished| unfinished.forget_receiver(receiver));
        let done = self.sent.receivers;
        if Some(done) != self.settings.receivers {
            self.shared.publisher.tell(Event::Served { done, of: self.settings.receivers });
            return None;
        }
        self.stop_all(news).await;
        Some(Ok(()))
    }

    /// Counts and reports a receiver that has confirmed everything. Returns its NodeId.
    fn count(&mut self, session: &Session, report: SendReport) -> NodeId {
        self.sent.receivers += 1;
        let remote = session.connection.remote();
        self.sent.last = Some((report.receiver, remote));
        self.sent.lacking += u32::from(report.outcome().is_err());
        self.shared.meter.leave(&session.options.progress);
        let (receiver, bytes) = (report.receiver, session.options.progress.bytes());
        let report = Arc::new(report);
        self.sent.report = Some(Arc::clone(&report));
        let number = self.is_several().then_some(session.id);
        self.shared.publisher.tell_of(number, Event::Sent { report, bytes });
        receiver
    }

    /// Starts to wait for a lost receiver, which may come back.
    fn await_return(&mut self, error: TransferError, bytes: u64) {
        let seconds_left = self.window.lost(bytes, self.settings.patience.reconnect);
        self.deadline = self.window.deadline;
        self.shared.publisher.tell(Event::Lost { why: error.to_string(), seconds_left });
        self.lost = Some(error);
    }

    /// Notifies every peer that this side stops, and waits until they are notified.
    pub(super) async fn stop_all(&mut self, news: &mut UnboundedReceiver<News>) {
        for session in &self.sessions {
            session.options.cancel.cancel();
            session.connection.close(close::CANCELLED, "");
        }
        let deadline = Instant::now() + LAST_WAIT;
        while !self.sessions.is_empty() {
            match timeout_at(deadline, news.recv()).await {
                Ok(Some(News::Ended(id, result))) => {
                    let Some(at) = self.sessions.iter().position(|s| s.id == id) else { continue };
                    let session = self.sessions.remove(at);
                    if let (Standing::Receiver, Ok(report)) = (session.standing, *result) {
                        self.count(&session, report);
                    }
                }
                // Otherwise a receiver that has just accepted would be forgotten.
                Ok(Some(News::Accepted(id))) => self.accepted(id),
                Ok(Some(_)) => {}
                // After this time, the sessions end without supervision.
                Ok(None) | Err(_) => return,
            }
        }
    }
}
