//! An authenticated peer with full control over its packets. The real crate does the handshake;
//! then the test writes frames byte by byte.
//!
//! Like a real peer, it retransmits unanswered packets and ignores packets that are not for it.
//! Both are needed: the system may give it the port of a former peer, while packets of the sender
//! to that former peer are still in flight.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::frame::{Frame, Frames};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::Ticket;
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, HEADER_BYTES, HandshakeError, Initiator, InitiatorHello,
    Opener, PACKET_OVERHEAD, Parameters, ResponderHello, Sealer, SessionKeys,
};

use crate::support::process::HANG;

/// Retransmission interval.
const REPEAT: Duration = Duration::from_millis(250);
/// Number of transmissions of an H1 before there is a new one. An H1 older than five seconds gets
/// no answer.
const H1_TIMES: usize = 16;

/// Number of peers made so far.
static PEERS: AtomicU64 = AtomicU64::new(0);

pub struct RawPeer {
    socket: UdpSocket,
    sealer: Sealer,
    opener: Opener,
    next_pn: u64,
    strays: usize,
}

/// Returns a socket that receives only from `remote`, with an empty buffer.
pub fn socket(remote: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(remote).unwrap();
    // Before the connect, it also received packets from others, meant for the former owner of the
    // port.
    socket.set_nonblocking(true).unwrap();
    while socket.recv(&mut [0; 1]).is_ok() {}
    socket.set_nonblocking(false).unwrap();
    socket
}

fn identity() -> SecretIdentity {
    SecretIdentity::from_seed([42; 32])
}

/// Returns the two datagrams of a valid H1 to `responder`, with an access key of the caller's
/// choice.
pub fn h1(responder: NodeId, access_key: &AccessKey) -> [Vec<u8>; 2] {
    begin(responder, access_key).1
}

fn begin(responder: NodeId, access_key: &AccessKey) -> (Initiator, [Vec<u8>; 2], ChaCha20Rng) {
    let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let hello = InitiatorHello { suites: 0b11, aes_hardware: false, unix_seconds };
    // A repeated H1 gets no answer, so no two peers may send the same one.
    let mut rng = ChaCha20Rng::seed_from_u64(PEERS.fetch_add(1, Relaxed));
    let ephemeral = EphemeralKey::generate(&mut rng);
    let (initiator, h1) =
        Initiator::start(&identity(), responder, access_key, &ephemeral, &hello, &mut rng).unwrap();
    (initiator, h1, rng)
}

/// All handshakes that one peer has started. A sender that was stopped for long also answers the
/// older ones.
#[derive(Default)]
struct Attempts(Vec<(Initiator, ChaCha20Rng)>);

impl Attempts {
    fn begin(&mut self, responder: NodeId, access_key: &AccessKey) -> [Vec<u8>; 2] {
        let (initiator, h1, rng) = begin(responder, access_key);
        self.0.push((initiator, rng));
        h1
    }

    /// Reads a datagram. Returns `None` if it answers no attempt, `Some(None)` if the answer is
    /// incomplete, and otherwise the attempt with its answer.
    fn read(&mut self, datagram: &[u8]) -> Option<Option<(usize, ResponderHello)>> {
        let read = |(i, (initiator, _)): (usize, &mut (Initiator, _))| {
            match initiator.read_h2(datagram) {
                Ok(hello) => Some(hello.map(|hello| (i, hello))),
                Err(HandshakeError::Length | HandshakeError::Mac1) => None,
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

/// Calls `say` up to `times` times, until `hear` accepts a datagram.
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
        // After a stop of this process, received packets are still read.
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

/// The same, for so long that only a dead peer can be silent.
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

    /// The same over a connected socket.
    pub fn connect_by(socket: UdpSocket, ticket: &Ticket) -> Self {
        let responder = ticket.node_id();
        let access_key = &AccessKey::of_ticket(ticket.capability().as_bytes(), responder);
        let (began, mut strays) = (Instant::now(), 0);
        let mut attempts = Attempts::default();
        let (attempt, theirs) = loop {
            assert!(began.elapsed() < HANG, "H1 is not answered");
            let h1 = attempts.begin(responder, access_key);
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

    /// Abandons the connection, and returns its socket.
    pub fn into_socket(self) -> UdpSocket {
        self.socket.set_read_timeout(Some(HANG)).unwrap();
        self.socket
    }

    /// Returns the number of datagrams that came before both sides had the keys and were no part of
    /// the handshake.
    pub fn strays(&self) -> usize {
        self.strays
    }

    /// Sends one authenticated packet with these bytes in place of frames.
    pub fn send(&mut self, frames: &[u8]) {
        let Self { socket, sealer, next_pn, .. } = self;
        send(socket, sealer, next_pn, frames);
    }

    /// Sends such packets until a CLOSE comes. Returns its code.
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
