//! The connections of a dialled sender: which of them belong to receivers, which are evicted, and
//! how each connection ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use wraith_crypto::NodeId;
use wraith_discovery::TimeLimit;
use wraith_transfer::{
    Event as TransferEvent, Role, SendOptions, SendReport, TransferError, close, serve,
};
use wraith_transport::{CloseReason, Connection, block_on};

use super::{OfferServer, SessionEvent};
use crate::error::Error;
use crate::event::Event;
use crate::state::{ReceiptWriter, StateError, UnfinishedSend};

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
    pub role: SessionRole,
    /// The receiver's user has accepted.
    pub has_accepted: bool,
}

/// A receiver that has begun and was lost. Its place is kept.
pub(super) struct LostReceiver {
    peer: NodeId,
    until: Instant,
}

/// The role of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionRole {
    /// It has not sent the secret.
    Stranger,
    /// It is being served.
    Receiver,
    /// Its receiver reconnected on another session, or it has the secret and was rejected.
    Former,
}

impl OfferServer {
    /// Returns the options and the number for a new session.
    pub(super) fn prepare(&mut self) -> (u64, Arc<SendOptions>) {
        let id = self.next_id;
        self.next_id += 1;
        let secret = (self.node.id(), self.unfinished.capability());
        let mut options =
            self.settings.options(&self.payload, secret, &self.parallel, &self.sent_roots);
        let (event_tx, publisher) = (self.event_tx.clone(), Arc::clone(&self.shared.publisher));
        let receiver = self.is_several().then_some(id);
        if self.unfinished.allowed().is_some() {
            let unfinished = Arc::clone(&self.unfinished);
            options.admits = Some(Arc::new(move |peer| unfinished.admits(peer)));
        }
        let is_chosen = AtomicBool::new(false);
        let receipt_writer = self.settings.receipt.as_deref().map(ReceiptWriter::at);
        options.events = Arc::new(move |event: TransferEvent<'_>| {
            if let TransferEvent::Connected { instance, .. } = event {
                is_chosen.store(await_verdict(&event_tx, id, instance), Relaxed);
            }
            if matches!(event, TransferEvent::Accepted) {
                let _ = event_tx.send(SessionEvent::Accepted(id));
            }
            if is_chosen.load(Relaxed) {
                publisher.publish_transfer(receiver, &event);
                publisher.record_receipt(&receipt_writer, receiver, &event);
            }
        });
        (id, Arc::new(options))
    }

    /// Serves a new connection on its own thread. The peer becomes a receiver when it sends the
    /// secret.
    pub(super) fn admit(&mut self, connection: Connection) {
        if self.sessions.len() - self.receivers().count() >= STRANGERS_MAX && !self.evict_stranger()
        {
            connection.close(close::OTHER, BUSY);
            return;
        }
        let (id, options) = self.surveyed.take().unwrap_or_else(|| self.prepare());
        let (peer, theirs) = (connection.peer(), connection.clone());
        let (wanted, event_tx) = (Arc::clone(&options), self.event_tx.clone());
        let work = move || {
            let result = serve(theirs, &wanted);
            drop(event_tx.send(SessionEvent::Ended(id, Box::new(result))));
        };
        let name = "wraith-send".to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(work) {
            tracing::warn!(%error, "no thread for a connection");
            connection.close(close::OTHER, "no room");
            self.surveyed = Some((id, options));
            return;
        }
        let (instance, role, has_accepted) = (None, SessionRole::Stranger, false);
        let session = Session { id, peer, connection, options, instance, role, has_accepted };
        self.sessions.push(session);
    }

    /// Evicts the stranger that has been connected longest without sending the secret. It is the
    /// least likely to be the receiver, which needs one round trip for that. So silent strangers
    /// keep no receiver out.
    ///
    /// Returns false if all strangers were evicted already and are still ending.
    fn evict_stranger(&self) -> bool {
        // Sessions are in the order of their arrival.
        let mut strangers = self.sessions.iter().filter(|s| s.role != SessionRole::Receiver);
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
    pub(super) async fn admit_receiver(&mut self, id: u64, instance: Option<u64>) -> bool {
        let Some(at) = self.sessions.iter().position(|s| s.id == id) else { return false };
        self.sessions[at].instance = instance;
        let peer = self.sessions[at].peer;
        // Another peer may have taken its place since it sent the secret.
        if !self.unfinished.admits(peer) {
            self.reject(at, close::WRONG_SECRET, "");
            return false;
        }
        // Only now: a peer that is rejected must not take a place away.
        self.release_cancelled();
        let has_room = self.has_room_for(peer);
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
                self.reject(at, close::ELSEWHERE, "");
                return false;
            }
            self.replace(earlier, is_same);
        } else if !has_room {
            let why = if self.is_several() {
                "the sender is already serving its maximum number of receivers; try again later"
            } else {
                "the sender is serving another receiver with this ticket"
            };
            self.reject(at, close::REFUSED, why);
            return false;
        }
        self.lost_receivers.retain(|lost| lost.peer != peer);
        let newcomer = &mut self.sessions[at];
        newcomer.role = SessionRole::Receiver;
        self.shared.meter.add(Arc::clone(&newcomer.options.progress));
        self.update_stored(|unfinished| unfinished.add_receiver(peer));
        self.limit = None;
        self.share_rate();
        self.rediscovery.back(peer).await;
        true
    }

    /// Returns whether another session can be served. A receiver that has everything may come again,
    /// if it has lost the end of its transfer, and takes no place of another one.
    fn has_room_for(&self, peer: NodeId) -> bool {
        let is_done = |peer| self.unfinished.is_done(peer);
        let waiting = self.receivers().filter(|session| !is_done(session.peer)).count();
        let wanted = match self.settings.receivers {
            Some(n) if !is_done(peer) => n.saturating_sub(self.sent.receivers) as usize,
            _ => RECEIVERS_MAX,
        };
        let now = Instant::now();
        let is_awaited = |lost: &&LostReceiver| lost.peer != peer && now < lost.until;
        let wanted = wanted.saturating_sub(self.lost_receivers.iter().filter(is_awaited).count());
        waiting < wanted && self.receivers().count() < RECEIVERS_MAX
    }

    /// Keeps the place of a receiver that has begun and was lost, for as long as it may reconnect.
    /// For a ticket of a code, the allowlist does that.
    fn keep_place(&mut self, session: &Session) {
        if session.has_accepted && self.unfinished.allowed().is_none() {
            let now = Instant::now();
            let until = now + self.settings.transfer.reconnect;
            self.lost_receivers.retain(|lost| lost.peer != session.peer && now < lost.until);
            self.lost_receivers.push(LostReceiver { peer: session.peer, until });
        }
    }

    fn reject(&mut self, at: usize, code: u64, why: &str) {
        self.sessions[at].connection.close(code, why);
        self.sessions[at].role = SessionRole::Former;
    }

    /// Replaces the receiver with this number by the same one on another connection.
    fn replace(&mut self, id: u64, is_same_run: bool) {
        let Some(at) = self.sessions.iter().position(|s| s.id == id) else { return };
        match is_same_run {
            true => self.reject(at, close::OTHER, "you have come back on another connection"),
            false => self.reject(at, close::ELSEWHERE, ""),
        }
        self.shared.meter.remove(&self.sessions[at].options.progress);
        let number = self.settings.receivers.is_none_or(|n| n > 1).then_some(id);
        self.shared.publisher.publish_for(number, Event::ReceiverReconnected);
    }

    /// Applies a change to the stored state. A failure is only reported: the transfer works all the
    /// same.
    fn update_stored(&self, change: impl FnOnce(&UnfinishedSend) -> Result<(), StateError>) {
        if let Err(error) = change(&self.unfinished) {
            self.shared
                .publisher
                .publish(Event::Note { path: String::new(), what: error.to_string() });
        }
    }

    /// Records that a receiver accepted and its files begin to move.
    pub(super) fn receiver_accepted(&mut self, id: u64) {
        let is_it = |s: &&mut Session| s.id == id && s.role == SessionRole::Receiver;
        if let Some(session) = self.sessions.iter_mut().find(is_it) {
            session.has_accepted = true;
            let peer = session.peer;
            self.update_stored(|unfinished| unfinished.record_accepted(peer));
        }
    }

    /// Disconnects receivers that are no longer allowed. A new peer that proved the words of the
    /// code may have taken the place of an earlier one.
    pub(super) fn disconnect_disallowed(&mut self) {
        let mut is_any = false;
        for session in &mut self.sessions {
            if session.role == SessionRole::Receiver && !self.unfinished.admits(session.peer) {
                session.role = SessionRole::Former;
                session.connection.close(close::WRONG_SECRET, "");
                self.shared.meter.remove(&session.options.progress);
                is_any = true;
            }
        }
        if is_any {
            self.share_rate();
        }
        // The new peer is awaited as the first one was.
        if is_any && self.receivers().next().is_none() {
            self.limit = self.settings.transfer.timeout.map(TimeLimit::new);
        }
    }

    /// Frees the places of receivers whose user cancelled, although their threads may still be
    /// ending.
    fn release_cancelled(&mut self) {
        for session in &mut self.sessions {
            let reason = session.connection.close_reason();
            let stopped = matches!(reason, Some(CloseReason::Peer { code: close::CANCELLED, .. }));
            if session.role == SessionRole::Receiver && stopped {
                session.role = SessionRole::Former;
                self.shared.meter.remove(&session.options.progress);
            }
        }
    }

    /// Splits the rate limit, which is for all receivers together.
    fn share_rate(&self) {
        let Some(rate) = self.settings.transfer.rate else { return };
        let share = rate / self.receivers().count().max(1) as u64;
        self.receivers().for_each(|session| session.options.rate.limit(Some(share)));
    }

    /// Handles the end of a session. Returns the result of the offer if the offer ends with it.
    pub(super) async fn session_ended(
        &mut self,
        id: u64,
        result: Result<SendReport, TransferError>,
    ) -> Option<Result<(), Error>> {
        let at = self.sessions.iter().position(|s| s.id == id)?;
        let session = self.sessions.remove(at);
        if session.role != SessionRole::Receiver {
            if matches!(result, Err(TransferError::WrongSecret)) {
                self.shared.publisher.publish(Event::UnauthorizedPeer);
            }
            if self.surveyed.is_none() && session.role == SessionRole::Stranger {
                self.surveyed = Some((id, session.options));
            }
            return None;
        }
        if result.is_err() {
            self.shared.meter.remove(&session.options.progress);
        }
        self.share_rate();
        let end = match result {
            Ok(report) => self.receiver_done(&session, report).await,
            Err(TransferError::Postponed) => {
                let number = self.is_several().then_some(id);
                self.shared.publisher.publish_for(number, Event::OfferPostponed);
                self.lost = None;
                None
            }
            Err(error) if self.may_start_again(&session, &error) => {
                let number = self.is_several().then_some(id);
                let stopped = Event::Stopped { by: Role::Receiver, seconds_left: None };
                self.shared.publisher.publish_for(number, stopped);
                let what = match error {
                    TransferError::NoStream => {
                        "the receiver wants one stream, not files or a folder"
                    }
                    _ => "the receiver stopped before it accepted",
                };
                let what = format!("{what}; waiting for it to come back");
                self.shared
                    .publisher
                    .publish_for(number, Event::Note { path: String::new(), what });
                self.lost = None;
                None
            }
            Err(error) if self.is_several() => {
                let is_lost = matches!(
                    error,
                    TransferError::NetworkLost { .. }
                        | TransferError::Cancelled { role: Role::Receiver }
                );
                self.shared.publisher.publish_for(Some(id), Event::ReceiverFailed(error.into()));
                if is_lost {
                    self.keep_place(&session);
                    self.rediscovery.lost(session.peer).await;
                }
                None
            }
            Err(error) if self.awaits_return(&error) => {
                self.rediscovery.lost(session.peer).await;
                self.wait_for_reconnect(error, session.options.progress.bytes());
                return None;
            }
            Err(error) => Some(Err(error.into())),
        };
        if end.is_none() && self.receivers().next().is_none() {
            if let Some(failure) = self.closing.take() {
                self.stop_all().await;
                return Some(Err(failure));
            }
            self.limit = self.settings.transfer.timeout.map(TimeLimit::new);
        }
        end
    }

    /// Handles a receiver that has confirmed everything. Returns the result of the offer if it was
    /// the last one wanted.
    async fn receiver_done(
        &mut self,
        session: &Session,
        report: SendReport,
    ) -> Option<Result<(), Error>> {
        let receiver = self.count(session, report);
        if !self.is_several() {
            return Some(Ok(()));
        }
        self.update_stored(|unfinished| unfinished.remove_receiver(receiver));
        let done = self.sent.receivers;
        if Some(done) != self.settings.receivers {
            self.shared.publisher.publish(Event::Served { done, of: self.settings.receivers });
            return None;
        }
        self.stop_all().await;
        Some(Ok(()))
    }

    /// Counts and reports a receiver that has confirmed everything. Returns its NodeId.
    fn count(&mut self, session: &Session, report: SendReport) -> NodeId {
        // A receiver that came again for the end of its transfer was counted before.
        self.sent.receivers += u32::from(!self.unfinished.is_done(report.receiver));
        let remote = session.connection.remote();
        self.sent.last = Some((report.receiver, remote));
        self.sent.lacking += u32::from(report.outcome().is_err());
        self.shared.meter.remove(&session.options.progress);
        let receiver = report.receiver;
        let report = Arc::new(report);
        self.sent.report = Some(Arc::clone(&report));
        let number = self.is_several().then_some(session.id);
        self.shared.publisher.publish_for(number, Event::Sent { report });
        receiver
    }

    /// Returns whether a receiver that stopped without an answer, or wanted one stream, may start
    /// again as if it had not been here.
    fn may_start_again(&self, session: &Session, error: &TransferError) -> bool {
        match error {
            TransferError::NoStream => self.settings.keep_place,
            TransferError::Cancelled { role: Role::Receiver } => {
                !session.has_accepted && (self.is_several() || self.keeps_place())
            }
            _ => false,
        }
    }

    /// Returns whether the only receiver, which ended with `error`, may come back.
    fn awaits_return(&self, error: &TransferError) -> bool {
        match error {
            TransferError::NetworkLost { .. } => !self.settings.transfer.reconnect.is_zero(),
            // A new receiver of a stream would lack its beginning.
            TransferError::Cancelled { role: Role::Receiver } => {
                self.keeps_place() && !self.payload.is_stream()
            }
            _ => false,
        }
    }

    /// Returns whether the only receiver may come again after it has stopped.
    fn keeps_place(&self) -> bool {
        self.settings.keep_place && !self.settings.transfer.reconnect.is_zero()
    }

    /// Starts to wait for the only receiver, which may come back.
    fn wait_for_reconnect(&mut self, error: TransferError, bytes: u64) {
        let seconds_left = self.window.lost(bytes, self.settings.transfer.reconnect);
        self.limit = self.window.limit.clone();
        self.shared.publisher.publish(match &error {
            TransferError::NetworkLost { why } => {
                Event::ConnectionLost { why: why.clone(), seconds_left }
            }
            _ => Event::Stopped { by: Role::Receiver, seconds_left: Some(seconds_left) },
        });
        self.lost = Some(error);
    }

    /// Notifies every peer that this side stops, and waits until they are notified.
    pub(super) async fn stop_all(&mut self) {
        for session in &self.sessions {
            session.options.cancel.cancel();
            session.connection.close(close::CANCELLED, "");
        }
        let deadline = Instant::now() + LAST_WAIT;
        while !self.sessions.is_empty() {
            match timeout_at(deadline, self.events.recv()).await {
                Ok(Some(SessionEvent::Ended(id, result))) => {
                    let Some(at) = self.sessions.iter().position(|s| s.id == id) else { continue };
                    let session = self.sessions.remove(at);
                    if let (SessionRole::Receiver, Ok(report)) = (session.role, *result) {
                        self.count(&session, report);
                    }
                }
                // Otherwise a receiver that has just accepted would be forgotten.
                Ok(Some(SessionEvent::Accepted(id))) => self.receiver_accepted(id),
                Ok(Some(_)) => {}
                // After this time, the sessions end without supervision.
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// Reports that the peer of a session has sent the secret, and waits on the session's thread for the
/// verdict. Returns false if the session was rejected or the offer has ended.
///
/// The wait also ends with the channel. A message that is sent while the receiver is dropped can
/// stay in the channel for as long as this thread keeps its sender.
fn await_verdict(event_tx: &UnboundedSender<SessionEvent>, id: u64, instance: Option<u64>) -> bool {
    let (verdict, given) = oneshot::channel();
    let _ = event_tx.send(SessionEvent::SecretProven(id, instance, verdict));
    block_on(async {
        tokio::select! {
            biased;
            given = given => given.is_ok(),
            () = event_tx.closed() => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn the_wait_for_a_verdict_ends_with_an_offer_that_leaves_the_message_unread() {
        let (event_tx, mut events) = tokio::sync::mpsc::unbounded_channel();
        let (end_tx, ended) = mpsc::channel();
        thread::spawn(move || end_tx.send(await_verdict(&event_tx, 0, None)));
        while events.is_empty() {
            thread::yield_now();
        }
        // The message stays in the channel, as one that is sent while the receiver is dropped.
        events.close();
        assert_eq!(ended.recv_timeout(PATIENCE), Ok(false));
        assert_eq!(events.len(), 1);
    }
}
