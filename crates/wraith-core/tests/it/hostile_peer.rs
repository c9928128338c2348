//! An authenticated hostile peer, as initiator or as responder. It consists of the packet layer
//! without an endpoint, so it can send any frame.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{Frame, FrameWriter, Frames};
use wraith_core::{
    CloseReason, ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, RangeSet, Time,
    TransportConfig,
};
use wraith_crypto::aead::aes_hardware;
use wraith_crypto::identity::{NodeId, SecretIdentity};
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, Initiator, InitiatorHello, Opener, Parameters, PendingH1,
    Responder, ResponderHello, Sealer, SessionKeys, Suite, negotiate,
};

use crate::pair::ip;

/// Lengths of the header before the sealed frames, and of the tag behind them (SPEC §4).
const HEADER: usize = 12;
const TAG: usize = 16;

pub(crate) struct HostilePeer {
    pub(crate) victim: Endpoint,
    pub(crate) handle: ConnectionHandle,
    pub(crate) now: Time,
    /// Packet numbers of the victim, in order of arrival.
    pub(crate) received: Vec<u64>,
    /// Whether to record them.
    pub(crate) notes: bool,
    /// Number of the victim's packets that did not open; `None` if there must be none.
    pub(crate) unopened: Option<u64>,
    pub(crate) closed: Option<CloseReason>,
    /// Ratchet fragments from the victim: ratchet number, fragment index, bytes.
    pub(crate) ratchets: Vec<(u64, u8, Vec<u8>)>,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    next_pn: u64,
    buf: Vec<u8>,
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([3; 32])
}

/// The peer's address.
fn address() -> PathAddr {
    ip([127, 0, 0, 1], 1000)
}

fn victim_id() -> NodeId {
    SecretIdentity::from_seed([2; 32]).node_id()
}

/// Returns the peer's identity, and its victim.
fn victim(transport: TransportConfig) -> (SecretIdentity, Endpoint) {
    let [us, them] = [1, 2].map(|seed| SecretIdentity::from_seed([seed; 32]));
    let config = EndpointConfig { transport, ..EndpointConfig::open(them) };
    (us, Endpoint::new(config, [2; 32]))
}

/// Returns the peer's transport parameters.
fn parameters() -> Parameters {
    Parameters {
        max_idle_timeout_ms: 30_000,
        initial_max_data: 1 << 60,
        initial_max_stream_data: 1 << 60,
        initial_max_streams: 1 << 60,
        max_datagram_frame_size: 0,
        max_udp_payload: 1200,
        max_ack_delay_us: 25_000,
    }
}

fn hear(victim: &mut Endpoint, mut datagram: Vec<u8>) {
    victim.handle_datagram(Time::ZERO, address(), None, &mut datagram);
}

/// Returns the next datagram of `victim`.
fn said(victim: &mut Endpoint) -> Vec<u8> {
    let mut buf = vec![0; 65_536];
    let transmit = victim.poll_transmit(Time::ZERO, &mut buf).expect("it has something to say");
    buf.truncate(transmit.len);
    buf
}

impl HostilePeer {
    /// Connects to a victim, with unlimited bytes and streams for it.
    pub(crate) fn connect(transport: TransportConfig) -> Self {
        let mut rng = rng();
        let (us, mut victim) = victim(transport);
        let peer = victim_id();
        let hello = InitiatorHello { suites: 0b11, aes_hardware: aes_hardware(), unix_seconds: 0 };
        let (ephemeral, access_key) = (EphemeralKey::generate(&mut rng), AccessKey::public(peer));
        let (mut initiator, h1) =
            Initiator::start(&us, peer, &access_key, &ephemeral, &hello, &mut rng).unwrap();
        h1.into_iter().for_each(|datagram| hear(&mut victim, datagram));
        let [first, second] = [(); 2].map(|()| said(&mut victim));
        assert_eq!(initiator.read_h2(&first).unwrap(), None);
        let hello = initiator.read_h2(&second).unwrap().expect("both datagrams");
        let last = FinalHello { node_id: us.node_id(), parameters: parameters() };
        let (h3, keys) = initiator.write_h3(&last, &mut rng);
        hear(&mut victim, h3);
        Self::new(victim, hello.suite, &keys)
    }

    /// Accepts a connection of a victim, with unlimited bytes and streams for it.
    pub(crate) fn accept(transport: TransportConfig) -> Self {
        let mut rng = rng();
        let (us, mut victim) = victim(transport);
        let access_key = AccessKey::public(us.node_id());
        victim.connect(Time::ZERO, address(), us.node_id(), &access_key).unwrap();
        let [first, second] = [(); 2].map(|()| said(&mut victim));
        let first = PendingH1::new(&access_key, &first).unwrap();
        let ephemeral = EphemeralKey::generate(&mut rng);
        let (mut responder, hello) =
            Responder::read_h1(&us, &first, &second, &ephemeral, &mut rng).unwrap();
        let suite = negotiate(&hello, 0b11, aes_hardware()).unwrap();
        let observed = address().ip().expect("one of the Internet");
        let hello = ResponderHello { suite, observed, parameters: parameters() };
        let h2 = responder.write_h2(&hello, &mut rng).unwrap();
        h2.into_iter().for_each(|datagram| hear(&mut victim, datagram));
        let (_, keys) = responder.read_h3(&said(&mut victim)).unwrap();
        Self::new(victim, suite, &keys)
    }

    fn new(mut victim: Endpoint, suite: Suite, keys: &SessionKeys) -> Self {
        let Some((handle, Event::Connected)) = victim.poll_event() else { panic!("no connection") };
        Self {
            victim,
            handle,
            now: Time::ZERO,
            received: Vec::new(),
            notes: true,
            unopened: None,
            closed: None,
            ratchets: Vec::new(),
            sealer: Sealer::new(suite, &keys.send),
            opener: Opener::new(suite, &keys.recv),
            next_pn: 0,
            buf: vec![0; 65_536],
        }
    }

    /// Sends a packet with the frames of `write`, after `skip` skipped packet numbers, and receives
    /// the victim's answers.
    pub(crate) fn send(&mut self, skip: u64, write: impl FnOnce(&mut FrameWriter<'_>)) {
        self.next_pn += skip;
        let mut packet = self.seal(write);
        self.deliver(&mut packet);
    }

    /// Seals a packet with the frames of `write`.
    pub(crate) fn seal(&mut self, write: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
        let mut packet = vec![0; 1200];
        let mut out = FrameWriter::new(&mut packet[HEADER..1200 - TAG]);
        write(&mut out);
        let len = HEADER + out.complete() + TAG;
        packet.truncate(len);
        self.sealer.seal(self.next_pn, &mut packet);
        self.next_pn += 1;
        packet
    }

    /// Delivers a packet to the victim, and receives its answers.
    pub(crate) fn deliver(&mut self, packet: &mut [u8]) {
        self.victim.handle_datagram(self.now, address(), None, packet);
        self.drain();
    }

    /// Receives everything that the victim sends now.
    pub(crate) fn drain(&mut self) {
        while let Some(transmit) = self.victim.poll_transmit(self.now, &mut self.buf) {
            if self.notes {
                for datagram in self.buf[..transmit.len].chunks_mut(transmit.segment) {
                    let opened = match (self.opener.open(datagram), &mut self.unopened) {
                        (Ok(opened), _) => opened,
                        (Err(_), Some(unopened)) => {
                            *unopened += 1;
                            continue;
                        }
                        (Err(why), None) => panic!("a packet that is not for us: {why:?}"),
                    };
                    for frame in Frames::new(&datagram[HEADER..HEADER + opened.payload_len]) {
                        if let Frame::Ratchet { number, part, bytes } = frame.expect("well formed")
                        {
                            self.ratchets.push((number, part, bytes.to_vec()));
                        }
                    }
                    self.received.push(opened.pn);
                }
            }
        }
        while let Some((_, event)) = self.victim.poll_event() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
        }
    }

    /// Runs the victim's timers until `later`.
    pub(crate) fn wait(&mut self, later: Duration) {
        let until = self.now + later;
        while let Some(at) = self.victim.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.victim.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    /// Acknowledges every received packet.
    pub(crate) fn ack_all(&mut self) {
        let mut all = RangeSet::new();
        for pn in &self.received {
            all.insert(*pn..pn + 1);
        }
        self.send(0, |out| {
            let ranges = all.iter_rev().map(|range| range.start..=range.end - 1);
            assert!(out.ack(0, ranges, None));
        });
    }

    /// Sends an ACK of `ranges`.
    pub(crate) fn ack(&mut self, ranges: &[std::ops::RangeInclusive<u64>]) {
        self.send(0, |out| assert!(out.ack(0, ranges.iter().cloned(), None)));
    }
}
