//! Tests that wait for minutes, because they test a time.
//!
//! The harness starts tests in the order of their names, modules first. This module has the first
//! name of all, so its tests wait while all others run.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::lying::receiver::Dialler;
use crate::silent_peer::{offered, receiver_that};
use crate::sleep::sleeps;
use crate::support::disk_image::{FileSystem, disk, images, succeeds};
use crate::support::{Process, World};
use wraith_discovery::Ticket;
use wraith_transfer::limits::STALL_TIMEOUT;

const SLEEP: Duration = Duration::from_secs(60);
/// Slightly longer than the engine tolerates silence.
const STANDSTILL: Duration = STALL_TIMEOUT.saturating_add(Duration::from_secs(25));

/// A frozen file system. Drop thaws it, even if the test fails.
struct Frozen<'a>(&'a Path);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(self.0).status();
    }
}

/// Both sides wait for a disk that stalls for longer than they wait for a silent peer, and nothing
/// is lost.
#[test]
#[ignore = "more than two minutes of waiting; cargo xtask test runs it"]
fn a_disk_that_stands_still_for_two_minutes_is_waited_for() {
    let (world, images) = (World::new(), images());
    let Some(_disk) = disk(FileSystem::Ext4, &world.target(), images.path()) else { return };
    let film = world.file("film.mov", 1, 100_000_000);
    let mut sender = world.send_with(&[&film], &["--reconnect", "0", "--rate", "20M"]);
    let mut receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
    receiver.event("progress");
    let frozen = Frozen(&world.path("target"));
    assert!(succeeds(Command::new("fsfreeze").arg("-f").arg(frozen.0)));
    // Only the clock ends this wait.
    thread::sleep(STANDSTILL);
    drop(frozen);
    receiver.succeed();
    sender.succeed();
    assert_eq!(
        std::fs::read(&film).unwrap(),
        std::fs::read(world.target().join("film.mov")).unwrap()
    );
}

/// The network works, but no data arrives.
fn give_up(process: Process) {
    process.finish().expect_message(6, "120");
}

#[test]
#[ignore = "two minutes of waiting; cargo xtask test runs it"]
fn a_peer_that_stalls_in_a_transfer_is_given_up_after_two_minutes() {
    let (mut no_end, mut no_data) = (None, None);
    thread::scope(|scope| {
        scope.spawn(|| receiver_that(give_up, |sender, _| no_end = Some(offered(sender))));
        scope.spawn(|| {
            receiver_that(give_up, |sender, _| {
                let mut liar = offered(sender);
                liar.end_manifest();
                no_data = Some(liar);
            });
        });
        scope.spawn(|| {
            let (world, film) = World::with_file("film.mov", 1, 100_000_000);
            let mut sender = world.send_with(&[&film], &["--reconnect", "0"]);
            let ticket: Ticket = sender.ticket().parse().unwrap();
            let mut liar = Dialler::new(1).accept(&ticket);
            liar.want(1, &[(0, 1)]);
            sender.event("progress");
            give_up(sender);
            drop(liar);
        });
    });
}

#[test]
#[ignore = "two minutes of waiting; cargo xtask test runs it"]
fn a_minute_of_sleep_is_no_different() {
    thread::scope(|scope| {
        scope.spawn(|| sleeps("receiver", SLEEP));
        scope.spawn(|| sleeps("sender", SLEEP));
    });
}
