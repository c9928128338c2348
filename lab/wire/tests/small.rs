//! The small form, which runs with every change: the wire passes, and every control is caught.

use wraith_wire::{report, run};

/// The default of `cargo lab wire`.
const SEED: u64 = 1;

#[test]
fn wire_bytes_look_random_and_control_mistakes_are_found() {
    let outcome = run::run(run::SMALL, SEED, |_| {}).unwrap();
    assert!(outcome.is_good(), "seed {SEED}\n{}", report::text(&outcome));
}
