//! The small form, which runs with every change: the wire passes, and every control is caught.

use wraith_wire::{report, run};

/// The default of `cargo lab wire`.
const SEED: u64 = 1;

#[test]
fn what_is_on_the_wire_is_noise_and_mistakes_would_be_seen() {
    let outcome = run::run(run::SMALL, SEED, |_| {}).unwrap();
    assert!(outcome.is_good(), "seed {SEED}\n{}", report::text(&outcome));
}
