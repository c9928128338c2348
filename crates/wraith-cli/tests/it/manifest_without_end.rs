//! Senders that list entries without end. The receiver's memory is bounded, and the receiver stops
//! by itself or on request.

use std::time::Duration;

use crate::lying::sender::{LyingSender, file, folder, link, offer_of};
use crate::lying::{MEMORY_MAX, peak_memory};
use crate::support::{Process, World, tree};
use wraith_files::Entry;
use wraith_transfer::Offer;

const MILLION: u64 = 1_000_000;

/// Longer than a busy machine needs to free some room.
const BLOCKED: Duration = Duration::from_secs(2);

fn encoded(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    bytes
}

/// Sends SIGINT and checks the result.
fn interrupt(receiver: Process) {
    receiver.signal(libc::SIGINT);
    receiver.finish().expect_hint(130, "wraith receive");
}

#[track_caller]
fn expect_bounded(receiver: &Process) {
    let peak = peak_memory(receiver.pid());
    eprintln!("peak memory: {} MiB", peak >> 20);
    assert!(peak < MEMORY_MAX, "{} MiB", peak >> 20);
}

/// Lists a million files and sends only the first `settled` of them, until the receiver stops
/// reading.
fn list_a_million(name: impl Fn(u64) -> String, settled: u64) {
    let (_world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = sender.offer(offer_of(MILLION, 0));
    let mut entries = (0..MILLION).map(|n| encoded(&file(&name(n), 0)));
    for first in (0..settled).step_by(1000) {
        liar.list_all(entries.by_ref().take(1000));
        liar.decided();
        (first..first + 1000).for_each(|entry| liar.whole(entry as u32, b""));
    }
    liar.list_until_blocked(entries, BLOCKED);
    assert!(liar.entries < MILLION, "it took all of them");
    expect_bounded(&receiver);
    interrupt(receiver);
}

#[test]
fn a_million_files_that_are_never_sent_are_held_back() {
    list_a_million(|n| format!("{n:07}"), 0);
}

#[test]
fn a_million_files_with_long_names_are_held_back() {
    list_a_million(|n| format!("{n:0250}"), 0);
}

#[test]
fn files_that_are_settled_leave_nothing_behind_in_memory() {
    list_a_million(|n| format!("{n:07}"), 20_000);
}

#[test]
fn links_with_the_longest_targets_are_not_all_kept_in_memory() {
    let (_world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = sender.offer(offer_of(MILLION, 0));
    let target = [b'n'; 4095];
    // Slightly more than fits in the permitted memory; each link also takes a block of the disk.
    const LINKS: usize = 40_000;
    const { assert!(LINKS * 4095 > MEMORY_MAX * 6 / 5) };
    liar.list(&folder("folder"));
    liar.list_all((0..LINKS).map(|n| encoded(&link(&format!("folder/{n:07}"), &target))));
    liar.decided();
    expect_bounded(&receiver);
    interrupt(receiver);
}

#[test]
fn a_manifest_longer_than_its_offer_ends_the_transfer() {
    let (world, sender, receiver) = LyingSender::and_receiver();
    let mut liar = sender.offer(offer_of(1, 0));
    liar.list(&folder("folder"));
    liar.list_all((0..MILLION).map(|n| encoded(&file(&format!("folder/{n:07}"), 0))));
    receiver.finish().expect_message(1, "exceeds the offer");
    assert!(tree::names(&world.target().join("folder")).is_empty());
}

#[test]
fn an_offer_with_every_kind_of_entry_is_shown_and_refused() {
    let world = World::new();
    let sender = LyingSender::listen();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "-o"]).arg(world.target()).arg(sender.ticket());
    let receiver = Process::start_with_stdin("receive", command.stdin(reader));
    let everything = u64::MAX;
    let liar = sender.offer(Offer {
        dirs: everything,
        links: everything,
        largest: everything,
        ..offer_of(everything, everything)
    });
    // Only now, because a refusal would end the connection before the whole offer is made.
    std::io::Write::write_all(&mut writer, b"n\n").unwrap();
    receiver.finish().expect_error(4);
    liar.told();
}
