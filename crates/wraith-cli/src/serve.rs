//! The sender after its ticket is out: takes connections until as many receivers as it was told have confirmed everything.
//!
//! ```text
//!  accept thread ── Came ──┐
//!  serve threads ── Knows, Ended ──▶ this thread: decides who is served, and when to give up
//!  signal thread ── Stop ──┘
//! ```
//!
//! Everyone who can prove the NodeId gets a connection, but only who knows the secret becomes a receiver, and each is served
//! on its own: one that fails takes nothing from the others. A receiver that comes back replaces its own earlier
//! connection, which may look alive for a while after its process died.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wraith::state::UnfinishedSend;
use wraith_crypto::NodeId;
use wraith_transfer::{
    Event as Happened, Lanes, Role, SendOptions, SendReport, StreamSource, TransferError, close,
};
use wraith_transport::{CloseReason, Connection, Endpoint, block_on};

use crate::args::{SendArgs, continuing};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::{Meter, Reporter, Ticker};
use crate::regain::Answering;
use crate::report::Story;

/// Connections served at once, nearly all of them strangers without the secret: enough that a few cannot keep the
/// receiver out, few enough that their threads are nothing.
const MAX_SESSIONS: usize = 16;

/// Receivers served at once; more are asked to come back later. Each has threads and read-ahead of its own.
const MAX_RECEIVERS: usize = 64;

/// What the other threads tell this one.
enum Message {
    Came(Connection),
    /// The session's peer knows the secret; which run of it this is, where it says.
    Knows(u64, Option<u64>),
    Ended(u64, Box<Result<SendReport, TransferError>>),
    /// The tree cannot be offered.
    Unreadable(TransferError),
    Stop,
    /// The code has ended, and nobody has the ticket.
    GiveUp(Failure),
}

struct Session {
    id: u64,
    peer: NodeId,
    connection: Connection,
    options: Arc<SendOptions>,
    story: Arc<Story>,
    instance: Option<u64>,
    standing: Standing,
}

/// What a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has not named the secret.
    Stranger,
    /// It is served.
    Receiver,
    /// It was served until its receiver came back on another, or it knows the secret and was sent away.
    Former,
}

/// What a session needs, before there is one.
struct Prepared {
    id: u64,
    options: Arc<SendOptions>,
    story: Arc<Story>,
}

/// One `wraith send` at work.
pub struct Serving<'a> {
    args: &'a SendArgs,
    paths: Vec<PathBuf>,
    /// Standard input, in place of the paths.
    stream: Option<StreamSource>,
    secret: [u8; 16],
    endpoint: &'a Endpoint,
    lanes: Lanes,
    pending: &'a UnfinishedSend,
    answering: Answering,
    reporter: &'a Arc<Reporter>,
    meter: Arc<Meter>,
    tell: Sender<Message>,
    messages: Receiver<Message>,
    sessions: Vec<Session>,
    /// Receivers that have everything, and those of them that lack files that failed.
    done: u32,
    partial: u32,
    /// The last of them, and where it was.
    partner: Option<(NodeId, SocketAddr)>,
    next_id: u64,
    /// Options whose tree is walked already, for the next session.
    surveyed: Option<Prepared>,
    /// When to give up waiting; None while a receiver is served, or when the wait has no limit.
    deadline: Option<Instant>,
    /// How the last receiver was lost.
    lost: Option<TransferError>,
    /// Nobody new can come any more, and why.
    closing: Option<Failure>,
    /// Shows the progress from the first receiver on.
    ticker: Option<Ticker>,
}

impl<'a> Serving<'a> {
    pub fn new(
        args: &'a SendArgs,
        (paths, stream): (Vec<PathBuf>, Option<StreamSource>),
        pending: &'a UnfinishedSend,
        answering: Answering,
        (endpoint, lanes): (&'a Endpoint, Lanes),
        reporter: &'a Arc<Reporter>,
        interrupt: &Interrupt,
    ) -> Self {
        let (tell, messages) = mpsc::channel();
        let stop = tell.clone();
        // When nobody listens any more, the command has ended already.
        interrupt.on_signal(move || drop(stop.send(Message::Stop)));
        Self {
            args,
            paths,
            stream,
            secret: *pending.capability().as_bytes(),
            endpoint,
            lanes,
            pending,
            answering,
            reporter,
            meter: Arc::default(),
            tell,
            messages,
            sessions: Vec::new(),
            done: 0,
            partial: 0,
            partner: None,
            next_id: 0,
            surveyed: None,
            deadline: patience(args),
            lost: None,
            closing: None,
            ticker: None,
        }
    }

    /// Ends the wait for a receiver, unless one has come.
    pub fn give_up(&self) -> impl Fn(Failure) + Send + Sync + use<> {
        let tell = self.tell.clone();
        // When nobody listens any more, the command has ended already.
        move |failure| drop(tell.send(Message::GiveUp(failure)))
    }

    /// Who has everything now, and where it was; the last, if there were several.
    pub fn partner(&self) -> Option<(NodeId, SocketAddr)> {
        self.partner
    }

    /// Returns once the receivers have confirmed everything, or when there is no point in waiting longer.
    pub fn run(&mut self) -> Result<(), Failure> {
        self.survey_in_background();
        self.accept_in_background();
        loop {
            match self.next_message()? {
                Message::Came(connection) => self.admit(connection),
                Message::Knows(id, instance) => self.choose(id, instance),
                Message::Unreadable(error) => return Err(self.failure(&error)),
                Message::Stop => {
                    let idle = self.receivers().next().is_none();
                    self.stop_all();
                    if self.args.keep && idle {
                        self.reporter.say(format!("Sent to {}.", Receivers(self.done)));
                        return Ok(());
                    }
                    return Err(Failure::new(Exit::Interrupted, "stopped"));
                }
                Message::GiveUp(failure) => {
                    let idle = self.receivers().next().is_none() && self.lost.is_none();
                    self.closing = Some(failure);
                    if idle {
                        return self.give_up_now();
                    }
                    if self.is_several() {
                        self.reporter
                            .warn("nobody new can use the code; who is being served still is");
                    }
                }
                Message::Ended(id, result) => {
                    if let Some(end) = self.ended(id, *result) {
                        return end;
                    }
                }
            }
        }
    }

    /// More than one receiver may come.
    fn is_several(&self) -> bool {
        self.args.receivers() != Some(1)
    }

    /// The sessions that are served now.
    fn receivers(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.standing == Standing::Receiver)
    }

    /// Nobody is served and nobody can come.
    fn give_up_now(&mut self) -> Result<(), Failure> {
        self.stop_all();
        let mut failure = self.closing.take().expect("this is called when there is a reason");
        if self.done > 0 {
            failure.message.push_str(&format!(" ({} had everything)", Receivers(self.done)));
        }
        Err(failure)
    }

    /// Waits, at most until the deadline.
    fn next_message(&self) -> Result<Message, Failure> {
        let open = "this side holds a sender of the channel";
        let Some(deadline) = self.deadline else {
            return Ok(self.messages.recv().expect(open));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Ok(message) => Ok(message),
            Err(RecvTimeoutError::Disconnected) => unreachable!("{open}"),
            Err(RecvTimeoutError::Timeout) => Err(match &self.lost {
                Some(error) => self.failure(error),
                None => Failure::new(Exit::PeerNotFound, "no receiver came in time")
                    .hint("without --timeout, wraith send waits for as long as it takes"),
            }),
        }
    }

    fn accept_in_background(&self) {
        let (endpoint, tell) = (self.endpoint.clone(), self.tell.clone());
        thread::spawn(move || {
            while let Some(connection) = block_on(endpoint.accept()) {
                if tell.send(Message::Came(connection)).is_err() {
                    break;
                }
            }
        });
    }

    fn survey_in_background(&mut self) {
        let prepared = self.prepare();
        let (theirs, tell) = (Arc::clone(&prepared.options), self.tell.clone());
        thread::spawn(move || {
            if let Err(error) = theirs.survey() {
                let _ = tell.send(Message::Unreadable(error));
            }
        });
        self.surveyed = Some(prepared);
    }

    /// Options for one more session, and its number.
    fn prepare(&mut self) -> Prepared {
        let id = self.next_id;
        self.next_id += 1;
        let mut options = SendOptions::new(self.paths.clone(), self.secret);
        options.stream = self.stream.clone();
        options.rate.limit(self.args.rate.as_ref().map(|rate| rate.bytes));
        options.lanes = self.lanes.clone();
        options.delta = !self.args.whole_file;
        let story = Arc::new(Story::new(Role::Sender, self.reporter));
        let (tell, teller) = (self.tell.clone(), Arc::clone(&story));
        let number = self.is_several().then_some(id);
        options.events = Arc::new(move |event: Happened<'_>| {
            if let Happened::Connected { instance, .. } = event {
                teller.number(number);
                let _ = tell.send(Message::Knows(id, instance));
            }
            teller.tell(&event);
        });
        Prepared { id, options: Arc::new(options), story }
    }

    /// Serves a new connection on a thread of its own. Who it is shows when it names the secret.
    fn admit(&mut self, connection: Connection) {
        if self.sessions.len() - self.receivers().count() >= MAX_SESSIONS {
            self.send_away_a_stranger();
        }
        let Prepared { id, options, story } =
            self.surveyed.take().unwrap_or_else(|| self.prepare());
        let (peer, handle) = (connection.peer(), connection.clone());
        let (theirs, tell) = (Arc::clone(&options), self.tell.clone());
        thread::spawn(move || {
            let result = wraith_transfer::serve(handle, &theirs);
            let _ = tell.send(Message::Ended(id, Box::new(result)));
        });
        let standing = Standing::Stranger;
        self.sessions.push(Session {
            id,
            peer,
            connection,
            options,
            story,
            instance: None,
            standing,
        });
    }

    /// Makes room: whoever has been here longest without naming the secret is the least likely to be the receiver, who
    /// needs one round trip for it. So strangers who say nothing keep nobody out.
    fn send_away_a_stranger(&self) {
        let strangers = self.sessions.iter().filter(|s| s.standing != Standing::Receiver);
        if let Some(stranger) = strangers.min_by_key(|s| s.id) {
            stranger.connection.close(close::OTHER, "too many callers at once");
        }
    }

    /// A session's peer knows the secret: it is a receiver if one is wanted. The same run of a receiver again has come back,
    /// and its earlier connection is dead whether it knows it or not; so has the same peer where there is room for one only.
    fn choose(&mut self, id: u64, instance: Option<u64>) {
        let Some(at) = self.sessions.iter().position(|s| s.id == id) else { return };
        self.sessions[at].instance = instance;
        self.forget_those_who_stopped();
        let newcomer = &self.sessions[at];
        let served = self.receivers().count();
        let wanted = self.args.receivers().map_or(MAX_RECEIVERS, |n| (n - self.done) as usize);
        let has_room = served < wanted.min(MAX_RECEIVERS);
        let is_back = |s: &&Session| {
            let same_run = instance.is_some() && s.instance == instance;
            s.peer == newcomer.peer && (same_run || !has_room)
        };
        let earlier = self.receivers().find(is_back).map(|s| s.id);
        if let Some(earlier) = earlier {
            let earlier =
                self.sessions.iter_mut().find(|s| s.id == earlier).expect("it was just found");
            earlier.connection.close(close::OTHER, "you have come back on another connection");
            earlier.standing = Standing::Former;
            self.meter.leave(&earlier.options.progress);
        } else if !has_room {
            let why = if self.is_several() {
                "the sender is sending to as many receivers as it can or was told to; try again later"
            } else {
                "the sender is sending to somebody else with this ticket"
            };
            self.sessions[at].connection.close(close::REFUSED, why);
            self.sessions[at].standing = Standing::Former;
            return;
        }
        let newcomer = &mut self.sessions[at];
        newcomer.standing = Standing::Receiver;
        self.answering.back(newcomer.peer);
        if let Err(failure) = self.pending.remember_receiver(newcomer.peer) {
            self.reporter.warn(failure.to_string());
        }
        self.meter.join(Arc::clone(&newcomer.options.progress));
        self.deadline = None;
        self.share_rate();
        if self.ticker.is_none() {
            self.ticker = Some(Ticker::start(Arc::clone(self.reporter), Arc::clone(&self.meter)));
        }
    }

    /// A receiver whose user has stopped it is in nobody's way, although its threads may still be winding up.
    fn forget_those_who_stopped(&mut self) {
        for session in &mut self.sessions {
            let reason = session.connection.close_reason();
            let stopped = matches!(reason, Some(CloseReason::Peer { code: close::CANCELLED, .. }));
            if session.standing == Standing::Receiver && stopped {
                session.standing = Standing::Former;
                self.meter.leave(&session.options.progress);
            }
        }
    }

    /// The cap is for all receivers together.
    fn share_rate(&self) {
        let Some(rate) = &self.args.rate else { return };
        let share = rate.bytes / self.receivers().count().max(1) as u64;
        self.receivers().for_each(|session| session.options.rate.limit(Some(share)));
    }

    /// A session is over. Some(end) if with it the command is.
    fn ended(
        &mut self,
        id: u64,
        result: Result<SendReport, TransferError>,
    ) -> Option<Result<(), Failure>> {
        let at = self.sessions.iter().position(|s| s.id == id)?;
        let session = self.sessions.swap_remove(at);
        if session.standing != Standing::Receiver {
            if matches!(result, Err(TransferError::WrongSecret)) {
                self.reporter.say("Somebody came with another ticket and was refused.");
            }
            if self.surveyed.is_none() && session.standing == Standing::Stranger {
                let Session { id, options, story, .. } = session;
                self.surveyed = Some(Prepared { id, options, story });
            }
            return None;
        }
        if result.is_err() {
            self.meter.leave(&session.options.progress);
        }
        self.share_rate();
        let end = match result {
            Ok(report) => self.served(&session, &report),
            Err(TransferError::Later) => {
                self.reporter.say("The receiver has only looked. Waiting for it to come back.");
                self.lost = None;
                None
            }
            Err(error) if self.is_several() => {
                session.story.lost(&error);
                if is_lost(&error) {
                    self.answering.lost(session.peer);
                }
                None
            }
            Err(error) if is_lost(&error) && self.args.reconnect > 0 => {
                self.answering.lost(session.peer);
                self.await_return(error);
                return None;
            }
            Err(error) => Some(Err(self.failure(&error))),
        };
        if end.is_none() && self.receivers().next().is_none() {
            if self.closing.is_some() {
                return Some(self.give_up_now());
            }
            self.deadline = patience(self.args);
        }
        end
    }

    /// A receiver has confirmed everything. Some(end) if it was the last that was wanted.
    fn served(&mut self, session: &Session, report: &SendReport) -> Option<Result<(), Failure>> {
        self.done += 1;
        self.partner = Some((report.receiver, session.connection.remote()));
        self.partial += u32::from(report.outcome().is_err());
        let last = Some(self.done) == self.args.receivers();
        if last {
            self.ticker = None;
        }
        self.meter.leave(&session.options.progress);
        session.story.sent(report, session.options.progress.bytes());
        if !self.is_several() {
            return Some(report.outcome().map_err(|error| self.failure(&error)));
        }
        if let Err(failure) = self.pending.forget_receiver(report.receiver) {
            self.reporter.warn(failure.to_string());
        }
        if !last {
            let of = self.args.receivers().map(|n| format!(" of {n}")).unwrap_or_default();
            self.reporter.say(format!("{}{of} served. Waiting for the next.", self.done));
            return None;
        }
        self.stop_all();
        Some(match self.partial {
            0 => Ok(()),
            n => {
                let message =
                    format!("{} of {} lack files that could not be sent", n, Receivers(self.done));
                Err(Failure::new(Exit::Partial, message)
                    .hint(format!("for the rest, run again: {}", continuing::command())))
            }
        })
    }

    /// The receiver is gone; it may come back.
    fn await_return(&mut self, error: TransferError) {
        let seconds = self.args.reconnect;
        self.deadline = Some(Instant::now() + Duration::from_secs(seconds));
        self.reporter.reconnecting(&error.to_string(), seconds);
        self.lost = Some(error);
    }

    /// Tells every peer that this side stops, and waits until they were told.
    fn stop_all(&mut self) {
        for session in &self.sessions {
            session.options.cancel.cancel();
            // The engine looks at it only while files move.
            session.connection.close(close::CANCELLED, "");
        }
        while !self.sessions.is_empty() {
            if let Ok(Message::Ended(id, _)) = self.messages.recv() {
                self.sessions.retain(|s| s.id != id);
            }
        }
    }

    fn failure(&self, error: &TransferError) -> Failure {
        crate::report::failure(error, &continuing::command())
    }
}

/// `1 receiver`, `2 receivers`.
struct Receivers(u32);

impl std::fmt::Display for Receivers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} receiver{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

/// How long a receiver is waited for; None: for as long as it takes.
fn patience(args: &SendArgs) -> Option<Instant> {
    args.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds))
}

/// Whether the receiver may come back: its network went, or its user pressed Ctrl-C.
fn is_lost(error: &TransferError) -> bool {
    matches!(
        error,
        TransferError::NetworkLost { .. } | TransferError::Cancelled { role: Role::Receiver }
    )
}
