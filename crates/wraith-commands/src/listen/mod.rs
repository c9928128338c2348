//! `wraith listen`: accepts files from senders without a code, one transfer after another, until a
//! signal.

mod narrator;

use std::fs;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wraith::json::{self, EventConverter};
use wraith::state::OtherReceiver;
use wraith::{
    AcceptFilter, AcceptOptions, Error, Event as LibraryEvent, Incoming, Lan, Listener, Node,
    Observer, Role,
};

use crate::args::{Accept, ListenArgs};
use crate::ask::{self, Answers};
use crate::code;
use crate::contacts::{SaveContact, TransferPeer, after_transfer};
use crate::failure::{Exit, Failure, hints};
use crate::home;
use crate::offer::{self, Answer, Question};
use crate::output::{Event, Reporter, Ticker};
use crate::report::{self, name_of, short_id};
use crate::signals::Signals;
use narrator::CallerNarrator;

/// Waits for senders and receives their files.
pub async fn run(args: &ListenArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    if args.accept == Accept::Ask {
        ask::check_somebody_answers("--accept contacts accepts offers of contacts without asking")?;
    }
    let signals = Signals::for_transfer(reporter)?;
    let failed = |error: Error| hints::of(&error, Role::Receiver, "");
    let qlog = args.qlog.start()?;
    let node = qlog.of(code::node(&args.meeting, home::open()?)?).build().map_err(failed)?;
    let out = args.out.display();
    fs::create_dir_all(&args.out)
        .map_err(|error| Failure::disk(format!("cannot make the folder {out}"), &error))?;
    let filter = match args.accept {
        Accept::Contacts => AcceptFilter::Contacts,
        Accept::Ask => AcceptFilter::AskUser,
        Accept::Always => AcceptFilter::AnyPeer,
    };
    let narrator = Arc::new(ListenNarrator::new(&node, reporter));
    let mut builder = node
        .listen(&args.out)
        .accept_filter(filter)
        .rate(args.rate.as_ref().map(|rate| rate.bytes))
        .preview(args.accept == Accept::Ask)
        .observer(Arc::clone(&narrator) as _);
    if let Some(address) = args.listen {
        builder = builder.bind_to(address);
    }
    let mut listener = builder.start().await.map_err(failed)?;
    show(args, &node, &listener, reporter);
    let answers = Answers::new(reporter);
    let context =
        ListenContext { args, node: &node, signals: &signals, answers: &answers, reporter };
    loop {
        tokio::select! {
            incoming = listener.next() => match incoming {
                Some(incoming) => context.serve_caller(incoming).await,
                None => break,
            },
            _ = signals.wait() => break,
        }
        if signals.caught().is_some() {
            break;
        }
    }
    listener.close().await;
    narrator.report_unread(true);
    Err(Failure::new(signals.caught().unwrap_or(Exit::Interrupted), "stopped"))
}

/// Minimum interval between reports of offers refused unread, so that unknown senders cannot fill
/// the screen.
const UNREAD_INTERVAL: Duration = Duration::from_secs(60);

/// Reports the events of the listener itself.
struct ListenNarrator {
    reporter: Arc<Reporter>,
    converter: EventConverter,
    unread: Mutex<UnreadOffers>,
}

/// Counters of the offers refused unread.
#[derive(Debug, Default)]
struct UnreadOffers {
    total: u64,
    reported: u64,
    reported_at: Option<Instant>,
}

impl ListenNarrator {
    fn new(node: &Node, reporter: &Arc<Reporter>) -> Self {
        let (reporter, converter) = (Arc::clone(reporter), EventConverter::new(node));
        Self { reporter, converter, unread: Mutex::default() }
    }

    /// Reports how many more offers were refused unread, at most once in [`UNREAD_INTERVAL`] unless
    /// this `is_end`.
    fn report_unread(&self, is_end: bool) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = unread.reported_at.is_some_and(|at| at.elapsed() < UNREAD_INTERVAL);
        let offers = unread.total - unread.reported;
        if offers == 0 || is_early && !is_end {
            return;
        }
        (unread.reported, unread.reported_at) = (unread.total, Some(Instant::now()));
        drop(unread);
        self.reporter.event(&json::Event::RefusedUnread { offers });
        let offers = if offers == 1 {
            "1 more offer was".into()
        } else {
            format!("{offers} more offers were")
        };
        self.reporter.status(format!(
            "{offers} refused without asking: unknown senders make too many offers at once."
        ));
    }
}

impl Observer for ListenNarrator {
    fn event(&self, _: Option<u64>, event: &LibraryEvent) {
        let reporter = &self.reporter;
        reporter.transfer_event(None, self.converter.event(event).as_ref());
        match event {
            LibraryEvent::PlaceLost { place, why } => {
                code::report_place(place, Some(why), reporter)
            }
            LibraryEvent::PlaceBack(place) => code::report_place(place, None, reporter),
            LibraryEvent::RefusedUnread { total } => {
                let unread = self.unread.lock();
                unread.unwrap_or_else(PoisonError::into_inner).total = *total;
                self.report_unread(false);
            }
            LibraryEvent::ClocksDiffer { peer, seconds } => {
                report::clocks_differ(*peer, *seconds, reporter);
            }
            _ => {}
        }
    }
}

/// The state shared by all callers.
struct ListenContext<'a> {
    args: &'a ListenArgs,
    node: &'a Node,
    signals: &'a Signals,
    answers: &'a Answers,
    reporter: &'a Arc<Reporter>,
}

impl ListenContext<'_> {
    /// Serves one caller to the end of its transfer.
    async fn serve_caller(&self, incoming: Incoming) {
        let narrator = Arc::new(CallerNarrator::new(self.node, self.args, self.reporter));
        let peer = incoming.sender();
        narrator.offer_received(&incoming);
        let options = match self.decide(&incoming).await {
            Some(options) => options,
            None if self.signals.caught().is_some() => return drop(incoming.cancel().await),
            // The sender has left or was displaced. That is no answer to remember.
            None if incoming.is_withdrawn() => return self.failed(peer, &incoming.cancel().await),
            None => return self.failed(peer, &incoming.refuse("").await),
        };
        incoming.observe(Arc::clone(&narrator) as _);
        let transfer = incoming.accept(options);
        let ticker = Ticker::start(Arc::clone(self.reporter), transfer.progress());
        let result = tokio::select! {
            result = transfer.finished() => result,
            _ = self.signals.wait() => transfer.cancel().await,
        };
        drop(ticker);
        let received = match result {
            Ok(received) => received,
            Err(error) => return self.failed(peer, &error),
        };
        narrator.received(&received);
        if let Err(error) = received.complete() {
            return self.failed(peer, &error);
        }
        let last_seen = self.node.last_seen(peer, &received.remote);
        let other = TransferPeer { node_id: peer, role: Role::Sender, last_seen };
        // It cannot fail without a name.
        let asks = self.args.accept == Accept::Ask && !self.args.contacts.no_contacts;
        let keep = SaveContact::of(None, asks);
        drop(after_transfer(&other, keep, self.answers, self.signals, self.reporter).await);
    }

    /// Returns the decision of the policy or the user; `None` refuses.
    async fn decide(&self, incoming: &Incoming) -> Option<AcceptOptions> {
        let policy = self.args.on_conflict.policy();
        if self.args.accept != Accept::Ask {
            return Some(AcceptOptions::on_conflict(policy.unwrap_or_default()).any_offer());
        }
        if let Some(options) = incoming.accepted_before() {
            return Some(options);
        }
        let proposal = offer::proposal(incoming);
        let question = Question {
            proposal: &proposal,
            out: &self.args.out,
            reporter: self.reporter,
            conflicts: policy,
            terminal: std::io::stdin().is_terminal(),
            answers: self.answers,
        };
        let answer = tokio::select! {
            answer = question.ask() => answer,
            _ = self.signals.wait() => return None,
            () = incoming.withdrawn() => return None,
        };
        match answer {
            Answer::Yes(conflicts) => Some(conflicts.into()),
            Answer::No => None,
            Answer::None => {
                let hint = "no answer; --accept contacts accepts offers of contacts without asking";
                self.reporter.warn(hint);
                None
            }
        }
    }

    fn failed(&self, peer: wraith::NodeId, error: &Error) {
        if self.signals.caught().is_some() {
            return;
        }
        let contact = name_of(peer);
        let contact = contact.as_ref().map(wraith::state::ContactName::as_str);
        let Failure { exit, message, .. } = hints::of(error, Role::Receiver, "");
        let peer = peer.to_string();
        self.reporter.event(&Event::Failed {
            code: exit.name(),
            exit: exit as u8,
            message: &message,
            peer: &peer,
            contact,
        });
        self.reporter.warn(format!("{}: {message}", contact.unwrap_or(short_id(&peer))));
    }
}

fn show(args: &ListenArgs, node: &Node, listener: &Listener, reporter: &Reporter) {
    let node_id = node.id().to_string();
    let (address, contacts) = (listener.address(), listener.contacts());
    if let Some(error) = listener.usual_taken() {
        let message = format!(
            "{error}: this is the usual port, so contacts that have only the address will not find this machine; \
             is another wraith listen running?"
        );
        reporter.note("", &message);
    }
    if let Some(OtherReceiver { process, folder }) = listener.other() {
        let message = format!(
            "another wraith already listens with this identity: process {process}, into {folder}; a sender reaches one of the two"
        );
        reporter.note("", &message);
    }
    let places: Vec<_> = listener.places().iter().map(|place| place.name().to_owned()).collect();
    reporter.event(&Event::Listening {
        address: &address.to_string(),
        node_id: Some(&node_id),
        accept: Some(args.accept.name()),
        folder: Some(&args.out.to_string_lossy()),
        contacts: Some(contacts as u64),
        waiting_at: Some(&places),
        pin: None,
    });
    for (place, why) in listener.missing() {
        if args.meeting.lan != Lan::Off {
            reporter.note("", &format!("not waiting {place}: {why}"));
        }
    }
    let whose = match (args.accept, contacts) {
        (Accept::Contacts, 0) => "Accepting files from contacts, but there are none yet".to_owned(),
        (Accept::Contacts, 1) => "Accepting files from one contact".to_owned(),
        (Accept::Contacts, n) => format!("Accepting files from {n} contacts"),
        (Accept::Ask, _) => "Accepting files, after asking you".to_owned(),
        (Accept::Always, _) => "Accepting files from every sender that has this NodeId".to_owned(),
    };
    let into = shown_folder(&args.out);
    let strangers = match args.accept {
        Accept::Contacts => String::new(),
        // A listener answers only contacts at meeting places.
        Accept::Ask | Accept::Always => format!(
            "\nA sender that is not a contact here also needs the address of this machine:\n\n{}\n",
            command_for_strangers(&node_id, address)
        ),
    };
    reporter
        .status(format!("{whose}, into {into}. This machine: {node_id}{strangers}\nCtrl-C stops."));
}

/// Returns the command with which a sender saves this machine and its address.
fn command_for_strangers(node_id: &str, address: SocketAddr) -> String {
    let address = match address.ip().is_unspecified() {
        true => format!("HOST:{}", address.port()),
        false => address.to_string(),
    };
    format!("wraith contact add NAME {node_id} --address {address}")
}

fn shown_folder(folder: &Path) -> String {
    match folder.to_string_lossy().as_ref() {
        "." => "this folder".to_owned(),
        folder => folder.to_owned(),
    }
}
