//! An authenticated peer that sends arbitrary frames, in any order, to an endpoint with data in
//! transit.
//!
//! Invariant: a violation ends the connection and nothing else, and the endpoint stops sending
//! after a bounded number of packets.
//!
//! The peer is the initiator or the responder. It also sends parts of ratchets (exchanges of fresh
//! key shares), well-formed or slightly wrong, which arbitrary bytes would never produce.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{Frame, FrameWriter, Frames};
use wraith_core::{
    ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, RangeSet, Read, StreamId, Time,
};
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, HEADER_BYTES, Initiator, InitiatorHello, Opener,
    PACKET_OVERHEAD, Parameters, PendingH1, RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, Ratchet,
    Responder, ResponderHello, Sealer, SecretIdentity, SessionKeys, Suite, negotiate,
    respond_to_ratchet,
};

use crate::input::Input;

const PEER: ([u8; 4], u16) = ([192, 0, 2, 2], 4712);
/// The address to which the peer migrates.
const ELSEWHERE: ([u8; 4], u16) = ([192, 0, 2, 3], 4713);
/// Maximum number of batches that the endpoint may send for one input: far more than its window
/// holds.
const BATCHES_MAX: usize = 10_000;
/// Bytes after which a dialling endpoint requests a ratchet: at once, and again after each one.
const RATCHET_BYTES: u64 = 1;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let mut victim = TestedEndpoint::new();
    let dials = input.byte() & 1 == 0;
    let handle =
        if dials { victim.answer(input.parameters()) } else { victim.dial(input.parameters()) };
    if let Some(connection) = victim.endpoint.connection(handle)
        && let Some(id) = connection.open_stream()
    {
        let _ = connection.write(id, Bytes::from_static(&[7; 50_000]));
    }
    victim.drain();
    while !input.is_empty() {
        let (low, control) = (input.byte(), input.byte());
        let frames = input.bytes(1 + (usize::from(low) | usize::from(control & 7) << 8));
        if control & 8 != 0 {
            victim.now += Duration::from_millis(u64::from(input.byte()) * 10);
            victim.endpoint.handle_timeout(victim.now);
        }
        let peer = victim.peer.as_mut().expect("it shook hands");
        if control & 16 != 0 {
            peer.pn += u64::from(input.byte()) * 100;
        }
        if control & 32 != 0 {
            peer.sealer.advance_phase();
        }
        let from = SocketAddr::from(if control & 64 != 0 { ELSEWHERE } else { PEER });
        if frames.is_empty() {
            return;
        }
        let mut datagram = vec![0; HEADER_BYTES];
        datagram.extend(frames);
        if control & 128 != 0 {
            datagram.extend(peer.ratchet(input.byte(), frames));
        }
        datagram.resize(datagram.len() + PACKET_OVERHEAD - HEADER_BYTES, 0);
        peer.sealer.seal(peer.pn, &mut datagram);
        peer.pn += 1;
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

/// The keys of the peer, and its state of the ratchet.
struct Peer {
    sealer: Sealer,
    opener: Opener,
    pn: u64,
    received: RangeSet,
    dialled: bool,
    /// Number of the ratchet in progress, or of the last one.
    number: u64,
    asked: Option<Ratchet>,
    /// The peer's message of this ratchet.
    ours: Vec<u8>,
    /// The parts of the victim's message that have arrived.
    theirs: [Option<Vec<u8>>; 2],
    rng: ChaCha20Rng,
}

impl Peer {
    fn new(dialled: bool, suite: Suite, keys: &SessionKeys) -> Self {
        Self {
            sealer: Sealer::new(suite, &keys.send),
            opener: Opener::new(suite, &keys.recv),
            pn: 0,
            received: RangeSet::new(),
            dialled,
            number: 0,
            asked: None,
            ours: Vec::new(),
            theirs: [None, None],
            rng: ChaCha20Rng::from_seed([2; 32]),
        }
    }

    /// Frames of a ratchet: a part of the peer's message or of `garbage`, and an acknowledgement if
    /// `how` has the bit.
    fn ratchet(&mut self, how: u8, garbage: &[u8]) -> Vec<u8> {
        if self.dialled && self.asked.is_none() && how & 1 == 0 {
            self.number += 1;
            let asked = Ratchet::begin(&mut self.rng);
            self.ours = asked.request().to_vec();
            self.asked = Some(asked);
        }
        let bytes = if self.dialled { RATCHET_REQUEST_BYTES } else { RATCHET_RESPONSE_BYTES };
        let (number, part, len) = (self.number + u64::from(how >> 6), how & 1, bytes / 2);
        let mut content = match self.ours.get(usize::from(part) * len..) {
            Some(ours) if how & 2 == 0 => ours.to_vec(),
            _ => garbage.iter().copied().cycle().take(len).collect(),
        };
        content.truncate(len);
        content.resize(content.len() + usize::from(how >> 2 & 1), 0);
        let mut frames = vec![0; 2000];
        let mut out = FrameWriter::new(&mut frames);
        out.ratchet(number, part, &content);
        if how & 8 != 0 && !self.received.is_empty() {
            out.ack(0, self.received.iter_rev().map(|range| range.start..=range.end - 1), None);
        }
        if how & 16 != 0 {
            out.immediate_ack();
        }
        let written = out.complete();
        frames.truncate(written);
        frames
    }

    /// Receives a packet of the victim.
    fn receive(&mut self, datagram: &mut [u8]) {
        let Ok(opened) = self.opener.open(datagram) else { return };
        self.received.insert(opened.pn..opened.pn + 1);
        for frame in Frames::new(&datagram[HEADER_BYTES..][..opened.payload_len]) {
            if let Ok(Frame::Ratchet { number, part, bytes }) = frame
                && self.receive_part(number, part, bytes).is_some()
            {
                self.theirs = [None, None];
            }
        }
    }

    /// Returns `Some` once the victim's message is complete: the peer then answers it, or both
    /// sides have agreed.
    fn receive_part(&mut self, number: u64, part: u8, bytes: &[u8]) -> Option<()> {
        let expected = self.number + u64::from(!self.dialled);
        if number != expected || (self.dialled && self.asked.is_none()) {
            return None;
        }
        self.theirs[usize::from(part)] = Some(bytes.to_vec());
        let [Some(first), Some(second)] = &self.theirs else { return None };
        let message = [&first[..], second].concat();
        let agreed = match self.asked.take() {
            Some(asked) => asked.finish(&message.try_into().ok()?).ok()?,
            None => {
                let request = message.try_into().ok()?;
                let (response, agreed) =
                    respond_to_ratchet(&request, &mut self.rng).expect("an endpoint asks well");
                self.ours = response.to_vec();
                self.number = number;
                agreed
            }
        };
        self.sealer.ratchet(&agreed);
        self.opener.ratchet(&agreed);
        Some(())
    }
}

struct TestedEndpoint {
    endpoint: Endpoint,
    peer: Option<Peer>,
    now: Time,
    buf: Vec<u8>,
    sent: usize,
}

impl TestedEndpoint {
    fn new() -> Self {
        let mut config = EndpointConfig::open(SecretIdentity::from_seed([3; 32]));
        config.transport.ratchet_bytes = RATCHET_BYTES;
        Self {
            endpoint: Endpoint::new(config, [7; 32]),
            peer: None,
            now: Time::from_nanos(1_000_000_000),
            buf: vec![0; 1 << 16],
            sent: 0,
        }
    }

    fn deliver(&mut self, datagram: &[u8]) {
        let from = SocketAddr::from(PEER);
        self.endpoint.handle_datagram(self.now, from, None, &mut datagram.to_vec());
    }

    /// Returns the next datagram, which belongs to the handshake.
    fn said(&mut self) -> Vec<u8> {
        let transmit = self.endpoint.poll_transmit(self.now, &mut self.buf).expect("an answer");
        assert_eq!(transmit.to, PathAddr::from(SocketAddr::from(PEER)));
        self.buf[..transmit.len].to_vec()
    }

    fn connected(&mut self) -> ConnectionHandle {
        std::iter::from_fn(|| self.endpoint.poll_event())
            .find_map(|(handle, event)| (event == Event::Connected).then_some(handle))
            .expect("no claim of a peer prevents the connection")
    }

    /// Completes the handshake with a peer that dials and claims `parameters`.
    fn answer(&mut self, parameters: Parameters) -> ConnectionHandle {
        let us = SecretIdentity::from_seed([42; 32]);
        let hello = InitiatorHello { suites: 0b11, aes_hardware: false, unix_seconds: 1 };
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let victim = SecretIdentity::from_seed([3; 32]).node_id();
        let (ephemeral, access_key) = (EphemeralKey::generate(&mut rng), AccessKey::public(victim));
        let (mut initiator, h1) =
            Initiator::start(&us, victim, &access_key, &ephemeral, &hello, &mut rng)
                .expect("a valid NodeId");
        h1.iter().for_each(|datagram| self.deliver(datagram));
        assert_eq!(initiator.read_h2(&self.said()), Ok(None));
        let theirs = initiator.read_h2(&self.said()).expect("a true answer");
        let theirs = theirs.expect("both datagrams");
        let last = FinalHello { node_id: us.node_id(), parameters };
        let (h3, keys) = initiator.write_h3(&last, &mut rng);
        self.deliver(&h3);
        self.peer = Some(Peer::new(true, theirs.suite, &keys));
        self.connected()
    }

    /// Completes the handshake with a peer that is dialled and claims `parameters`.
    fn dial(&mut self, parameters: Parameters) -> ConnectionHandle {
        let us = SecretIdentity::from_seed([42; 32]);
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let (peer, access_key) = (SocketAddr::from(PEER), AccessKey::public(us.node_id()));
        self.endpoint
            .connect(self.now, peer, us.node_id(), &access_key)
            .expect("the first connection");
        let [first, second] = [(); 2].map(|()| self.said());
        let first = PendingH1::new(&access_key, &first).expect("it has the access key");
        let ephemeral = EphemeralKey::generate(&mut rng);
        let (mut responder, hello) =
            Responder::read_h1(&us, &first, &second, &ephemeral, &mut rng).expect("a true H1");
        let suite = negotiate(&hello, 0b11, false).expect("both have both");
        let hello = ResponderHello { suite, observed: peer, parameters };
        let h2 = responder.write_h2(&hello, &mut rng).expect("a true encapsulation key");
        h2.iter().for_each(|datagram| self.deliver(datagram));
        let (_, keys) = responder.read_h3(&self.said()).expect("a true H3");
        self.peer = Some(Peer::new(false, suite, &keys));
        self.connected()
    }

    /// Drains the endpoint's outputs, and reads the data that arrived.
    fn drain(&mut self) {
        self.transmit();
        while let Some((handle, event)) = self.endpoint.poll_event() {
            match event {
                Event::StreamOpened(id) | Event::Readable(id) => self.read(handle, id),
                _ => {}
            }
        }
        self.endpoint.poll_timeout();
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut self.buf) {
            self.sent += 1;
            assert!(self.sent < BATCHES_MAX, "it never stops sending");
            let peer = self.peer.as_mut().expect("it shook hands");
            for datagram in self.buf[..transmit.len].chunks_mut(transmit.segment) {
                peer.receive(datagram);
            }
        }
    }

    fn read(&mut self, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = self.endpoint.connection(handle) else { return };
        while let Ok(Read::Slice(chunk)) = connection.read(self.now, id) {
            // Echoes the data, so that acknowledgements and windows matter.
            let _ = connection.write(id, Bytes::copy_from_slice(chunk.as_ref()));
        }
    }
}
