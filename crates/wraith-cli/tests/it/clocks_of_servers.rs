//! Relays, the DHT and the doctor while the clocks of the machines differ.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::over_the_dht::bootstrap;
use crate::support::clock::{TestClock, without_battery};
use crate::support::{Process, World, expect_arrival};

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// A machine with another clock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Machine {
    Sender,
    Receiver,
    Server,
}

fn film(world: &World) -> PathBuf {
    world.file("film.mov", 1, 1_000_000)
}

fn relay(command: &mut Command) -> (Process, String) {
    let words = ["relay", "--json", "--drain", "0", "--listen", "127.0.0.1:0"];
    let mut relay = Process::start("relay", command.args(words));
    let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
    (relay, address)
}

#[test]
fn a_transfer_through_a_relay_bears_any_clock() {
    for machine in [Machine::Sender, Machine::Receiver, Machine::Server] {
        for difference in [-91, 3 * HOUR, 10 * YEAR, without_battery()] {
            let world = World::new();
            let Some(clock) = TestClock::new(&world) else { return };
            clock.set(difference);
            let film = film(&world);
            let command = |side: Machine, name: &str| {
                let mut command = world.wraith(name);
                if side == machine {
                    clock.of(&mut command);
                }
                command
            };
            let (_relay, address) = relay(&mut command(Machine::Server, "relay"));
            let place = ["--relay", &address, "--relay-only"];
            let mut send = command(Machine::Sender, "sender");
            send.args(["send", "--json", "--ticket"]).args(place).arg(&film);
            let mut sender = Process::start("send", &mut send);
            let mut receive = command(Machine::Receiver, "receiver");
            receive.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).args(place);
            let receiver = Process::start("receive", receive.arg(sender.ticket()));
            expect_arrival(receiver, sender, &film, &world.target());
        }
    }
}

/// The two look for the records of different hours.
#[test]
fn a_long_code_is_not_found_with_a_wrong_clock_and_the_clocks_are_named() {
    let world = World::new();
    let Some(clock) = TestClock::new(&world) else { return };
    let film = film(&world);
    let places = ["--dht", "on", "--dht-bootstrap", bootstrap()];
    let mut command = world.wraith("sender");
    let mut sender =
        Process::start("send", command.args(["send", "--json"]).args(places).arg(&film));
    let code = sender.code();
    for difference in [-3 * HOUR, 24 * HOUR, 10 * YEAR] {
        clock.set(difference);
        let mut command = world.wraith("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).args(places);
        command.args(["--timeout", "4", &code]);
        let receiver = Process::start("receive", clock.of(&mut command)).finish();
        let hint = receiver.expect_error(3)["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains("Compare the clocks") && !hint.contains("UDP"), "{hint}");
    }
    clock.set(0);
    world.receive_with(&code, &places).succeed();
    sender.succeed();
}

/// Returns the result of this test of the doctor, with the clock of `machine` changed.
fn doctor(difference: i64, machine: Machine, has_relay: bool, name: &str) -> Option<Value> {
    let world = World::new();
    let clock = TestClock::new(&world)?;
    clock.set(difference);
    let (mut server, mut client) = (world.wraith("relay"), world.wraith("one"));
    clock.of(if machine == Machine::Server { &mut server } else { &mut client });
    let (_relay, address) = relay(&mut server);
    client.args(["doctor", "--json"]);
    if has_relay {
        client.args(["--relay", &address]);
    }
    let outcome = Process::start("doctor", &mut client).finish();
    let check = outcome.all("check").find(|check| check["name"] == name);
    Some(check.expect("the check ran").clone())
}

#[test]
fn the_doctor_compares_this_clock_with_that_of_a_relay() {
    for (difference, machine, words) in [
        (3 * HOUR + 60, Machine::Server, "3 h behind"),
        (-3 * HOUR - 60, Machine::Server, "3 h ahead"),
        (10 * YEAR + HOUR, Machine::Sender, "10 years ahead"),
    ] {
        let Some(check) = doctor(difference, machine, true, "clock difference") else { return };
        assert_eq!(check["status"], "warn", "{check}");
        assert!(check["found"].as_str().unwrap().contains(words), "{check}");
    }
    let Some(check) = doctor(0, Machine::Sender, true, "clock difference") else { return };
    assert_eq!(check["status"], "ok", "{check}");
}

#[test]
fn the_doctor_says_if_it_could_not_compare() {
    let Some(check) = doctor(10 * YEAR, Machine::Sender, false, "clock difference") else { return };
    assert_eq!(check["status"], "none", "{check}");
    assert!(check["found"].as_str().unwrap().contains("nothing to compare"), "{check}");
    let Some(check) = doctor(without_battery(), Machine::Sender, false, "clock") else { return };
    assert_eq!(check["status"], "fail", "{check}");
    assert!(check["found"].as_str().unwrap().contains("before this program"), "{check}");
}
