//! The small form, with every change: no target differs grossly, and every control is found. Tests are built with less optimization than the
//! program, so what is measured here is the same source and not the same instructions.

use wraith_ct::{report, run};

/// The default of `cargo xtask ct`.
const SEED: u64 = 1;

#[test]
fn no_time_depends_on_a_secret_grossly_and_leaks_would_be_found() {
    let outcome = run::run(run::SMALL, SEED, |_| true, |_| {});
    assert!(outcome.is_good(), "seed {SEED}\n{}", report::text(&outcome));
}
