//! Connections with all parameters drawn from a seed; `cargo xtask swarm` runs them by the million.

use std::thread;

/// Seeds of the regular test run, and threads that share them.
const CONNECTIONS: u64 = 4_000;
const THREADS: u64 = 2;

#[test]
fn thousands_of_connections_drawn_from_seeds_complete_and_break_no_invariant() {
    let share = CONNECTIONS / THREADS;
    thread::scope(|scope| {
        for i in 0..THREADS {
            scope.spawn(move || wraith_sim::swarm(i * share..(i + 1) * share));
        }
    });
}
