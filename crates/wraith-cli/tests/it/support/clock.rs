//! Clocks of a process that the test sets: a wall clock that is wrong or stepped, and a suspension
//! of the machine.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Process, World, skipped};

/// Replaces the clocks of a process. The file that `TEST_CLOCK` names has the differences to the
/// machine's clocks in seconds: of the wall clock, and of the monotonic clock that counts
/// suspension.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, id, time);
    if (result != 0 || (id != CLOCK_REALTIME && id != CLOCK_BOOTTIME)) return result;
    char text[64] = {0};
    int file = open(getenv("TEST_CLOCK"), O_RDONLY | O_CLOEXEC);
    if (file < 0) abort();
    if (read(file, text, sizeof text - 1) <= 0) abort();
    close(file);
    char *rest;
    long long wall = strtoll(text, &rest, 10), suspended = strtoll(rest, NULL, 10);
    time->tv_sec += id == CLOCK_REALTIME ? wall : suspended;
    return 0;
}
"#;

/// A clock that the test sets.
#[derive(Debug)]
pub struct TestClock {
    library: PathBuf,
    differences: PathBuf,
    /// The difference of the wall clock that the test has set.
    wall: Cell<i64>,
}

impl TestClock {
    /// Builds the library that replaces the clock. `None` without a C compiler.
    pub fn new(world: &World) -> Option<Self> {
        let (source, library) = (world.path("clock.c"), world.path("clock.so"));
        fs::write(&source, SHIM).unwrap();
        let mut compiler = Command::new("cc");
        let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            skipped("there is no C compiler");
            return None;
        }
        let wall = Cell::new(0);
        let clock = Self { library, differences: world.path("differences"), wall };
        clock.set(0);
        Some(clock)
    }

    /// Sets the difference of the wall clock to that of the machine, in seconds.
    pub fn set(&self, wall: i64) {
        self.wall.set(wall);
        self.write(wall, 0);
    }

    fn write(&self, wall: i64, suspended: i64) {
        // In one step: the process reads the file at any time.
        let new = self.differences.with_extension("new");
        fs::write(&new, format!("{wall} {suspended}")).unwrap();
        fs::rename(new, &self.differences).unwrap();
    }

    /// Gives this clock to the process that `command` starts.
    pub fn of<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library).env("TEST_CLOCK", &self.differences)
    }

    /// Suspends the machine of `process`: it stands still for `nap`, and finds its clocks an hour
    /// later. Timers stand still meanwhile, as those of the kernel do.
    pub fn suspend(&self, process: &Process, nap: Duration) {
        const HOUR: i64 = 3600;
        process.signal(libc::SIGSTOP);
        std::thread::sleep(nap);
        self.write(self.wall.get() + HOUR, HOUR);
        process.signal(libc::SIGCONT);
    }
}

/// Returns the difference to a clock without a battery, which starts at 1 January 1970.
pub fn without_battery() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    60 - now.as_secs() as i64
}
