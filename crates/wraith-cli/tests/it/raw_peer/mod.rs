//! A peer that is authentic but says whatever a test wants: the handshake by the real crate, then frames byte by byte.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::Ticket;
use wraith_noise::{
    DoorKey, EphemeralKey, FinalHello, HEADER_BYTES, Initiator, InitiatorHello, Opener,
    PACKET_OVERHEAD, Parameters, Sealer,
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

fn identity() -> SecretIdentity {
    SecretIdentity::from_seed([42; 32])
}

/// The two datagrams of a true H1 to `responder`, at a door of the caller's choice.
pub fn h1(responder: NodeId, door: &DoorKey) -> [Vec<u8>; 2] {
    begin(responder, door).1
}

fn begin(responder: NodeId, door: &DoorKey) -> (Initiator, [Vec<u8>; 2], ChaCha20Rng) {
    let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let hello = InitiatorHello { suites: 0b11, aes_hardware: false, unix_seconds };
    // An H1 that was seen before is answered with silence, so no two peers may send the same.
    let mut rng = ChaCha20Rng::seed_from_u64(PEERS.fetch_add(1, Relaxed));
    let ephemeral = EphemeralKey::generate(&mut rng);
    let (initiator, h1) =
        Initiator::start(&identity(), responder, door, &ephemeral, &hello, &mut rng).unwrap();
    (initiator, h1, rng)
}

impl RawPeer {
    /// Runs the handshake as the initiator.
    pub fn connect(remote: SocketAddr, ticket: &Ticket) -> Self {
        let responder = ticket.node_id();
        let door = &DoorKey::of_ticket(ticket.capability().as_bytes(), responder);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(remote).unwrap();
        socket.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let (mut initiator, h1, mut rng) = begin(responder, door);
        for datagram in &h1 {
            socket.send(datagram).unwrap();
        }
        let mut buf = vec![0; 65536];
        let mut read = || {
            let len = socket.recv(&mut buf).expect("H1 is answered");
            initiator.read_h2(&buf[..len]).unwrap()
        };
        assert_eq!(read(), None);
        let theirs = read().expect("both datagrams");
        let parameters = Parameters {
            max_idle_timeout_ms: 30_000,
            initial_max_data: 1 << 20,
            initial_max_stream_data: 1 << 20,
            initial_max_streams: 16,
            max_datagram_frame_size: 0,
            max_udp_payload: 1452,
            max_ack_delay_us: 25_000,
        };
        let last = FinalHello { node_id: identity().node_id(), parameters };
        let (h3, keys) = initiator.write_h3(&last, &mut rng);
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
