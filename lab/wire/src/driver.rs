//! Two endpoints of the core, and all datagrams between them.
//!
//! Only this file creates endpoints and dials: [`endpoint`] and [`dial`]. No other file depends on
//! the number or the length of handshake datagrams; they are identified by direction and index.
//!
//! Time is simulated and all randomness comes from the caller's generator, so the seed reproduces a
//! recording.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_core::{
    AccessKey, ConnectionHandle, Door, Endpoint, EndpointConfig, Event, Read, StreamId, Time,
    Transmit, TransportConfig, WallClock,
};
use wraith_crypto::identity::{NodeId, SecretIdentity};

/// Delay in one direction.
const DELAY: Duration = Duration::from_millis(5);
/// Maximum additional delay of a datagram: enough for one to overtake others.
const JITTER_NANOS: u64 = 200_000;
/// Unix time of the first dial of a recording.
const FIRST_DIAL_UNIX_SECONDS: u64 = 1_767_225_600;
/// Maximum time between two dials, in seconds.
const BETWEEN_DIALS_SECONDS: u64 = 60;
/// Bytes of one write during bulk transfer.
const BULK_BYTES: usize = 256 * 1024;
/// Packets of a key phase in every other connection: some phases begin in each.
const SHORT_PHASE_PACKETS: u64 = 2048;
/// Bytes between two ratchets: some occur in each connection.
const RATCHET_BYTES: u64 = 1 << 20;
/// Offers of both suites, and of ChaCha20-Poly1305 alone.
const SUITES: [u8; 2] = [0b11, 0b10];
/// Largest UDP payload of Ethernet under IPv4. The sender's kernel refuses larger datagrams.
const ETHERNET_PAYLOAD_BYTES: usize = 1472;
/// Bytes of the request of a session.
const REQUEST_BYTES: usize = 120;
/// Largest UDP payloads of connections, in turn.
const MTUS: [u16; 3] = [1452, 1232, 1372];

/// A sent datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Direction; 0 is from the initiator.
    pub direction: usize,
    /// Index within this direction, from 0.
    pub index: usize,
    /// Simulated time at which it was sent.
    pub at: Time,
    /// Bytes as an observer sees them.
    pub bytes: Vec<u8>,
}

/// All datagrams until both sides were connected.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Clock of both sides.
    pub unix_seconds: u64,
    /// Datagrams in the order of sending.
    pub datagrams: Vec<Datagram>,
}

/// What an observer without keys sees of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Direction; 0 is from the initiator.
    pub direction: usize,
    /// Simulated time at which it was sent.
    pub at: Time,
    /// Length in bytes.
    pub len: usize,
}

/// The first datagrams of a connection, in the order of sending.
pub type Session = Vec<Shape>;

/// Data volume of one connection, in bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes in full packets, one direction at a time.
    pub bulk: u64,
    /// Bytes in short messages, back and forth.
    pub chatter: u64,
    /// Maximum length of these messages.
    pub message_max: u64,
}

/// Creates an endpoint with the identity of `seed`, and these access keys.
fn endpoint(
    seed: [u8; 32],
    access_keys: Vec<AccessKey>,
    unix_seconds: u64,
    transport: TransportConfig,
) -> Endpoint {
    let identity = SecretIdentity::from_seed(seed);
    let config = EndpointConfig {
        transport,
        door: Door { access_keys, ..Door::default() },
        wall_clock: WallClock::starting_at(unix_seconds),
        ..EndpointConfig::new(identity)
    };
    Endpoint::new(config, seed)
}

/// Dials `peer`.
fn dial(
    from: &mut Endpoint,
    to: SocketAddr,
    peer: NodeId,
    access_key: &AccessKey,
) -> ConnectionHandle {
    from.connect(Time::ZERO, to, peer, access_key).expect("a valid peer and nothing else under way")
}

/// Records `count` handshakes, each between two new identities, over a lossless wire.
pub fn dials(count: usize, rng: &mut ChaCha20Rng) -> Vec<Dial> {
    let mut unix_seconds = FIRST_DIAL_UNIX_SECONDS;
    let record = |_| {
        unix_seconds += rng.next_u64() % BETWEEN_DIALS_SECONDS;
        let mut pair = Pair::new(unix_seconds, TransportConfig::default(), rng);
        let mut datagrams = Vec::new();
        let mut next = [0, 0];
        pair.run(
            |direction, at, bytes| {
                let index = next[direction];
                next[direction] += 1;
                datagrams.push(Datagram { direction, index, at, bytes: bytes.to_vec() });
            },
            |_| {},
            |pair| pair.connected[0] && pair.connected[1],
        );
        Dial { unix_seconds, datagrams }
    };
    (0..count).map(record).collect()
}

/// Records the first datagram of each of `count` unanswered dials.
pub fn first_datagrams(count: usize, rng: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let record = |_| {
        let mut pair = Pair::new(FIRST_DIAL_UNIX_SECONDS, TransportConfig::default(), rng);
        let transmit = pair.sides[0].poll_transmit(Time::ZERO, &mut pair.buffer);
        let Transmit { len, segment, .. } = transmit.expect("an initiator sends a datagram");
        pair.buffer[..len.min(segment)].to_vec()
    };
    (0..count).map(record).collect()
}

/// Records the shapes of the first `first` datagrams of each of `count` sessions on Ethernet: a short
/// request of the initiator, and then bulk from the responder.
pub fn sessions(count: usize, first: usize, rng: &mut ChaCha20Rng) -> Vec<Session> {
    let record = |_| {
        let mut pair = Pair::new(FIRST_DIAL_UNIX_SECONDS, TransportConfig::default(), rng);
        pair.payload_max = ETHERNET_PAYLOAD_BYTES;
        let session = std::cell::RefCell::new(Session::new());
        let mut tap = |direction, at, bytes: &[u8]| {
            let shape = Shape { direction, at, len: bytes.len() };
            session.borrow_mut().push(shape);
        };
        pair.run(&mut tap, |_| {}, |pair| pair.connected[0] && pair.connected[1]);
        pair.write_len(0, REQUEST_BYTES);
        let is_done = |_: &Pair| session.borrow().len() >= first;
        pair.run(&mut tap, |pair| pair.write(Work::Bulk(1)), is_done);
        let mut session = session.into_inner();
        session.truncate(first);
        session
    };
    (0..count).map(record).collect()
}

/// A sent packet of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Number of the connection in the recording.
    pub connection: usize,
    /// Direction; 0 is from the initiator.
    pub direction: usize,
    /// Index within this connection and direction, from 0.
    pub index: usize,
    /// Bytes as an observer sees them.
    pub bytes: &'a [u8],
}

/// Passes all packets of the connection with this number to `tap` once it is established. The wire
/// loses, duplicates and reorders packets.
pub fn connection(number: usize, load: Load, rng: &mut ChaCha20Rng, mut tap: impl FnMut(Packet)) {
    let transport = TransportConfig {
        suites: SUITES[number % SUITES.len()],
        max_mtu: MTUS[number % MTUS.len()],
        phase_packets: if number.is_multiple_of(2) { SHORT_PHASE_PACKETS } else { 1 << 20 },
        ratchet_bytes: RATCHET_BYTES,
        ..TransportConfig::default()
    };
    let mut pair = Pair::new(FIRST_DIAL_UNIX_SECONDS, transport, rng);
    pair.run(|_, _, _| {}, |_| {}, |pair| pair.connected[0] && pair.connected[1]);
    pair.faulty = true;
    let mut index = [0, 0];
    // Messages first: behind a full send buffer none would be short.
    let chatter = Work::Chatter(load.message_max);
    let [half, other_half] = [0, 1].map(|side| (Work::Bulk(side), load.bulk / 2));
    for (work, bytes) in [(chatter, load.chatter), half, other_half] {
        let mut sent = 0;
        let until = std::cell::Cell::new(0);
        pair.run(
            |direction, _, bytes| {
                sent += bytes.len() as u64;
                until.set(sent);
                tap(Packet { connection: number, direction, index: index[direction], bytes });
                index[direction] += 1;
            },
            |pair| pair.write(work),
            |_| until.get() >= bytes,
        );
    }
}

/// Work of the applications of a connection.
#[derive(Clone, Copy)]
enum Work {
    /// This side sends as much as it may.
    Bulk(usize),
    /// Both sides occasionally send a message of up to this many bytes.
    Chatter(u64),
}

/// Two endpoints and the wire between them.
struct Pair {
    now: Time,
    sides: [Endpoint; 2],
    handles: [Option<ConnectionHandle>; 2],
    connected: [bool; 2],
    /// The stream that each side writes.
    streams: [Option<StreamId>; 2],
    readable: [Vec<StreamId>; 2],
    /// Datagrams in transit with their destinations, by arrival and order of sending.
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    faulty: bool,
    payload_max: usize,
    rng: ChaCha20Rng,
    buffer: Vec<u8>,
    zeros: Bytes,
}

impl Pair {
    fn new(unix_seconds: u64, transport: TransportConfig, rng: &mut ChaCha20Rng) -> Self {
        let seeds: [[u8; 32]; 2] = [random(rng), random(rng)];
        let peer = SecretIdentity::from_seed(seeds[1]).node_id();
        let access_key = AccessKey::of_ticket(&random(rng), peer);
        let mut sides = [
            endpoint(seeds[0], Vec::new(), unix_seconds, transport.clone()),
            endpoint(seeds[1], vec![access_key.clone()], unix_seconds, transport),
        ];
        let handle = dial(&mut sides[0], address(1), peer, &access_key);
        Self {
            now: Time::ZERO,
            sides,
            handles: [Some(handle), None],
            connected: [false; 2],
            streams: [None; 2],
            readable: [Vec::new(), Vec::new()],
            wire: BTreeMap::new(),
            sent: 0,
            faulty: false,
            payload_max: usize::MAX,
            rng: ChaCha20Rng::from_seed(random(rng)),
            buffer: vec![0; 65536],
            zeros: Bytes::from(vec![0; BULK_BYTES]),
        }
    }

    /// Runs `work` and advances time until it is `done`; passes each datagram to `tap` when it is
    /// sent.
    fn run(
        &mut self,
        mut tap: impl FnMut(usize, Time, &[u8]),
        mut work: impl FnMut(&mut Self),
        mut done: impl FnMut(&Self) -> bool,
    ) {
        while !done(self) {
            work(self);
            for from in 0..2 {
                self.transmit(from, &mut tap);
                self.take_events(from);
            }
            let timeouts = [0, 1].map(|side| self.sides[side].poll_timeout());
            let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
            let next = timeouts.into_iter().chain([arrival]).flatten().min();
            self.now =
                self.now.max(next.expect("a connection that is alive has something to wait for"));
            while let Some(entry) =
                self.wire.first_entry().filter(|entry| entry.key().0 <= self.now)
            {
                let (to, mut bytes) = entry.remove();
                self.sides[to].handle_datagram(self.now, address(1 - to), None, &mut bytes);
            }
            for side in &mut self.sides {
                side.handle_timeout(self.now);
            }
        }
    }

    fn transmit(&mut self, from: usize, tap: &mut impl FnMut(usize, Time, &[u8])) {
        while let Some(transmit) = self.sides[from].poll_transmit(self.now, &mut self.buffer) {
            for bytes in self.buffer[..transmit.len].chunks(transmit.segment) {
                if bytes.len() > self.payload_max {
                    continue;
                }
                tap(from, self.now, bytes);
                let (chance, late) = (self.rng.next_u32() % 1000, self.rng.next_u64());
                // One in a hundred is lost, one in two hundred arrives twice.
                let copies = match chance {
                    0..10 if self.faulty => 0,
                    10..15 if self.faulty => 2,
                    _ => 1,
                };
                let late = if self.faulty { late % JITTER_NANOS } else { 0 };
                for copy in 0..copies {
                    let arrival =
                        self.now + DELAY + Duration::from_nanos(late + copy * JITTER_NANOS);
                    self.sent += 1;
                    self.wire.insert((arrival, self.sent), (1 - from, bytes.to_vec()));
                }
            }
        }
    }

    fn take_events(&mut self, side: usize) {
        while let Some((handle, event)) = self.sides[side].poll_event() {
            match event {
                Event::Connected => {
                    self.handles[side] = Some(handle);
                    self.connected[side] = true;
                }
                Event::StreamOpened(id) | Event::Readable(id) => self.readable[side].push(id),
                Event::Closed(why) => panic!("a connection ended by itself: {why:?}"),
                _ => {}
            }
        }
        let Some(handle) = self.handles[side] else { return };
        for id in std::mem::take(&mut self.readable[side]) {
            let connection = self.sides[side].connection(handle).expect("it is alive");
            while let Ok(Read::Slice(_)) = connection.read(self.now, id) {}
        }
    }

    fn write(&mut self, work: Work) {
        for side in 0..2 {
            let room = self.room(side);
            let len = match work {
                Work::Bulk(writer) if writer == side => room.min(BULK_BYTES),
                Work::Bulk(_) => 0,
                Work::Chatter(message_max) if self.rng.next_u32().is_multiple_of(2) => {
                    room.min((1 + self.rng.next_u64() % message_max) as usize)
                }
                Work::Chatter(_) => 0,
            };
            self.write_len(side, len);
        }
    }

    /// Returns the bytes that the stream of this side accepts.
    fn room(&mut self, side: usize) -> usize {
        let handle = self.handles[side].expect("both are connected");
        let connection = self.sides[side].connection(handle).expect("it is alive");
        let stream = &mut self.streams[side];
        let id = *stream.get_or_insert_with(|| connection.open_stream().expect("the first"));
        connection.send_capacity(id)
    }

    fn write_len(&mut self, side: usize, len: usize) {
        if len > 0 && self.room(side) >= len {
            let handle = self.handles[side].expect("both are connected");
            let connection = self.sides[side].connection(handle).expect("it is alive");
            let id = self.streams[side].expect("it was opened");
            connection.write(id, self.zeros.slice(..len)).expect("the stream is open");
        }
    }
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, side as u8 + 1], 1000))
}

/// Returns random bytes of a generator.
pub fn random<const N: usize>(rng: &mut ChaCha20Rng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_repeated_by_its_seed() {
        let record = |seed| {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let mut all: Vec<Vec<u8>> = Vec::new();
            for dial in dials(2, &mut rng) {
                all.extend(dial.datagrams.into_iter().map(|datagram| datagram.bytes));
            }
            let load = Load { bulk: 100_000, chatter: 10_000, message_max: 100 };
            connection(0, load, &mut rng, |packet| all.push(packet.bytes.to_vec()));
            all
        };
        assert!(record(1) == record(1), "the same seed");
        assert!(record(1) != record(2), "another seed");
    }
}
