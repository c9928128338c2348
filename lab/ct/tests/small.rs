//! The small form, which runs with every change: no target differs grossly, and every control is
//! found. Tests are built with less optimization than the program, so they measure the same source
//! but other instructions.

use std::env;
use std::process::Command;

use wraith_ct::{report, run};

/// The default of `cargo lab ct`.
const SEED: u64 = 1;

/// Set in the process that repeats a failed test.
const AGAIN: &str = "WRAITH_CT_AGAIN";

#[test]
fn no_time_depends_on_a_secret_grossly_and_leaks_would_be_found() {
    let outcome = run::run(run::SMALL, SEED, |_| true, |_| {});
    if outcome.is_good() {
        return;
    }
    let text = format!("seed {SEED}\n{}", report::text(&outcome));
    assert!(env::var_os(AGAIN).is_none(), "{text}");
    // A difference caused by a secret is present in every process.
    eprintln!("{text}\nagain, in a process of its own:");
    let mut again = Command::new(env::current_exe().unwrap());
    again.env(AGAIN, "1").args(["--exact", "--nocapture", NAME]);
    assert!(again.status().unwrap().success(), "{text}");
}

const NAME: &str = "no_time_depends_on_a_secret_grossly_and_leaks_would_be_found";
