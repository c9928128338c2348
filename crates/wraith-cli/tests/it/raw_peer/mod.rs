//! A peer that is authentic but says whatever a test wants: the handshake by the real crate, then frames byte by byte.
//!
//! As a real one does, it says again what nothing answers, and passes over what is not for it. Both happen: a system may give
//! a peer the port of one that has gone, and what the sender says to that one is still under way then.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{Frame, Frames};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::Ticket;
use wraith_noise::{
    DoorKey, EphemeralKey, FinalHello, HEADER_BYTES, Initiator, InitiatorHello, Opener,
    PACKET_OVERHEAD, Parameters, Rejected, ResponderHello, Sealer, SessionKeys,
};

use crate::support::process::HANG;

/// How long is listened before the same is said again.
const REPEAT: Duration = Duration::from_millis(250);
/// An H1 is said so often before there is a new one: an older one gets no answer any more after five seconds.
const H1_TIMES: usize = 16;

/// Peers made so far.
static PEERS: AtomicU64 = AtomicU64::new(0);

pub struct RawPeer {
    socket: UdpSocket,
    sealer: Sealer,
    opener: Opener,
    next_pn: u64,
    strays: usize,
}

/// A socket that hears `remote` alone, and has heard nothing.
pub fn socket(remote: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(remote).unwrap();
    // Until then it heard everybody, and what was meant for who had the port before.
    socket.set_nonblocking(true).unwrap();
    while socket.recv(&mut [0; 1]).is_ok() {}
    socket.set_nonblocking(false).unwrap();
    socket
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

/// All handshakes that one peer began: a sender that was stopped for long answers the older ones, too.
#[derive(Default)]
struct Attempts(Vec<(Initiator, ChaCha20Rng)>);

impl Attempts {
    fn begin(&mut self, responder: NodeId, door: &DoorKey) -> [Vec<u8>; 2] {
        let (initiator, h1, rng) = begin(responder, door);
        self.0.push((initiator, rng));
        h1
    }

    /// `None` if a datagram answers none of them; else, if that is all of the answer now, which it answers and what it says.
    fn read(&mut self, datagram: &[u8]) -> Option<Option<(usize, ResponderHello)>> {
        let read = |(i, (initiator, _)): (usize, &mut (Initiator, _))| {
            match initiator.read_h2(datagram) {
                Ok(hello) => Some(hello.map(|hello| (i, hello))),
                Err(Rejected::Length | Rejected::Gate) => None,
                // It was read before.
                Err(_) => Some(None),
            }
        };
        self.0.iter_mut().enumerate().find_map(read)
    }

    fn write_h3(&mut self, attempt: usize, hello: &FinalHello) -> (Vec<u8>, SessionKeys) {
        let (initiator, rng) = &mut self.0[attempt];
        initiator.write_h3(hello, rng)
    }
}

/// Lets `say` speak up to `times` times, until `hear` makes something of a datagram that comes.
fn ask<T>(
    socket: &UdpSocket,
    times: usize,
    mut say: impl FnMut(),
    mut hear: impl FnMut(&mut [u8]) -> Option<T>,
) -> Option<T> {
    let mut buf = vec![0; 65536];
    for _ in 0..times {
        say();
        let until = Instant::now() + REPEAT;
        // Who was stopped meanwhile still hears what has come.
        loop {
            let left = until.saturating_duration_since(Instant::now());
            socket.set_read_timeout(Some(left.max(Duration::from_millis(1)))).unwrap();
            let Ok(len) = socket.recv(&mut buf) else { break };
            if let Some(heard) = hear(&mut buf[..len]) {
                return Some(heard);
            }
        }
    }
    None
}

/// The same until only a peer that is dead can be silent.
fn ask_long<T>(
    socket: &UdpSocket,
    what: &str,
    say: impl FnMut(),
    hear: impl FnMut(&mut [u8]) -> Option<T>,
) -> T {
    let times = HANG.div_duration_f64(REPEAT) as usize;
    ask(socket, times, say, hear).unwrap_or_else(|| panic!("{what} is not answered"))
}

impl RawPeer {
    /// Runs the handshake as the initiator.
    pub fn connect(remote: SocketAddr, ticket: &Ticket) -> Self {
        Self::connect_by(socket(remote), ticket)
    }

    /// The same by a socket that is connected.
    pub fn connect_by(socket: UdpSocket, ticket: &Ticket) -> Self {
        let responder = ticket.node_id();
        let door = &DoorKey::of_ticket(ticket.capability().as_bytes(), responder);
        let (began, mut strays) = (Instant::now(), 0);
        let mut attempts = Attempts::default();
        let (attempt, theirs) = loop {
            assert!(began.elapsed() < HANG, "H1 is not answered");
            let h1 = attempts.begin(responder, door);
            let say = || h1.iter().for_each(|datagram| _ = socket.send(datagram).unwrap());
            let answer = ask(&socket, H1_TIMES, say, |datagram| {
                let read = attempts.read(datagram);
                strays += usize::from(read.is_none());
                read.flatten()
            });
            if let Some(answer) = answer {
                break answer;
            }
        };
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
        let (h3, keys) = attempts.write_h3(attempt, &last);
        let sealer = Sealer::new(theirs.suite, &keys.send);
        let mut opener = Opener::new(theirs.suite, &keys.recv);
        let say = || _ = socket.send(&h3).unwrap();
        ask_long(&socket, "H3", say, |datagram| {
            let opened = opener.open(datagram).ok();
            strays += usize::from(opened.is_none() && attempts.read(datagram).is_none());
            opened
        });
        Self { socket, sealer, opener, next_pn: 0, strays }
    }

    /// Leaves the connection as it is, but not its address.
    pub fn into_socket(self) -> UdpSocket {
        self.socket.set_read_timeout(Some(HANG)).unwrap();
        self.socket
    }

    /// Datagrams that came until both sides had the keys, and were no part of the handshake.
    pub fn strays(&self) -> usize {
        self.strays
    }

    /// Sends one authentic packet with these bytes where frames should be.
    pub fn send(&mut self, frames: &[u8]) {
        let Self { socket, sealer, next_pn, .. } = self;
        send(socket, sealer, next_pn, frames);
    }

    /// Sends such packets until a CLOSE comes; its code.
    pub fn closed_for(&mut self, frames: &[u8]) -> u64 {
        let Self { socket, sealer, opener, next_pn, .. } = self;
        let say = || send(socket, sealer, next_pn, frames);
        ask_long(socket, "a violation", say, |datagram| {
            let len = opener.open(datagram).ok()?.payload_len;
            let payload = &datagram[HEADER_BYTES..HEADER_BYTES + len];
            Frames::new(payload).flatten().find_map(|frame| match frame {
                Frame::Close { code, .. } => Some(code),
                _ => None,
            })
        })
    }
}

fn send(socket: &UdpSocket, sealer: &mut Sealer, next_pn: &mut u64, frames: &[u8]) {
    let mut datagram = vec![0; frames.len() + PACKET_OVERHEAD];
    datagram[HEADER_BYTES..HEADER_BYTES + frames.len()].copy_from_slice(frames);
    sealer.seal(*next_pn, &mut datagram);
    *next_pn += 1;
    socket.send(&datagram).unwrap();
}
