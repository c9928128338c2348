//! `wraith receive`: dials the sender, asks its user, fetches; and dials again when the connection is lost.

use std::io::{BufRead, IsTerminal};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Access;
use wraith::state::Recorder;
use wraith_crypto::SecretIdentity;
use wraith_discovery::Ticket;
use wraith_transfer::{
    Cancel, Conflicts, Decision, Event as Happened, Progress, Proposal, ReceiveOptions,
    ReceiveReport, Role, StreamTarget, TransferError, close,
};
use wraith_transport::{CloseReason, ConnectError, Connection, Endpoint, block_on_timeout};
use zeroize::Zeroizing;

use crate::args::{ReceiveArgs, continuing};
use crate::ask::Answers;
use crate::code;
use crate::contacts::{Keep, Other, after_transfer};
use crate::endpoint;
use crate::failure::{Exit, Failure, plain};
use crate::find;
use crate::home;
use crate::interrupt::Interrupt;
use crate::lanes;
use crate::offer::{self, Answer};
use crate::output::{Meter, Reporter, Ticker};
use crate::pipe;
use crate::regain::Asking;
use crate::report::{self, Story};

/// Between two attempts to reach a sender that cannot be reached at all (no route, no interface).
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A sender that has not answered for so long where it was is asked for where it is.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// How often an attempt looks at what has been found.
const GLANCE: Duration = Duration::from_millis(100);

/// Fetches what the ticket offers.
pub fn run(args: &ReceiveArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let stream = pipe::target(args, reporter)?;
    let wanted = find::wanted(args, reporter)?;
    if !args.yes && !args.dry_run && !args.is_piped() {
        check_somebody_answers()?;
    }
    let interrupt = Interrupt::for_transfer(reporter)?;
    let home = home::open()?;
    let identity = home.identity()?;
    if !args.is_piped() {
        check_target(args)?;
    }
    let (ticket, saved) = find::ticket(&wanted, args, &home, reporter, &interrupt)?;
    let seed = Zeroizing::new(*identity.seed());
    let endpoint = endpoint::bind_to_receive(identity).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot open a socket: {}", plain(&error)))
    })?;
    let again = match saved.as_ref().filter(|_| args.code) {
        // A code that was made here brings its ticket back as one that was typed does.
        Some(saved) => continuing::command_with_code(saved.code()),
        None => continuing::command(),
    };
    let receiving = Receiving {
        args,
        reporter,
        ticket: &ticket,
        endpoint: &endpoint,
        interrupt: &interrupt,
        seed,
        story: Arc::new(Story::new(Role::Receiver, reporter)),
        recorder: Arc::new(Recorder::new(
            &home,
            &args.out,
            args.record.room().filter(|_| !args.is_piped()),
        )),
        meter: Arc::default(),
        stream,
        instance: getrandom::u64().unwrap_or_else(|_| std::process::id().into()),
        accepted: Mutex::new((args.yes || args.is_piped()).then_some(Decision::Accept)),
        shown: AtomicBool::new(false),
        answered: Arc::default(),
        again: &again,
    };
    let result = receiving.run().map_err(|failure| match interrupt.caught() {
        Some(exit) => {
            Failure::new(exit, "stopped").hint(format!("to continue, run again: {again}"))
        }
        None => failure,
    });
    endpoint.close();
    let partner = receiving.story.partner();
    if let Some(saved) = &saved {
        // After a dry run the code is as good as before.
        let continues = match &result {
            Ok(()) => args.dry_run,
            Err(failure) => failure.exit.can_continue(),
        };
        if !continues {
            saved.forget();
        }
    }
    if let (Ok(()), Some((node_id, remote))) = (&result, partner) {
        let other = Other::seen(node_id, Role::Sender, remote, &args.meeting);
        let keep = Keep::of(args.save_as.as_ref(), !args.yes && !args.is_piped());
        let answers = Answers::new(reporter);
        return after_transfer(&other, keep, &answers, &interrupt, reporter);
    }
    result
}

/// Whether standard input can still have an answer to the question, before a code is used up for it.
fn check_somebody_answers() -> Result<(), Failure> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(());
    }
    let mut looked = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec::default();
    let is_ready = poll(&mut looked, Some(&at_once)).is_ok_and(|ready| ready > 0);
    // What is ready is read without waiting, and the end looks like nothing.
    if is_ready && stdin.fill_buf().is_ok_and(<[u8]>::is_empty) {
        let message = "nobody can be asked whether to accept: standard input has no answer";
        return Err(Failure::new(Exit::Usage, message).hint("--yes accepts without asking"));
    }
    Ok(())
}

/// Whether the target can be made or written to, before a code is used up for it. It is made when the offer is accepted.
fn check_target(args: &ReceiveArgs) -> Result<(), Failure> {
    let out = args.out.display();
    let cannot = |why: &str| Failure::new(Exit::Disk, format!("cannot write into {out}: {why}"));
    let Some(there) = offer::existing_ancestor(&args.out) else {
        return Err(cannot("there is no such folder"));
    };
    if !there.is_dir() {
        return Err(cannot(&format!("{} is not a folder", there.display())));
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(there, access).map_err(|errno| cannot(&plain(&errno.into())))
}

/// One `wraith receive` at work, over all its connections.
struct Receiving<'a> {
    args: &'a ReceiveArgs,
    reporter: &'a Arc<Reporter>,
    ticket: &'a Ticket,
    endpoint: &'a Endpoint,
    interrupt: &'a Interrupt,
    /// Of the identity that the connections are made with; it signs the receipt.
    seed: Zeroizing<[u8; 32]>,
    story: Arc<Story>,
    recorder: Arc<Recorder>,
    meter: Arc<Meter>,
    /// Where it goes if it is one stream of bytes.
    stream: StreamTarget,
    /// Tells this run apart from others with the same identity.
    instance: u64,
    /// The user has said yes; a later connection of the same transfer does not ask again.
    accepted: Mutex<Option<Decision>>,
    /// The offer has been shown.
    shown: AtomicBool,
    /// The sender has said Hello on some connection.
    answered: Arc<AtomicBool>,
    again: &'a str,
}

impl Receiving<'_> {
    fn run(&self) -> Result<(), Failure> {
        let mut deadline = Instant::now() + Duration::from_secs(self.args.timeout);
        let mut furthest = 0;
        let mut lost: Option<TransferError> = None;
        let mut ticker = None;
        loop {
            let connection = match (self.connect(deadline), &lost) {
                (Ok(connection), _) => connection,
                (Err(_), Some(error)) => return Err(report::failure(error, self.again)),
                (Err(error), None) => return Err(self.not_found(&error)),
            };
            let progress = Arc::<Progress>::default();
            self.meter.watch(Arc::clone(&progress));
            ticker.get_or_insert_with(|| {
                Ticker::start(Arc::clone(self.reporter), Arc::clone(&self.meter))
            });
            let fetched = self.fetch(connection, &progress, lost.is_none());
            if fetched.is_err() {
                self.meter.leave(&progress);
            }
            match fetched {
                Ok(report) => {
                    drop(ticker);
                    let identity = SecretIdentity::from_seed(*self.seed);
                    self.story.received(&report, progress.bytes());
                    report::record(&self.recorder, &report, &identity, self.reporter);
                    return report.outcome().map_err(|e| report::failure(&e, self.again));
                }
                Err(TransferError::Later) => return Ok(()),
                // Nothing to go on with: a sender that is about to end, having served somebody else, does this.
                Err(error) if self.may_come_back(&error) && !self.answered.load(Relaxed) => {
                    thread::sleep(RETRY_PAUSE);
                }
                Err(error) if self.may_come_back(&error) => {
                    // The time begins anew only when something was won, so a sender that takes connections and drops
                    // them does not keep us for ever.
                    if lost.is_none() || progress.bytes() > furthest {
                        furthest = furthest.max(progress.bytes());
                        deadline = Instant::now() + Duration::from_secs(self.args.reconnect);
                    }
                    let left = deadline.saturating_duration_since(Instant::now()).as_secs();
                    self.reporter.reconnecting(&error.to_string(), left);
                    lost = Some(error);
                    thread::sleep(RETRY_PAUSE);
                }
                Err(error) => return Err(report::failure(&error, self.again)),
            }
        }
    }

    /// Tries to reach the sender until the deadline.
    fn connect(&self, deadline: Instant) -> Result<Connection, ConnectError> {
        let endpoint = self.endpoint.clone();
        self.interrupt.on_signal(move || endpoint.start_close());
        let mut looking = Looking { receiving: self, since: Instant::now(), asking: None };
        loop {
            let addresses = looking.addresses();
            let error = match looking.dial(&addresses, deadline) {
                Some(Ok(connection)) => return Ok(connection),
                Some(Err(error)) => error,
                // It is known to be somewhere else now.
                None if Instant::now() < deadline => continue,
                None => return Err(ConnectError::Closed(CloseReason::HandshakeTimeout)),
            };
            let over = Instant::now() + RETRY_PAUSE >= deadline;
            if over || matches!(error, ConnectError::EndpointClosed | ConnectError::NoAddress) {
                return Err(error);
            }
            thread::sleep(RETRY_PAUSE);
        }
    }

    fn fetch(
        &self,
        connection: Connection,
        progress: &Arc<Progress>,
        first: bool,
    ) -> Result<ReceiveReport, TransferError> {
        let secret = *self.ticket.capability().as_bytes();
        let mut options = ReceiveOptions::new(
            self.args.out.clone(),
            secret,
            SecretIdentity::from_seed(*self.seed),
        );
        options.on_conflict = self.args.on_conflict.policy().unwrap_or_default();
        options.stream = self.stream.clone();
        options.rate = self.args.rate.as_ref().map(|rate| rate.bytes);
        // What was lost may have been a lane: a path that does not keep them gets along without.
        if first {
            options.lanes = lanes::to_receive(self.args.lanes.lanes, *self.seed);
        }
        options.instance = Some(self.instance);
        options.preview = self.decided().is_none();
        options.delta = !self.args.whole_file;
        let (story, recorder) = (Arc::clone(&self.story), Arc::clone(&self.recorder));
        let answered = Arc::clone(&self.answered);
        options.events = Arc::new(move |event: Happened<'_>| {
            if matches!(event, Happened::Connected { .. }) {
                answered.store(true, Relaxed);
            }
            recorder.tell(&event);
            story.tell(&event);
        });
        options.progress = Arc::clone(progress);
        let (cancel, theirs) = (options.cancel.clone(), connection.clone());
        let stop = move || stop(&cancel, &theirs);
        self.interrupt.on_signal(stop.clone());
        options.decide = Box::new(move |proposal| self.decide(proposal, &stop));
        let result = wraith_transfer::receive(connection, options);
        self.story.waits_no_more();
        result
    }

    /// Asks the user, once. A signal meanwhile is a no.
    fn decide(
        &self,
        proposal: &Proposal<'_>,
        stop: &(impl Fn() + Clone + Send + 'static),
    ) -> Decision {
        if let Some(decision) = self.decided() {
            if proposal.preview.is_none() && !self.shown.swap(true, Relaxed) {
                self.reporter.say(offer::text(proposal, &self.args.out));
            }
            return decision;
        }
        self.shown.store(true, Relaxed);
        let policy = self.args.on_conflict.policy();
        if self.args.dry_run {
            let otherwise = policy.unwrap_or_default();
            self.reporter.say(offer::text(proposal, &self.args.out));
            let conflicts = Conflicts { otherwise, ..Conflicts::default() };
            offer::dry_run(proposal, &conflicts, self.reporter);
            return Decision::Later;
        }
        let question = offer::Question {
            proposal,
            out: &self.args.out,
            reporter: self.reporter,
            conflicts: policy,
            terminal: std::io::stdin().is_terminal(),
            ask: |question| self.ask(question),
        };
        let decision = match question.put() {
            Answer::Yes(conflicts) => Decision::AcceptWith(conflicts),
            Answer::No => Decision::Refuse(String::new()),
            Answer::None => {
                if self.interrupt.caught().is_none() {
                    self.reporter.warn("no answer; --yes accepts without asking");
                }
                Decision::Refuse(String::new())
            }
        };
        if matches!(decision, Decision::AcceptWith(_)) {
            *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(decision.clone());
        }
        self.interrupt.on_signal(stop.clone());
        decision
    }

    /// What the user has said already, or the command line.
    fn decided(&self) -> Option<Decision> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to a question; None at the end of standard input, or when a signal comes first. Reading cannot be
    /// broken off, so it happens on a thread that is left behind in that case.
    fn ask(&self, question: String) -> Option<String> {
        let (answer, answered) = mpsc::channel();
        let (interrupted, reporter) = (answer.clone(), Arc::clone(self.reporter));
        self.interrupt.on_signal(move || drop(interrupted.send(None)));
        thread::spawn(move || drop(answer.send(reporter.ask(&question))));
        answered.recv().ok().flatten()
    }

    /// Whether it is worth dialling again: the network went, or the sender's user stopped and may start again.
    fn may_come_back(&self, error: &TransferError) -> bool {
        let lost = matches!(
            error,
            TransferError::NetworkLost { .. } | TransferError::Cancelled { role: Role::Sender }
        );
        lost && self.args.reconnect > 0 && self.interrupt.caught().is_none()
    }

    fn not_found(&self, error: &ConnectError) -> Failure {
        let addresses: Vec<_> = self.ticket.addresses().iter().map(ToString::to_string).collect();
        let tried = addresses.join(", ");
        Failure::new(Exit::PeerNotFound, format!("the sender cannot be reached: {error} ({tried})"))
            .hint("is wraith send still running, and can this machine reach it over UDP?")
    }
}

/// A sender that is being dialled, and asked for where it is if that takes long.
struct Looking<'a> {
    receiving: &'a Receiving<'a>,
    since: Instant,
    asking: Option<Asking>,
}

impl Looking<'_> {
    /// Where to dial: first where the sender says that it is.
    fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = self.asking.as_ref().map(Asking::found).unwrap_or_default();
        let told = self.receiving.ticket.addresses();
        addresses
            .extend(told.iter().filter(|known| !addresses.contains(known)).collect::<Vec<_>>());
        addresses
    }

    /// One attempt; None at the deadline, or when the sender is found to be elsewhere.
    fn dial(
        &mut self,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Option<Result<Connection, ConnectError>> {
        let Receiving { endpoint, ticket, args, seed, .. } = self.receiving;
        let mut attempt = pin!(endpoint.connect(addresses, ticket.node_id()));
        while Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            let outcome = block_on_timeout(attempt.as_mut(), left.min(GLANCE));
            if outcome.is_some() {
                return outcome;
            }
            if self.asking.is_none() && self.since.elapsed() >= ASK_AFTER {
                let own = SecretIdentity::from_seed(**seed);
                let places = code::places_of(&args.meeting);
                let asking = Asking::begin(&own, ticket.node_id(), ticket.capability(), &places);
                self.asking = Some(asking);
            }
            if self.addresses() != addresses {
                return None;
            }
        }
        None
    }
}

/// Ends a transfer with a word to the sender, wherever it is: the engine looks at `cancel` only while files move.
fn stop(cancel: &Cancel, connection: &Connection) {
    cancel.cancel();
    connection.close(close::CANCELLED, "");
}
