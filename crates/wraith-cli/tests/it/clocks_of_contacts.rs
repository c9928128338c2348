//! Contacts and resumed sends while the clocks of the two machines differ: the transfer succeeds,
//! or both sides name the clocks.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::clock::{TestClock, without_battery};
use crate::support::{Outcome, Process, World, expect_arrival, lan, tree};

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// The receiver listens, the sender calls, and one of them has another clock.
struct Contacts {
    world: World,
    clock: TestClock,
    is_senders: bool,
}

impl Contacts {
    fn new(difference: i64, is_senders: bool) -> Option<Self> {
        let world = World::new();
        let clock = TestClock::new(&world)?;
        clock.set(difference);
        world.file("film.mov", 1, 1_000_000);
        world.know("receiver", "sender", None);
        Some(Self { world, clock, is_senders })
    }

    fn start(&self, name: &'static str, mut command: Command, is_sender: bool) -> Process {
        let has_clock = is_sender == self.is_senders;
        Process::start(name, if has_clock { self.clock.of(&mut command) } else { &mut command })
    }

    /// Starts the listener. Returns it with its address.
    fn listen(&self, more: &[&str]) -> (Process, String) {
        let mut command = self.world.listen_command("receiver", more);
        command.args(["--accept", "contacts", "--listen", "127.0.0.1:0"]);
        let mut listener = self.start("listen", command, false);
        let address = listener.event("listening")["address"].as_str().unwrap().to_owned();
        (listener, address)
    }

    fn call(&self, more: &[&str]) -> Process {
        let mut command = self.world.wraith("sender");
        command.args(["send", "--json", "--to", "receiver"]).args(more);
        command.arg(self.world.source().join("film.mov"));
        self.start("send", command, true)
    }

    /// Removes the listener's log of handshakes, so that only the clocks protect from replays.
    fn forget_handshakes(&self) {
        fs::remove_file(self.world.path("home-receiver").join("handshakes")).unwrap();
    }

    /// Checks that both sides name the clocks.
    fn expect_sentences(&self, listener: &mut Process, caller: &Outcome, difference: i64) {
        let hint = caller.expect_error(3)["hint"].as_str().unwrap();
        assert!(hint.contains("Compare the clocks") && !hint.contains("UDP"), "{hint}");
        let event = listener.event("clocks_differ");
        let seconds = event["seconds"].as_i64().unwrap();
        let expected = if self.is_senders { difference } else { -difference };
        assert!((seconds - expected).abs() < 30, "{event}");
        assert_eq!(event["contact"], "sender");
        let node_id = self.world.node_id("sender");
        assert_eq!(event["peer"], Value::from(node_id));
    }
}

fn table() -> Vec<i64> {
    let far = [3 * HOUR, 10 * YEAR];
    let both = |by: i64| [-by, by];
    [91].into_iter().chain(far).flat_map(both).chain([without_battery()]).collect()
}

#[test]
fn a_contact_is_called_whatever_the_clocks_show() {
    for difference in table() {
        for is_senders in [true, false] {
            let Some(contacts) = Contacts::new(difference, is_senders) else { return };
            let (_listener, address) = contacts.listen(&[]);
            contacts.world.know("sender", "receiver", Some(&address));
            contacts.call(&[]).succeed();
            let film = contacts.world.source().join("film.mov");
            tree::assert_same(&film, &contacts.world.target().join("film.mov"));
        }
    }
}

#[test]
fn without_its_log_a_listener_refuses_a_wrong_clock_and_both_sides_name_it() {
    for (difference, is_senders) in [(91, true), (-3 * HOUR, false), (10 * YEAR, false)] {
        let Some(contacts) = Contacts::new(difference, is_senders) else { return };
        contacts.forget_handshakes();
        let (mut listener, address) = contacts.listen(&[]);
        contacts.world.know("sender", "receiver", Some(&address));
        let caller = contacts.call(&["--timeout", "3"]).finish();
        contacts.expect_sentences(&mut listener, &caller, difference);
        // Once the clock is right, the same listener answers.
        contacts.clock.set(0);
        contacts.call(&[]).succeed();
    }
}

#[test]
fn a_call_on_the_local_network_with_a_wrong_clock_is_named_by_both_sides() {
    let _network = lan::own_network();
    for (difference, is_senders) in [(-91, true), (24 * HOUR, false)] {
        let Some(contacts) = Contacts::new(difference, is_senders) else { return };
        let (mut listener, _) = contacts.listen(&["--lan", "lo"]);
        contacts.world.know("sender", "receiver", None);
        let caller = contacts.call(&["--lan", "lo", "--timeout", "3"]).finish();
        contacts.expect_sentences(&mut listener, &caller, difference);
        contacts.clock.set(0);
        contacts.call(&["--lan", "lo"]).succeed();
    }
}

/// The two look under the names of different hours, so the listener gets no message of the caller.
#[test]
fn a_caller_whose_clock_shows_another_hour_names_the_clocks() {
    let Some(contacts) = Contacts::new(3 * HOUR, true) else { return };
    let (_server, server) = contacts.world.rendezvous();
    let (_listener, _) = contacts.listen(&["--rendezvous", &server]);
    contacts.world.know("sender", "receiver", None);
    let caller = contacts.call(&["--rendezvous", &server, "--timeout", "3"]).finish();
    let hint = caller.expect_error(3)["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("Compare the clocks"), "{hint}");
}

#[test]
fn a_resumed_send_goes_on_whatever_the_clocks_show() {
    for difference in [-91, 3 * HOUR, -10 * YEAR, 10 * YEAR] {
        let world = World::new();
        let Some(clock) = TestClock::new(&world) else { return };
        let film = world.file("film.mov", 1, 1_000_000);
        let mut first = world.send(&[&film]);
        let ticket = first.ticket();
        first.kill();
        let again = world.send(&[&film]);
        clock.set(difference);
        let mut command = world.wraith("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).arg(&ticket);
        let receiver = Process::start("receive", clock.of(&mut command));
        expect_arrival(receiver, again, &film, &world.target());
    }
}
