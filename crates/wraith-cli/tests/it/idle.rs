//! The resource use of a process: wake-ups of a waiting sender, and numbers of threads.

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::{Process, World, lan, tree};

/// Maximum number of threads of a waiting sender, and of each side of a transfer.
const THREADS_WAITING_MAX: usize = 4;
const THREADS_MAX: usize = 8;
/// Long enough to detect a timer of a second or less, and to make start-up work negligible.
const WINDOW: Duration = Duration::from_secs(4);

/// Returns the number of voluntary context switches of all threads. Each wake-up ends with one.
fn waits_of(process: &Process) -> u64 {
    let of_thread = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    let tasks = fs::read_dir(format!("/proc/{}/task", process.pid())).unwrap();
    tasks.flatten().filter_map(of_thread).sum()
}

fn threads_of(process: &Process) -> usize {
    // The process may have ended meanwhile.
    fs::read_dir(format!("/proc/{}/task", process.pid())).map_or(0, Iterator::count)
}

#[test]
fn a_sender_that_waits_with_code_network_and_server_wakes_up_less_than_twice_a_second() {
    let _network = lan::own_network();
    let (world, film) = World::with_file("film.mov", 1, 1000);
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = world.wraith("server");
    command.args(["rendezvous", "--json", "--listen", &address]);
    let mut server = Process::start("rendezvous", &mut command);
    server.event("listening");
    let mut sender = world.send_by_code(&[film], &["--lan", "lo", "--rendezvous", &address]);
    let ready = sender.event("ready");
    // On a busy machine, the code is shown before the server has answered.
    if ready["waiting_at"] != json!(["lan", address]) {
        assert_eq!(ready["waiting_at"], json!(["lan"]));
        sender.event_where("code", |code| code["state"] == "back");
    }
    let before = waits_of(&sender);
    // This is the measuring time, not a wait for an event.
    thread::sleep(WINDOW);
    let woken = waits_of(&sender) - before;
    assert!(woken < 2 * WINDOW.as_secs(), "it woke up {woken} times in {WINDOW:?}");
    let threads = threads_of(&sender);
    assert!(threads <= THREADS_WAITING_MAX, "{threads} threads wait");
}

#[test]
fn a_transfer_has_few_threads_on_either_side() {
    let (world, trip) = World::with_tree("trip", &[("film.mov", 40_000_000)]);
    for n in 0..200 {
        tree::file(&trip.join(format!("note {n}")), n, 5000);
    }
    let mut sender = world.send_with(&[&trip], &["--rate", "20M"]);
    let mut receiver = world.receive(&sender.ticket());
    let (mut most, mut before) = ((0, 0), (0, 0));
    loop {
        let event = receiver.event_where_either("progress", "done");
        let now = (threads_of(&sender), threads_of(&receiver));
        // On a busy machine, a thread that ends is still listed when the next one has begun. So a
        // number counts if it was there at two events in a row.
        most = (most.0.max(now.0.min(before.0)), most.1.max(now.1.min(before.1)));
        before = now;
        if event["event"] == "done" {
            break;
        }
    }
    receiver.succeed();
    sender.succeed();
    assert!(most.0 > 1 && most.1 > 1, "nothing was looked at: {most:?}");
    assert!(most.0 <= THREADS_MAX && most.1 <= THREADS_MAX, "sender and receiver: {most:?}");
}
