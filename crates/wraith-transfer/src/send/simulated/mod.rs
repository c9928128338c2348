//! [`Serving`](super::serving::Serving) over a simulated lossy link. Both sides are event-driven and have no threads, files
//! or clock, so a seed repeats a whole transfer.

mod receiver;
mod sender;
mod streams;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wraith_core::{Connection, Event, Role as Side, Time, TransportConfig};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_files::{CHUNK_BYTES, IntervalSet, Root};
use wraith_sim::link::{Delay, Duplicate, Loss, Rate};
use wraith_sim::{Party, World, hops};

use self::receiver::Receiver;
use self::sender::Sender;
use crate::error::TransferError;
use crate::receipt::Receipt;
use crate::wanted::Wanted;

/// The offered files, and what the receiver makes of them.
#[derive(Debug)]
struct Script {
    files: Vec<(Vec<u8>, Decision)>,
    /// True if the receiver claims one file more than it got.
    lies: bool,
}

#[derive(Clone, Debug)]
enum Decision {
    Want(Wanted),
    Skip,
}

fn root_of(bytes: &[u8]) -> Root {
    *blake3::hash(bytes).as_bytes()
}

fn receiver() -> SecretIdentity {
    SecretIdentity::from_seed([9; 32])
}

const TRANSFER: [u8; 16] = [7; 16];
const SENDER: NodeId = NodeId([8; 32]);

/// One side of the transfer. The receiver opens the connection and the control stream.
#[derive(Debug)]
enum Peer {
    Sender(Box<Sender>),
    Receiver(Box<Receiver>),
}

impl Party for Peer {
    type Plan = Arc<Script>;

    fn new(side: Side, _: u64, script: Arc<Script>) -> Self {
        match side {
            Side::Initiator => Self::Receiver(Box::new(Receiver::new(script))),
            Side::Responder => Self::Sender(Box::new(Sender::new(script))),
        }
    }

    fn on_event(&mut self, _: Time, connection: &mut Connection, event: Event) {
        let is_connected = event == Event::Connected;
        match self {
            Self::Sender(sender) => sender.streams.on_event(event),
            Self::Receiver(receiver) => receiver.streams.on_event(event),
        }
        match self {
            Self::Sender(sender) if is_connected => sender.start(connection),
            Self::Receiver(receiver) if is_connected => receiver.start(connection),
            _ => {}
        }
    }

    fn drive(&mut self, now: Time, connection: &mut Connection) {
        match self {
            Self::Sender(sender) => sender.drive(now, connection),
            Self::Receiver(receiver) => receiver.drive(now, connection),
        }
    }

    fn wants_driving(&self, _: Time) -> bool {
        match self {
            Self::Sender(sender) => sender.streams.closed.is_none(),
            Self::Receiver(receiver) => receiver.streams.closed.is_none(),
        }
    }

    fn wake(&self) -> Option<Time> {
        None
    }
}

/// Files of all kinds of decisions, more than one Want covers.
fn script(lies: bool) -> Arc<Script> {
    let content = |number: u64, len: usize| {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    };
    let mut files = Vec::new();
    for number in 0..30 {
        let bytes = content(number, number as usize * 997);
        let decision = match number % 4 {
            0 => Decision::Want(Wanted::Unless(root_of(&bytes))),
            1 => Decision::Want(Wanted::Unless([1; 32])),
            2 => Decision::Skip,
            _ => Decision::Want(Wanted::Whole),
        };
        files.push((bytes, decision));
    }
    let missing: IntervalSet = [1..2, 3..5].into_iter().collect();
    files.push((content(30, 5 * CHUNK_BYTES), Decision::Want(Wanted::Chunks(missing))));
    files.push((content(31, 3 * CHUNK_BYTES + 1), Decision::Want(Wanted::Whole)));
    Arc::new(Script { files, lies })
}

/// What a run leaves: the outcome at the sender, the files at the receiver, and the fingerprint of
/// all datagrams.
#[derive(Debug)]
struct Run {
    outcome: Result<Receipt, TransferError>,
    verified: BTreeMap<u32, Root>,
    fingerprint: u64,
}

fn run(seed: u64, script: &Arc<Script>) -> Run {
    let mut world = World::<Peer>::with_parties(seed);
    let [receiver, sender] =
        ["receiver", "sender"].map(|name| world.add_endpoint(name, TransportConfig::default()));
    let way = || {
        let duplicate = Duplicate::percent(1.0, Duration::from_millis(3));
        hops![Rate::mbit(20), Delay::ms(20), Loss::percent(3.0), duplicate]
    };
    world.link((receiver, way()), (sender, way()));
    world.connect(receiver, sender, Arc::clone(script));
    let deadline = Time::ZERO + Duration::from_secs(60);
    let is_over = |world: &World<Peer>| {
        world.parties(sender).any(|party| match party {
            Peer::Sender(sender) => sender.outcome.is_some(),
            Peer::Receiver(_) => false,
        })
    };
    assert!(world.run_until(deadline, is_over), "seed {seed}: {:?}", world.now());
    let fingerprint = world.fingerprint();
    let outcome = world.parties(sender).find_map(|party| match party {
        Peer::Sender(sender) => sender.outcome.clone(),
        Peer::Receiver(_) => None,
    });
    let verified = world.parties(receiver).find_map(|party| match party {
        Peer::Receiver(receiver) => Some(receiver.verified.clone()),
        Peer::Sender(_) => None,
    });
    Run { outcome: outcome.unwrap(), verified: verified.unwrap(), fingerprint }
}

#[test]
fn a_sender_serves_a_whole_offer_over_a_lossy_link() {
    let script = script(false);
    for seed in 0..8 {
        let Run { outcome, verified, .. } = run(seed, &script);
        let receipt = outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for (number, (content, decision)) in (0..).zip(&script.files) {
            let expected = matches!(decision, Decision::Want(_)).then(|| root_of(content));
            assert_eq!(verified.get(&number).copied(), expected, "seed {seed}, entry {number}");
        }
        assert_eq!((receipt.verified, receipt.kept), (25, 7));
    }
}

#[test]
fn a_receipt_that_claims_more_than_was_sent_is_refused_over_a_lossy_link() {
    let Run { outcome, .. } = run(1, &script(true));
    assert!(matches!(outcome, Err(TransferError::Verification { .. })), "{outcome:?}");
}

#[test]
fn a_seed_repeats_a_served_transfer() {
    let script = script(false);
    let fingerprint = |seed| run(seed, &script).fingerprint;
    assert_eq!(fingerprint(5), fingerprint(5));
    assert_ne!(fingerprint(5), fingerprint(6));
}
