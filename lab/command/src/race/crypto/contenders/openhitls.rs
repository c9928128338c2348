//! `openhitls_benchmark`, the benchmark program of openHiTLS in C.
//!
//! The race gives it a number of operations instead of a duration. With a duration it takes whole
//! seconds, and reads the clock around every operation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::super::contests::{C, Contest};
use super::said;

/// Share of the time after which a run is long enough.
const ENOUGH: f64 = 0.5;
/// Number of runs of a row that allows only few operations; their median counts.
const SHORT_RUNS: usize = 9;

pub fn measure(program: &Path, contests: &[&Contest], seconds: f64) -> Vec<Result<f64>> {
    let figure = |contest: &&Contest| {
        let of = contest.c.as_ref().context("it has no such row")?;
        per_second(|times| run(program, of, times), seconds, of.times_max)
    };
    contests.iter().map(figure).collect()
}

/// Measures operations a second with as many operations as fill the time. `run` performs a number
/// of operations and returns their rate.
fn per_second(
    mut run: impl FnMut(u64) -> Result<f64>,
    seconds: f64,
    times_max: Option<u64>,
) -> Result<f64> {
    if let Some(times) = times_max {
        let mut rates = (0..SHORT_RUNS).map(|_| run(times)).collect::<Result<Vec<_>>>()?;
        rates.sort_by(f64::total_cmp);
        return Ok(rates[SHORT_RUNS / 2]);
    }
    let mut times = 1;
    loop {
        let rate = run(times)?;
        if times as f64 / rate >= ENOUGH * seconds || times == u64::from(u32::MAX) {
            return Ok(rate);
        }
        // The first operations are slow, so this estimate is low; but the number at least doubles.
        times = ((rate * seconds) as u64).clamp(2 * times, u64::from(u32::MAX));
    }
}

fn run(program: &Path, of: &C, times: u64) -> Result<f64> {
    let mut command = Command::new(program);
    command.args(["-a", of.group, "-t", &times.to_string(), "-l", &of.bytes.to_string()]);
    if let Some(parameter) = &of.parameter {
        command.args(["-p", parameter]);
    }
    let output = said(&mut command)?;
    found(&output, &of.name).with_context(|| format!("it gives no figure for {}", of.name))
}

/// Finds the figure of the row in the output of the C program: `name , bytes, times, milliseconds,
/// operations a second`.
fn found(output: &str, name: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| {
        let (first, rest) = line.split_once(',')?;
        first.trim().eq_ignore_ascii_case(name).then_some(rest)
    })?;
    // The line of an operation that failed halfway is not a figure.
    let failed = output.lines().any(|line| line.starts_with("Error") || line.starts_with("Failed"));
    let figure = line.rsplit(',').next()?.trim().parse().ok()?;
    (!failed).then_some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_found_and_failures_are_none() {
        let good = "algorithm operation , len, run times, time elapsed(ms), ops/s\n\
                    aes128-cbc encrypt , 8192, 165541, 1000.00, 165540.52\n";
        assert_eq!(found(good, "aes128-cbc encrypt"), Some(165540.52));
        assert_eq!(found(good, "aes128-cbc"), None);
        let failed = format!("Error: DoCipherEnc(ctx, opts), ret = 01100004\n{good}");
        assert_eq!(found(&failed, "aes128-cbc encrypt"), None);
    }

    #[test]
    fn as_many_operations_are_done_as_fill_the_time() {
        let mut runs = Vec::new();
        let run = |times| {
            runs.push(times);
            // The first run is cold.
            Ok(if times == 1 { 100.0 } else { 10_000.0 })
        };
        assert!((per_second(run, 0.3, None).unwrap() - 10_000.0).abs() < 1e-9);
        assert_eq!(runs, [1, 30, 3000]);
        let slow = |times| {
            assert_eq!(times, 1);
            Ok(0.5)
        };
        assert!((per_second(slow, 0.3, None).unwrap() - 0.5).abs() < 1e-9);
        let mut rates = (1..=9).map(f64::from).rev();
        let short = |times| {
            assert_eq!(times, 2048);
            Ok(rates.next().unwrap())
        };
        assert!((per_second(short, 0.3, Some(2048)).unwrap() - 5.0).abs() < 1e-9);
    }
}
