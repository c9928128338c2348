//! The dialled sender: accepts connections until the requested number of receivers has confirmed
//! everything.
//!
//! - Every peer that proves its NodeId (its public key) gets a connection. Only a peer that also
//!   has the secret of the ticket becomes a receiver.
//! - Each receiver is served independently: if one fails, the others continue.
//! - A receiver that reconnects replaces its own earlier connection, which may look alive for a
//!   while after its process died.
//! - If only one more receiver is allowed, two programs with one identity compete for its place.
//!   The program whose user accepts first gets it.

mod codes;
mod long_code;
mod sessions;

use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use wraith_discovery::{CodeAnnouncement, CodeEvent, TimeLimit};
use wraith_transfer::{
    ParallelConnections, Role, SendOptions, SendReport, SentRoots, TransferError,
};
use wraith_transport::Role as PathRole;

use self::codes::CodeKind;
use self::long_code::LongCodeEvent;
use self::sessions::{LostReceiver, Session, SessionRole};
use super::clock_reports::ClockReports;
use super::rediscovery::Rediscovery;
use super::retry::{ReconnectWindow, reached, reconnect_error};
use super::session::stop_code;
use super::task::TaskState;
use crate::error::{Cause, Error, ErrorKind};
use crate::node::Node;
use crate::paths::SocketPaths;
use crate::payload::Payload;
use crate::report::OfferSummary;
use crate::settings::SendSettings;
use crate::state::UnfinishedSend;

pub(crate) use self::long_code::LongCode;

/// Messages from the threads of the transfers.
pub(crate) enum SessionEvent {
    /// The session's peer has sent the secret, and its instance if it has one. Its thread waits for
    /// the verdict: a rejected peer gets no offer and causes no events.
    SecretProven(u64, Option<u64>, std::sync::mpsc::Sender<()>),
    /// The session's receiver has accepted.
    Accepted(u64),
    Ended(u64, Box<Result<SendReport, TransferError>>),
    /// The tree cannot be offered.
    Unreadable(TransferError),
}

/// A serving sender (see the module docs).
pub(crate) struct OfferServer {
    node: Node,
    payload: Payload,
    settings: SendSettings,
    unfinished: Arc<UnfinishedSend>,
    rediscovery: Rediscovery,
    paths: SocketPaths,
    parallel: ParallelConnections,
    sent_roots: SentRoots,
    code: Option<CodeAnnouncement>,
    /// A long code for the same offer, if there is one.
    long_code: LongCode,
    /// Codes that are burned or expired, and why the first of them is. The other one lives on.
    ended_codes: Vec<CodeKind>,
    code_failure: Option<Error>,
    shared: TaskState,
    event_tx: UnboundedSender<SessionEvent>,
    sessions: Vec<Session>,
    lost_receivers: Vec<LostReceiver>,
    sent: OfferSummary,
    next_id: u64,
    /// Options for the next session, whose tree is already walked.
    surveyed: Option<(u64, Arc<SendOptions>)>,
    /// When to stop waiting; `None` while a receiver is served, or if the wait has no limit.
    limit: Option<TimeLimit>,
    /// The reconnect window of a single receiver.
    window: ReconnectWindow,
    /// The error with which the last receiver was lost.
    lost: Option<TransferError>,
    /// Why no further receiver can come; `None` while one can.
    closing: Option<Error>,
}

impl OfferServer {
    #[allow(clippy::too_many_arguments, reason = "an offer's parts, put together once")]
    pub fn new(
        node: Node,
        payload: Payload,
        settings: SendSettings,
        unfinished: Arc<UnfinishedSend>,
        rediscovery: Rediscovery,
        paths: SocketPaths,
        parallel: ParallelConnections,
        code: Option<CodeAnnouncement>,
        long_code: LongCode,
        shared: TaskState,
    ) -> (Self, UnboundedReceiver<SessionEvent>) {
        let (event_tx, events) = mpsc::unbounded_channel();
        let sent_roots = unfinished.sent_roots();
        let limit = settings.timeouts.first.map(TimeLimit::new);
        let settings_timeouts = settings.timeouts;
        let sent = OfferSummary { receivers: 0, lacking: 0, last: None, report: None };
        let (sessions, next_id, surveyed) = (Vec::new(), 0, None);
        let (lost, closing) = (None, None);
        let server = Self {
            node,
            payload,
            settings,
            unfinished,
            rediscovery,
            paths,
            parallel,
            sent_roots,
            code,
            long_code,
            ended_codes: Vec::new(),
            code_failure: None,
            shared,
            event_tx,
            sessions,
            lost_receivers: Vec::new(),
            sent,
            next_id,
            surveyed,
            limit,
            window: ReconnectWindow::new(settings_timeouts),
            lost,
            closing,
        };
        (server, events)
    }

    /// Serves until the receivers have confirmed everything, or further waiting is pointless.
    pub async fn run(
        mut self,
        mut events: UnboundedReceiver<SessionEvent>,
    ) -> Result<OfferSummary, Error> {
        let result = self.serve_until_done(&mut events).await;
        self.paths.endpoint().start_close();
        self.paths.endpoint().closed().await;
        let (code, long_code) = (self.code.take(), std::mem::take(&mut self.long_code));
        let short = async {
            if let Some(code) = code {
                code.close().await;
            }
        };
        tokio::join!(short, long_code.close(), self.rediscovery.close());
        if result.is_err() || self.settings.receivers.is_none() {
            let contacts = self.node.contacts().load().ok();
            let is_known = |node| contacts.as_ref().is_some_and(|book| book.with(node).is_some());
            self.unfinished.end_run(is_known);
        }
        result?;
        let sent = self.sent.clone();
        if let Some((peer, remote)) = &sent.last {
            self.node.store_last_seen(*peer, remote);
        }
        // An offer to any number of receivers continues with the same ticket later.
        if self.settings.receivers.is_some() && sent.lacking == 0 {
            self.unfinished.forget();
        }
        Ok(sent)
    }

    async fn serve_until_done(
        &mut self,
        events: &mut UnboundedReceiver<SessionEvent>,
    ) -> Result<(), Error> {
        self.survey();
        if let Some(code) = &mut self.code {
            code.start_serving();
        }
        let (endpoint, token) = (self.paths.endpoint().clone(), self.shared.token.clone());
        let mut changes = self.paths.changes();
        let mut clocks = ClockReports::new(Arc::clone(&self.shared.publisher));
        loop {
            tokio::select! {
                // The holder of a ticket has not shown its identity.
                refused = endpoint.clock_difference() => clocks.report(None, refused.seconds),
                Ok(()) = changes.changed() => self.rediscovery.addresses_changed(),
                connection = endpoint.accept() => match connection {
                    Some(connection) => self.admit(connection),
                    None => return Err(Error::new(ErrorKind::Other, "the socket is gone")),
                },
                Some(event) = events.recv() => match event {
                    SessionEvent::SecretProven(id, instance, verdict) => {
                        if self.admit_receiver(id, instance).await {
                            self.manage_path(id);
                            // The session's thread may have ended meanwhile.
                            let _ = verdict.send(());
                        }
                    }
                    SessionEvent::Accepted(id) => self.receiver_accepted(id),
                    SessionEvent::Unreadable(error) => return Err(error.into()),
                    SessionEvent::Ended(id, result) => {
                        if let Some(end) = self.session_ended(id, *result, events).await {
                            return end;
                        }
                    }
                },
                Some(event) = next_of(&mut self.code) => {
                    if let Some(failure) = self.code_event(event, CodeKind::Short) {
                        self.stop_all(events).await;
                        return Err(failure);
                    }
                }
                event = self.long_code.next() => match event {
                    LongCodeEvent::Made(code) => self.long_code_made(code),
                    LongCodeEvent::NotMade(why) => {
                        if let Some(failure) = self.long_code_not_made(why) {
                            self.stop_all(events).await;
                            return Err(failure);
                        }
                    }
                    LongCodeEvent::Announcement(event) => {
                        if let Some(failure) = self.code_event(event, CodeKind::Long) {
                            self.stop_all(events).await;
                            return Err(failure);
                        }
                    }
                },
                () = reached(self.limit.as_mut()) => {
                    return Err(match self.lost.take() {
                        Some(error) => {
                            reconnect_error(error, self.settings.timeouts.reconnect)
                        }
                        None => no_receiver(),
                    });
                }
                () = token.cancelled() => {
                    let is_idle = self.receivers().next().is_none();
                    self.stop_all(events).await;
                    return match (self.settings.receivers, is_idle) {
                        (None, true) => Ok(()),
                        // The last receipt arrived together with the stop request.
                        (Some(wanted), _) if self.sent.receivers == wanted => Ok(()),
                        _ => Err(Error::cancelled(Role::Sender)),
                    };
                }
            }
        }
    }

    /// Returns true if more than one receiver may come.
    fn is_several(&self) -> bool {
        self.settings.receivers != Some(1)
    }

    /// Returns the sessions being served.
    fn receivers(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.role == SessionRole::Receiver)
    }

    /// Manages the path of a receiver's connection.
    fn manage_path(&self, id: u64) {
        if let Some(session) = self.sessions.iter().find(|session| session.id == id) {
            let receiver = self.is_several().then_some(id);
            self.paths.manage_path(
                &session.connection,
                PathRole::Responder,
                &self.shared.publisher,
                receiver,
            );
        }
    }

    /// Walks the tree for the first session before any receiver is connected.
    fn survey(&mut self) {
        let (id, options) = self.prepare();
        let (theirs, event_tx) = (Arc::clone(&options), self.event_tx.clone());
        let walk = move || {
            if let Err(error) = theirs.survey() {
                drop(event_tx.send(SessionEvent::Unreadable(error)));
            }
        };
        // If no thread starts, the first receiver waits for the counts.
        drop(thread::Builder::new().name("wraith-survey".into()).spawn(walk));
        self.surveyed = Some((id, options));
    }
}

/// Ends all transfers when the work ends in any way. Their threads notice by the closed connection.
impl Drop for OfferServer {
    fn drop(&mut self) {
        if let Some((_, options)) = &self.surveyed {
            // Stops a walk that no session waits for.
            options.cancel.cancel();
        }
        for session in &self.sessions {
            session.options.cancel.cancel();
            session.connection.close(stop_code(), "");
        }
    }
}

async fn next_of(code: &mut Option<CodeAnnouncement>) -> Option<CodeEvent> {
    match code {
        Some(code) => match code.next_event().await {
            Some(event) => Some(event),
            // All places have ended; running sessions continue.
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

fn no_receiver() -> Error {
    Error::because(ErrorKind::NotFound, "no receiver came in time", Cause::NoReceiver)
}
