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

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use wraith_discovery::{Code, CodeAnnouncement, CodeEvent, PlaceError, PlaceName, TimeLimit};
use wraith_transfer::{
    ParallelConnections, Role as Side, SendOptions, SendReport, SentRoots, TransferError,
};
use wraith_transport::{ClockDifference, Connection, Role as PathRole};

use self::codes::CodeKind;
use self::sessions::{LostReceiver, Session, SessionRole};
use super::rediscovery::Rediscovery;
use super::retry::{ReconnectWindow, reached, reconnect_error};
use super::role::{self, Role};
use super::session::stop_code;
use super::task::TaskState;
use crate::clock_reports::ClockReports;
use crate::error::{Cause, Error, ErrorKind};
use crate::node::Node;
use crate::paths::SocketPaths;
use crate::payload::Payload;
use crate::report::OfferSummary;
use crate::settings::SendSettings;
use crate::state::UnfinishedSend;

pub(crate) use self::long_code::{AbortOnDrop, LongCode, LongCodeEvent};

/// Messages from the threads of the transfers.
pub(crate) enum SessionEvent {
    /// The session's peer has sent the secret, and its instance if it has one. Its thread waits for
    /// the verdict: a rejected peer gets no offer and causes no events.
    SecretProven(u64, Option<u64>, oneshot::Sender<()>),
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
    clocks: ClockReports,
    event_tx: UnboundedSender<SessionEvent>,
    events: UnboundedReceiver<SessionEvent>,
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
    ) -> Self {
        let (event_tx, events) = mpsc::unbounded_channel();
        let sent_roots = unfinished.sent_roots();
        let limit = settings.transfer.timeout.map(TimeLimit::new);
        let window = ReconnectWindow::new(settings.transfer.timeout);
        let sent = OfferSummary { receivers: 0, lacking: 0, last: None, report: None };
        let (sessions, next_id, surveyed) = (Vec::new(), 0, None);
        let (lost, closing) = (None, None);
        let clocks = ClockReports::new(&shared.publisher);
        Self {
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
            clocks,
            event_tx,
            events,
            sessions,
            lost_receivers: Vec::new(),
            sent,
            next_id,
            surveyed,
            limit,
            window,
            lost,
            closing,
        }
    }

    /// Serves until the receivers have confirmed everything, or further waiting is pointless.
    pub async fn run(mut self) -> Result<OfferSummary, Error> {
        self.survey();
        if let Some(code) = &mut self.code {
            code.start_serving();
        }
        let stop = self.shared.token.clone();
        let result = role::run(&mut self, &stop).await.and_then(|result| result);
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

/// What an offer waits for, besides its peers.
pub(crate) enum OfferEvent {
    Session(SessionEvent),
    Code(CodeEvent, CodeKind),
    LongCodeMade(Code),
    LongCodeNotMade(Vec<(PlaceName, PlaceError)>),
    /// No receiver came, or came back, in time.
    TimedOut,
}

impl Role for OfferServer {
    type Event = OfferEvent;
    type Output = Result<(), Error>;

    fn paths(&self) -> &SocketPaths {
        &self.paths
    }

    async fn next_event(&mut self) -> OfferEvent {
        let Self { events, code, long_code, limit, .. } = self;
        tokio::select! {
            Some(event) = events.recv() => OfferEvent::Session(event),
            event = next_of(code) => OfferEvent::Code(event, CodeKind::Short),
            event = long_code.next() => match event {
                LongCodeEvent::Made(code) => OfferEvent::LongCodeMade(code),
                LongCodeEvent::NotMade(why) => OfferEvent::LongCodeNotMade(why),
                LongCodeEvent::Announcement(event) => OfferEvent::Code(event, CodeKind::Long),
            },
            () = reached(limit.as_mut()) => OfferEvent::TimedOut,
        }
    }

    async fn on_event(&mut self, event: OfferEvent) -> ControlFlow<Self::Output> {
        let failure = match event {
            OfferEvent::Session(SessionEvent::SecretProven(id, instance, verdict)) => {
                if self.admit_receiver(id, instance).await {
                    self.manage_path(id);
                    // The session's thread may have ended meanwhile.
                    let _ = verdict.send(());
                }
                None
            }
            OfferEvent::Session(SessionEvent::Accepted(id)) => {
                self.receiver_accepted(id);
                None
            }
            OfferEvent::Session(SessionEvent::Unreadable(error)) => {
                return ControlFlow::Break(Err(error.into()));
            }
            OfferEvent::Session(SessionEvent::Ended(id, result)) => {
                match self.session_ended(id, *result).await {
                    Some(end) => return ControlFlow::Break(end),
                    None => None,
                }
            }
            OfferEvent::Code(event, kind) => self.code_event(event, kind),
            OfferEvent::LongCodeMade(code) => {
                self.long_code_made(code);
                None
            }
            OfferEvent::LongCodeNotMade(why) => self.long_code_not_made(why),
            OfferEvent::TimedOut => {
                return ControlFlow::Break(Err(match self.lost.take() {
                    Some(error) => reconnect_error(error, self.settings.transfer.reconnect),
                    None => no_receiver(),
                }));
            }
        };
        match failure {
            Some(failure) => {
                self.stop_all().await;
                ControlFlow::Break(Err(failure))
            }
            None => ControlFlow::Continue(()),
        }
    }

    fn on_connection(&mut self, connection: Connection) {
        self.admit(connection);
    }

    fn on_clock_difference(&mut self, refused: ClockDifference) {
        // The holder of a ticket has not shown its identity.
        self.clocks.report(None, refused.seconds);
    }

    fn on_addresses_changed(&mut self) {
        self.rediscovery.addresses_changed();
    }

    async fn on_stop(&mut self) -> Self::Output {
        let is_idle = self.receivers().next().is_none();
        self.stop_all().await;
        match (self.settings.receivers, is_idle) {
            (None, true) => Ok(()),
            // The last receipt arrived together with the stop request.
            (Some(wanted), _) if self.sent.receivers == wanted => Ok(()),
            _ => Err(Error::cancelled(Side::Sender)),
        }
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

/// Returns the next event of a code; waits for ever if all its places have ended.
pub(crate) async fn next_of(code: &mut Option<CodeAnnouncement>) -> CodeEvent {
    if let Some(code) = code
        && let Some(event) = code.next_event().await
    {
        return event;
    }
    std::future::pending().await
}

fn no_receiver() -> Error {
    Error::because(ErrorKind::NotFound, "no receiver came in time", Cause::NoReceiver)
}
