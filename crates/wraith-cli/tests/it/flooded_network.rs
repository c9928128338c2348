//! A flood on the local network while two sides look for each other. They meet, and the flood takes
//! no memory.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::lying::{MEMORY_MAX, peak_memory};
use crate::support::{Process, World, sending, tree};
use socket2::{Domain, SockRef, Socket, Type};
use wraith_discovery::lan::{GROUP_V4, PACKET_LEN, PORT, seal};
use wraith_discovery::pake::Joiner;
use wraith_discovery::{Code, TicketSide};

/// More addresses than the creator of a code remembers.
const SOURCES: usize = 200;
/// Packets in a round of the flood, and the pause after it: two thousand packets per second.
const ROUND: u64 = 4;
const PAUSE: Duration = Duration::from_millis(2);

/// An attacker that sends to the group from many addresses until dropped.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(mut packet: impl FnMut(u64) -> Vec<u8> + Send + 'static) -> Self {
        let sockets: Vec<UdpSocket> = (0..SOURCES).map(from_another_address).collect();
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = thread::spawn(move || {
            for n in 0.. {
                if stopped.load(Relaxed) {
                    break;
                }
                let socket = &sockets[n as usize % SOURCES];
                let _ = socket.send_to(&packet(n), (GROUP_V4, PORT));
                count.store(n + 1, Relaxed);
                if n.is_multiple_of(ROUND) {
                    thread::sleep(PAUSE);
                }
            }
        });
        let flood = Self { stop, sent, thread: Some(thread) };
        // Every address has sent several packets by then.
        while flood.sent.load(Relaxed) < 5 * SOURCES as u64 {
            thread::sleep(PAUSE);
        }
        flood
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns a socket that sends to the group on loopback from an address of its own.
fn from_another_address(n: usize) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    let own = Ipv4Addr::new(127, 9, (n >> 8) as u8, n as u8);
    socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
    let socket = UdpSocket::from(socket);
    SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    socket
}

/// Checks that the receiver finds the sender, and that neither has used too much memory.
fn still_meets(world: &World, mut sender: Process, code: &str) {
    let (reader, mut answer) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--lan", "lo", "--timeout", "120", "-o"]);
    let command = command.arg(world.target()).arg(code).stdin(reader);
    let mut receiver = Process::start_with_stdin("receive", command);
    // One side waits for an answer and the other for its peer, so both still run.
    receiver.event("offer");
    sender.event("connected");
    for side in [&sender, &receiver] {
        let peak = peak_memory(side.pid());
        eprintln!("peak memory: {} KiB", peak >> 10);
        assert!(peak < MEMORY_MAX, "{} MiB", peak >> 20);
    }
    answer.write_all(b"y\n").unwrap();
    receiver.succeed();
    sender.succeed();
    tree::assert_same(&world.source().join("film.mov"), &world.target().join("film.mov"));
}

fn noise(n: u64) -> Vec<u8> {
    tree::noise(n, PACKET_LEN)
}

#[test]
fn a_flood_of_noise_does_not_prevent_a_meeting() {
    let (_network, world, _, sender, code) = sending(1_000_000, &[]);
    let _flood = Flood::start(|n| match n % 3 {
        0 => noise(n),
        1 => noise(n)[..n as usize % PACKET_LEN].to_vec(),
        _ => vec![0; 9000],
    });
    still_meets(&world, sender, &code);
}

#[test]
fn a_flood_of_other_nameplates_does_not_prevent_a_meeting() {
    let (_network, world, _, sender, code) = sending(1_000_000, &[]);
    let own: u32 = code.split('-').next().unwrap().parse().unwrap();
    let hello = Joiner::new(&Code::new(own, [0; 4]), TicketSide::Creator).hello();
    let _flood = Flood::start(move |n| {
        let salt = *noise(n).first_chunk().unwrap();
        seal(own + 1 + n as u32 % 100, salt, &hello, &[]).expect("it fits").to_vec()
    });
    still_meets(&world, sender, &code);
}

#[test]
fn a_flood_with_the_right_nameplate_does_not_prevent_a_meeting() {
    let (_network, world, _, sender, code) = sending(1_000_000, &[]);
    let number = code.split('-').next().unwrap().parse().unwrap();
    // Each hello starts an exchange and none completes it, because a wrong proof would burn the
    // code.
    let hellos: Vec<_> = (0..100)
        .map(|n| Joiner::new(&Code::new(number, [n; 4]), TicketSide::Creator).hello())
        .collect();
    let _flood = Flood::start(move |n| {
        let (salt, hello) = (*noise(n).first_chunk().unwrap(), hellos[n as usize % hellos.len()]);
        seal(number, salt, &hello, &[]).expect("it fits").to_vec()
    });
    still_meets(&world, sender, &code);
}
