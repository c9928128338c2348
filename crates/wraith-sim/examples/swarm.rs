//! Runs millions of simulated connections: `cargo run --release -p wraith-sim --example swarm --
//! COUNT [START]`.
//!
//! The program uses every processor core. Without START, the first seed is taken from the clock.
//! The simulation prints the first failing seed and ends the program with status 101.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Seeds that a thread takes at once, and the interval of progress lines.
const BATCH: u64 = 100;
const PROGRESS: u64 = 10_000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let count = arguments.next().unwrap_or(Ok(10_000));
    let start = arguments.next().unwrap_or_else(|| Ok(fresh_seed()));
    let (Ok(count), Ok(start)) = (count, start) else {
        eprintln!("usage: swarm [COUNT [START]]");
        std::process::exit(2);
    };
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&next, start, count));
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    println!("{count} connections from seed {start}, every byte equal, in {seconds:.1} s");
}

fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() << 20 | u64::from(since.subsec_micros()))
}

fn work(next: &AtomicU64, start: u64, count: u64) {
    loop {
        let from = next.fetch_add(BATCH, Ordering::Relaxed);
        if from >= count {
            return;
        }
        let to = count.min(from + BATCH);
        wraith_sim::swarm(start + from..start + to);
        if to.is_multiple_of(PROGRESS) {
            println!("{to} of {count}");
        }
    }
}
