//! How many round trips lie between dialling and the first byte of a file: what a person far away waits for.

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use wraith_transfer::{SendOptions, receive, serve};
use wraith_transport::{DoorKey, block_on};

use crate::common::{
    Folders, SECRET, endpoint, noise, receive_options, receiver_identity, roots, sender_identity,
};

/// Who has been silent for so long waits for the other side: far above what an endpoint takes to answer, and below the 250 ms after
/// which H1 is repeated.
const QUIET: Duration = Duration::from_millis(100);
/// A machine that stalls for longer than [`QUIET`] makes two turns of one; it does not do so each time.
const ATTEMPTS: usize = 5;
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// Handshake, then Hello, Fetch and Offer, then Accept, Want and data (SPEC §3, §10): the receiver's words go with H3.
#[test]
fn the_first_byte_of_a_file_comes_three_round_trips_after_dialling() {
    assert_eq!(fewest_round_trips(false), 3);
}

/// Who has said yes beforehand gets small files with the offer.
#[test]
fn who_accepts_beforehand_has_a_small_file_two_round_trips_after_dialling() {
    assert_eq!(fewest_round_trips(true), 2);
}

fn fewest_round_trips(push: bool) -> usize {
    let trips: Vec<_> = (0..ATTEMPTS).map(|_| round_trips_to_the_first_byte(push)).collect();
    println!("{trips:?}");
    trips.into_iter().min().unwrap()
}

/// Passes datagrams on in turns, each side's only when that side has said all it has to say, and counts the turns.
struct Turns {
    /// Where the receiver dials.
    front: UdpSocket,
    back: UdpSocket,
}

impl Turns {
    /// Everything that comes until nothing has for [`QUIET`]: once something has come, if `waits`.
    fn take(socket: &UdpSocket, waits: bool) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let limit = if waits && taken.is_empty() { 100 * QUIET } else { QUIET };
            socket.set_read_timeout(Some(limit)).unwrap();
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    // Nobody else sends here.
                    socket.connect(from).unwrap();
                    taken.push(buffer[..len].to_vec());
                }
                Err(_) => return taken,
            }
        }
    }

    fn give(socket: &UdpSocket, datagrams: &[Vec<u8>]) {
        for datagram in datagrams {
            // Who has gone hears nothing.
            let _ = socket.send(datagram);
        }
    }

    /// One round trip, begun by the receiver.
    fn pass(&self, waits: bool) {
        Self::give(&self.back, &Self::take(&self.front, waits));
        Self::give(&self.front, &Self::take(&self.back, waits));
    }
}

fn round_trips_to_the_first_byte(push: bool) -> usize {
    let folders = Folders::new();
    let content = noise(1, 10_000);
    folders.file("file", &content);
    let sender = endpoint(sender_identity(), true).unwrap();
    let receiver = endpoint(receiver_identity(), false).unwrap();
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let turns = Turns { front: bind(), back: bind() };
    turns.back.connect(sender.local_addr()).unwrap();
    let address = turns.front.local_addr().unwrap();
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    options.push = push;
    let progress = Arc::clone(&options.progress);
    let trips = thread::scope(|scope| {
        let sending = scope.spawn(|| serve(block_on(sender.accept()).unwrap(), &send));
        let receiving = scope.spawn(|| {
            let peer = sender_identity().node_id();
            let door = DoorKey::of_everybody(peer);
            receive(block_on(receiver.connect([address], peer, &door)).unwrap(), options)
        });
        let mut trips = 0;
        while progress.bytes() == 0 {
            turns.pass(true);
            trips += 1;
            // What came last is being read.
            thread::park_timeout(QUIET);
        }
        while !(sending.is_finished() && receiving.is_finished()) {
            turns.pass(false);
        }
        receiving.join().unwrap().unwrap();
        sending.join().unwrap().unwrap();
        trips
    });
    assert_eq!(std::fs::read(folders.to().join("file")).unwrap(), content);
    trips
}
