//! `wraith send --to NAME`: goes to a contact who waits with `wraith listen`, and sends. No code, no ticket: the contact's key
//! is known, and the handshake proves it.
//!
//! Here this side dials, and the receiver still pulls: the sender says with which secret (`wraith_transfer::knock`), and all
//! that follows is as with a ticket, resumption too.

mod reach;

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use wraith::state::{Contact, Meeting, Name, UnfinishedSend};
use wraith_discovery::contact::Pair;
use wraith_discovery::{Place, Places};
use wraith_transfer::{
    Event as Happened, Lanes, Role, SendOptions, SendReport, StreamSource, TransferError, close,
    knock, serve,
};
use wraith_transport::{Connection, Endpoint};

use crate::args::{SendArgs, continuing};
use crate::ask::Answers;
use crate::code;
use crate::contacts::{self, Keep, Other, after_transfer};
use crate::endpoint;
use crate::failure::{Exit, Failure, plain};
use crate::home;
use crate::interrupt::Interrupt;
use crate::lanes;
use crate::output::{Event, Meter, Reporter, Ticker};
use crate::pipe;
use crate::report::{self, Story};
use crate::send::sources;
use reach::{Reached, Reaching};

/// How long the contact is looked for if no other time is asked for; as a receiver looks for its sender.
const LOOK: Duration = Duration::from_secs(10);
/// Before a contact that was lost, or that did not go on, is looked for again.
const AGAIN: Duration = Duration::from_millis(500);

/// Sends to the contact called `name`.
pub fn run(args: &SendArgs, name: &Name, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let interrupt = Interrupt::for_transfer(reporter)?;
    let stream = pipe::source(args, reporter)?;
    let paths: &[PathBuf] = if stream.is_some() { &[] } else { &args.paths };
    let paths = sources(paths)?;
    let home = home::open()?;
    let identity = home.identity()?;
    let seed = *identity.seed();
    let book = home.contacts().load()?;
    let contact = book.named(name).ok_or_else(|| contacts::nobody(name.as_str()))?;
    let pair = Pair::new(&identity, contact.node_id)
        .map_err(|error| Failure::new(Exit::Other, format!("{}: {error}", contact.name)))?;
    let mut pending = match &stream {
        // What was read cannot be read again, so there is nothing to continue.
        Some(_) => UnfinishedSend::unremembered()?,
        None => UnfinishedSend::open(&home, &record_of(&paths, contact))?,
    };
    let address = args.listen.unwrap_or(endpoint::ANY_ADDRESS);
    let endpoint = endpoint::bind_to_call(address, identity, args.congestion).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot open a socket: {}", plain(&error)))
    })?;
    // So that the same command continues after a crash. Nobody dials this port.
    pending.remember(endpoint.local_addr().port())?;
    let mut places = code::places_of(&args.meeting);
    places.rendezvous = places.rendezvous.or_else(|| contact.rendezvous.clone());
    let calling = Calling {
        args,
        contact,
        pair: &pair,
        places: &places,
        paths,
        stream,
        secret: *pending.capability().as_bytes(),
        endpoint: &endpoint,
        lanes: lanes::to_send(args.lanes.lanes, address.ip(), seed, args.congestion),
        reporter,
        interrupt: &interrupt,
        story: Arc::new(Story::new(Role::Sender, reporter)),
        meter: Arc::default(),
    };
    calling.announce();
    let result = calling.run();
    endpoint.close();
    match (interrupt.caught(), result) {
        (_, Ok(reached)) => {
            pending.forget();
            let answers = Answers::new(reporter);
            after_transfer(&calling.other(&reached), Keep::No, &answers, &interrupt, reporter)
        }
        (Some(exit), Err(_)) => {
            let again = continuing::command();
            Err(Failure::new(exit, "stopped").hint(format!("to continue, run again: {again}")))
        }
        (None, Err(failure)) => Err(failure),
    }
}

/// What names this send: the same paths to somebody else, or by ticket, have another secret.
fn record_of(paths: &[PathBuf], contact: &Contact) -> Vec<PathBuf> {
    let mut record = paths.to_vec();
    // No path has a zero byte.
    let to = format!("\0{}", contact.node_id).into_bytes();
    record.push(std::ffi::OsString::from_vec(to).into());
    record
}

/// One `wraith send --to` at work, over all its connections.
struct Calling<'a> {
    args: &'a SendArgs,
    contact: &'a Contact,
    pair: &'a Pair,
    places: &'a Places,
    paths: Vec<PathBuf>,
    stream: Option<StreamSource>,
    secret: [u8; 16],
    endpoint: &'a Endpoint,
    lanes: Lanes,
    reporter: &'a Arc<Reporter>,
    interrupt: &'a Interrupt,
    story: Arc<Story>,
    meter: Arc<Meter>,
}

impl Calling<'_> {
    fn announce(&self) {
        let addresses = self.contact.seen_at.iter().map(ToString::to_string);
        let addresses: Vec<_> =
            addresses.chain(self.contact.addresses.iter().map(ToString::to_string)).collect();
        let mut looking_at = Vec::new();
        if self.places.lan != wraith_discovery::Lan::Off {
            looking_at.push(code::name(&Place::Lan));
        }
        looking_at.extend(self.places.rendezvous.clone());
        self.reporter.event(&Event::Calling {
            contact: self.contact.name.as_str(),
            peer: &self.contact.node_id.to_string(),
            addresses: &addresses,
            looking_at: &looking_at,
        });
        self.reporter.say(format!("Looking for {}.", self.contact.name));
    }

    fn run(&self) -> Result<Reached, Failure> {
        let patience = self.args.timeout.map_or(LOOK, Duration::from_secs);
        let mut deadline = Instant::now() + patience;
        let (mut furthest, mut lost, mut ticker) = (0, None::<TransferError>, None);
        loop {
            let (reached, connection) = match (self.reach(deadline), &lost) {
                (Ok(found), _) => found,
                (Err(_), Some(error)) if self.interrupt.caught().is_none() => {
                    return Err(report::failure(error, &continuing::command()));
                }
                (Err(failure), _) => return Err(failure),
            };
            let options = self.options();
            let answered = Arc::clone(&options.1);
            let options = Arc::new(options.0);
            self.meter.watch(Arc::clone(&options.progress));
            ticker.get_or_insert_with(|| {
                Ticker::start(Arc::clone(self.reporter), Arc::clone(&self.meter))
            });
            let timely = lost.is_none().then_some((deadline, &*answered));
            let sent = self.send(connection, &options, timely);
            if sent.is_err() {
                self.meter.leave(&options.progress);
            }
            match sent {
                Ok(report) => {
                    drop(ticker);
                    let bytes = options.progress.bytes();
                    self.story.sent(&report, bytes);
                    let again = continuing::command();
                    return report
                        .outcome()
                        .map_err(|e| report::failure(&e, &again))
                        .map(|()| reached);
                }
                Err(TransferError::NetworkLost { .. })
                    if !answered.load(Relaxed)
                        && lost.is_none()
                        && self.interrupt.caught().is_none() =>
                {
                    return Err(self.silent(&reached));
                }
                Err(error) if self.may_come_back(&error) => {
                    let bytes = options.progress.bytes();
                    // The time begins anew only when something was won.
                    if lost.is_none() || bytes > furthest {
                        furthest = furthest.max(bytes);
                        deadline = Instant::now() + Duration::from_secs(self.args.reconnect);
                    }
                    let left = deadline.saturating_duration_since(Instant::now()).as_secs();
                    self.reporter.reconnecting(&error.to_string(), left);
                    lost = Some(error);
                    thread::sleep(AGAIN);
                }
                Err(error) => return Err(report::failure(&error, &continuing::command())),
            }
        }
    }

    fn reach(&self, deadline: Instant) -> Result<(Reached, Connection), Failure> {
        let Self { contact, pair, places, endpoint, interrupt, .. } = self;
        let reaching = Reaching { contact, pair, places, endpoint, interrupt };
        let (reached, connection) = reaching.run(deadline)?;
        self.reporter.event(&Event::Met { place: &reached.place() });
        Ok((reached, connection))
    }

    /// Options for one connection, and whether the receiver has answered on it.
    fn options(&self) -> (SendOptions, Arc<AtomicBool>) {
        let mut options = SendOptions::new(self.paths.clone(), self.secret);
        options.stream = self.stream.clone();
        options.rate.limit(self.args.rate.as_ref().map(|rate| rate.bytes));
        options.lanes = self.lanes.clone();
        let (answered, story) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.story));
        let theirs = Arc::clone(&answered);
        options.events = Arc::new(move |event: Happened<'_>| {
            if matches!(event, Happened::Connected { .. }) {
                theirs.store(true, Relaxed);
            }
            story.tell(&event);
        });
        (options, answered)
    }

    /// Serves the connection. `timely`: until when the receiver must have answered, and whether it has.
    fn send(
        &self,
        connection: Connection,
        options: &Arc<SendOptions>,
        timely: Option<(Instant, &AtomicBool)>,
    ) -> Result<SendReport, TransferError> {
        let (cancel, theirs) = (options.cancel.clone(), connection.clone());
        self.interrupt.on_signal(move || {
            cancel.cancel();
            theirs.close(close::CANCELLED, "");
        });
        let survey = Arc::clone(options);
        // What it finds wrong, the transfer finds too, and says so.
        thread::spawn(move || drop(survey.survey().map(|_| ())));
        let (over, is_over) = mpsc::channel::<()>();
        thread::scope(|scope| {
            if let Some((deadline, answered)) = timely {
                let theirs = connection.clone();
                scope.spawn(move || {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let is_late = is_over.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
                    if is_late && !answered.load(Relaxed) {
                        theirs.close(close::OTHER, "");
                    }
                });
            }
            // A connection that is gone tells why below.
            let _ = knock(&connection, &self.secret);
            let sent = serve(connection, options);
            drop(over);
            sent
        })
    }

    fn may_come_back(&self, error: &TransferError) -> bool {
        let lost = matches!(
            error,
            TransferError::NetworkLost { .. } | TransferError::Cancelled { role: Role::Receiver }
        );
        lost && self.args.reconnect > 0 && self.interrupt.caught().is_none()
    }

    /// Its machine proved the key, and then there was no word.
    fn silent(&self, reached: &Reached) -> Failure {
        let (name, address) = (&self.contact.name, reached.address);
        let own = self.pair.own();
        let message = format!("{name} is at {address}, but takes nothing from this machine");
        Failure::new(Exit::PeerNotFound, message).hint(format!(
            "does wraith listen run there, and are you a contact? There: wraith contact add YOU {own}"
        ))
    }

    fn other(&self, reached: &Reached) -> Other {
        let rendezvous = match &reached.at {
            Some(Place::Rendezvous(server)) => Some(server.clone()),
            _ => code::places_of(&self.args.meeting).rendezvous,
        };
        let meeting = Meeting { at: Some(reached.address), rendezvous };
        Other { node_id: self.contact.node_id, role: Role::Receiver, meeting }
    }
}
