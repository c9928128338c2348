//! Number of round trips from dialling to the first byte of a file: the waiting time of a distant
//! user.

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use wraith_transfer::{SendOptions, receive, serve};
use wraith_transport::{AccessKey, block_on};

use crate::common::{
    Folders, SECRET, endpoint, noise, receive_options, receiver_identity, roots, sender_identity,
};

/// Time without datagrams after which a side is assumed to wait for the other. Far longer than an
/// endpoint takes to answer, and shorter than the 250 ms after which the first handshake message
/// (H1) is repeated.
const QUIET: Duration = Duration::from_millis(100);
/// A machine that stalls for longer than [`QUIET`] splits a turn in two, but not each time.
const ATTEMPTS: usize = 5;
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// Handshake, then Hello, Fetch and Offer, then Accept, Want and data (SPEC §3, §10): the receiver
/// sends its first messages together with the third handshake message (H3).
#[test]
fn the_first_byte_of_a_file_comes_three_round_trips_after_dialling() {
    assert_eq!(fewest_round_trips(false), 3);
}

/// A receiver that accepts in advance gets small files with the offer.
#[test]
fn an_early_accept_gets_a_small_file_two_round_trips_after_dialling() {
    assert_eq!(fewest_round_trips(true), 2);
}

fn fewest_round_trips(push: bool) -> usize {
    let trips: Vec<_> = (0..ATTEMPTS).map(|_| round_trips_to_the_first_byte(push)).collect();
    println!("{trips:?}");
    trips.into_iter().min().unwrap()
}

/// Relays datagrams in turns, each side's only when that side has finished sending, and counts the
/// turns.
struct Turns {
    /// The address that the receiver dials.
    front: UdpSocket,
    back: UdpSocket,
}

impl Turns {
    /// Takes all datagrams until none has arrived for [`QUIET`]. With `waits`, first waits for one
    /// to arrive.
    fn take(socket: &UdpSocket, waits: bool) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let limit = if waits && taken.is_empty() { 100 * QUIET } else { QUIET };
            socket.set_read_timeout(Some(limit)).unwrap();
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    // No other host sends here.
                    socket.connect(from).unwrap();
                    taken.push(buffer[..len].to_vec());
                }
                Err(_) => return taken,
            }
        }
    }

    fn give(socket: &UdpSocket, datagrams: &[Vec<u8>]) {
        for datagram in datagrams {
            // A side that has left receives nothing.
            let _ = socket.send(datagram);
        }
    }

    /// Relays one round trip, begun by the receiver.
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
            let access_key = AccessKey::public(peer);
            receive(block_on(receiver.connect([address], peer, &access_key)).unwrap(), options)
        });
        let mut trips = 0;
        while progress.bytes() == 0 {
            turns.pass(true);
            trips += 1;
            // The last datagrams are being processed.
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
