//! Two endpoints joined by a perfect or a lossy wire, in one thread: the smallest complete use of
//! the core.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::{
    AccessKey, ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, Read, Time,
    TransportConfig,
};
use wraith_crypto::identity::SecretIdentity;

pub(crate) const DELAY: Duration = Duration::from_millis(5);

pub(crate) fn ip(address: [u8; 4], port: u16) -> PathAddr {
    SocketAddr::from((address, port)).into()
}

pub(crate) fn via(number: u32) -> PathAddr {
    PathAddr::Via(NonZeroU32::new(number).unwrap())
}

pub(crate) struct PairSide {
    pub(crate) endpoint: Endpoint,
    pub(crate) address: PathAddr,
    pub(crate) inbox: VecDeque<(Time, PathAddr, Vec<u8>)>,
    pub(crate) events: Vec<(ConnectionHandle, Event)>,
}

pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) sides: [PairSide; 2],
    /// Drops the datagram with this index; both directions count together.
    pub(crate) drop: Box<dyn FnMut(u64) -> bool>,
    pub(crate) sent: u64,
    pub(crate) delay: Duration,
    /// Whether an observer records the wire.
    pub(crate) watched: bool,
    /// Recorded datagrams with their source addresses.
    pub(crate) seen: Vec<(PathAddr, Vec<u8>)>,
}

pub(crate) fn side(seed: u8, transport: TransportConfig) -> PairSide {
    let identity = SecretIdentity::from_seed([seed; 32]);
    let config = EndpointConfig { transport, ..EndpointConfig::open(identity) };
    PairSide {
        endpoint: Endpoint::new(config, [seed; 32]),
        address: ip([127, 0, 0, seed], 1000),
        inbox: VecDeque::new(),
        events: Vec::new(),
    }
}

impl Pair {
    pub(crate) fn new(transport: TransportConfig) -> Self {
        Self {
            now: Time::ZERO,
            sides: [side(1, transport.clone()), side(2, transport)],
            drop: Box::new(|_| false),
            sent: 0,
            delay: DELAY,
            watched: false,
            seen: Vec::new(),
        }
    }

    pub(crate) fn connect(&mut self) -> ConnectionHandle {
        let peer = SecretIdentity::from_seed([2; 32]).node_id();
        let remote = self.sides[1].address;
        self.sides[0].endpoint.connect(self.now, remote, peer, &AccessKey::public(peer)).unwrap()
    }

    /// Returns a pair whose sides have both completed the handshake.
    pub(crate) fn connected(transport: TransportConfig) -> Self {
        Self::connected_from(transport, ip([127, 0, 0, 1], 1000))
    }

    /// Like [`Self::connected`], with the initiator at `address`.
    pub(crate) fn connected_from(transport: TransportConfig, address: PathAddr) -> Self {
        let mut pair = Self::new(transport);
        pair.sides[0].address = address;
        pair.connect();
        pair.run_until(|p| p.handle(0).is_some() && p.handle(1).is_some());
        pair
    }

    /// Writes a few bytes on a new stream of `side`.
    pub(crate) fn say_hello(&mut self, side: usize) {
        let handle = self.handle(side).unwrap();
        let connection = self.sides[side].endpoint.connection(handle).unwrap();
        let id = connection.open_stream().unwrap();
        connection.write(id, Bytes::from_static(b"hello")).unwrap();
    }

    /// Drains both sides, then advances to the next event. Returns false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let mut buf = vec![0; 65536];
        for i in 0..2 {
            let from = self.sides[i].address;
            while let Some(t) = self.sides[i].endpoint.poll_transmit(self.now, &mut buf) {
                for datagram in buf[..t.len].chunks(t.segment) {
                    self.sent += 1;
                    if self.watched {
                        self.seen.push((from, datagram.to_vec()));
                    }
                    let arrives = t.to == self.sides[1 - i].address;
                    if !(self.drop)(self.sent) && arrives {
                        let at = self.now + self.delay;
                        self.sides[1 - i].inbox.push_back((at, from, datagram.to_vec()));
                    }
                }
            }
            while let Some(event) = self.sides[i].endpoint.poll_event() {
                self.sides[i].events.push(event);
            }
        }
        let next = (0..2).filter_map(|i| {
            let side = &mut self.sides[i];
            let arrival = side.inbox.front().map(|d| d.0);
            [side.endpoint.poll_timeout(), arrival].into_iter().flatten().min()
        });
        let Some(next) = next.min() else { return false };
        self.now = self.now.max(next);
        for side in &mut self.sides {
            while side.inbox.front().is_some_and(|d| d.0 <= self.now) {
                let (_, from, mut datagram) = side.inbox.pop_front().unwrap();
                side.endpoint.handle_datagram(self.now, from, None, &mut datagram);
            }
            side.endpoint.handle_timeout(self.now);
        }
        true
    }

    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..2_000_000 {
            if done(self) {
                return;
            }
            if !self.step() {
                assert!(done(self), "nothing left to happen at {:?}", self.now);
                return;
            }
        }
        panic!("did not end by {:?}", self.now);
    }

    /// Returns what `pick` takes of the events of `side` so far.
    pub(crate) fn events_of<T>(&self, side: usize, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.sides[side].events.iter().filter_map(|(_, event)| pick(event)).collect()
    }

    pub(crate) fn handle(&self, side: usize) -> Option<ConnectionHandle> {
        self.sides[side].events.iter().find(|(_, e)| *e == Event::Connected).map(|(h, _)| *h)
    }
}

/// Transfers `len` bytes from side `from` over one stream and checks every byte.
pub(crate) fn transfer(pair: &mut Pair, from: usize, len: usize) {
    pair.connect();
    pair.run_until(|p| p.handle(0).is_some() && p.handle(1).is_some());
    let (sender, receiver) = (pair.handle(from).unwrap(), pair.handle(1 - from).unwrap());
    let id = pair.sides[from].endpoint.connection(sender).unwrap().open_stream().unwrap();
    let pattern = |i: usize| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[2];
    let (mut written, mut read) = (0, 0);
    let mut finished = false;
    pair.run_until(|p| {
        let now = p.now;
        let connection = p.sides[from].endpoint.connection(sender).unwrap();
        while written < len && connection.send_capacity(id) > 0 {
            let end = (written + 100_000).min(len);
            let bytes: Vec<u8> = (written..end).map(pattern).collect();
            connection.write(id, Bytes::from(bytes)).unwrap();
            written = end;
            if written == len {
                connection.finish(id).unwrap();
            }
        }
        let connection = p.sides[1 - from].endpoint.connection(receiver).unwrap();
        loop {
            match connection.read(now, id) {
                Ok(Read::Slice(slice)) => {
                    for byte in slice.iter() {
                        assert_eq!(*byte, pattern(read), "byte {read}");
                        read += 1;
                    }
                }
                Ok(Read::Finished) => {
                    finished = true;
                    break;
                }
                Ok(Read::Blocked) | Err(_) => break,
            }
        }
        finished
    });
    assert_eq!(read, len);
}

/// Returns one pair of addresses for every kind of address change.
pub(crate) fn moves() -> [[PathAddr; 2]; 4] {
    let (here, elsewhere) = (ip([127, 0, 0, 1], 1000), ip([127, 0, 0, 77], 7));
    [[here, elsewhere], [here, via(7)], [via(7), elsewhere], [via(7), via(8)]]
}
