//! Mistakes that the suite must detect: recorded datagrams, each with one change that makes it
//! differ from noise. A suite that passes one of them would miss the same mistake in the real
//! protocol.

use curve25519_dalek::montgomery::MontgomeryPoint;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::checks::early::{self, HANDSHAKE_DATAGRAMS};
use crate::checks::ml_kem;
use crate::curve::{Bytes, encode};
use crate::driver::{Dial, Packet, Session, random};
use crate::finding::{Finding, judge};
use crate::suite::{self, Observer};

/// A recorded packet.
#[derive(Clone, Debug)]
pub struct Recorded {
    connection: usize,
    direction: usize,
    index: usize,
    bytes: Vec<u8>,
}

impl From<Packet<'_>> for Recorded {
    fn from(packet: Packet) -> Self {
        let Packet { connection, direction, index, bytes } = packet;
        Self { connection, direction, index, bytes: bytes.to_vec() }
    }
}

/// A mistake, by the material that it changes.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    /// All handshakes.
    Dials(fn(&mut [Dial], &mut ChaCha20Rng)),
    /// First datagrams.
    Firsts(fn(&mut [Vec<u8>])),
    /// Shapes of the first datagrams of sessions.
    Sessions(fn(&mut Session)),
    /// A packet; the last argument is 8 bytes that belong to its connection and direction.
    Packet(fn(&mut Recorded, &mut ChaCha20Rng, [u8; 8])),
}

/// One mistake, by name.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Description of the mistake.
    pub name: &'static str,
    mistake: Mistake,
}

/// Material of the mistakes: a recording that passes.
#[derive(Debug)]
pub struct Material<'a> {
    /// Handshakes.
    pub dials: &'a [Dial],
    /// First datagrams.
    pub firsts: &'a [Vec<u8>],
    /// Shapes of the first datagrams of sessions.
    pub sessions: &'a [Session],
    /// Packets of some connections.
    pub packets: &'a [Recorded],
}

/// All controls.
pub const CONTROLS: [Control; 13] = [
    Control { name: "representatives of keys of prime order", mistake: Mistake::Dials(clean_keys) },
    Control { name: "X25519 keys as they are", mistake: Mistake::Dials(raw_keys) },
    Control { name: "a version byte", mistake: Mistake::Dials(version) },
    Control { name: "an ML-KEM key in the clear", mistake: Mistake::Dials(ml_kem_key) },
    Control { name: "16 bytes in two dials", mistake: Mistake::Dials(sixteen_bytes) },
    Control { name: "the time of the dial, in seconds", mistake: Mistake::Dials(time) },
    Control { name: "sizes in steps of 64", mistake: Mistake::Firsts(steps) },
    Control { name: "exact sizes of probes and ACKs", mistake: Mistake::Sessions(exact_sizes) },
    Control { name: "a length field", mistake: Mistake::Packet(length) },
    Control { name: "a counter", mistake: Mistake::Packet(counter) },
    Control { name: "a counter under a constant mask", mistake: Mistake::Packet(masked_counter) },
    Control { name: "a connection ID", mistake: Mistake::Packet(connection_id) },
    Control { name: "a bit that is 1 in 51 of 100", mistake: Mistake::Packet(biased_bit) },
];

impl Control {
    /// Returns the tests that a recording with this mistake fails.
    pub fn caught_by(&self, material: &Material, every: usize, seed: u64) -> Vec<&'static str> {
        let mut rng = suite::generator(seed, u64::MAX);
        let findings: Vec<Finding> = match self.mistake {
            Mistake::Dials(make) => {
                let mut dials = material.dials.to_vec();
                make(&mut dials, &mut rng);
                suite::dials(&dials).0
            }
            Mistake::Firsts(make) => {
                let mut firsts = material.firsts.to_vec();
                make(&mut firsts);
                suite::firsts(&firsts)
            }
            Mistake::Sessions(make) => {
                let mut sessions = material.sessions.to_vec();
                sessions.iter_mut().for_each(make);
                suite::of("sessions", early::figures(&sessions))
            }
            Mistake::Packet(make) => {
                let mut observer = Observer::of_connections(every);
                for packet in material.packets {
                    let mut packet = packet.clone();
                    let series = 2 * packet.connection + packet.direction;
                    let own = random(&mut suite::generator(seed, series as u64));
                    make(&mut packet, &mut rng, own);
                    let Recorded { connection, direction, index, bytes } = &packet;
                    let (connection, direction, index) = (*connection, *direction, *index);
                    observer.add_packet(Packet { connection, direction, index, bytes });
                }
                observer.findings()
            }
        };
        let failed = judge(findings).into_iter().filter(|judged| !judged.passed);
        let mut tests: Vec<_> = failed.map(|judged| judged.finding.test).collect();
        tests.sort_unstable();
        tests.dedup();
        tests
    }
}

/// Replaces the first 32 bytes of each side.
fn begin_with(dials: &mut [Dial], mut make: impl FnMut() -> Bytes) {
    let datagrams = dials.iter_mut().flat_map(|dial| &mut dial.datagrams);
    for datagram in datagrams.filter(|datagram| datagram.index == 0) {
        datagram.bytes[..32].copy_from_slice(&make());
    }
}

fn key(rng: &mut ChaCha20Rng) -> Bytes {
    MontgomeryPoint::mul_base_clamped(random(rng)).to_bytes()
}

fn raw_keys(dials: &mut [Dial], rng: &mut ChaCha20Rng) {
    begin_with(dials, || key(rng));
}

/// Correct except for the order of the point: either root, both spare bits random.
fn clean_keys(dials: &mut [Dial], rng: &mut ChaCha20Rng) {
    begin_with(dials, || {
        loop {
            let other = rng.next_u32() & 1 == 1;
            if let Some(mut representative) = encode(&key(rng), other) {
                representative[31] |= (rng.next_u32() as u8) << 6;
                return representative;
            }
        }
    });
}

fn version(dials: &mut [Dial], _: &mut ChaCha20Rng) {
    for dial in dials {
        dial.datagrams[0].bytes[32] = 2;
    }
}

fn time(dials: &mut [Dial], _: &mut ChaCha20Rng) {
    for dial in dials {
        dial.datagrams[0].bytes[33..41].copy_from_slice(&dial.unix_seconds.to_be_bytes());
    }
}

/// Inserts the key after the initiator's first 32 bytes, over as many datagrams as necessary.
fn ml_kem_key(dials: &mut [Dial], rng: &mut ChaCha20Rng) {
    for dial in dials {
        let mut number = || {
            loop {
                let number = rng.next_u32() as u16 & 0xfff;
                if number < ml_kem::Q {
                    return number;
                }
            }
        };
        let mut key = Vec::new();
        while key.len() < ml_kem::KEY_BYTES {
            key.extend(ml_kem::packed([number(), number()]));
        }
        let said = dial.datagrams.iter_mut().filter(|datagram| datagram.direction == 0);
        let places = said.flat_map(|datagram| &mut datagram.bytes).skip(32);
        places.zip(key).for_each(|(place, byte)| *place = byte);
    }
}

fn sixteen_bytes(dials: &mut [Dial], rng: &mut ChaCha20Rng) {
    let value: [u8; 16] = random(rng);
    let last = dials.len() - 1;
    for (dial, at) in [(0, 50), (last, 61)] {
        dials[dial].datagrams[0].bytes[at..at + 16].copy_from_slice(&value);
    }
}

fn steps(firsts: &mut [Vec<u8>]) {
    firsts.iter_mut().for_each(|first| first.truncate(first.len() / 64 * 64));
}

fn length(packet: &mut Recorded, _: &mut ChaCha20Rng, _: [u8; 8]) {
    let length = packet.bytes.len() as u16;
    packet.bytes[8..10].copy_from_slice(&length.to_be_bytes());
}

fn counter(packet: &mut Recorded, _: &mut ChaCha20Rng, _: [u8; 8]) {
    packet.bytes[8..12].copy_from_slice(&(packet.index as u32).to_be_bytes());
}

fn masked_counter(packet: &mut Recorded, _: &mut ChaCha20Rng, own: [u8; 8]) {
    let masked = packet.index as u64 ^ u64::from_be_bytes(own);
    packet.bytes[..8].copy_from_slice(&masked.to_be_bytes());
}

/// Gives the datagrams after a handshake the sizes that they had before sizes were drawn: a PING
/// and ACKs of 29, 33 and 36 bytes, and MTU probes of 1452 and 1472 bytes among packets of 1200.
fn exact_sizes(session: &mut Session) {
    let mut next = [0, 0];
    for shape in &mut session[HANDSHAKE_DATAGRAMS..] {
        let bulk = shape.direction == 1;
        shape.len = match (next[shape.direction], bulk) {
            (0, true) => 29,
            (1, _) => 1452,
            (3, _) => 1472,
            (4.., true) => 1472,
            (_, true) => 1200,
            (0, false) => 148,
            (2, false) => 33,
            (_, false) => 36,
        };
        next[shape.direction] += 1;
    }
}

fn connection_id(packet: &mut Recorded, _: &mut ChaCha20Rng, own: [u8; 8]) {
    packet.bytes[..8].copy_from_slice(&own);
}

/// Sets one in fifty zeros to one.
fn biased_bit(packet: &mut Recorded, rng: &mut ChaCha20Rng, _: [u8; 8]) {
    if rng.next_u32().is_multiple_of(50) {
        packet.bytes[5] |= 0x10;
    }
}
