//! Runs the self-test of each kernel and prints its state and the time.

use std::time::{Duration, Instant};

use wraith_kernels::kernels;

fn main() {
    let mut all = Duration::ZERO;
    for kernel in kernels() {
        let started = Instant::now();
        let state = kernel.state();
        let took = started.elapsed();
        all += took;
        let (name, features) = (kernel.name(), kernel.features());
        println!("{:8.1} µs  {state:?}  {name} ({features})", took.as_secs_f64() * 1e6);
    }
    println!("{:8.1} µs  all", all.as_secs_f64() * 1e6);
}
