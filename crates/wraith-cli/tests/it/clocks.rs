//! The clocks of the two machines may differ by years, and may be stepped while a side waits.

use std::path::Path;
use std::process::Command;

use crate::support::clock::{TestClock, without_battery};
use crate::support::{Process, World, expect_arrival, lan};

const YEAR: i64 = 365 * 24 * 3600;

fn send(world: &World, film: &Path, more: &[&str]) -> Command {
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--listen", "127.0.0.1:0"]).args(more).arg(film);
    command
}

fn receive(world: &World, place: &str) -> Command {
    let mut command = world.wraith("receiver");
    command
        .args(["receive", "--json", "--yes", "--lan", "lo", "-o"])
        .arg(world.target())
        .arg(place);
    command
}

/// Transfers a file by ticket or code, with the clock of one side changed by `difference`.
fn transfer_with(difference: i64, is_senders: bool, by_ticket: bool) {
    let world = World::new();
    let Some(clock) = TestClock::new(&world) else { return };
    clock.set(difference);
    let film = world.file("film.mov", 1, 1_000_000);
    let place: &[&str] = if by_ticket { &["--ticket"] } else { &["--lan", "lo"] };
    let mut command = send(&world, &film, place);
    let mut sender =
        Process::start("send", if is_senders { clock.of(&mut command) } else { &mut command });
    let place = if by_ticket { sender.ticket() } else { sender.code() };
    let mut command = receive(&world, &place);
    let receiver =
        Process::start("receive", if is_senders { &mut command } else { clock.of(&mut command) });
    expect_arrival(receiver, sender, &film, &world.target());
}

#[test]
fn clocks_that_differ_by_years_do_not_matter_with_a_ticket() {
    for difference in
        [-91, 91, -3600, 24 * 3600, -10 * YEAR, 10 * YEAR, 80 * YEAR, without_battery()]
    {
        for is_senders in [true, false] {
            transfer_with(difference, is_senders, true);
        }
    }
}

#[test]
fn clocks_that_differ_by_years_do_not_matter_with_a_code() {
    let _network = lan::own_network();
    for difference in [-3600, 10 * YEAR, without_battery()] {
        for is_senders in [true, false] {
            transfer_with(difference, is_senders, false);
        }
    }
}

#[test]
fn a_clock_that_is_stepped_while_the_sender_waits_does_not_matter() {
    for difference in [-24 * 3600, 24 * 3600] {
        let world = World::new();
        let Some(clock) = TestClock::new(&world) else { return };
        let film = world.file("film.mov", 1, 1_000_000);
        let mut command = send(&world, &film, &["--ticket"]);
        let mut sender = Process::start("send", clock.of(&mut command));
        let ticket = sender.ticket();
        clock.set(difference);
        expect_arrival(world.receive(&ticket), sender, &film, &world.target());
    }
}
