//! Standard input and output as the ends of a transfer.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::pty::Terminal;
use crate::support::{Process, World, expect_arrival, offering, tree};
use serde_json::Value;

/// Starts `wraith send -`. Returns it with its input pipe.
fn send(world: &World, more: &[&str]) -> (Process, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).args(more).arg("-");
    (Process::start_with_stdin("send", command.stdin(reader)), writer)
}

/// A `wraith receive -o -`, whose events are on standard error.
struct Receiver {
    child: Child,
    out: Option<PipeReader>,
    events: JoinHandle<String>,
}

fn receive(world: &World, ticket: &str) -> Receiver {
    let (out, stdout) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "-o", "-", ticket]).stdin(Stdio::null());
    command.stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Otherwise this process would keep the pipe open, and the output would never end.
    command.stdout(Stdio::null());
    let mut stderr = child.stderr.take().unwrap();
    let events = thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    Receiver { child, out: Some(out), events }
}

impl Receiver {
    fn finish(mut self, code: i32) -> Vec<Value> {
        let status = self.child.wait().unwrap();
        let text = self.events.join().unwrap();
        assert_eq!(status.code(), Some(code), "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn read_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        self.out.take().unwrap().read_to_end(&mut all).unwrap();
        all
    }
}

fn last<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().rfind(|e| e["event"] == kind).unwrap_or_else(|| panic!("no {kind}: {events:?}"))
}

#[test]
fn bytes_of_unknown_number_come_out_as_they_went_in() {
    for len in [0, 1, 262_144, 262_145, 10_000_003] {
        let world = World::new();
        let bytes = tree::noise(len as u64, len);
        let (mut sender, mut input) = send(&world, &[]);
        let ticket = sender.ticket();
        let theirs = bytes.clone();
        let writer = thread::spawn(move || {
            theirs.chunks(70_001).for_each(|piece| input.write_all(piece).unwrap());
        });
        let mut receiver = receive(&world, &ticket);
        assert!(receiver.read_all() == bytes, "{len}");
        writer.join().unwrap();
        let events = receiver.finish(0);
        let sent = sender.succeed();
        let root = blake3::hash(&bytes).to_hex().to_string();
        for done in [last(&events, "done"), sent.last("done")] {
            assert_eq!(done["bytes"], len);
            assert!(!done["receipt"].as_str().unwrap().is_empty());
        }
        for file in [last(&events, "file"), sent.last("file")] {
            assert_eq!((&file["root"], &file["path"]), (&root.clone().into(), &"stdin".into()));
        }
    }
}

#[test]
fn a_stream_is_delivered_before_its_input_ends() {
    let world = World::new();
    let (mut sender, mut input) = send(&world, &[]);
    let mut receiver = receive(&world, &sender.ticket());
    let mut out = receiver.out.take().unwrap();
    for line in ["first\n", "second\n", "third\n"] {
        input.write_all(line.as_bytes()).unwrap();
        let mut got = vec![0; line.len()];
        out.read_exact(&mut got).unwrap();
        assert_eq!(got, line.as_bytes());
    }
    drop(input);
    assert_eq!(out.read(&mut [0]).unwrap(), 0);
    receiver.finish(0);
    sender.succeed();
}

#[test]
fn a_tree_is_piped_from_tar_to_tar() {
    let world = World::new();
    for n in 0..50 {
        tree::file(&world.source().join(format!("folder/{n}")), n, 50_000);
    }
    let quoted = |path: &Path| format!("'{}'", path.display());
    let source = quoted(&world.source());
    let sender = Command::new("sh")
        .args([
            "-c",
            &format!("tar -C {source} -cf - . | \"$0\" send -q --ticket --listen 127.0.0.1:0 -"),
        ])
        .arg(world.wraith("sender").get_program())
        .envs(world.wraith("sender").get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sender = sender;
    let mut line = String::new();
    let stdout = sender.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let ticket = line.split_whitespace().last().unwrap();
    let target = quoted(&world.target());
    let status = Command::new("sh")
        .args(["-c", &format!("\"$0\" receive -q -o - {ticket} | tar -C {target} -xf -")])
        .arg(world.wraith("receiver").get_program())
        .envs(world.wraith("receiver").get_envs().filter_map(|(k, v)| Some((k, v?))))
        .status()
        .unwrap();
    assert!(status.success());
    assert!(sender.wait().unwrap().success());
    // Without times, because tar keeps whole seconds.
    let same = Command::new("diff").arg("-r").args([world.source(), world.target()]).status();
    assert!(same.unwrap().success());
}

#[test]
fn into_a_folder_it_gets_the_name_that_the_sender_gave() {
    let world = World::new();
    let bytes = tree::noise(1, 3_000_000);
    let (mut sender, mut input) = send(&world, &["--name", "backup.tar"]);
    let receiver = world.receive(&sender.ticket());
    input.write_all(&bytes).unwrap();
    drop(input);
    receiver.succeed();
    sender.succeed();
    assert_eq!(tree::names(&world.target()), ["backup.tar".into()] as [std::path::PathBuf; 1]);
    assert!(std::fs::read(world.target().join("backup.tar")).unwrap() == bytes);
}

#[test]
fn a_receiver_that_dies_leaves_nothing_half_done_under_the_name() {
    let world = World::new();
    let (mut sender, mut input) = send(&world, &["--reconnect", "0"]);
    let mut receiver = world.receive(&sender.ticket());
    input.write_all(&tree::noise(1, 1_000_000)).unwrap();
    receiver.event_where("progress", |e| e["bytes"].as_u64().unwrap() > 0);
    receiver.signal(libc::SIGINT);
    receiver.finish().expect_exit(130);
    assert!(tree::names(&world.target()).is_empty());
    drop(input);
    sender.finish().expect_exit(6);
}

#[test]
fn a_stopped_reader_stops_the_writer_until_it_continues() {
    const LEN: usize = 300_000_000;
    let world = World::new();
    let (mut sender, mut input) = send(&world, &[]);
    let ticket = sender.ticket();
    let written = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&written);
    let bytes = Arc::new(tree::noise(1, LEN));
    let theirs = Arc::clone(&bytes);
    let writer = thread::spawn(move || {
        for piece in theirs.chunks(65_536) {
            input.write_all(piece).unwrap();
            counter.fetch_add(piece.len() as u64, Relaxed);
        }
    });
    let mut receiver = receive(&world, &ticket);
    // Nothing reads the output, so the writer stops when every buffer on the way is full.
    let mut before = u64::MAX;
    while before != written.load(Relaxed) || before == 0 {
        before = written.load(Relaxed);
        thread::sleep(Duration::from_millis(1000));
    }
    assert!(before < 200_000_000, "{before} bytes are under way");
    assert!(receiver.read_all() == *bytes);
    writer.join().unwrap();
    receiver.finish(0);
    sender.succeed();
}

#[test]
fn a_reader_that_ends_early_ends_both_sides_with_a_word() {
    let world = World::new();
    let (mut sender, mut input) = send(&world, &[]);
    let ticket = sender.ticket();
    let writer = thread::spawn(move || {
        let noise = tree::noise(1, 1_000_000);
        let broken = std::iter::repeat_with(|| input.write_all(&noise)).find_map(Result::err);
        assert_eq!(broken.unwrap().kind(), ErrorKind::BrokenPipe);
    });
    let mut receiver = receive(&world, &ticket);
    receiver.out.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let events = receiver.finish(7);
    let told = |event: &Value| event["message"].as_str().unwrap().to_owned();
    let here = told(last(&events, "error"));
    assert!(here.contains("the program that reads the output ended"), "{here}");
    let sent = sender.finish();
    let there = told(sent.expect_error(7));
    assert!(there.contains("the program that reads the output ended"), "{there}");
    writer.join().unwrap();
}

#[test]
fn one_file_can_be_received_on_standard_output() {
    let (world, film) = World::with_file("film.mov", 1, 5_000_000);
    let mut sender = world.send(&[&film]);
    let mut receiver = receive(&world, &sender.ticket());
    assert!(receiver.read_all() == std::fs::read(&film).unwrap());
    receiver.finish(0);
    sender.succeed();
}

#[test]
fn a_folder_cannot_go_to_standard_output_and_the_ticket_stays_good() {
    let (world, folder) = World::with_tree("folder", &[("film.mov", 1_000_000)]);
    let mut sender = world.send(&[&folder]);
    let ticket = sender.ticket();
    let events = receive(&world, &ticket).finish(2);
    assert!(last(&events, "error")["hint"].as_str().unwrap().contains("-o DIR"));
    expect_arrival(world.receive(&ticket), sender, &folder, &world.target());
}

#[test]
fn nothing_goes_to_a_terminal_unless_forced() {
    let world = World::new();
    let text = world.source().join("text");
    std::fs::write(&text, "some text that is shown").unwrap();
    let mut sender = world.send(&[&text]);
    let ticket = sender.ticket();
    let at_terminal = |more: &[&str]| {
        let mut command = world.wraith("receiver");
        Terminal::start(command.args(["receive", "-o", "-"]).args(more).arg(&ticket), 24, 80)
    };
    let screen = at_terminal(&[]).expect_exit(2);
    assert!(screen.contains("is a terminal") && screen.contains("--force"), "{screen}");
    let screen = at_terminal(&["--force"]).expect_exit(0);
    assert!(screen.contains("some text that is shown"), "{screen}");
    sender.succeed();
}

#[test]
fn standard_input_goes_alone_and_to_one_receiver() {
    let world = World::new();
    for words in [
        &["-", "/etc/hostname"][..],
        &["-", "--keep"],
        &["-", "-n", "2"],
        &["-", "--name", "a/b"],
        &["-", "--name", ".."],
    ] {
        let mut command = world.wraith("sender");
        command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).args(words);
        Process::start("send", &mut command).finish().expect_error(2);
    }
}

#[test]
fn usage_errors_do_not_reach_the_data_output() {
    let world = World::new();
    for words in [&["-o", "-", "--bogus"][..], &["--out=-", "--rate", "x"], &["-o-", "7-crater"]] {
        let mut command = world.wraith("receiver");
        let output = command.args(["receive", "--json"]).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(output.stdout, b"", "{words:?}");
        let error: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["event"], "error");
    }
}

/// Starts a stream that has no end yet, into the target folder. Returns both sides, once the
/// receiver has accepted, and the pipe of the stream.
fn endless_stream(world: &World) -> (Process, Process, PipeWriter) {
    let (mut sender, mut input) = send(world, &[]);
    input.write_all(b"first\n").unwrap();
    let mut receiver = world.receive(&sender.ticket());
    receiver.event("accept");
    sender.event("accept");
    (sender, receiver, input)
}

#[test]
fn a_stream_that_is_stopped_is_not_said_to_continue() {
    for is_stopped_by_sender in [true, false] {
        let world = World::new();
        let (sender, receiver, input) = endless_stream(&world);
        let stopped = if is_stopped_by_sender { &sender } else { &receiver };
        stopped.signal(libc::SIGINT);
        let (sender_exit, receiver_exit) = if is_stopped_by_sender { (130, 6) } else { (6, 130) };
        let hint = |error: &Value| error["hint"].as_str().unwrap().to_owned();
        let received = hint(receiver.finish().expect_error(receiver_exit));
        let sent = hint(sender.finish().expect_error(sender_exit));
        drop(input);
        for hint in [&received, &sent] {
            assert!(hint.starts_with("a stream cannot be continued"), "{hint}");
        }
        assert!(received.contains("wraith send - there again"), "{received}");
        assert!(sent.contains("to send all of it, run again: wraith send "), "{sent}");
    }
}

#[test]
fn a_file_to_standard_output_that_is_stopped_starts_again_from_the_beginning() {
    let (world, film, sender, ticket) = offering(3_000_000, &["--rate", "500k"]);
    let mut receiver = receive(&world, &ticket);
    let mut first = [0];
    receiver.out.as_mut().unwrap().read_exact(&mut first).unwrap();
    let pid = receiver.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let events = receiver.finish(130);
    let hint = last(&events, "error")["hint"].as_str().unwrap();
    assert!(hint.starts_with("to write everything from the start, run again: "), "{hint}");
    // The sender is still waiting, and the hint is true.
    let mut receiver = receive(&world, &ticket);
    assert!(receiver.read_all() == std::fs::read(&film).unwrap());
    receiver.finish(0);
    sender.succeed();
}
