//! Microbenchmarks that `cargo lab bench` runs and compares with the figures of `reference.csv`.
//!
//! A row is named `group/parameter`, where the parameter is usually a size, and states its
//! throughput (bytes or elements). Each row checks its result: within the measured time if the
//! check costs almost nothing, otherwise before it.

mod chunks;
mod content;
mod frames;
mod handshake;
mod hashing;
mod packets;
mod thread_time;

use std::time::Duration;

use criterion::{criterion_group, criterion_main};

use thread_time::ThreadTime;

type Criterion = criterion::Criterion<ThreadTime>;

/// Samples of a row.
const SAMPLES: usize = 30;

/// Short measurements, so that all rows together take a minute and a half. The compared figures
/// differ by tens of percent, and the report states how much the samples differ.
fn config() -> Criterion {
    criterion::Criterion::default()
        .with_measurement(ThreadTime)
        .sample_size(SAMPLES)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2000)
        .without_plots()
}

criterion_group! {
    name = rows;
    config = config();
    targets = frames::rows, packets::rows, handshake::rows, chunks::rows, hashing::rows
}
criterion_main!(rows);
