//! Contestants in turn: each block is timed separately, and the compared figures are medians of the
//! ratios of adjacent blocks.

use std::time::{Duration, Instant};

/// Blocks of a row: other work of the machine affects all contestants alike.
const BLOCKS: usize = 41;
/// Minimum duration of a block, so that reading the clock does not count.
const BLOCK_TIME: Duration = Duration::from_millis(2);

/// One way to do the work of a row.
pub struct Contestant<'a> {
    pub name: &'static str,
    /// Does the work this many times and returns the duration, without the preparation.
    pub block: Box<dyn FnMut(usize) -> Duration + 'a>,
}

impl<'a> Contestant<'a> {
    /// Creates a contestant whose work needs no preparation.
    pub fn new(name: &'static str, mut work: impl FnMut() + 'a) -> Self {
        let block = move |count| {
            let begun = Instant::now();
            for _ in 0..count {
                work();
            }
            begun.elapsed()
        };
        Self { name, block: Box::new(block) }
    }

    /// Creates a contestant whose work needs prepared values.
    pub fn prepared<T>(
        name: &'static str,
        mut prepare: impl FnMut(usize) -> Vec<T> + 'a,
        mut work: impl FnMut(T) + 'a,
    ) -> Self {
        let block = move |count| {
            let things = prepare(count);
            let begun = Instant::now();
            for thing in things {
                work(thing);
            }
            begun.elapsed()
        };
        Self { name, block: Box::new(block) }
    }
}

/// Nanoseconds of each contestant, and its ratio to the first.
pub struct Row {
    pub name: String,
    pub results: Vec<(&'static str, f64, f64)>,
}

pub fn run(name: &str, mut contestants: Vec<Contestant<'_>>) -> Row {
    let counts: Vec<usize> = contestants.iter_mut().map(count).collect();
    let mut times = vec![Vec::with_capacity(BLOCKS); contestants.len()];
    for _ in 0..BLOCKS {
        for ((contestant, count), times) in contestants.iter_mut().zip(&counts).zip(&mut times) {
            times.push((contestant.block)(*count).as_nanos() as f64 / *count as f64);
        }
    }
    let first = times[0].clone();
    let results = contestants.iter().zip(times).map(|(contestant, times)| {
        let ratios = times.iter().zip(&first).map(|(time, first)| time / first).collect();
        (contestant.name, median(times), median(ratios))
    });
    let results = results.collect();
    Row { name: name.to_owned(), results }
}

fn count(contestant: &mut Contestant<'_>) -> usize {
    let mut count = 4;
    loop {
        let time = (contestant.block)(count);
        if time >= BLOCK_TIME || count >= 1 << 16 {
            return count;
        }
        count *= 2;
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
