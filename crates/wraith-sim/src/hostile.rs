//! Hostile authenticated peers: they have an access key (which the handshake requires), complete the
//! handshake, and then violate every rule, from forged source addresses too.
//!
//! A [`Hostile`] receives at two addresses, and forges further ones. From all these addresses it
//! sends packets of any size. The packets authenticate, so its target processes them. Among them
//! are:
//! - packets with one or many challenges;
//! - packets that make the target believe that its peer has moved;
//! - answers to some of the target's challenges;
//! - ratchet requests (SPEC §4.6), which have two parts: one part without the other, duplicates,
//!   and late parts of finished ratchets. When a ratchet is complete, the [`Hostile`] changes to
//!   the new keys.
//!
//! `checks.rs` verifies to which addresses the target sends, and how many bytes. This module
//! verifies that a response is never longer than the datagram with its challenge.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{Frame, FrameWriter, Frames};
use wraith_core::{Connection, RangeSet, Time};
use wraith_crypto::identity::{NodeId, SecretIdentity};
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, HEADER_BYTES, Initiator, InitiatorHello, Opener,
    PACKET_OVERHEAD, Parameters, Policy, RATCHET_REQUEST_BYTES, Ratchet, Sealer,
};

use crate::Rng;
use crate::link::Datagram;

/// Number of forged addresses.
const FORGED: u8 = 3;
/// Number of datagrams that a hostile peer sends before it falls silent.
const DATAGRAMS: u64 = 300;
/// Maximum pause between two of them.
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// Maximum delay of a datagram, so that they overtake each other.
const DELAY_MAX: Duration = Duration::from_millis(15);
const DATAGRAM_BYTES_MAX: u64 = 1452;
/// Bytes that the target's application sends to it, so that data is in flight while the address
/// changes.
const BAIT_BYTES: usize = 100_000;
/// Number of ratchets that a hostile peer requests, below the target's limit for that time.
const RATCHETS_MAX: u64 = 12;
const RATCHET_PART: usize = RATCHET_REQUEST_BYTES / 2;
/// Length of the shortest packet with a challenge.
const CHALLENGE_BYTES: u64 = 9 + PACKET_OVERHEAD as u64;

/// A hostile peer of one endpoint; see the module.
#[derive(Debug)]
pub(crate) struct Hostile {
    rng: Rng,
    number: u8,
    identity: SecretIdentity,
    own: [SocketAddr; 2],
    target: SocketAddr,
    h1: [Vec<u8>; 2],
    initiator: Option<Initiator>,
    session: Option<Session>,
    left: u64,
    wake: Time,
    /// Length of the datagram that carried each challenge.
    asked: HashMap<[u8; 8], usize>,
    /// Challenges of the target, to be answered from any address.
    challenges: Vec<[u8; 8]>,
}

#[derive(Debug)]
struct Session {
    sealer: Sealer,
    opener: Opener,
    next_pn: u64,
    received: RangeSet,
    ratchets: RatchetRequests,
}

/// The ratchets of one session.
#[derive(Debug, Default)]
struct RatchetRequests {
    /// Number of the current ratchet, or of the last one.
    number: u64,
    asked: Option<Box<Ratchet>>,
    /// Received parts of the response.
    response: [Option<Vec<u8>>; 2],
    /// Both sides have agreed, but the target does not use the new keys yet.
    target_advances: bool,
}

impl RatchetRequests {
    /// Writes a part of the current request, or of the next one if there is none. Sometimes writes
    /// a part of a finished ratchet, which must have no effect.
    fn write(&mut self, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        let part = rng.below(2) as u8;
        if self.number > 0 && rng.chance(0.2) {
            out.ratchet(rng.below(self.number), part, &[0x5a; RATCHET_PART]);
            return;
        }
        if self.asked.is_none() && !self.target_advances && self.number < RATCHETS_MAX {
            self.number += 1;
            self.asked = Some(Box::new(Ratchet::begin(&mut ChaCha20Rng::from_seed(rng.seed()))));
        }
        if let Some(asked) = &self.asked {
            let bytes = &asked.request()[usize::from(part) * RATCHET_PART..][..RATCHET_PART];
            out.ratchet(self.number, part, bytes);
        }
    }

    /// Feeds a response part. Returns the agreed secret once both parts have arrived.
    fn take(&mut self, number: u64, part: u8, bytes: &[u8]) -> Option<[u8; 32]> {
        let asked = self.asked.as_ref().filter(|_| number == self.number)?;
        self.response[usize::from(part)] = Some(bytes.to_vec());
        let [Some(first), Some(second)] = &self.response else { return None };
        let response = [&first[..], second].concat().try_into().expect("the length of a response");
        let agreed = *asked.finish(&response).expect("an endpoint answers with good shares");
        (self.asked, self.response, self.target_advances) = (None, [None, None], true);
        Some(agreed)
    }
}

/// Makes the target's application send data to a hostile peer.
pub(crate) fn send_bait(connection: &mut Connection) {
    let Some(id) = connection.open_stream() else { return };
    let len = connection.send_capacity(id).min(BAIT_BYTES);
    connection.write(id, Bytes::from(vec![0; len])).expect("there is room for it");
}

/// Begins a handshake with the public access key of `target_id`. Returns its H1, too.
pub(crate) fn begin_handshake(
    identity: &SecretIdentity,
    target_id: NodeId,
    unix_seconds: u64,
    rng: &mut ChaCha20Rng,
) -> (Initiator, [Vec<u8>; 2]) {
    let suites = Policy::Default.packet_suites();
    let hello = InitiatorHello { suites, aes_hardware: true, unix_seconds };
    let (ephemeral, access_key) = (EphemeralKey::generate(rng), AccessKey::public(target_id));
    Initiator::start(identity, target_id, &access_key, &ephemeral, &hello, rng)
        .expect("the NodeId of an endpoint")
}

impl Hostile {
    /// Creates the hostile peer `number` of its world. Its target at `target` has the identity
    /// `target_id`.
    pub(crate) fn new(
        mut rng: Rng,
        number: u8,
        target: SocketAddr,
        target_id: NodeId,
        unix_seconds: u64,
    ) -> Self {
        let identity = SecretIdentity::from_seed(rng.seed());
        let mut chance = ChaCha20Rng::from_seed(rng.seed());
        let (initiator, h1) = begin_handshake(&identity, target_id, unix_seconds, &mut chance);
        Self {
            number,
            identity,
            own: [1, 2].map(|port| SocketAddr::from(([203, 0, 113, number], port))),
            target,
            h1,
            initiator: Some(initiator),
            session: None,
            left: DATAGRAMS,
            wake: Time::ZERO + rng.up_to(Duration::from_secs(1)),
            asked: HashMap::new(),
            challenges: Vec::new(),
            rng,
        }
    }

    pub(crate) fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    /// Returns whether this peer receives at `address`.
    pub(crate) fn receives_at(&self, address: SocketAddr) -> bool {
        self.own.contains(&address)
    }

    /// Returns the addresses that this peer forges.
    pub(crate) fn forged(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let port = 1000 + u16::from(self.number);
        (0..FORGED).map(move |i| SocketAddr::from(([192, 0, 2, 100 + i], port)))
    }

    /// Returns the time of this peer's next send; `None` once it has fallen silent.
    pub(crate) fn wake(&self) -> Option<Time> {
        (self.left > 0).then_some(self.wake)
    }

    /// Returns the datagram that this peer sends now, with its arrival time.
    pub(crate) fn act(&mut self, now: Time) -> (Time, Datagram) {
        self.left -= 1;
        self.wake = now + self.rng.up_to(PAUSE_MAX);
        let from = self.draw_source();
        let arrival = now + self.rng.up_to(DELAY_MAX);
        let bytes = if self.session.is_some() {
            self.packet()
        } else {
            // A copy of H1 from a forged address must not cause more than an H2 to that address.
            self.wake = now + self.rng.up_to(10 * PAUSE_MAX);
            self.h1[self.rng.below(2) as usize].clone()
        };
        (arrival, Datagram::new(from, self.target, bytes))
    }

    /// Receives a datagram of the target. An answer leaves from the address that received it.
    pub(crate) fn receive(&mut self, mut datagram: Datagram) -> Option<Datagram> {
        let to = datagram.to;
        let Some(session) = &mut self.session else {
            let h3 = self.complete(&datagram.bytes)?;
            return Some(Datagram::new(to, self.target, h3));
        };
        let opened = session.opener.open(&mut datagram.bytes).ok()?;
        session.received.insert(opened.pn..opened.pn + 1);
        session.ratchets.target_advances &= !opened.new_phase;
        let payload = &datagram.bytes[HEADER_BYTES..HEADER_BYTES + opened.payload_len];
        for frame in Frames::new(payload) {
            match frame.expect("an endpoint sends frames") {
                Frame::PathChallenge(data) => self.challenges.push(data),
                Frame::PathResponse(data) => {
                    let asked = self.asked.get(&data).expect("a response without a challenge");
                    let len = datagram.bytes.len();
                    assert!(len <= *asked, "a response of {len} bytes to a challenge of {asked}");
                }
                Frame::Ratchet { number, part, bytes } => {
                    if let Some(agreed) = session.ratchets.take(number, part, bytes) {
                        session.sealer.ratchet(&agreed);
                        session.opener.ratchet(&agreed);
                        session.sealer.advance_phase();
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn draw_source(&mut self) -> SocketAddr {
        let forged: Vec<_> = self.forged().collect();
        match self.rng.below(6) as usize {
            i @ 0..2 => self.own[i],
            i => forged[i % forged.len()],
        }
    }

    fn complete(&mut self, h2: &[u8]) -> Option<Vec<u8>> {
        let hello = self.initiator.as_mut()?.read_h2(h2).ok()??;
        let mut initiator = self.initiator.take()?;
        let parameters = Parameters {
            initial_max_data: BAIT_BYTES as u64,
            initial_max_stream_data: BAIT_BYTES as u64,
            initial_max_streams: 1,
            ..Parameters::default()
        };
        let last = FinalHello { node_id: self.identity.node_id(), parameters };
        let (h3, keys) = initiator.write_h3(&last, &mut ChaCha20Rng::from_seed(self.rng.seed()));
        self.session = Some(Session {
            sealer: Sealer::new(hello.suite, &keys.send),
            opener: Opener::new(hello.suite, &keys.recv),
            next_pn: 0,
            received: RangeSet::new(),
            ratchets: RatchetRequests::default(),
        });
        Some(h3)
    }

    /// Returns a packet of any size with any content that does not close the connection.
    fn packet(&mut self) -> Vec<u8> {
        let Self { rng, session, asked, challenges, .. } = self;
        let session = session.as_mut().expect("packets follow the handshake");
        let len = rng.scaled(CHALLENGE_BYTES, DATAGRAM_BYTES_MAX) as usize;
        let mut datagram = vec![0; len];
        let end = len - (PACKET_OVERHEAD - HEADER_BYTES);
        let mut out = FrameWriter::new(&mut datagram[HEADER_BYTES..end]);
        if rng.chance(0.2) {
            let ranges = session.received.iter_rev().map(|range| range.start..=range.end - 1);
            out.ack(0, ranges, None);
        }
        if rng.chance(0.3)
            && let Some(challenge) = challenges.pop()
        {
            out.path_response(challenge);
        }
        if rng.chance(0.5) {
            session.ratchets.write(rng, &mut out);
        }
        for _ in 0..if rng.chance(0.7) { rng.scaled(1, 200) } else { 0 } {
            let mut challenge = [0; 8];
            rng.fill(&mut challenge);
            if !out.path_challenge(challenge) {
                break;
            }
            asked.insert(challenge, len);
        }
        out.ping();
        let room = out.remaining();
        out.padding(room);
        session.sealer.seal(session.next_pn, &mut datagram);
        session.next_pn += 1;
        datagram
    }
}
