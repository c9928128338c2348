//! Two endpoints joined by a perfect or a lossy wire, in one thread: the shortest way to see the core work.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::{
    CloseReason, ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, Read, Time,
    TransportConfig,
};
use wraith_crypto::identity::SecretIdentity;

const DELAY: Duration = Duration::from_millis(5);

fn ip(address: [u8; 4], port: u16) -> PathAddr {
    SocketAddr::from((address, port)).into()
}

fn via(number: u32) -> PathAddr {
    PathAddr::Via(NonZeroU32::new(number).unwrap())
}

struct Side {
    endpoint: Endpoint,
    address: PathAddr,
    inbox: VecDeque<(Time, PathAddr, Vec<u8>)>,
    events: Vec<(ConnectionHandle, Event)>,
}

struct Pair {
    now: Time,
    sides: [Side; 2],
    /// Drops the datagram with this index (both directions counted together).
    drop: Box<dyn FnMut(u64) -> bool>,
    sent: u64,
    delay: Duration,
}

fn side(seed: u8, transport: TransportConfig) -> Side {
    let identity = SecretIdentity::from_seed([seed; 32]);
    let config = EndpointConfig { transport, ..EndpointConfig::new(identity) };
    Side {
        endpoint: Endpoint::new(config, [seed; 32]),
        address: ip([127, 0, 0, seed], 1000),
        inbox: VecDeque::new(),
        events: Vec::new(),
    }
}

impl Pair {
    fn new(transport: TransportConfig) -> Self {
        Self {
            now: Time::ZERO,
            sides: [side(1, transport.clone()), side(2, transport)],
            drop: Box::new(|_| false),
            sent: 0,
            delay: DELAY,
        }
    }

    fn connect(&mut self) -> ConnectionHandle {
        let peer = SecretIdentity::from_seed([2; 32]).node_id();
        let remote = self.sides[1].address;
        self.sides[0].endpoint.connect(self.now, remote, peer).unwrap()
    }

    /// Drains both sides, then jumps to the next thing that happens. False if nothing ever will.
    fn step(&mut self) -> bool {
        let mut buf = vec![0; 65536];
        for i in 0..2 {
            let from = self.sides[i].address;
            while let Some(t) = self.sides[i].endpoint.poll_transmit(self.now, &mut buf) {
                for datagram in buf[..t.len].chunks(t.segment) {
                    self.sent += 1;
                    if !(self.drop)(self.sent) {
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

    fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
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

    fn handle(&self, side: usize) -> Option<ConnectionHandle> {
        self.sides[side].events.iter().find(|(_, e)| *e == Event::Connected).map(|(h, _)| *h)
    }
}

/// Moves `len` bytes from side `from` over one stream and checks every byte.
fn transfer(pair: &mut Pair, from: usize, len: usize) {
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
                Ok(Read::Slice(chunk)) => {
                    for byte in chunk.iter() {
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

#[test]
fn bytes_arrive_in_both_directions() {
    for from in [0, 1] {
        transfer(&mut Pair::new(TransportConfig::default()), from, 3_000_000);
    }
}

#[test]
fn every_twentieth_datagram_lost_still_delivers_everything() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.drop = Box::new(|n| n % 20 == 7);
    transfer(&mut pair, 0, 2_000_000);
}

/// What the initiator takes for the round trip when it is connected, before any sample of a packet.
fn first_rtt(pair: &mut Pair) -> Duration {
    pair.connect();
    pair.run_until(|p| p.handle(0).is_some());
    let handle = pair.handle(0).unwrap();
    pair.sides[0].endpoint.connection(handle).unwrap().stats().rtt
}

#[test]
fn a_peer_that_comes_late_is_not_taken_for_one_that_is_far() {
    let mut pair = Pair::new(TransportConfig::default());
    // The first five H1 go nowhere; the sixth is answered at once, eight seconds later.
    pair.drop = Box::new(|n| n <= 5);
    let rtt = first_rtt(&mut pair);
    assert!(pair.now > Time::ZERO + Duration::from_secs(7));
    assert_eq!(rtt, Duration::from_millis(100), "what is assumed of any path");
}

#[test]
fn a_far_peer_is_known_to_be_far_although_h1_was_repeated() {
    for delay in [100, 300].map(Duration::from_millis) {
        let mut pair = Pair::new(TransportConfig::default());
        pair.delay = delay;
        assert_eq!(first_rtt(&mut pair), 2 * delay);
    }
}

#[test]
fn each_lost_handshake_datagram_is_repeated() {
    for lost in 1..=5 {
        let mut pair = Pair::new(TransportConfig::default());
        pair.drop = Box::new(move |n| n == lost);
        transfer(&mut pair, 0, 10_000);
    }
}

#[test]
fn keys_change_many_times_within_a_transfer() {
    let transport = TransportConfig { phase_packets: 50, max_mtu: 1200, ..Default::default() };
    let mut pair = Pair::new(transport);
    pair.drop = Box::new(|n| n % 31 == 0);
    transfer(&mut pair, 0, 1_000_000);
    let handle = pair.handle(0).unwrap();
    let stats = pair.sides[0].endpoint.connection(handle).unwrap().stats();
    assert!(stats.key_phases > 5, "{stats:?}");
}

#[test]
fn a_close_tells_the_peer_why_and_both_sides_forget_it() {
    let mut pair = Pair::new(TransportConfig::default());
    let handle = pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let now = pair.now;
    pair.sides[0].endpoint.connection(handle).unwrap().close(now, 0x123, "enough");
    pair.run_until(|p| p.sides.iter().all(|s| s.endpoint.is_drained()));
    let closed = |side: usize| pair.sides[side].events.last().unwrap().1.clone();
    assert_eq!(closed(0), Event::Closed(CloseReason::Local));
    let reason = CloseReason::Peer { code: 0x123, reason: "enough".into() };
    assert_eq!(closed(1), Event::Closed(reason));
}

/// How long the side that closes keeps its state.
fn time_until_forgotten(answer_arrives: bool) -> Duration {
    let mut pair = Pair::new(TransportConfig::default());
    let handle = pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let (closed_at, sent) = (pair.now, pair.sent);
    pair.sides[0].endpoint.connection(handle).unwrap().close(closed_at, 0x100, "");
    // The CLOSE is the next datagram, the answer to it the one after.
    pair.drop = Box::new(move |i| !answer_arrives && i == sent + 2);
    pair.run_until(|p| {
        let endpoint = &mut p.sides[0].endpoint;
        // Asking for the timeout makes it forget connections that are over.
        endpoint.poll_timeout().is_none() && endpoint.is_drained()
    });
    pair.now.since(closed_at)
}

#[test]
fn who_closes_waits_for_the_answer_and_no_longer() {
    assert_eq!(time_until_forgotten(true), 2 * DELAY);
    // Without one it could have to say it again.
    assert!(time_until_forgotten(false) > 6 * DELAY);
}

#[test]
fn a_stream_opened_right_before_the_close_is_seen_and_read() {
    let mut pair = Pair::new(TransportConfig::default());
    let handle = pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let connection = pair.sides[0].endpoint.connection(handle).unwrap();
    let id = connection.open_stream().unwrap();
    connection.write(id, Bytes::from_static(b"last words")).unwrap();
    let mut buf = vec![0; 65536];
    let mut datagrams = Vec::new();
    let now = pair.now;
    for close in [false, true] {
        let side = &mut pair.sides[0].endpoint;
        if close {
            side.connection(handle).unwrap().close(now, 0x100, "");
        }
        while let Some(t) = side.poll_transmit(now, &mut buf) {
            datagrams.extend(buf[..t.len].chunks(t.segment).map(<[u8]>::to_vec));
        }
    }
    let (from, other) = (pair.sides[0].address, pair.handle(1).unwrap());
    let receiver = &mut pair.sides[1].endpoint;
    for datagram in &mut datagrams {
        receiver.handle_datagram(now, from, None, datagram);
    }
    let events: Vec<_> = std::iter::from_fn(|| receiver.poll_event()).map(|(_, e)| e).collect();
    let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted);
    let opened = place(&|e| *e == Event::StreamOpened(id)).expect("the stream is seen");
    let closed = place(&|e| matches!(e, Event::Closed(_))).expect("the end is seen");
    assert!(opened < closed && closed + 1 == events.len());
    let read = receiver.connection(other).unwrap().read(now, id);
    assert!(matches!(read, Ok(Read::Slice(chunk)) if &*chunk == b"last words"));
}

#[test]
fn a_peer_that_never_answers_ends_the_attempt() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.drop = Box::new(|_| true);
    pair.connect();
    pair.run_until(|p| p.sides[0].endpoint.is_drained());
    let closed = &pair.sides[0].events.last().unwrap().1;
    assert_eq!(*closed, Event::Closed(CloseReason::HandshakeTimeout));
    assert_eq!(pair.now.since(Time::ZERO), Duration::from_secs(10));
}

#[test]
fn a_dead_wire_ends_with_the_idle_timeout() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    pair.drop = Box::new(|_| true);
    pair.run_until(|p| p.sides.iter().all(|s| s.endpoint.is_drained()));
    for side in &pair.sides {
        assert_eq!(side.events.last().unwrap().1, Event::Closed(CloseReason::IdleTimeout));
    }
}

#[test]
fn strangers_get_silence() {
    let mut pair = Pair::new(TransportConfig::default());
    let from = ip([127, 0, 0, 9], 9);
    let mut buf = vec![0; 65536];
    for len in 0..1500 {
        let mut garbage: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
        let endpoint = &mut pair.sides[1].endpoint;
        endpoint.handle_datagram(pair.now, from, None, &mut garbage);
        assert!(endpoint.poll_transmit(pair.now, &mut buf).is_none());
        assert!(endpoint.poll_event().is_none() && endpoint.poll_timeout().is_none());
    }
    assert_eq!(pair.sides[1].endpoint.datagrams_dropped(), 1500);
}

/// Between them every kind of change of address.
fn moves() -> [[PathAddr; 2]; 4] {
    let (here, elsewhere) = (ip([127, 0, 0, 1], 1000), ip([127, 0, 0, 77], 7));
    [[here, elsewhere], [here, via(7)], [via(7), elsewhere], [via(7), via(8)]]
}

#[test]
fn bytes_arrive_where_neither_side_has_an_ip_address() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.drop = Box::new(|n| n % 20 == 7);
    (pair.sides[0].address, pair.sides[1].address) = (via(1), via(2));
    transfer(&mut pair, 0, 2_000_000);
}

#[test]
fn a_replayed_h1_from_elsewhere_gets_silence() {
    for [here, elsewhere] in moves() {
        let mut pair = Pair::new(TransportConfig::default());
        pair.connect();
        let mut buf = vec![0; 65536];
        let first = pair.sides[0].endpoint.poll_transmit(pair.now, &mut buf).unwrap();
        let h1 = buf[..first.len].to_vec();
        let mut answers = Vec::new();
        for (from, answered) in [(here, true), (here, true), (elsewhere, false)] {
            let endpoint = &mut pair.sides[1].endpoint;
            endpoint.handle_datagram(pair.now, from, None, &mut h1.clone());
            let answer = endpoint.poll_transmit(pair.now, &mut buf);
            assert!(answer.is_none_or(|t| t.to == from));
            let answer = answer.map(|t| buf[..t.len].to_vec());
            assert_eq!(answer.is_some(), answered);
            answers.extend(answer);
        }
        assert_eq!(answers[0], answers[1], "an exact repeat gets the identical H2");
        assert!(answers[0].len() <= h1.len(), "H2 is never longer than H1");
    }
}

#[test]
fn handshakes_under_way_are_bounded_for_each_address_of_either_kind() {
    for [from, elsewhere] in moves() {
        let mut responder = side(2, TransportConfig::default());
        let mut buf = vec![0; 65536];
        // The seeds make the attempts differ.
        let mut answered = |from: PathAddr, seeds: Range<u8>| -> usize {
            let begin = |seed: u8| {
                let mut initiator = side(seed, TransportConfig::default()).endpoint;
                let peer = SecretIdentity::from_seed([2; 32]).node_id();
                initiator.connect(Time::ZERO, from, peer).unwrap();
                let first = initiator.poll_transmit(Time::ZERO, &mut buf).unwrap();
                let responder = &mut responder.endpoint;
                responder.handle_datagram(Time::ZERO, from, None, &mut buf[..first.len]);
                usize::from(responder.poll_transmit(Time::ZERO, &mut buf).is_some())
            };
            seeds.map(begin).sum()
        };
        assert_eq!(answered(from, 10..30), 8);
        assert_eq!(answered(elsewhere, 30..34), 4, "another address has room of its own");
    }
}

/// `mover` goes on from `to`; the other side follows once it knows that it is heard there.
fn follows(mover: usize, [from, to]: [PathAddr; 2]) {
    let mut pair = Pair::new(TransportConfig::default());
    pair.sides[mover].address = from;
    pair.connect();
    pair.run_until(|p| p.handle(0).is_some() && p.handle(1).is_some());
    pair.sides[mover].address = to;
    let handle = pair.handle(mover).unwrap();
    let connection = pair.sides[mover].endpoint.connection(handle).unwrap();
    let id = connection.open_stream().unwrap();
    connection.write(id, Bytes::from_static(b"hello")).unwrap();
    let other = 1 - mover;
    pair.run_until(|p| {
        p.sides[other].events.iter().any(|(_, e)| *e == Event::PathChanged { remote: to })
    });
    let handle = pair.handle(other).unwrap();
    assert_eq!(pair.sides[other].endpoint.connection(handle).unwrap().remote(), to);
}

#[test]
fn an_initiator_that_moves_is_followed() {
    moves().into_iter().for_each(|addresses| follows(0, addresses));
}

#[test]
fn a_responder_that_moves_is_followed_too() {
    moves().into_iter().for_each(|addresses| follows(1, addresses));
}

#[test]
fn who_only_pretends_to_be_elsewhere_is_not_followed_and_gets_little() {
    for [here, spoofed] in moves() {
        let mut pair = Pair::new(TransportConfig::default());
        pair.sides[0].address = here;
        pair.connect();
        pair.run_until(|p| p.handle(0).is_some() && p.handle(1).is_some());
        let (now, handle) = (pair.now, pair.handle(0).unwrap());
        let initiator = &mut pair.sides[0].endpoint;
        let connection = initiator.connection(handle).unwrap();
        let id = connection.open_stream().unwrap();
        connection.write(id, Bytes::from_static(b"hello")).unwrap();
        let mut buf = vec![0; 65536];
        let len = initiator.poll_transmit(now, &mut buf).unwrap().len;
        // An attacker on the way takes the datagram and sends it on under another address. Nothing sent there arrives.
        let responder = &mut pair.sides[1].endpoint;
        responder.handle_datagram(now, spoofed, None, &mut buf[..len]);
        let (mut now, mut sent) = (now, 0);
        let end = now + Duration::from_secs(20);
        while let Some(due) = responder.poll_timeout().filter(|due| *due <= end) {
            now = now.max(due);
            responder.handle_timeout(now);
            while let Some(transmit) = responder.poll_transmit(now, &mut buf) {
                sent += if transmit.to == spoofed { transmit.len } else { 0 };
            }
        }
        assert!(0 < sent && sent <= 3 * len, "{sent} bytes for {len}");
        let moved = |event: &Event| matches!(event, Event::PathChanged { .. });
        assert!(std::iter::from_fn(|| responder.poll_event()).all(|(_, event)| !moved(&event)));
    }
}

#[test]
fn who_is_not_admitted_learns_only_that_nobody_answers_its_h3() {
    let mut pair = Pair::new(TransportConfig::default());
    let other = SecretIdentity::from_seed([9; 32]).node_id();
    pair.sides[1].endpoint.set_admitted(Some([other].into()));
    pair.connect();
    pair.run_until(|p| {
        p.sides[0].events.iter().any(|(_, event)| matches!(event, Event::Closed(_)))
    });
    // H2 comes before anybody can know who asks; after it, nothing.
    let events: Vec<_> = pair.sides[0].events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(events, [Event::Connected, Event::Closed(CloseReason::IdleTimeout)]);
    assert!(pair.sides[1].events.is_empty() && pair.sides[1].endpoint.is_drained());

    let initiator = SecretIdentity::from_seed([1; 32]).node_id();
    pair.sides[1].endpoint.set_admitted(Some([other, initiator].into()));
    pair.sides[0].events.clear();
    transfer(&mut pair, 0, 100_000);
}
