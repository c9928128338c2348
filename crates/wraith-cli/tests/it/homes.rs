//! A home folder that keeps nothing stops no transfer; one that others can write to, or that is no home, stops everything.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::pty::Terminal;
use crate::support::{World, is_root, skipped, tree};

/// A home of this side that cannot be written, also not by root.
struct ReadOnly(std::path::PathBuf);

impl ReadOnly {
    fn new(world: &World, side: &str) -> Option<Self> {
        let home = world.path(&format!("home-{side}"));
        fs::create_dir_all(&home).unwrap();
        if !is_root() {
            tree::set_mode(&home, 0o500);
            return Some(Self(home));
        }
        let options = ["-t", "tmpfs", "-o", "size=64k,mode=700,ro", "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(&home).status().unwrap().success();
        if !mounted {
            skipped("this system mounts no tmpfs");
        }
        mounted.then_some(Self(home))
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        if is_root() {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        } else {
            tree::set_mode(&self.0, 0o700);
        }
    }
}

#[test]
fn with_homes_that_are_read_only_files_move_and_nothing_is_remembered() {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let (Some(_one), Some(_two)) =
        (ReadOnly::new(&world, "sender"), ReadOnly::new(&world, "receiver"))
    else {
        return;
    };
    let mut sender = world.send(&[&film]);
    let received = world.receive(&sender.ticket()).finish();
    received.expect_exit(0);
    let sent = sender.finish();
    sent.expect_exit(0);
    for outcome in [&sent, &received] {
        let note = outcome.last("note");
        let message = note["message"].as_str().unwrap();
        assert!(message.contains("remembers nothing"), "{message}");
    }
    tree::assert_same(&film, &world.target().join("film.mov"));
    // What is about the memory itself fails.
    let id = world.wraith("sender").arg("id").output().unwrap();
    assert_eq!(id.status.code(), Some(7));
}

#[test]
fn an_identity_that_is_there_is_used_where_nothing_else_can_be_written() {
    if !is_root() {
        return skipped("mounting needs root");
    }
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let id = world.wraith("sender").arg("id").output().unwrap();
    let id = String::from_utf8(id.stdout).unwrap();
    let home = world.path("home-sender");
    let bind = |options: &str| {
        let mount = Command::new("mount").args(["-o", options]).arg(&home).arg(&home).status();
        assert!(mount.unwrap().success());
    };
    bind("bind");
    bind("remount,ro,bind");
    let _home = ReadOnly(home.clone());
    let mut sender = world.send(&[&film]);
    let ready = sender.event("ready");
    assert_eq!(ready["node_id"], id.trim());
    world.receive(ready["ticket"].as_str().unwrap()).finish().expect_exit(0);
    let sent = sender.finish();
    sent.expect_exit(0);
    let notes: Vec<_> = sent.all("note").collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0]["message"].as_str().unwrap().contains("this run is not remembered"));
}

#[test]
fn a_home_that_others_can_write_to_is_refused() {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1);
    let home = world.path("home-one");
    fs::create_dir_all(&home).unwrap();
    tree::set_mode(&home, 0o777);
    for words in [&["send", "--ticket", film.to_str().unwrap()][..], &["id"], &["listen"]] {
        let output = world.wraith("one").args(words).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(7), "{words:?}: {said}");
        assert!(said.contains("other users can write to it"), "{said}");
        assert!(said.contains(&format!("chmod 700 {}", home.display())), "{said}");
    }
}

#[test]
fn an_identity_that_is_a_folder_is_told_as_such() {
    let world = World::new();
    fs::create_dir_all(world.path("home-one/identity")).unwrap();
    let output = world.wraith("one").arg("id").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("identity is a folder"), "{said}");
}

#[test]
fn never_is_an_answer_to_the_question_about_contacts() {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1000);
    let fetch = |more: &[&str]| {
        let mut sender = world.send(&[&film]);
        let mut command = world.wraith("receiver");
        command.args(["receive", "-o"]).arg(world.target()).args(more).arg(sender.ticket());
        let mut terminal = Terminal::start(&mut command, 24, 80);
        terminal.expect("Accept?");
        terminal.send("y\n");
        terminal.expect("verified.");
        (terminal, sender)
    };
    let (terminal, sender) = fetch(&["--no-contacts"]);
    assert!(!terminal.expect_exit(0).contains("as a contact?"));
    sender.finish().expect_exit(0);
    fs::remove_file(world.target().join("film.mov")).unwrap();
    let (mut terminal, sender) = fetch(&[]);
    terminal.expect("or never: ");
    terminal.send("never\n");
    assert!(terminal.expect_exit(0).contains("no-contacts undoes"));
    sender.finish().expect_exit(0);
    fs::remove_file(world.target().join("film.mov")).unwrap();
    let (terminal, sender) = fetch(&[]);
    assert!(!terminal.expect_exit(0).contains("as a contact?"));
    sender.finish().expect_exit(0);
}
