//! `wraith listen`: takes files from senders that come without a code, one transfer after the other, until it is told to stop.
//!
//! ```text
//!  accept (this thread) ──▶ a thread for each caller: who, which transfer ──▶ its turn ──▶ question ──▶ fetch
//!  guests thread: the file of contacts ──▶ who gets a handshake, who is answered at meeting places
//! ```
//!
//! Invariants: who is excluded by `--accept` gets no packet after the handshake's second, whatever they know; callers,
//! their threads and their waiting offers are bounded; one transfer moves at a time, so what is told is of one; and no stranger
//! keeps the turn for long while somebody waits.

mod attend;
mod callers;
mod guests;
mod pressure;
mod turn;

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use wraith_crypto::SecretIdentity;
use wraith_discovery::contact::{self, Happened, Listening, usual_port};
use wraith_transport::{Endpoint, block_on};
use zeroize::Zeroizing;

use crate::addresses;
use crate::args::{Accept, ListenArgs};
use crate::ask::Answers;
use crate::code;
use crate::endpoint;
use crate::failure::{Exit, Failure, plain};
use crate::home;
use crate::interrupt::Interrupt;
use crate::output::{Event, Reporter};
use attend::{Answered, Hall};
use callers::Callers;
use guests::Guests;
use turn::Turn;

/// Waits for senders.
pub fn run(args: &ListenArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let interrupt = Interrupt::for_transfer(reporter)?;
    let home = home::open()?;
    let identity = home.identity()?;
    let store = home.contacts();
    let guests = Guests::load(&store, &identity, args.accept)?;
    let out = args.out.display();
    fs::create_dir_all(&args.out)
        .map_err(|error| Failure::disk(format!("cannot make the folder {out}"), &error))?;
    let seed = Zeroizing::new(*identity.seed());
    let endpoint = bind(args, identity, &guests, reporter)?;
    let listening = Arc::new(listen(args, &endpoint, reporter));
    show(args, &endpoint, &listening, &guests, &seed, reporter);

    let callers = Arc::<Callers>::default();
    let stop = Arc::new(AtomicBool::new(false));
    let (theirs, ours, closing) = (Arc::clone(&callers), Arc::clone(&stop), endpoint.clone());
    interrupt.on_signal(move || {
        ours.store(true, Relaxed);
        theirs.stop_all();
        closing.start_close();
    });
    let (ours, theirs, words) = (endpoint.clone(), Arc::clone(&stop), Arc::clone(reporter));
    thread::spawn(move || guests.keep_up(&ours, &listening, &theirs, &words));
    let hall = Arc::new(Hall {
        out: args.out.clone(),
        accept: args.accept,
        on_conflict: args.on_conflict,
        rate: args.rate.as_ref().map(|rate| rate.bytes),
        meeting: args.meeting.clone(),
        seed,
        store,
        home,
        record: args.record.room(),
        callers: Arc::clone(&callers),
        turn: Turn::default(),
        answers: Answers::new(reporter).in_a_hurry(callers.hurry()),
        answered: Answered::default(),
        previews: AtomicUsize::new(0),
        stop,
        interrupt: interrupt.clone(),
        reporter: Arc::clone(reporter),
    });
    while let Some(connection) = block_on(endpoint.accept()) {
        hall.admit(connection);
    }
    callers.wait_until_gone();
    endpoint.close();
    Err(Failure::new(interrupt.caught().unwrap_or(Exit::Interrupted), "stopped"))
}

/// The usual port, so that contacts find it where they found it before; another one if it is taken.
fn bind(
    args: &ListenArgs,
    identity: SecretIdentity,
    guests: &Guests,
    reporter: &Reporter,
) -> Result<Endpoint, Failure> {
    let failed = |address: SocketAddr, error: &std::io::Error| {
        Failure::new(Exit::Other, format!("cannot listen on {address}: {}", plain(error)))
            .hint("choose another address or port with --listen")
    };
    if let Some(address) = args.listen {
        return endpoint::bind_to_listen(address, identity, guests.admitted())
            .map_err(|error| failed(address, &error));
    }
    let any = endpoint::ANY_ADDRESS;
    let usual = SocketAddr::new(any.ip(), usual_port(identity.node_id()));
    let again = SecretIdentity::from_seed(*identity.seed());
    match endpoint::bind_to_listen(usual, identity, guests.admitted()) {
        Ok(endpoint) => Ok(endpoint),
        Err(error) => {
            reporter.warn(format!(
                "port {} is not to be had ({}), so contacts that know only the address will not find this machine; \
                 is another wraith listen running?",
                usual.port(),
                plain(&error)
            ));
            endpoint::bind_to_listen(any, again, guests.admitted())
                .map_err(|error| failed(any, &error))
        }
    }
}

/// Answers contacts at the meeting places.
fn listen(args: &ListenArgs, endpoint: &Endpoint, reporter: &Arc<Reporter>) -> Listening {
    let bound = endpoint.local_addr();
    let mut places = code::places_of(&args.meeting);
    if let (false, wraith_discovery::Lan::All) = (bound.ip().is_unspecified(), &places.lan) {
        // Who cannot reach us there need not hear of it.
        places.lan = wraith_discovery::Lan::With(bound.ip());
    }
    let story = Arc::clone(reporter);
    let happened = move |happened| match happened {
        Happened::Called(_) => {}
        Happened::Lost(place, why) => {
            let (state, name) = ("lost", code::name(&place));
            story.event(&Event::Code { state, place: Some(&name), message: Some(&why) });
            story.warn(format!("cannot wait {place} now ({why}); still trying"));
        }
        Happened::Back(place) => {
            let (state, name) = ("back", code::name(&place));
            story.event(&Event::Code { state, place: Some(&name), message: None });
            story.say(format!("Waiting {place} again."));
        }
    };
    contact::listen(&places, move |seen| dialable(bound, seen), happened)
}

/// Where a socket can be dialled, with the address that a rendezvous server saw: good when the router in between forwards the
/// port. It comes before loopback.
pub fn dialable(bound: SocketAddr, seen: Option<IpAddr>) -> Vec<SocketAddr> {
    let mut addresses = addresses::reachable(bound);
    if let Some(ip) = seen.filter(|ip| bound.ip().is_unspecified() && !ip.is_loopback())
        && addresses.iter().all(|address| address.ip() != ip)
    {
        let loopback = addresses.iter().position(|address| address.ip().is_loopback());
        let at = loopback.unwrap_or(addresses.len());
        addresses.insert(at, SocketAddr::new(ip, bound.port()));
    }
    addresses
}

fn show(
    args: &ListenArgs,
    endpoint: &Endpoint,
    listening: &Listening,
    guests: &Guests,
    seed: &[u8; 32],
    reporter: &Reporter,
) {
    let node_id = SecretIdentity::from_seed(*seed).node_id().to_string();
    let address = endpoint.local_addr();
    let places: Vec<_> = listening.places().iter().map(code::name).collect();
    reporter.event(&Event::Listening {
        address: &address.to_string(),
        node_id: Some(&node_id),
        accept: Some(args.accept.name()),
        folder: Some(&args.out.to_string_lossy()),
        contacts: Some(guests.len() as u64),
        waiting_at: Some(&places),
    });
    for (place, why) in listening.missing() {
        if args.meeting.lan != wraith_discovery::Lan::Off {
            reporter.warn(format!("not waiting {place}: {why}"));
        }
    }
    let whose = match (args.accept, guests.len()) {
        (Accept::Contacts, 0) => "Nobody can send yet: there are no contacts".to_owned(),
        (Accept::Contacts, 1) => "Taking files from one contact".to_owned(),
        (Accept::Contacts, n) => format!("Taking files from {n} contacts"),
        (Accept::Ask, _) => "Taking files, after asking you".to_owned(),
        (Accept::Always, _) => "Taking files from everybody who knows this NodeId".to_owned(),
    };
    let into = shown_folder(&args.out);
    reporter.say(format!("{whose}, into {into}. This machine: {node_id}\nCtrl-C stops."));
}

fn shown_folder(folder: &Path) -> String {
    match folder.to_string_lossy().as_ref() {
        "." => "this folder".to_owned(),
        folder => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_a_server_saw_is_one_more_where_every_address_is_bound() {
        let any: SocketAddr = "0.0.0.0:7".parse().unwrap();
        let seen = "192.0.2.77".parse().unwrap();
        let all = dialable(any, Some(seen));
        let at = all.iter().position(|address| *address == SocketAddr::new(seen, 7)).unwrap();
        assert!(all[..at].iter().all(|address| !address.ip().is_loopback()));
        let one: SocketAddr = "127.0.0.1:7".parse().unwrap();
        assert_eq!(dialable(one, Some(seen)), [one]);
        assert_eq!(dialable(any, None), dialable(any, Some("127.0.0.9".parse().unwrap())));
    }
}
