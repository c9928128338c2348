//! The clocks of the two machines may differ by years, and may be stepped while a side waits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Process, World, lan, skipped, tree};

/// Replaces the wall clock of a process. The file that `TEST_CLOCK` names has the difference to the
/// machine's clock, in seconds.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, id, time);
    if (result != 0 || id != CLOCK_REALTIME) return result;
    char text[32] = {0};
    int file = open(getenv("TEST_CLOCK"), O_RDONLY | O_CLOEXEC);
    if (file < 0) abort();
    if (read(file, text, sizeof text - 1) <= 0) abort();
    close(file);
    time->tv_sec += atoll(text);
    return 0;
}
"#;

const YEAR: i64 = 365 * 24 * 3600;

/// A clock that the test sets.
struct TestClock {
    library: PathBuf,
    difference: PathBuf,
}

impl TestClock {
    /// Builds the library that replaces the clock. `None` without a C compiler.
    fn new(world: &World) -> Option<Self> {
        let (source, library) = (world.path("clock.c"), world.path("clock.so"));
        fs::write(&source, SHIM).unwrap();
        let mut compiler = Command::new("cc");
        let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            skipped("there is no C compiler");
            return None;
        }
        let clock = Self { library, difference: world.path("difference") };
        clock.set(0);
        Some(clock)
    }

    /// Sets the difference to the machine's clock, in seconds.
    fn set(&self, difference: i64) {
        // In one step: the process reads the file at any time.
        let new = self.difference.with_extension("new");
        fs::write(&new, difference.to_string()).unwrap();
        fs::rename(new, &self.difference).unwrap();
    }

    fn of<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library).env("TEST_CLOCK", &self.difference)
    }
}

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
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let place: &[&str] = if by_ticket { &["--ticket"] } else { &["--lan", "lo"] };
    let mut command = send(&world, &film, place);
    let mut sender =
        Process::start("send", if is_senders { clock.of(&mut command) } else { &mut command });
    let place = if by_ticket { sender.ticket() } else { sender.code() };
    let mut command = receive(&world, &place);
    let receiver =
        Process::start("receive", if is_senders { &mut command } else { clock.of(&mut command) });
    receiver.finish().expect_exit(0);
    sender.finish().expect_exit(0);
    tree::assert_same(&film, &world.target().join("film.mov"));
}

/// Returns the difference to a clock without a battery, which starts at 1 January 1970.
fn without_battery() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    60 - now.as_secs() as i64
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
        let film = world.source().join("film.mov");
        tree::file(&film, 1, 1_000_000);
        let mut command = send(&world, &film, &["--ticket"]);
        let mut sender = Process::start("send", clock.of(&mut command));
        let ticket = sender.ticket();
        clock.set(difference);
        world.receive(&ticket).finish().expect_exit(0);
        sender.finish().expect_exit(0);
        tree::assert_same(&film, &world.target().join("film.mov"));
    }
}
