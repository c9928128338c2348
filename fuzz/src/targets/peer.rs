//! An authentic peer that says whatever it likes, in order or not, to an endpoint with data under way: a violation ends the
//! connection and nothing else, and the endpoint never has endlessly much to say.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{
    ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, Read, StreamId, Time,
};
use wraith_noise::{
    DoorKey, EphemeralKey, FinalHello, HEADER_BYTES, Initiator, InitiatorHello, PACKET_OVERHEAD,
    Parameters, Sealer, SecretIdentity,
};

use crate::input::Input;

const PEER: ([u8; 4], u16) = ([192, 0, 2, 2], 4712);
/// Where it moves to.
const ELSEWHERE: ([u8; 4], u16) = ([192, 0, 2, 3], 4713);
/// Batches that one input can make the endpoint send: far more than its window holds.
const BATCHES_MAX: usize = 10_000;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let mut victim = Victim::new();
    let (mut sealer, handle) = victim.shake_hands(input.parameters());
    if let Some(connection) = victim.endpoint.connection(handle)
        && let Some(id) = connection.open_stream()
    {
        let _ = connection.write(id, Bytes::from_static(&[7; 50_000]));
    }
    victim.drain();
    let mut pn = 0;
    while !input.is_empty() {
        let (low, control) = (input.byte(), input.byte());
        let frames = input.bytes(1 + (usize::from(low) | usize::from(control & 7) << 8));
        if control & 8 != 0 {
            victim.now += Duration::from_millis(u64::from(input.byte()) * 10);
            victim.endpoint.handle_timeout(victim.now);
        }
        if control & 16 != 0 {
            pn += u64::from(input.byte()) * 100;
        }
        if control & 32 != 0 {
            sealer.advance_phase();
        }
        let from = SocketAddr::from(if control & 64 != 0 { ELSEWHERE } else { PEER });
        if frames.is_empty() {
            return;
        }
        let mut datagram = vec![0; frames.len() + PACKET_OVERHEAD];
        datagram[HEADER_BYTES..][..frames.len()].copy_from_slice(frames);
        sealer.seal(pn, &mut datagram);
        pn += 1;
        victim.endpoint.handle_datagram(victim.now, from, None, &mut datagram);
        victim.drain();
    }
    for _ in 0..20 {
        let Some(due) = victim.endpoint.poll_timeout() else { break };
        victim.now = victim.now.max(due);
        victim.endpoint.handle_timeout(victim.now);
        victim.drain();
    }
}

struct Victim {
    endpoint: Endpoint,
    now: Time,
    buf: Vec<u8>,
    sent: usize,
}

impl Victim {
    fn new() -> Self {
        let config = EndpointConfig::open(SecretIdentity::from_seed([3; 32]));
        let now = Time::from_nanos(1_000_000_000);
        Self { endpoint: Endpoint::new(config, [7; 32]), now, buf: vec![0; 1 << 16], sent: 0 }
    }

    fn deliver(&mut self, datagram: &[u8]) {
        let from = SocketAddr::from(PEER);
        self.endpoint.handle_datagram(self.now, from, None, &mut datagram.to_vec());
    }

    /// The handshake, after which the peer claims `parameters` of itself.
    fn shake_hands(&mut self, parameters: Parameters) -> (Sealer, ConnectionHandle) {
        let us = SecretIdentity::from_seed([42; 32]);
        let hello = InitiatorHello { suites: 0b11, aes_hardware: false, unix_seconds: 1 };
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let victim = SecretIdentity::from_seed([3; 32]).node_id();
        let (ephemeral, door) = (EphemeralKey::generate(&mut rng), DoorKey::of_everybody(victim));
        let (mut initiator, h1) =
            Initiator::start(&us, victim, &door, &ephemeral, &hello, &mut rng)
                .expect("a valid NodeId");
        h1.iter().for_each(|datagram| self.deliver(datagram));
        let mut read = || {
            let answer = self.endpoint.poll_transmit(self.now, &mut self.buf).expect("an answer");
            assert_eq!(answer.to, PathAddr::from(SocketAddr::from(PEER)));
            initiator.read_h2(&self.buf[..answer.len]).expect("a true answer")
        };
        assert_eq!(read(), None);
        let theirs = read().expect("both datagrams");
        let last = FinalHello { node_id: us.node_id(), parameters };
        let (h3, keys) = initiator.write_h3(&last, &mut rng);
        self.deliver(&h3);
        let handle = std::iter::from_fn(|| self.endpoint.poll_event())
            .find_map(|(handle, event)| (event == Event::Connected).then_some(handle))
            .expect("whatever a peer claims of itself, it is connected");
        (Sealer::new(theirs.suite, &keys.send), handle)
    }

    /// Takes all that the endpoint has to say, and reads what arrived.
    fn drain(&mut self) {
        while self.endpoint.poll_transmit(self.now, &mut self.buf).is_some() {
            self.sent += 1;
            assert!(self.sent < BATCHES_MAX, "it never stops sending");
        }
        while let Some((handle, event)) = self.endpoint.poll_event() {
            match event {
                Event::StreamOpened(id) | Event::Readable(id) => self.read(handle, id),
                _ => {}
            }
        }
        self.endpoint.poll_timeout();
        while self.endpoint.poll_transmit(self.now, &mut self.buf).is_some() {
            self.sent += 1;
            assert!(self.sent < BATCHES_MAX, "it never stops sending");
        }
    }

    fn read(&mut self, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = self.endpoint.connection(handle) else { return };
        while let Ok(Read::Slice(chunk)) = connection.read(self.now, id) {
            // An echo, so that acknowledgements and windows matter.
            let _ = connection.write(id, Bytes::copy_from_slice(chunk.as_ref()));
        }
    }
}
