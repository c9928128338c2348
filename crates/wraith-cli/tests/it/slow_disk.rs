//! A disk that stands still for longer than a silent peer is waited for: both sides wait for it, and nothing is lost.

use std::process::Command;
use std::time::Duration;

use crate::support::disk_image::{FileSystem, disk, images, succeeds};
use crate::support::{World, tree};
use wraith_transfer::limits::STALL_TIMEOUT;

/// A little longer than silence is borne.
const STANDSTILL: Duration = STALL_TIMEOUT.saturating_add(Duration::from_secs(25));

/// Lets a frozen file system go on, also when a test fails.
struct Frozen<'a>(&'a std::path::Path);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(self.0).status();
    }
}

#[test]
#[ignore = "more than two minutes of waiting; cargo xtask test has the patience"]
fn a_disk_that_stands_still_for_two_minutes_is_waited_for() {
    let (world, images) = (World::new(), images());
    let Some(_disk) = disk(FileSystem::Ext4, &world.target(), images.path()) else { return };
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 100_000_000);
    let mut sender = world.send_with(&[&film], &["--reconnect", "0", "--rate", "20M"]);
    let mut receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
    receiver.event("progress");
    let frozen = Frozen(&world.path("target"));
    assert!(succeeds(Command::new("fsfreeze").arg("-f").arg(frozen.0)));
    // Nothing tells the end of a silence but the clock.
    std::thread::sleep(STANDSTILL);
    drop(frozen);
    receiver.finish().expect_exit(0);
    sender.finish().expect_exit(0);
    assert_eq!(
        std::fs::read(&film).unwrap(),
        std::fs::read(world.target().join("film.mov")).unwrap()
    );
}
