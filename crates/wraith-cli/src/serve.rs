//! The sender after its ticket is out: takes connections until one receiver has confirmed everything.
//!
//! ```text
//!  accept thread ── Came ──┐
//!  serve threads ── Knows, Ended ──▶ this thread: decides who is served, and when to give up
//!  signal thread ── Stop ──┘
//! ```
//!
//! Everyone who can prove the NodeId gets a connection, but only who knows the secret becomes *the* receiver. A receiver
//! that comes back replaces its own earlier connection, which may look alive for a while after its process died.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wraith_crypto::NodeId;
use wraith_transfer::{Event as Happened, Role, SendOptions, SendReport, TransferError, close};
use wraith_transport::{Connection, Endpoint, block_on};

use crate::args::SendArgs;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::{Meter, Reporter, Ticker};
use crate::pending::PendingSend;
use crate::report::Story;
use crate::send::command_again;

/// Connections served at once, nearly all of them strangers without the secret: enough that a few cannot keep the
/// receiver out, few enough that their threads are nothing.
const MAX_SESSIONS: usize = 16;

/// What the other threads tell this one.
enum Message {
    Came(Connection),
    /// The session's peer knows the secret.
    Knows(u64),
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
    /// It has been the receiver; its counters are used.
    chosen: bool,
}

/// One `wraith send` at work.
pub struct Serving<'a> {
    args: &'a SendArgs,
    paths: Vec<PathBuf>,
    secret: [u8; 16],
    endpoint: &'a Endpoint,
    reporter: &'a Arc<Reporter>,
    meter: Arc<Meter>,
    tell: Sender<Message>,
    messages: Receiver<Message>,
    sessions: Vec<Session>,
    /// The session that is served; it knows the secret.
    receiver: Option<u64>,
    next_id: u64,
    /// Options whose tree is walked already, for the next session.
    surveyed: Option<(u64, Arc<SendOptions>)>,
    /// When to give up waiting; None while a receiver is served, or when the wait has no limit.
    deadline: Option<Instant>,
    /// How the last receiver was lost.
    lost: Option<TransferError>,
    story: Arc<Story>,
    /// Shows the progress from the first receiver on.
    ticker: Option<Ticker>,
}

impl<'a> Serving<'a> {
    pub fn new(
        args: &'a SendArgs,
        paths: Vec<PathBuf>,
        pending: &PendingSend,
        endpoint: &'a Endpoint,
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
            secret: *pending.capability().as_bytes(),
            endpoint,
            reporter,
            meter: Arc::default(),
            tell,
            messages,
            sessions: Vec::new(),
            receiver: None,
            next_id: 0,
            surveyed: None,
            deadline: patience(args),
            lost: None,
            story: Arc::new(Story::new(Role::Sender, reporter)),
            ticker: None,
        }
    }

    /// Ends the wait for a receiver, unless one has come.
    pub fn give_up(&self) -> impl Fn(Failure) + Send + Sync + use<> {
        let tell = self.tell.clone();
        // When nobody listens any more, the command has ended already.
        move |failure| drop(tell.send(Message::GiveUp(failure)))
    }

    /// Returns once a receiver has confirmed everything, or when there is no point in waiting longer.
    pub fn run(mut self) -> Result<(), Failure> {
        self.survey_in_background();
        self.accept_in_background();
        loop {
            match self.next_message()? {
                Message::Came(connection) => self.admit(connection),
                Message::Knows(id) => self.choose(id),
                Message::Unreadable(error) => return Err(self.failure(&error)),
                Message::Stop => {
                    self.stop_all();
                    return Err(Failure::new(Exit::Interrupted, "stopped"));
                }
                Message::GiveUp(failure) if self.receiver.is_none() && self.lost.is_none() => {
                    self.stop_all();
                    return Err(failure);
                }
                Message::GiveUp(_) => {}
                Message::Ended(id, result) => {
                    if let Some(end) = self.ended(id, *result) {
                        return end;
                    }
                }
            }
        }
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
        let (id, options) = self.prepare();
        let (theirs, tell) = (Arc::clone(&options), self.tell.clone());
        thread::spawn(move || {
            if let Err(error) = theirs.survey() {
                let _ = tell.send(Message::Unreadable(error));
            }
        });
        self.surveyed = Some((id, options));
    }

    /// Options for one more session, and its number.
    fn prepare(&mut self) -> (u64, Arc<SendOptions>) {
        let id = self.next_id;
        self.next_id += 1;
        let mut options = SendOptions::new(self.paths.clone(), self.secret);
        let (tell, story) = (self.tell.clone(), Arc::clone(&self.story));
        options.events = Arc::new(move |event: Happened<'_>| {
            if matches!(event, Happened::Connected { .. }) {
                let _ = tell.send(Message::Knows(id));
            }
            story.tell(&event);
        });
        (id, Arc::new(options))
    }

    /// Serves a new connection on a thread of its own. Who it is shows when it names the secret.
    fn admit(&mut self, connection: Connection) {
        if self.sessions.len() >= MAX_SESSIONS {
            self.send_away_a_stranger();
        }
        let (id, options) = self.surveyed.take().unwrap_or_else(|| self.prepare());
        let (peer, handle) = (connection.peer(), connection.clone());
        let (theirs, tell) = (Arc::clone(&options), self.tell.clone());
        thread::spawn(move || {
            let result = wraith_transfer::serve(handle, &theirs);
            let _ = tell.send(Message::Ended(id, Box::new(result)));
        });
        self.sessions.push(Session { id, peer, connection, options, chosen: false });
    }

    /// Makes room: whoever has been here longest without naming the secret is the least likely to be the receiver, who
    /// needs one round trip for it. So strangers who say nothing keep nobody out.
    fn send_away_a_stranger(&self) {
        let strangers = self.sessions.iter().filter(|s| Some(s.id) != self.receiver);
        if let Some(stranger) = strangers.min_by_key(|s| s.id) {
            stranger.connection.close(close::OTHER, "too many callers at once");
        }
    }

    /// A session's peer knows the secret: it is the receiver, unless somebody else is already. The same peer again has
    /// come back, and its earlier connection is dead whether it knows it or not.
    fn choose(&mut self, id: u64) {
        let Some(at) = self.sessions.iter().position(|s| s.id == id) else { return };
        let newcomer = &self.sessions[at];
        match self.sessions.iter().find(|s| Some(s.id) == self.receiver) {
            Some(current) if current.peer == newcomer.peer => {
                current.connection.close(close::OTHER, "you have come back on another connection");
            }
            Some(_) => {
                let why = "the sender is sending to somebody else with this ticket";
                newcomer.connection.close(close::REFUSED, why);
                return;
            }
            None => {}
        }
        self.meter.watch(Arc::clone(&newcomer.options.progress));
        self.sessions[at].chosen = true;
        self.receiver = Some(id);
        self.deadline = None;
        if self.ticker.is_none() {
            self.ticker = Some(Ticker::start(Arc::clone(self.reporter), Arc::clone(&self.meter)));
        }
    }

    /// A session is over. Some(end) if with it the command is.
    fn ended(
        &mut self,
        id: u64,
        result: Result<SendReport, TransferError>,
    ) -> Option<Result<(), Failure>> {
        let at = self.sessions.iter().position(|s| s.id == id)?;
        let session = self.sessions.swap_remove(at);
        if self.receiver != Some(id) {
            if matches!(result, Err(TransferError::WrongSecret)) {
                self.reporter.say("Somebody came with another ticket and was refused.");
            }
            if self.surveyed.is_none() && !session.chosen {
                self.surveyed = Some((id, session.options));
            }
            return None;
        }
        self.receiver = None;
        match result {
            Ok(report) => {
                self.ticker = None;
                self.story.sent(&report, session.options.progress.bytes());
                Some(report.outcome().map_err(|error| self.failure(&error)))
            }
            Err(TransferError::Later) => {
                self.reporter.say("The receiver has only looked. Waiting for it to come back.");
                self.deadline = patience(self.args);
                self.lost = None;
                None
            }
            Err(error) if is_lost(&error) && self.args.reconnect > 0 => {
                self.await_return(error);
                None
            }
            Err(error) => Some(Err(self.failure(&error))),
        }
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
        crate::report::failure(error, &command_again(self.args))
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
