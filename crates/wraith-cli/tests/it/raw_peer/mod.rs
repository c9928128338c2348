//! A peer that is authentic but says whatever a test wants: the handshake by the real crate, then frames byte by byte.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_noise::{
    FinalHello, HEADER_BYTES, Initiator, InitiatorHello, Opener, PACKET_OVERHEAD, Parameters,
    Sealer,
};

/// Long enough for a busy machine; only silence waits this long.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Peers made so far.
static PEERS: AtomicU64 = AtomicU64::new(0);

pub struct RawPeer {
    socket: UdpSocket,
    sealer: Sealer,
    opener: Opener,
    next_pn: u64,
}

impl RawPeer {
    /// Runs the handshake as the initiator.
    pub fn connect(remote: SocketAddr, responder: NodeId) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(remote).unwrap();
        socket.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let hello = InitiatorHello { suites: 0b11, aes_hardware: false, unix_seconds };
        let identity = SecretIdentity::from_seed([42; 32]);
        // An H1 that was seen before is answered with silence, so no two peers may send the same.
        let mut rng = ChaCha20Rng::seed_from_u64(PEERS.fetch_add(1, Relaxed));
        let (mut initiator, h1) =
            Initiator::start(&identity, responder, &hello, 1000, &mut rng).unwrap();
        socket.send(&h1).unwrap();
        let mut buf = vec![0; 65536];
        let len = socket.recv(&mut buf).expect("H1 is answered");
        let theirs = initiator.read_h2(&buf[..len]).unwrap();
        let parameters = Parameters {
            max_idle_timeout_ms: 30_000,
            initial_max_data: 1 << 20,
            initial_max_stream_data: 1 << 20,
            initial_max_streams: 16,
            max_datagram_frame_size: 0,
            max_udp_payload: 1452,
            max_ack_delay_us: 25_000,
        };
        let last = FinalHello { node_id: identity.node_id(), parameters };
        let (h3, keys) = initiator.write_h3(&last, 500);
        socket.send(&h3).unwrap();
        let sealer = Sealer::new(theirs.suite, &keys.send);
        let opener = Opener::new(theirs.suite, &keys.recv);
        Self { socket, sealer, opener, next_pn: 0 }
    }

    /// Sends one authentic packet with these bytes where frames should be.
    pub fn send(&mut self, frames: &[u8]) {
        let mut datagram = vec![0; frames.len() + PACKET_OVERHEAD];
        datagram[HEADER_BYTES..HEADER_BYTES + frames.len()].copy_from_slice(frames);
        self.sealer.seal(self.next_pn, &mut datagram);
        self.next_pn += 1;
        self.socket.send(&datagram).unwrap();
    }

    /// The frames of the next packet; `None` after a silence.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buf = vec![0; 65536];
        loop {
            let len = self.socket.recv(&mut buf).ok()?;
            let datagram = &mut buf[..len];
            if let Ok(opened) = self.opener.open(datagram) {
                return Some(datagram[HEADER_BYTES..HEADER_BYTES + opened.payload_len].to_vec());
            }
        }
    }

    /// Reads packets until a CLOSE; its code. `None` after a silence.
    pub fn close_code(&mut self) -> Option<u64> {
        while let Some(payload) = self.receive() {
            for frame in wraith_core::frame::Frames::new(&payload).flatten() {
                if let wraith_core::frame::Frame::Close { code, .. } = frame {
                    return Some(code);
                }
            }
        }
        None
    }
}
