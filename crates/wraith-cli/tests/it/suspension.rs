//! A machine that is suspended for an hour at a random moment goes on when it wakes.
//!
//! In contrast to `sleep.rs`, the clocks of the machine jump by an hour, as they do on a laptop,
//! while its peer waits. `--reconnect 10` makes each side give up 10 s after it has noticed the
//! loss, so a transfer that goes on later fails.

use std::time::{Duration, Instant};

use crate::over_the_dht;
use crate::support::clock::TestClock;
use crate::support::journal::verified_chunks;
use crate::support::random::Random;
use crate::support::{Process, World, cases, lan, rounds, tree};

const CHUNK: u64 = 256 << 10;
/// Whole chunks and a remainder.
const FILM_BYTES: u64 = 60 * CHUNK + 1234;
/// Slow enough for the transfer to be under way at the random moment.
const RATE: &str = "8M";
/// How long the machine stands still: longer than the idle timeout of its peer (10 s). Its clocks
/// show an hour.
const NAP: Duration = Duration::from_secs(12);

/// How the two sides meet, and over which path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Ticket,
    /// A code in the local network of the test.
    Code,
    Listener,
    Relay,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sleeper {
    Sender,
    Receiver,
}

struct Transfer {
    world: World,
    clock: TestClock,
    sleeper: Sleeper,
    _relay: Option<Process>,
    /// Options of both sides.
    options: Vec<String>,
}

impl Transfer {
    fn new(way: Way, sleeper: Sleeper) -> Option<Self> {
        let world = World::new();
        let clock = TestClock::new(&world)?;
        tree::file(&world.source().join("film.mov"), 1, FILM_BYTES as usize);
        let (mut running, mut words) = (None, Vec::new());
        if way == Way::Relay {
            let mut command = world.wraith("relay");
            command.args(["relay", "--json", "--drain", "0", "--listen", "127.0.0.1:0"]);
            let mut relay = Process::start("relay", &mut command);
            let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
            words = vec!["--relay".into(), address, "--relay-only".into()];
            running = Some(relay);
        }
        if way == Way::Code {
            words = vec!["--lan".into(), "lo".into()];
        }
        Some(Self { world, clock, sleeper, _relay: running, options: words })
    }

    fn start(&self, role: Sleeper, words: &[&str]) -> Process {
        let (side, name) = match role {
            Sleeper::Sender => ("sender", "send"),
            Sleeper::Receiver => ("receiver", "receive"),
        };
        let mut command = self.world.wraith(side);
        command.args(words).args(&self.options);
        if role == Sleeper::Sender {
            command.args(["--rate", RATE, "--reconnect", "10"]);
            command.arg(self.world.source().join("film.mov"));
        }
        let is_sleeper = role == self.sleeper;
        Process::start(name, if is_sleeper { self.clock.of(&mut command) } else { &mut command })
    }

    /// Starts the side that waits, and returns it with the function that starts the other one.
    fn sides(&self, way: Way) -> (Process, Box<dyn FnOnce() -> Process + '_>) {
        let target = self.world.target().to_string_lossy().into_owned();
        if way == Way::Listener {
            self.world.know("receiver", "sender", None);
            let accept = ["listen", "--json", "--accept", "contacts"];
            let listen = [&accept[..], &["--listen", "127.0.0.1:0", "-o", &target]].concat();
            let mut listener = self.start(Sleeper::Receiver, &listen);
            let address = listener.event("listening")["address"].as_str().unwrap().to_owned();
            self.world.know("sender", "receiver", Some(&address));
            let call = || self.start(Sleeper::Sender, &["send", "--json", "--to", "receiver"]);
            return (listener, Box::new(call));
        }
        let send: &[&str] = match way {
            Way::Code => &["send", "--json"],
            Way::Relay => &["send", "--json", "--ticket"],
            _ => &["send", "--json", "--ticket", "--listen", "127.0.0.1:0"],
        };
        let mut sender = self.start(Sleeper::Sender, send);
        let ticket = if way == Way::Code { sender.code() } else { sender.ticket() };
        let receive = move || {
            let words = ["receive", "--json", "--yes", "--reconnect", "10", "-o", &target, &ticket];
            self.start(Sleeper::Receiver, &words)
        };
        (sender, Box::new(receive))
    }

    /// Waits for the end of the transfer, and compares the files.
    fn finish(&self, way: Way, mut waiting: Process, dialling: Process) {
        dialling.succeed();
        match way {
            Way::Listener => drop(waiting.event("done")),
            _ => {
                waiting.succeed();
            }
        }
        tree::assert_same(
            &self.world.source().join("film.mov"),
            &self.world.target().join("film.mov"),
        );
    }
}

/// Suspends one side once the receiver has `goal` chunks.
fn suspended_at(goal: u64, way: Way, sleeper: Sleeper) {
    let Some(transfer) = Transfer::new(way, sleeper) else { return };
    let (waiting, start_other) = transfer.sides(way);
    let waits = if way == Way::Listener { Sleeper::Receiver } else { Sleeper::Sender };
    let film = transfer.world.target().join("film.mov");
    let verified = || match film.exists() {
        true => FILM_BYTES / CHUNK + 1,
        false => verified_chunks(&transfer.world.target(), "film.mov"),
    };
    let mut dialling = start_other();
    while verified() < goal && !dialling.has_ended() {
        std::thread::sleep(Duration::from_millis(2));
    }
    transfer.clock.suspend(if sleeper == waits { &waiting } else { &dialling }, NAP);
    let (mut last, mut count, mut longest) = (Instant::now(), verified(), Duration::ZERO);
    while !dialling.has_ended() {
        if verified() > count {
            longest = longest.max(last.elapsed());
            (last, count) = (Instant::now(), verified());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!("{way:?}, {sleeper:?} at chunk {goal}: longest pause {longest:.1?}");
    transfer.finish(way, waiting, dialling);
}

/// Suspends the side that dials while it starts, searches, dials or waits for the offer.
fn suspended_early(moment: Duration, way: Way) {
    let dials = if way == Way::Listener { Sleeper::Sender } else { Sleeper::Receiver };
    let _network = (way == Way::Code).then(lan::own_network);
    let Some(transfer) = Transfer::new(way, dials) else { return };
    let (waiting, start_other) = transfer.sides(way);
    let dialling = start_other();
    std::thread::sleep(moment);
    transfer.clock.suspend(&dialling, NAP);
    eprintln!("{way:?}, suspended {moment:.1?} after its start");
    transfer.finish(way, waiting, dialling);
}

/// The clocks agree after the suspension, because the names of records change each hour.
fn suspended_in_the_dht(moment: Duration, sleeper: Sleeper) {
    let world = World::new();
    let Some(clock) = TestClock::new(&world) else { return };
    clock.set(-3600);
    let film = world.file("film.mov", 1, 1_000_000);
    let start = |role, name, words: &[&str]| {
        let mut command = world.wraith(name);
        command.args(words).args(["--dht", "on", "--dht-bootstrap", over_the_dht::bootstrap()]);
        let command = if role == sleeper { clock.of(&mut command) } else { &mut command };
        Process::start(name, command)
    };
    let send = ["send", "--json", film.to_str().unwrap()];
    let mut sender = start(Sleeper::Sender, "sender", &send);
    if sleeper == Sleeper::Sender {
        std::thread::sleep(moment);
        clock.suspend(&sender, NAP);
    }
    let target = world.target();
    let receive = ["receive", "--json", "--yes", "-o", target.to_str().unwrap(), &sender.code()];
    let receiver = start(Sleeper::Receiver, "receiver", &receive);
    if sleeper == Sleeper::Receiver {
        std::thread::sleep(moment);
        clock.suspend(&receiver, NAP);
    }
    eprintln!("DHT, {sleeper:?}, suspended {moment:.1?} after its start");
    receiver.succeed();
    sender.succeed();
    tree::assert_same(&film, &target.join("film.mov"));
}

fn early_in_the_dht(sleeper: Sleeper) {
    let mut random = Random::fresh();
    for _ in 0..rounds(1) {
        // From the start of the program until after the record is published, or the code used.
        suspended_in_the_dht(Duration::from_millis(random.below(3000)), sleeper);
    }
}

#[test]
fn a_sender_that_was_suspended_while_it_publishes_a_long_code_goes_on() {
    early_in_the_dht(Sleeper::Sender);
}

#[test]
fn a_receiver_that_was_suspended_while_it_uses_a_long_code_goes_on() {
    early_in_the_dht(Sleeper::Receiver);
}

fn early(way: Way) {
    let mut random = Random::fresh();
    for _ in 0..rounds(1) {
        // From the start of the program until after the connection is there.
        suspended_early(Duration::from_millis(random.below(400)), way);
    }
}

cases! {
    a_receiver_that_was_suspended_while_it_dials_goes_on: early(Way::Ticket);
    a_receiver_that_was_suspended_while_it_uses_a_code_goes_on: early(Way::Code);
    a_sender_that_was_suspended_while_it_dials_goes_on: early(Way::Listener);
    a_receiver_that_was_suspended_while_it_dials_a_relay_goes_on: early(Way::Relay);
}

fn at_random_moments(way: Way, sleeper: Sleeper) {
    let mut random = Random::fresh();
    for _ in 0..rounds(1) {
        // A moment in three quarters of the film, so that it is not complete by then.
        let goal = 1 + random.below(FILM_BYTES / CHUNK * 3 / 4);
        suspended_at(goal, way, sleeper);
    }
}

cases! {
    a_sender_that_was_suspended_goes_on: at_random_moments(Way::Ticket, Sleeper::Sender);
    a_receiver_that_was_suspended_goes_on: at_random_moments(Way::Ticket, Sleeper::Receiver);
    a_listener_that_was_suspended_goes_on: at_random_moments(Way::Listener, Sleeper::Receiver);
    a_caller_that_was_suspended_goes_on: at_random_moments(Way::Listener, Sleeper::Sender);
    a_sender_behind_a_relay_that_was_suspended_goes_on:
        at_random_moments(Way::Relay, Sleeper::Sender);
    a_receiver_behind_a_relay_that_was_suspended_goes_on:
        at_random_moments(Way::Relay, Sleeper::Receiver);
}
