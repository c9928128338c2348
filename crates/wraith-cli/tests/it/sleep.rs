//! A machine that sleeps during a transfer, or gets another address, loses only time.

use std::thread;
use std::time::Duration;

use crate::support::cable::Cable;
use crate::support::journal::{verified_chunks, wait_until_verified};
use crate::support::{Outcome, Process, World, cases, is_root, skipped, tree};

const BYTES: usize = 40_000_000;
const CHUNK: u64 = 256 * 1024;
/// Slow enough for the transfer to be under way when the test interferes: it takes 10 s.
const RATE: &str = "4M";
/// Longer than the idle timeout of a connection (10 s), so that both sides must reconnect.
const NAP: Duration = Duration::from_secs(15);

/// Checks that neither side loses data when `who` is stopped for a while.
pub fn sleeps(who: &str, time: Duration) {
    let (world, film) = World::with_file("film.mov", 1, BYTES);
    let mut sender = world.send_with(&[&film], &["--rate", RATE]);
    let receiver = world.receive(&sender.ticket());
    wait_until_verified(&world.target(), "film.mov", 10);
    let sleeper = if who == "sender" { &sender } else { &receiver };
    sleeper.signal(libc::SIGSTOP);
    let before = verified_chunks(&world.target(), "film.mov");
    // Not a wait for an event: the time itself is tested.
    thread::sleep(time);
    sleeper.signal(libc::SIGCONT);
    let received = receiver.succeed();
    let sent = sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    assert!(tree::leftovers(&world.target()).is_empty());
    let reconnected = |side: &Outcome| side.all("reconnecting").count();
    assert!(reconnected(&received) + reconnected(&sent) > 0, "it was no sleep");
    let moved = received.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved <= BYTES as u64 - before * CHUNK, "{moved} bytes again after {before} chunks");
}

cases! {
    a_receiver_that_sleeps_goes_on_where_it_was: sleeps("receiver", NAP);
    a_sender_that_sleeps_goes_on_where_it_was: sleeps("sender", NAP);
}

/// Piped data cannot be read again, so it must survive the sleep.
#[test]
fn a_stream_goes_on_after_a_sleep() {
    let world = World::new();
    let bytes = tree::noise(1, BYTES);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0", "--rate", RATE, "-"]);
    let mut sender = Process::start_with_stdin("send", command.stdin(reader));
    let mut receiver = world.receive(&sender.ticket());
    let theirs = bytes.clone();
    let input = thread::spawn(move || std::io::Write::write_all(&mut writer, &theirs).unwrap());
    receiver.event_where("progress", |e| e["bytes"].as_u64().unwrap() > 3_000_000);
    receiver.signal(libc::SIGSTOP);
    thread::sleep(NAP);
    receiver.signal(libc::SIGCONT);
    let received = receiver.succeed();
    let sent = sender.succeed();
    assert_eq!(sent.last("done")["bytes_moved"], received.last("done")["bytes_moved"]);
    input.join().unwrap();
    assert!(std::fs::read(world.target().join("stdin")).unwrap() == bytes);
    assert!(received.all("reconnecting").count() > 0, "it was no sleep");
    let moved = received.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved < BYTES as u64 - 2_000_000, "{moved}");
}

/// Makes two machines with a cable between them.
fn cable() -> Option<Cable> {
    is_root().then(|| Cable::new(Some(["10.77.0.1/24", "10.77.0.2/24"]))).flatten()
}

/// Gives this end another address.
fn readdress(cable: &Cable, end: usize) {
    cable.readdress(end, &format!("10.77.0.{}/24", end + 1), "10.77.0.99/24");
}

cases! {
    a_receiver_whose_address_changes_keeps_its_connection: address_changes(1);
    a_sender_whose_address_changes_keeps_its_connection: address_changes(0);
}

cases! {
    a_sender_that_is_started_again_elsewhere_is_found_by_the_receiver_that_waits:
        started_elsewhere(false);
    a_sender_that_is_started_again_elsewhere_is_found_with_the_old_ticket: started_elsewhere(true);
}

/// Kills the sender and restarts it with another address; if `both`, the receiver too.
fn started_elsewhere(both: bool) {
    let Some(cable) = cable() else {
        return skipped("namespaces need root and ip");
    };
    let (world, film) = World::with_file("film.mov", 1, BYTES);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--ticket", "--lan", "all", "--rate", RATE]).arg(&film);
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let ticket = sender.ticket();
    let receive = || {
        let mut receive = world.wraith("receiver");
        receive.args(["receive", "--json", "--yes", "--lan", "all", "--timeout", "60", "-o"]);
        receive.arg(world.target()).arg(&ticket);
        Process::start("receive", &mut cable.at(1, &receive))
    };
    let receiver = receive();
    wait_until_verified(&world.target(), "film.mov", 10);
    sender.kill();
    let waiting = if both {
        receiver.kill();
        None
    } else {
        Some(receiver)
    };
    readdress(&cable, 0);
    let before = verified_chunks(&world.target(), "film.mov");
    let again = Process::start("send", &mut cable.at(0, &send));
    let received = waiting.unwrap_or_else(receive).succeed();
    again.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    let moved = received.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved <= BYTES as u64 - before * CHUNK, "{moved} bytes again after {before} chunks");
}

/// Gives the machine at this end of the cable another address during a transfer.
fn address_changes(end: usize) {
    let Some(cable) = cable() else {
        return skipped("namespaces need root and ip");
    };
    let (world, film) = World::with_file("film.mov", 1, BYTES);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--ticket", "--rate", RATE]).arg(&film);
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let mut receive = world.wraith("receiver");
    receive.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).arg(sender.ticket());
    let receiver = Process::start("receive", &mut cable.at(1, &receive));
    wait_until_verified(&world.target(), "film.mov", 10);
    readdress(&cable, end);
    let received = receiver.succeed();
    let sent = sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    for side in [&received, &sent] {
        assert_eq!(side.all("reconnecting").count(), 0, "{side:?}");
    }
}
