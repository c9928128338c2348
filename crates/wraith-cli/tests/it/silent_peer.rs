//! Peers that fall silent at every point where the other side waits for them. Ctrl-C still ends the
//! wait at once with exit code 130, and no other peer has to wait. The module `after_minutes` tests
//! the timeout of a stalled transfer.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::lying::receiver::Dialler;
use crate::lying::sender::{Greeted, Liar, LyingSender, chunk, file, offer_of};
use crate::lying::{CHUNK, MEMORY_MAX, peak_memory};
use crate::support::{Process, World, tree};
use wraith_discovery::Ticket;
use wraith_transfer::close;
use wraith_transport::CloseReason;

fn interrupt(process: Process) {
    process.signal(libc::SIGINT);
    process.finish().expect_error(130);
}

/// Runs a receiver, with `speak` as its sender before it falls silent.
fn receiver_of(speak: impl FnOnce(&LyingSender, &mut Process)) {
    receiver_that(interrupt, speak);
}

/// The same, with `ends` as the end of the receiver.
pub fn receiver_that(ends: fn(Process), speak: impl FnOnce(&LyingSender, &mut Process)) {
    let (_world, sender, mut receiver) = LyingSender::and_receiver();
    speak(&sender, &mut receiver);
    assert!(peak_memory(receiver.pid()) < MEMORY_MAX);
    ends(receiver);
}

/// Accepts a connection, and says hello.
fn said_hello(sender: &LyingSender) -> Greeted {
    let mut greeted = sender.greet();
    greeted.hello();
    greeted
}

/// Makes an offer of one large file, which the receiver accepts.
pub fn offered(sender: &LyingSender) -> Liar {
    let mut liar = sender.offer(offer_of(1, 100 * CHUNK as u64));
    liar.list(&file("film", 100 * CHUNK));
    liar.decided();
    liar
}

#[test]
fn a_receiver_stops_when_its_sender_does_not_even_say_hello() {
    let mut kept = None;
    receiver_of(|sender, _| kept = Some(sender.greet()));
}

/// A sender behaves like this when it has served another receiver and is about to end.
#[test]
fn a_sender_that_ends_before_its_hello_is_not_awaited() {
    let world = World::new();
    let sender = LyingSender::listen();
    let receiver = world.receive_with(&sender.ticket(), &["--timeout", "3"]);
    let connection = sender.accept();
    connection.close(0, "");
    drop(sender);
    let outcome = receiver.finish();
    outcome.expect_message(3, "cannot be reached");
    assert_eq!(outcome.all("reconnecting").count(), 0, "there was no transfer to go on with");
}

#[test]
fn a_receiver_stops_when_its_sender_never_makes_an_offer() {
    let mut kept = None;
    receiver_of(|sender, receiver| {
        let greeted = said_hello(sender);
        receiver.event("connected");
        // The receiver reports the missing message, and the time left.
        let awaiting = receiver.event("awaiting");
        assert_eq!(awaiting["what"], "offer");
        let left = awaiting["seconds_left"].as_u64().unwrap();
        assert!((1..600).contains(&left), "{awaiting}");
        kept = Some(greeted);
    });
}

#[test]
fn a_missing_offer_is_reported_to_the_user() {
    let world = World::new();
    let sender = LyingSender::listen();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--yes", "--reconnect", "0", "-o"]).arg(world.target());
    command.arg(sender.ticket()).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut receiver = command.spawn().unwrap();
    let greeted = said_hello(&sender);
    let lines = BufReader::new(receiver.stderr.take().unwrap()).lines();
    let told =
        lines.map_while(Result::ok).find(|line| line.contains("Waiting for the sender's offer"));
    drop(greeted);
    drop(sender);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert!(told.is_some_and(|line| line.contains("large folder")));
}

#[test]
fn a_receiver_stops_when_its_sender_opens_no_streams() {
    let mut kept = None;
    receiver_of(|sender, receiver| {
        let mut greeted = said_hello(sender);
        greeted.say(&wraith_transfer::message::Message::Offer(offer_of(1, 1)));
        receiver.event("accept");
        kept = Some(greeted);
    });
}

#[test]
fn a_receiver_stops_when_the_manifest_never_ends_or_nothing_of_a_file_comes() {
    let mut kept = None;
    receiver_of(|sender, _| kept = Some(offered(sender)));
    receiver_of(|sender, _| {
        let mut liar = offered(sender);
        liar.end_manifest();
        kept = Some(liar);
    });
}

#[test]
fn a_receiver_stops_in_the_middle_of_a_chunk_that_drips() {
    let mut kept = None;
    receiver_of(|sender, _| {
        let mut liar = offered(sender);
        let bytes = tree::noise(1, CHUNK);
        let mut record = Vec::new();
        chunk(0, 0, &bytes).encode(&mut record);
        record.extend_from_slice(&bytes[..CHUNK / 2]);
        for byte in record[..2000].iter() {
            wraith_transport::block_on(liar.data.write_all(&[*byte])).unwrap();
        }
        kept = Some(liar);
    });
}

/// Starts a sender of 100 MB. Returns it with its ticket.
fn sender(world: &World) -> (Process, Ticket, String) {
    let film = world.file("film.mov", 1, 100_000_000);
    let mut sender = world.send(&[film]);
    let text = sender.ticket();
    (sender, text.parse().unwrap(), text)
}

#[test]
fn a_sender_stops_when_strangers_say_nothing() {
    let world = World::new();
    let (sender, ticket, _) = sender(&world);
    let dialler = Dialler::new(1);
    let silent = dialler.connect(&ticket);
    let mut rude = dialler.dial(&ticket);
    rude.write(&[0]);
    interrupt(sender);
    drop((silent, rude));
}

#[test]
fn a_sender_stops_when_its_receiver_asks_for_nothing_or_reads_nothing() {
    for asks in [false, true] {
        let world = World::new();
        let (mut sender, ticket, _) = sender(&world);
        let mut liar = Dialler::new(1).accept(&ticket);
        if asks {
            liar.want(1, &[(0, 1)]);
            // The flow-control windows limit the data sent ahead; the rest stays on the disk.
            sender.event("progress");
            assert!(peak_memory(sender.pid()) < MEMORY_MAX);
        }
        interrupt(sender);
        drop(liar);
    }
}

#[test]
fn silent_strangers_block_no_receiver() {
    let world = World::new();
    let (sender, ticket, text) = sender(&world);
    let diallers: Vec<_> = (1..=40).map(Dialler::new).collect();
    let silent: Vec<_> = diallers.iter().map(|dialler| dialler.connect(&ticket)).collect();
    // The last ones are still connected; the first ones were displaced.
    let told = wraith_transport::block_on(silent[0].closed());
    assert!(matches!(told, CloseReason::Peer { code: close::OTHER, .. }), "{told:?}");
    world.receive_with(&text, &["--reconnect", "0"]).succeed();
    sender.succeed();
    drop(silent);
}
