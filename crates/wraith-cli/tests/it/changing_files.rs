//! Files that change while they are sent. The other files arrive, the receiver does not keep the
//! changed file, and the exit code is 10.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::journal::wait_until_verified;
use crate::support::{Process, World, tree};

/// Makes a tree whose first file keeps the sender busy while the test changes a later one.
fn tree_with_victim(world: &World) -> (PathBuf, PathBuf) {
    let root = world.source().join("tree");
    tree::file(&root.join("a first"), 1, 300 << 20);
    tree::file(&root.join("b victim"), 2, 20 << 20);
    tree::file(&root.join("c last"), 3, 1000);
    (root.clone(), root.join("b victim"))
}

/// Runs a transfer and applies `change` to the victim after the walk and long before it is sent.
/// Both sides report the change as `done`. Whether the sender has opened the file by then is
/// random.
fn transfer_while(done: &str, change: impl FnOnce(&Path)) -> World {
    let world = World::new();
    let (root, victim) = tree_with_victim(&world);
    // Slow enough to leave time for the change.
    let mut sender = world.send_with(&[root], &["--rate", "100M"]);
    let receiver = world.receive(&sender.ticket());
    wait_until_verified(&world.target().join("tree"), "a first", 1);
    change(&victim);
    for side in [receiver.finish(), sender.finish()] {
        side.expect_error(10);
        let victim = side.all("file").find(|file| file["path"] == "tree/b victim").unwrap();
        assert_eq!(victim["change"], done);
        assert!(["changed", "unreadable"].contains(&victim["status"].as_str().unwrap()));
        assert!(done != "missing" || victim["status"] == "unreadable", "it did not change");
        // A failed file is resolved, too, but only the others are at the receiver.
        let last = side.all("progress").last().unwrap();
        assert_eq!((&last["bytes"], &last["files"]), (&last["total"], &last["total_files"]));
        assert_eq!(side.last("done")["bytes"], (300 << 20) + 1000);
    }
    for name in ["a first", "c last"] {
        let (here, there) = (world.source().join("tree"), world.target().join("tree"));
        tree::assert_same(&here.join(name), &there.join(name));
    }
    world
}

/// Changes all that can be changed of a file without its content: mode, links, attributes.
fn touch(victim: &Path) {
    fs::set_permissions(victim, fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(victim, victim.with_extension("link")).unwrap();
}

#[test]
fn a_file_whose_attributes_change_while_it_is_sent_arrives() {
    let (world, film) = World::with_file("film.mov", 1, 20 << 20);
    let mut sender = world.send_with(&[&film], &["--rate", "10M"]);
    let receiver = world.receive(&sender.ticket());
    wait_until_verified(&world.target(), "film.mov", 2);
    touch(&film);
    receiver.succeed();
    sender.succeed();
    assert!(fs::read(&film).unwrap() == fs::read(world.target().join("film.mov")).unwrap());
}

#[test]
fn a_file_with_new_content_and_its_old_times_is_reported() {
    let (world, film) = World::with_file("film.mov", 1, 20 << 20);
    let modified = fs::metadata(&film).unwrap().modified().unwrap();
    let mut sender = world.send_with(&[&film], &["--rate", "10M"]);
    let receiver = world.receive(&sender.ticket());
    wait_until_verified(&world.target(), "film.mov", 2);
    let file = File::options().write(true).open(&film).unwrap();
    file.write_all_at(b"other bytes", 0).unwrap();
    file.set_modified(modified).unwrap();
    for side in [receiver.finish(), sender.finish()] {
        side.expect_error(10);
        let film = side.all("file").find(|file| file["path"] == "film.mov").unwrap();
        assert_eq!(film["status"], "changed");
    }
    assert!(!world.target().join("film.mov").exists(), "no changed file under its name");
}

fn assert_not_there(world: &World) {
    assert!(!world.target().join("tree/b victim").exists(), "no changed file under its name");
}

#[test]
fn a_file_that_grows_is_reported_and_not_kept() {
    let world = transfer_while("grew", |victim| {
        OpenOptions::new().append(true).open(victim).unwrap().write_all(b"more").unwrap();
    });
    assert_not_there(&world);
}

#[test]
fn the_sender_of_a_growing_log_is_shown_the_way_through_a_pipe() {
    let (world, log) = World::with_file("app.log", 1, 20 << 20);
    let mut sender = world.wraith("sender");
    sender.args(["send", "--ticket", "--quiet", "--rate", "10M"]).arg(&log);
    let mut sender = sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ticket = String::new();
    BufReader::new(sender.stdout.as_mut().unwrap()).read_line(&mut ticket).unwrap();
    let receiver = world.receive(ticket.trim());
    wait_until_verified(&world.target(), "app.log", 2);
    OpenOptions::new().append(true).open(&log).unwrap().write_all(b"more").unwrap();
    receiver.finish().expect_error(10);
    let output = sender.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("grew while it was sent; nothing of it was kept"), "{shown}");
    assert!(shown.contains("cat FILE | wraith send --name NAME -"), "{shown}");
    assert_eq!(output.status.code(), Some(10));

    // The way that it shows.
    let mut cat = Command::new("cat").arg(&log).stdout(Stdio::piped()).spawn().unwrap();
    let mut sender = world.wraith("sender");
    sender.args(["send", "--json", "--ticket", "--name", "app.log", "-"]);
    let mut sender = Process::start_with_stdin("send", sender.stdin(cat.stdout.take().unwrap()));
    world.receive(&sender.ticket()).succeed();
    sender.succeed();
    cat.wait().unwrap();
    assert!(fs::read(&log).unwrap() == fs::read(world.target().join("app.log")).unwrap());
}

#[test]
fn a_file_that_is_truncated_is_reported_and_not_kept() {
    let world = transfer_while("shrank", |victim| {
        File::options().write(true).open(victim).unwrap().set_len(1_000_000).unwrap();
    });
    assert_not_there(&world);
}

#[test]
fn a_file_that_is_deleted_is_reported() {
    let world = transfer_while("missing", |victim| fs::remove_file(victim).unwrap());
    assert_not_there(&world);
}

#[test]
fn a_file_that_is_replaced_by_a_link_is_not_followed() {
    let world = transfer_while("replaced", |victim| {
        let link = victim.with_file_name("link");
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        fs::rename(link, victim).unwrap();
    });
    assert_not_there(&world);
}

#[test]
fn a_file_replaced_while_it_is_sent_is_reported() {
    let world = transfer_while("replaced", |victim| {
        let other = victim.with_file_name("other");
        // A small file, or the victim would be sent meanwhile.
        tree::file(&other, 9, 10);
        fs::rename(other, victim).unwrap();
    });
    assert_not_there(&world);
}

#[test]
fn a_deleted_source_or_target_ends_the_transfer_early() {
    const BYTES: u64 = 40_000_000;
    for is_target in [false, true] {
        let (world, film) = World::with_file("film.mov", 1, BYTES as usize);
        let mut sender = world.send_with(&[&film], &["--rate", "4MB", "--reconnect", "0"]);
        let receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
        wait_until_verified(&world.target(), "film.mov", 1);
        let exit = if is_target {
            fs::remove_dir_all(world.target()).unwrap();
            7
        } else {
            fs::remove_file(&film).unwrap();
            10
        };
        for side in [receiver.finish(), sender.finish()] {
            side.expect_error(exit);
            let moved = side.all("progress").filter(|progress| progress["files"] == 0);
            let moved = moved.map(|progress| progress["bytes"].as_u64().unwrap()).max();
            assert!(moved.unwrap_or(0) < BYTES / 2, "{moved:?}");
        }
    }
}
