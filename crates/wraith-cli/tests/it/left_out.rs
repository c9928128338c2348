//! Entries that cannot be sent are reported: each is named, both sides report their number, and the
//! exit code is 10. Special files without content (pipes, sockets, devices) are counted and
//! reported, too.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::slice;

use crate::support::{self, Outcome, Process, World, tree};

/// Returns a `wraith send` of `paths` by a user without privileges, to whom file modes apply.
fn send_as_nobody(world: &World, paths: &[PathBuf], json: bool) -> Command {
    let mut command = world.wraith_as_nobody("sender");
    command.arg("send").args(json.then_some("--json"));
    command.args(["--ticket", "--listen", "127.0.0.1:0"]).args(paths);
    command
}

fn folder_that_cannot_be_listed(at: &Path) {
    tree::file(&at.join("secret"), 1, 10);
    fs::set_permissions(at, fs::Permissions::from_mode(0o0)).unwrap();
}

/// Sends the tree to a receiver.
fn transfer(world: &World, command: &mut Command) -> (Outcome, Outcome) {
    let mut sender = Process::start("send", command);
    let received = world.receive(&sender.ticket()).finish();
    (sender.finish(), received)
}

#[test]
fn names_and_folders_that_cannot_be_sent_end_with_10_on_both_sides_and_are_named() {
    let (world, root) = World::with_tree("tree", &[("good", 1000), (".x.wraith-part", 10)]);
    folder_that_cannot_be_listed(&root.join("locked"));
    let (sent, received) =
        transfer(&world, &mut send_as_nobody(&world, slice::from_ref(&root), true));
    let locked = root.join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();

    let message = sent.expect_error(10)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("2 files or folders"), "{message}");
    assert_eq!(sent.last("done")["left_out"], 2);
    let named = |path: &str| sent.all("note").any(|note| note["path"] == path);
    assert!(named("tree/locked") && named("tree/.x.wraith-part"));

    assert_eq!(received.last("offer")["left_out"], 2);
    assert_eq!(received.last("done")["left_out"], 2);
    let message = received.expect_error(10)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the sender left out 2 files or folders"), "{message}");
    tree::assert_same(&root.join("good"), &world.target().join("tree/good"));
}

#[test]
fn a_path_that_is_too_deep_ends_with_10() {
    let world = World::new();
    let root = world.source().join("tree");
    let mut deep = root.clone();
    deep.extend((0..130).map(|_| "d"));
    tree::file(&deep.join("far"), 1, 10);
    let mut sender = world.send(&[&root]);
    let received = world.receive(&sender.ticket()).finish();
    received.expect_error(10);
    let sent = sender.finish();
    sent.expect_error(10);
    assert_eq!(sent.last("done")["left_out"], 1);
    assert!(sent.all("note").any(|note| note["message"].as_str().unwrap().contains("too deep")));
}

#[test]
fn skipped_entries_are_named_up_to_a_limit_and_counted() {
    let (world, root) = World::with_tree("tree", &[("good", 1000)]);
    for n in 0..50 {
        tree::file(&root.join(format!(".\u{1b}{n:02}.wraith-part")), n, 10);
    }
    folder_that_cannot_be_listed(&root.join("locked"));
    let mut command = send_as_nobody(&world, slice::from_ref(&root), false);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let (ticket, said) = support::process::said_by(child, |ticket| {
        world.receive(ticket).finish().expect_error(10);
    });
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(ticket.starts_with("wraith receive wraith:"), "{ticket}");
    let (status, said) = said;
    assert_eq!(status.code(), Some(10), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    assert!(said.contains("tree/.\\x1b00.wraith-part"), "{said}");
    assert!(said.matches("reserved").count() <= 20, "{said}");
    assert!(said.contains("51 files or folders"), "{said}");
}

#[test]
fn an_entry_that_becomes_unsendable_while_the_sender_waits_ends_with_10_on_both_sides() {
    let (world, root) = World::with_tree("tree", &[("good", 1000)]);
    let mut sender = world.send(&[&root]);
    let ticket = sender.ticket();
    tree::file(&root.join(".x.wraith-part"), 2, 10);
    let received = world.receive(&ticket).finish();
    for side in [received, sender.finish()] {
        side.expect_error(10);
        assert_eq!(side.last("done")["left_out"], 1);
    }
    tree::assert_same(&root.join("good"), &world.target().join("tree/good"));
}

#[test]
fn a_file_whose_content_is_made_while_it_is_read_is_named_and_not_sent_empty() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let mut sender = world.send(&[Path::new("/proc/version"), &film]);
    let received = world.receive(&sender.ticket()).finish();
    for side in [&received, &sender.finish()] {
        side.expect_error(10);
        assert_eq!(side.last("done")["left_out"], 1);
    }
    assert!(!world.target().join("version").exists());
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn an_unreadable_folder_is_named_once() {
    let (world, root) = World::with_tree("tree", &[("good", 1000)]);
    folder_that_cannot_be_listed(&root.join("locked"));
    let (sent, _) = transfer(&world, &mut send_as_nobody(&world, slice::from_ref(&root), true));
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    let note = sent.all("note").find(|note| note["path"] == "tree/locked").expect("it is named");
    assert_eq!(note["message"], "no permission to list it");
}

#[test]
fn a_special_file_in_a_tree_is_counted_and_does_no_harm() {
    for (count, words) in [(1, "1 special file was left out"), (2, "2 special files were left out")]
    {
        let (world, root) = World::with_tree("tree", &[("good", 1000)]);
        let _sockets: Vec<_> =
            (0..count).map(|n| UnixListener::bind(root.join(format!("s{n}"))).unwrap()).collect();
        let mut command = world.wraith("sender");
        command.args(["send", "--ticket", "--listen", "127.0.0.1:0"]).arg(&root);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (_, (status, said)) = support::process::said_by(command.spawn().unwrap(), |ticket| {
            let received = world.receive(ticket).succeed();
            assert_eq!(received.last("offer")["left_out"], 0);
        });
        assert_eq!(status.code(), Some(0), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_special_file_is_refused_before_a_ticket_is_made() {
    let world = World::new();
    let fifo = world.source().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let link = world.source().join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    for path in [PathBuf::from("/dev/zero"), PathBuf::from("/dev/null"), fifo, link] {
        let outcome = world.send(&[&path]).finish();
        outcome.expect_hint(2, "wraith send -");
        assert_eq!(outcome.all("ready").count(), 0);
    }
    // A shell makes this path of <(command).
    let mut command = Command::new("bash");
    command.env("WRAITH_HOME", world.path("home-sender")).env("WRAITH_LAN", "off");
    command.env("WRAITH_DHT", "off").env("WRAITH_PORT_MAPPING", "off");
    command.args(["-c", "\"$0\" send --json --ticket --listen 127.0.0.1:0 <(echo hello)"]);
    command.arg(world.wraith("sender").get_program());
    let outcome = Process::start("send", &mut command).finish();
    assert!(outcome.expect_error(2)["hint"].as_str().unwrap().contains("wraith send -"));
}
