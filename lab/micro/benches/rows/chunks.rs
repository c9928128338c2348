//! Bookkeeping of received and missing chunks. No bytes move.

use std::hint::black_box;
use std::ops::Range;

use criterion::{BenchmarkId, Throughput};
use wraith_files::IntervalSet;

use crate::Criterion;

/// Chunks of the file whose missing ones are listed.
const CHUNKS: u64 = 10_000;

/// Simulates the transfer of a new file: each chunk arrives, is looked up and recorded, until the
/// file is complete.
fn transfer(chunks: u64) -> IntervalSet {
    let mut have = IntervalSet::new();
    for chunk in 0..chunks {
        assert!(!have.contains(black_box(chunk)));
        have.insert(chunk..chunk + 1);
    }
    assert_eq!(have.count(), chunks);
    have
}

/// Creates the set of a new file, and lists its missing chunks, which the receiver then requests.
fn new_file(chunks: u64) -> (IntervalSet, Vec<Range<u64>>) {
    let have = IntervalSet::new();
    let missing = have.missing(chunks).collect();
    (have, missing)
}

/// Lists the missing chunks as ranges, as in a receiver's request.
fn missing_ranges(have: &IntervalSet) -> Vec<Range<u64>> {
    have.missing(CHUNKS).collect()
}

/// Lists the missing chunks as single numbers.
fn missing_numbers(have: &IntervalSet) -> Vec<u64> {
    let mut numbers = Vec::new();
    have.missing(CHUNKS).for_each(|gap| numbers.extend(gap));
    numbers
}

/// The first `percent` of the chunks are present, as an in-order sender leaves them.
fn first(percent: u64) -> IntervalSet {
    let mut have = IntervalSet::new();
    have.insert(0..CHUNKS * percent / 100);
    have
}

/// Every second chunk is present, which no wraith sender causes.
fn every_second() -> IntervalSet {
    let mut have = IntervalSet::new();
    (0..CHUNKS).step_by(2).for_each(|chunk| have.insert(chunk..chunk + 1));
    have
}

pub(crate) fn rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("chunks_of_a_new_file");
    for chunks in [100, 1000, 10_000, 100_000] {
        assert_eq!(new_file(chunks).1, std::slice::from_ref(&(0..chunks)));
        group.bench_function(BenchmarkId::from_parameter(chunks), |b| {
            b.iter(|| new_file(black_box(chunks)));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("chunks_of_a_transfer");
    for chunks in [100, 1000, 10_000, 100_000] {
        group.throughput(Throughput::Elements(chunks));
        group.bench_function(BenchmarkId::from_parameter(chunks), |b| b.iter(|| transfer(chunks)));
    }
    group.finish();

    let in_order = [0, 50, 90, 95, 99, 100].map(|percent| (percent.to_string(), first(percent)));
    let cases: Vec<_> =
        in_order.into_iter().chain([("every_second".into(), every_second())]).collect();
    let mut group = criterion.benchmark_group("chunks_missing");
    for (name, have) in &cases {
        let numbers = missing_numbers(have);
        assert_eq!(numbers.len() as u64, CHUNKS - have.count());
        assert!(numbers.iter().all(|&chunk| !have.contains(chunk)));
        group.throughput(Throughput::Elements((CHUNKS - have.count()).max(1)));
        group.bench_function(name, |b| b.iter(|| missing_numbers(black_box(have))));
    }
    group.finish();
    let mut group = criterion.benchmark_group("chunks_missing_ranges");
    for (name, have) in &cases {
        assert_eq!(
            missing_ranges(have).into_iter().flatten().collect::<Vec<_>>(),
            missing_numbers(have)
        );
        group.bench_function(name, |b| b.iter(|| missing_ranges(black_box(have))));
    }
    group.finish();
}
