//! A peer that authenticated and then says what it likes: the packet layer without an endpoint.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{FrameWriter, Frames};
use wraith_core::{
    CloseReason, ConnectionHandle, Endpoint, EndpointConfig, Event, PathAddr, Time, TransportConfig,
};
use wraith_crypto::aead::aes_hardware;
use wraith_crypto::identity::SecretIdentity;
use wraith_noise::{FinalHello, Initiator, InitiatorHello, Opener, Parameters, Sealer};

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
    address: PathAddr,
    sealer: Sealer,
    opener: Opener,
    next_pn: u64,
    buf: Vec<u8>,
}

impl HostilePeer {
    /// Connects to a victim, and lets it send as much as it likes on as many streams.
    pub(crate) fn connect(transport: TransportConfig) -> Self {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let [us, them] = [1, 2].map(|seed| SecretIdentity::from_seed([seed; 32]));
        let peer = them.node_id();
        let config = EndpointConfig { transport, ..EndpointConfig::new(them) };
        let mut victim = Endpoint::new(config, [2; 32]);
        let (now, address) = (Time::ZERO, ip([127, 0, 0, 1], 1000));
        let mut buf = vec![0; 65_536];
        let hello = InitiatorHello { suites: 0b11, aes_hardware: aes_hardware(), unix_seconds: 0 };
        let (mut initiator, mut h1) = Initiator::start(&us, peer, &hello, 1200, &mut rng).unwrap();
        victim.handle_datagram(now, address, None, &mut h1);
        let h2 = victim.poll_transmit(now, &mut buf).expect("H2");
        let hello = initiator.read_h2(&buf[..h2.len]).unwrap();
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
        let (mut h3, keys) = initiator.write_h3(&last, 600);
        victim.handle_datagram(now, address, None, &mut h3);
        let Some((handle, Event::Connected)) = victim.poll_event() else { panic!("no connection") };
        Self {
            victim,
            handle,
            now,
            received: Vec::new(),
            notes: true,
            closed: None,
            address,
            sealer: Sealer::new(hello.suite, &keys.send),
            opener: Opener::new(hello.suite, &keys.recv),
            next_pn: 0,
            buf,
        }
    }

    /// Sends a packet with what `write` writes, and takes what the victim answers. `skip` numbers are left out before.
    pub(crate) fn send(&mut self, skip: u64, write: impl FnOnce(&mut FrameWriter<'_>)) {
        let mut packet = [0; 1200];
        let mut out = FrameWriter::new(&mut packet[HEADER..1200 - TAG]);
        write(&mut out);
        let len = HEADER + out.complete() + TAG;
        self.next_pn += skip;
        self.sealer.seal(self.next_pn, &mut packet[..len]);
        self.next_pn += 1;
        self.victim.handle_datagram(self.now, self.address, None, &mut packet[..len]);
        self.drain();
    }

    /// Takes what the victim sends now.
    pub(crate) fn drain(&mut self) {
        while let Some(transmit) = self.victim.poll_transmit(self.now, &mut self.buf) {
            if self.notes {
                for datagram in self.buf[..transmit.len].chunks_mut(transmit.segment) {
                    let opened = self.opener.open(datagram).expect("a packet for us");
                    let mut frames = Frames::new(&datagram[HEADER..HEADER + opened.payload_len]);
                    assert!(frames.all(|frame| frame.is_ok()));
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

    /// The frames of an ACK of `ranges`.
    pub(crate) fn ack(&mut self, ranges: &[std::ops::RangeInclusive<u64>]) {
        self.send(0, |out| assert!(out.ack(0, ranges.iter().cloned(), None)));
    }
}
