//! State of the test process that a test must not inherit, and the bound on its time.

use std::sync::Once;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Longest time of a test. `cargo xtask test` has a bound of its own; this one also holds under `cargo test`.
const LIMIT: Duration = Duration::from_secs(600);
/// The bound for a measurement of many rounds or many senders.
const LIMIT_OF_A_MEASUREMENT: Duration = Duration::from_secs(3600);

/// Sets the signals that end a command to their defaults. A shell ignores SIGINT and SIGQUIT in a
/// command that it starts in the background, and a child process inherits that.
pub fn reset_signals() {
    static RESET: Once = Once::new();
    RESET.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: the default action needs no handler, and no memory is involved.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    });
}

/// Returns the longest time of this test.
fn limit() -> Duration {
    let measures = ["WRAITH_TEST_ROUNDS", "WRAITH_TEST_SENDERS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    if measures { LIMIT_OF_A_MEASUREMENT } else { LIMIT }
}

/// Aborts the test process if it lives longer than its limit.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    pub fn start() -> Self {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let limit = limit();
        let (alive, ended) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test} has not ended within {} s", limit.as_secs());
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}
