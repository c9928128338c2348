//! Progress for people: at a terminal, in a log, and with `--quiet`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::pty::Terminal;
use crate::support::{self, Process, World, offering, tree};
use serde_json::Value;

const FILM_BYTES: usize = 250 << 20;

/// Makes two large files, each with a progress line of its own.
fn two_films(world: &World) -> std::path::PathBuf {
    let folder = world.source().join("films");
    tree::file(&folder.join("first film.mov"), 1, FILM_BYTES);
    tree::file(&folder.join("second film.mov"), 2, FILM_BYTES);
    folder
}

/// Offers both. Returns the sender and the receiver's command, too.
fn two_films_offered() -> (World, Process, Command) {
    let world = World::new();
    let mut sender = world.send(&[two_films(&world)]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--yes", "-o"]).arg(world.target()).arg(sender.ticket());
    (world, sender, command)
}

#[test]
fn at_a_terminal_each_large_file_has_a_line_and_nothing_is_left_of_them() {
    let (_world, sender, mut command) = two_films_offered();
    let mut terminal = Terminal::start(&mut command, 24, 100);
    terminal.expect("first film.mov");
    terminal.expect("over loopback");
    let screen = terminal.expect_exit(0);
    sender.succeed();
    assert!(screen.contains("\x1b[36m"), "a bar has a color");
    // The cursor moves up to the first line, and everything below is erased before the closing
    // line.
    assert!(["\x1b[1A", "\x1b[2A"].iter().any(|up| screen.contains(up)), "{screen:?}");
    let (_, last) = screen.rsplit_once("\x1b[J").unwrap();
    assert!(last.starts_with("Received 2 files"), "{last:?}");
}

#[test]
fn without_color_and_on_a_narrow_terminal() {
    let (_world, sender, mut command) = two_films_offered();
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1"), 24, 20);
    terminal.expect("B/s");
    let screen = terminal.expect_exit(0);
    sender.succeed();
    assert!(!screen.contains("\x1b[36m") && !screen.contains("\x1b[2m"), "{screen:?}");
    // A redrawn line never wraps. The first and the last part contain other text beside it.
    let is_drawing = |drawn: &&str| {
        drawn.contains("B/s") && !drawn.contains("verified") && !drawn.contains("offers")
    };
    for drawn in screen.split("\x1b[J").filter(is_drawing) {
        for line in drawn.rsplit('\r').take(3).flat_map(|line| line.split("\x1b[K")) {
            let shown = line.trim_start_matches("\x1b[1A").trim_start_matches("\x1b[2A").trim();
            assert!(shown.chars().count() < 20, "{shown:?} in {drawn:?}");
        }
    }
}

#[test]
fn in_a_terminal_that_becomes_narrower_the_old_line_is_wiped_in_all_its_rows() {
    let (world, film) = World::with_file("film.mov", 1, 6_000_000);
    let mut sender = world.send_with(&[&film], &["--rate", "2M"]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--yes", "-o"]).arg(world.target()).arg(sender.ticket());
    let mut terminal = Terminal::start(&mut command, 24, 120);
    // A line of more than 40 columns, which takes two or three rows of a terminal with 40.
    terminal.expect("over loopback");
    terminal.expect("over loopback");
    terminal.resize(24, 40);
    let drawn = terminal.expect("A");
    assert!(drawn.ends_with("\r\x1b[1") || drawn.ends_with("\r\x1b[2"), "{drawn:?}");
    terminal.expect("verified.");
    terminal.expect_exit(0);
    sender.succeed();
}

#[test]
fn quiet_is_quiet() {
    let (world, _, sender, ticket) = offering(30 << 20, &[]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "-q", "--yes", "-o"]).arg(world.target()).arg(&ticket);
    let screen = Terminal::start(&mut command, 24, 80).expect_exit(0);
    sender.succeed();
    assert_eq!(screen, "");
}

#[test]
fn json_progress_has_path_and_bottleneck() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let mut sender = world.send(&[film]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "-o"]).arg(world.target()).arg(sender.ticket());
    let receiver = Process::start_with_stdin("receive", command.stdin(Stdio::from(reader)));
    // The question has no answer yet, so the sender waits for neither disk nor processor.
    let progress = sender.event_where("progress", |progress| !progress["bottleneck"].is_null());
    assert_eq!((&progress["path"], &progress["bottleneck"]), (&"loopback".into(), &"net".into()));
    writer.write_all(b"y\n").unwrap();
    receiver.succeed();
    sender.succeed();
}

#[test]
fn a_cap_is_no_slow_network() {
    // Enough chunks per second for a steady rate.
    for (of_sender, of_receiver) in [(&["--rate", "5M"][..], &[][..]), (&[], &["--rate", "5M"])] {
        let (world, film) = World::with_file("film.mov", 1, 25_000_000);
        let mut sender = world.send_with(&[film], of_sender);
        let receiver = world.receive_with(&sender.ticket(), of_receiver).finish();
        let sent = sender.finish();
        // A sender knows the rate limit of its receiver.
        let capped = if of_receiver.is_empty() { vec![&sent] } else { vec![&sent, &receiver] };
        for side in capped {
            let is_capped = |progress: &serde_json::Value| progress["bottleneck"] == "rate";
            assert!(side.all("progress").any(is_capped), "{}", side.stderr);
        }
    }
}

#[test]
fn a_reconnection_counts_bytes_once_and_has_no_rate_meanwhile() {
    const SIZE: u64 = 60_000_000;
    let (world, _, mut sender, ticket) = offering(SIZE as usize, &["--rate", "16M"]);
    let receiver = world.receive(&ticket);
    sender.event_where("progress", |progress| progress["bytes"].as_u64() > Some(SIZE / 8));
    receiver.signal(libc::SIGINT);
    receiver.finish().expect_exit(130);
    sender.event("reconnecting");
    let waiting = sender.event("progress");
    let waiting = if waiting["path"].is_null() { waiting } else { sender.event("progress") };
    assert_eq!((&waiting["bytes_per_second"], &waiting["path"]), (&0.into(), &Value::Null));
    assert!(waiting["eta_seconds"].is_null() && waiting["bottleneck"].is_null(), "{waiting}");
    assert!(waiting["bytes"].as_u64() > Some(SIZE / 8), "how far it was is still shown");
    world.receive(&ticket).succeed();
    let sent = sender.succeed();
    for progress in sent.all("progress") {
        assert_eq!((&progress["total"], &progress["total_files"]), (&SIZE.into(), &1.into()));
    }
    assert_eq!(sent.last("progress")["bytes"], SIZE);
}

#[test]
fn present_bytes_do_not_count_as_speed() {
    const SIZE: usize = 200_000_000;
    const RATE: u64 = 16 << 20;
    let (world, film) = World::with_file("film.mov", 1, SIZE);
    let mut sender = world.send(&[&film]);
    let receiver = world.receive_with(&sender.ticket(), &["--rate", "40M"]);
    support::journal::wait_until_verified(&world.target(), "film.mov", 400);
    receiver.kill();
    sender.kill();
    let mut sender = world.send_with(&[&film], &["--rate", "16M"]);
    let received = world.receive(&sender.ticket()).succeed();
    assert!(
        received.last("done")["bytes_moved"].as_u64() < Some(SIZE as u64 / 2 + SIZE as u64 / 4)
    );
    let sent = sender.succeed();
    for outcome in [&received, &sent] {
        for progress in outcome.all("progress") {
            // A burst and buffered data come on top of the limit.
            let rate = progress["bytes_per_second"].as_u64().unwrap();
            assert!(rate < 3 * RATE, "{}: {progress}", outcome.name);
        }
    }
}
