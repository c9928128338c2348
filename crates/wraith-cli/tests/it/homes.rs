//! A home folder that cannot be written stops no transfer. A home folder that other users can write
//! to, or that is no folder, stops every command.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::support::pty::Terminal;
use crate::support::{Process, World, is_root, skipped, tree};

/// A home of this side that no user can write to, not even root.
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
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let (Some(_one), Some(_two)) =
        (ReadOnly::new(&world, "sender"), ReadOnly::new(&world, "receiver"))
    else {
        return;
    };
    let mut sender = world.send(&[&film]);
    let received = world.receive(&sender.ticket()).succeed();
    let sent = sender.succeed();
    for outcome in [&sent, &received] {
        let note = outcome.last("note");
        let message = note["message"].as_str().unwrap();
        assert!(message.contains("saves nothing"), "{message}");
    }
    tree::assert_same(&film, &world.target().join("film.mov"));
    // Commands that need to store state fail.
    let id = world.wraith("sender").arg("id").output().unwrap();
    assert_eq!(id.status.code(), Some(7));
}

/// Runs a command without any variable that names a folder of the user, or with this `HOME`.
fn without_home(world: &World, home: Option<&str>) -> Command {
    let mut command = world.wraith("none");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"XDG_") {
            command.env_remove(name);
        }
    }
    command.env_remove("WRAITH_HOME").env_remove("HOME").current_dir(world.target());
    command.envs(home.map(|home| ("HOME", home)));
    command
}

#[test]
fn without_a_home_files_move_with_one_note_and_no_line_after_success() {
    for (home, why) in [
        (None, "HOME is not set"),
        (Some(""), "HOME is not set"),
        (Some("/dev/null"), "/dev/null/.config/wraith"),
    ] {
        let (world, film) = World::with_file("film.mov", 1, 100_000);
        let mut command = without_home(&world, home);
        command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).arg(&film);
        let mut sender = Process::start("send", &mut command);
        let ticket = sender.ticket();
        let output = without_home(&world, home).args(["receive", "-y", &ticket]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let lines: Vec<_> = said.lines().collect();
        let is_note = |line: &&&str| line.starts_with("wraith: ");
        assert_eq!(lines.iter().filter(is_note).count(), 1, "{said}");
        assert!(lines[0].contains(why) && lines[0].contains("saves nothing"), "{said}");
        assert!(lines.last().unwrap().starts_with("Received 1 file"), "{said}");
        let sent = sender.succeed();
        assert_eq!(sent.all("note").count(), 1, "{:?}", sent.events);
        assert_eq!(sent.events.last().unwrap()["event"], "done");
        tree::assert_same(&film, &world.target().join("film.mov"));
        // Commands that need no home work; the others name the variable.
        let hash = without_home(&world, home).args(["hash", "film.mov"]).output().unwrap();
        assert!(hash.status.success() && hash.stderr.is_empty(), "{hash:?}");
        let id = without_home(&world, home).arg("id").output().unwrap();
        assert!(!id.status.success());
        let said = String::from_utf8(id.stderr).unwrap();
        assert!(said.contains("WRAITH_HOME"), "{said}");
    }
}

#[test]
fn without_any_home_no_continuation_is_promised_either() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let (_server, address) = world.rendezvous();
    let (Some(_one), Some(_two)) =
        (ReadOnly::new(&world, "sender"), ReadOnly::new(&world, "receiver"))
    else {
        return;
    };
    let mut sender = world.send_by_code(&[&film], &["--rate", "500k", "--rendezvous", &address]);
    let code = sender.code();
    let mut receiver = world.receive_with(&code, &["--rendezvous", &address]);
    receiver.event("accept");
    sender.event("accept");
    for (side, words) in [(receiver, "new code"), (sender, "start over")] {
        side.signal(libc::SIGINT);
        let ended = side.finish();
        let hint = ended.expect_error(130)["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains(words) && !hint.contains("to continue"), "{hint}");
    }
}

#[test]
fn an_identity_that_is_there_is_used_where_nothing_else_can_be_written() {
    if !is_root() {
        return skipped("mounting needs root");
    }
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
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
    world.receive(ready["ticket"].as_str().unwrap()).succeed();
    let sent = sender.succeed();
    let notes: Vec<_> = sent.all("note").collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0]["message"].as_str().unwrap().contains("this run was not saved"));
}

#[test]
fn where_nothing_can_be_remembered_no_continuation_is_promised() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    tree::set_mode(&world.source(), 0o755);
    let (_server, address) = world.rendezvous();
    let place = ["--rendezvous", &address];
    let nobody = |side: &str| world.wraith_as_nobody(side);
    let target = world.path("in");
    fs::create_dir(&target).unwrap();
    tree::set_mode(&target, 0o777);
    for side in ["sender", "receiver"] {
        assert!(nobody(side).arg("id").output().unwrap().status.success());
        tree::set_mode(&world.path(&format!("home-{side}")), 0o500);
    }
    let mut command = nobody("sender");
    command.args(["send", "--json", "--rate", "500k", "--lan", "off"]).args(place).arg(&film);
    let mut sender = Process::start("send", &mut command);
    let mut command = nobody("receiver");
    command.args(["receive", "--json", "--yes", "--lan", "off", "-o"]).arg(&target).args(place);
    let mut receiver = Process::start("receive", command.arg(sender.code()));
    receiver.event("accept");
    sender.event("accept");
    receiver.signal(libc::SIGINT);
    let received = receiver.finish();
    let hint = received.expect_error(130)["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("new code") && !hint.contains("to continue"), "{hint}");
    let note = |outcome: &crate::support::Outcome, words: &str| {
        outcome.all("note").any(|note| note["message"].as_str().unwrap().contains(words))
    };
    assert!(note(&received, "this run is the only one that can use it"));
    sender.signal(libc::SIGINT);
    let sent = sender.finish();
    let hint = sent.expect_error(130)["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("start over"), "{hint}");
    for side in ["sender", "receiver"] {
        tree::set_mode(&world.path(&format!("home-{side}")), 0o700);
    }
}

#[test]
fn the_final_event_is_the_last_line() {
    if is_root() {
        // The tests run as root, so file modes apply only to another user.
        let (world, film) = World::with_file("film.mov", 1, 1000);
        tree::set_mode(&world.source(), 0o755);
        let target = world.path("in");
        fs::create_dir(&target).unwrap();
        tree::set_mode(&target, 0o777);
        let mut sender = world.send_with(&[&film], &["--save-as", "bob"]);
        assert!(world.wraith_as_nobody("receiver").arg("id").output().unwrap().status.success());
        tree::set_mode(&world.path("home-receiver"), 0o500);
        let mut command = world.wraith_as_nobody("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(&target).arg(sender.ticket());
        let received = command.output().unwrap();
        tree::set_mode(&world.path("home-receiver"), 0o700);
        let lines = String::from_utf8(received.stdout).unwrap();
        assert!(lines.contains("no list was saved"), "{lines}");
        assert!(lines.lines().last().unwrap().contains(r#""event":"done""#), "{lines}");
        let sent = sender.succeed();
        assert_eq!(sent.events.last().unwrap()["event"], "done");
        assert_eq!(sent.all("contact").count(), 1);
    } else {
        skipped("a home that is read-only for nobody but its owner needs root");
    }
}

#[test]
fn a_home_that_others_can_write_to_is_refused() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    let home = world.path("home-one");
    fs::create_dir_all(&home).unwrap();
    tree::set_mode(&home, 0o777);
    for words in [
        &["send", "--ticket", film.to_str().unwrap()][..],
        &["id"],
        &["listen", "--accept", "contacts"],
    ] {
        let output = world.wraith("one").args(words).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(7), "{words:?}: {said}");
        assert!(said.contains("other users can write to it"), "{said}");
        assert!(said.contains(&format!("chmod 700 {}", home.display())), "{said}");
    }
}

#[test]
fn the_settings_of_a_home_that_others_can_write_to_are_not_obeyed() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    let (home, log) = (world.path("home-one"), world.path("log"));
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), format!("log = {log:?}\n")).unwrap();
    tree::set_mode(&home, 0o777);
    let film = film.to_str().unwrap();
    for words in [&["send", film][..], &["hash", film], &["contact", "list"], &["rendezvous"]] {
        let output = world.wraith("one").args(words).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(7), "{words:?}: {said}");
        assert!(said.contains("other users can write to it"), "{said}");
        assert!(!log.exists(), "{words:?}");
    }
    fs::remove_file(home.join("config.toml")).unwrap();
    for words in [&["contact", "list"][..], &["verify", "."], &["config", "set", "json", "true"]] {
        let output = world.wraith("one").args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{words:?}");
    }
}

#[test]
fn a_home_of_another_user_is_refused() {
    if !is_root() {
        return skipped("giving a folder away needs root");
    }
    let world = World::new();
    let home = world.path("home-one");
    fs::create_dir_all(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), None).unwrap();
    tree::set_mode(&home, 0o755);
    let output = world.wraith("one").arg("id").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("it belongs to another user") && said.contains("WRAITH_HOME"), "{said}");
    let doctor = world.wraith("one").args(["doctor", "--json"]).output().unwrap();
    let checks = String::from_utf8(doctor.stdout).unwrap();
    let check = checks.lines().find(|line| line.contains("home folder")).unwrap();
    assert!(check.contains(r#""status":"fail""#), "{check}");
}

/// Asserts an exit code, and that standard error contains `part`.
fn expect_said(output: Output, code: i32, part: &str) {
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(part), "{said}");
}

#[test]
fn an_identity_that_cannot_be_reached_is_replaced_by_none() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    let mut command = world.wraith_as_nobody("one");
    assert!(command.arg("id").output().unwrap().status.success());
    tree::set_mode(&world.path("home-one"), 0);
    let mut command = world.wraith_as_nobody("one");
    command.args(["send", "--no-config", "--ticket"]).arg(&film).stdin(Stdio::null());
    let output = command.output().unwrap();
    tree::set_mode(&world.path("home-one"), 0o700);
    expect_said(output, 7, "identity");
}

#[test]
fn beginning_anew_ends_the_ticket_of_before_or_fails() {
    let (world, film) = World::with_file("film.mov", 1, 1);
    let home = world.path("home-one");
    let ticket = |more: &[&str]| {
        let mut command = world.wraith_as_nobody("one");
        tree::set_mode(&world.source(), 0o755);
        command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).args(more);
        let mut sender = Process::start("send", command.arg(&film));
        let event = sender.event_where_either("ready", "error");
        (event["ticket"].as_str().map(str::to_owned), event, sender.kill())
    };
    let (first, ..) = ticket(&[]);
    let folders = [home.join("sends"), home.clone()];
    let may_write = |may: bool| {
        folders.iter().for_each(|folder| tree::set_mode(folder, if may { 0o700 } else { 0o500 }));
    };
    may_write(false);
    let (none, event, _) = ticket(&["--new"]);
    assert_eq!(none, None);
    assert!(event["message"].as_str().unwrap().contains("cannot remove"), "{event}");
    let (same, _, said) = ticket(&[]);
    let note = said.last("note")["message"].as_str().unwrap();
    assert!(note.contains("may have the ticket of an earlier one"), "{note}");
    assert!(same.is_some());
    may_write(true);
    assert_eq!(ticket(&[]).0, first, "nothing was begun anew");
    assert_ne!(ticket(&["--new"]).0, first);
    assert_ne!(ticket(&[]).0, first);
}

#[test]
fn an_identity_that_is_a_folder_is_reported() {
    let world = World::new();
    fs::create_dir_all(world.path("home-one/identity")).unwrap();
    let output = world.wraith("one").arg("id").output().unwrap();
    expect_said(output, 1, "identity is a folder");
}

#[test]
fn never_is_an_answer_to_the_question_about_contacts() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
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
    sender.succeed();
    fs::remove_file(world.target().join("film.mov")).unwrap();
    let (mut terminal, sender) = fetch(&[]);
    terminal.expect("or never: ");
    terminal.send("never\n");
    terminal.expect("wraith config unset no-contacts");
    terminal.expect_exit(0);
    sender.succeed();
    fs::remove_file(world.target().join("film.mov")).unwrap();
    let (terminal, sender) = fetch(&[]);
    assert!(!terminal.expect_exit(0).contains("as a contact?"));
    sender.succeed();
}

#[test]
fn a_relay_without_a_folder_for_its_certificate_names_the_option() {
    let world = World::new();
    let mut command = world.wraith("relay");
    command.args(["relay", "--json", "--listen", "127.0.0.1:0", "--state", "/dev/null/x"]);
    Process::start("relay", &mut command).finish().expect_hint(1, "--state");
}
