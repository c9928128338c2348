//! A peer that authenticated and then says what it likes: the packet layer without an endpoint.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{Frame, FrameWriter, Frames};
use wraith_core::{
    CloseReason, ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, RangeSet, Time,
    TransportConfig,
};
use wraith_crypto::aead::aes_hardware;
use wraith_crypto::identity::SecretIdentity;
use wraith_noise::{
    DoorKey, EphemeralKey, FinalHello, Initiator, InitiatorHello, Opener, Parameters, Sealer,
};

use crate::pair::ip;

/// Bytes in front of the sealed frames, and of the tag behind them (SPEC §4).
const HEADER: usize = 12;
const TAG: usize = 16;

pub(crate) struct HostilePeer {
    pub(crate) victim: Endpoint,
    pub(crate) handle: ConnectionHandle,
    pub(crate) now: Time,
    /// Packet numbers that the victim used, as they came.
    pub(crate) received: Vec<u64>,
    /// Whether to note them.
    pub(crate) notes: bool,
    pub(crate) closed: Option<CloseReason>,
    /// Parts of ratchets that the victim sent: the number, which part, the bytes.
    pub(crate) ratchets: Vec<(u64, u8, Vec<u8>)>,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    address: PathAddr,
    next_pn: u64,
    buf: Vec<u8>,
}

impl HostilePeer {
    /// Connects to a victim, and lets it send as much as it likes on as many streams.
    pub(crate) fn connect(transport: TransportConfig) -> Self {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let [us, them] = [1, 2].map(|seed| SecretIdentity::from_seed([seed; 32]));
        let peer = them.node_id();
        let config = EndpointConfig { transport, ..EndpointConfig::open(them) };
        let mut victim = Endpoint::new(config, [2; 32]);
        let (now, address) = (Time::ZERO, ip([127, 0, 0, 1], 1000));
        let mut buf = vec![0; 65_536];
        let hello = InitiatorHello { suites: 0b11, aes_hardware: aes_hardware(), unix_seconds: 0 };
        let (ephemeral, door) = (EphemeralKey::generate(&mut rng), DoorKey::of_everybody(peer));
        let (mut initiator, h1) =
            Initiator::start(&us, peer, &door, &ephemeral, &hello, &mut rng).unwrap();
        for mut datagram in h1 {
            victim.handle_datagram(now, address, None, &mut datagram);
        }
        let mut read = || {
            let h2 = victim.poll_transmit(now, &mut buf).expect("H2");
            initiator.read_h2(&buf[..h2.len]).unwrap()
        };
        assert_eq!(read(), None);
        let hello = read().expect("both datagrams");
        let parameters = Parameters {
            max_idle_timeout_ms: 30_000,
            initial_max_data: 1 << 60,
            initial_max_stream_data: 1 << 60,
            initial_max_streams: 1 << 60,
            max_datagram_frame_size: 0,
            max_udp_payload: 1200,
            max_ack_delay_us: 25_000,
        };
        let last = FinalHello { node_id: us.node_id(), parameters };
        let (mut h3, keys) = initiator.write_h3(&last, &mut rng);
        victim.handle_datagram(now, address, None, &mut h3);
        let Some((handle, Event::Connected)) = victim.poll_event() else { panic!("no connection") };
        Self {
            victim,
            handle,
            now,
            received: Vec::new(),
            notes: true,
            closed: None,
            ratchets: Vec::new(),
            address,
            sealer: Sealer::new(hello.suite, &keys.send),
            opener: Opener::new(hello.suite, &keys.recv),
            next_pn: 0,
            buf,
        }
    }

    /// Sends a packet with what `write` writes, and takes what the victim answers. `skip` numbers are left out before.
    pub(crate) fn send(&mut self, skip: u64, write: impl FnOnce(&mut FrameWriter<'_>)) {
        self.next_pn += skip;
        let mut packet = self.seal(write);
        self.deliver(&mut packet);
    }

    /// A packet with what `write` writes.
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

    /// Gives the victim a packet, and takes what it answers.
    pub(crate) fn deliver(&mut self, packet: &mut [u8]) {
        self.victim.handle_datagram(self.now, self.address, None, packet);
        self.drain();
    }

    /// Takes what the victim sends now.
    pub(crate) fn drain(&mut self) {
        while let Some(transmit) = self.victim.poll_transmit(self.now, &mut self.buf) {
            if self.notes {
                for datagram in self.buf[..transmit.len].chunks_mut(transmit.segment) {
                    let opened = self.opener.open(datagram).expect("a packet for us");
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

    /// Serves the victim's timers until `later`.
    pub(crate) fn wait(&mut self, later: Duration) {
        let until = self.now + later;
        while let Some(at) = self.victim.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.victim.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    /// Acknowledges everything that came.
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

    /// The frames of an ACK of `ranges`.
    pub(crate) fn ack(&mut self, ranges: &[std::ops::RangeInclusive<u64>]) {
        self.send(0, |out| assert!(out.ack(0, ranges.iter().cloned(), None)));
    }
}
