//! `cargo lab race echo`: small requests over streams between two processes on loopback, beside
//! quinn.
//!
//! Each round runs every contender once, in turn, so a slow minute of the machine affects all of
//! them. Every answer is compared. The table has medians, and the median of the ratios to quinn in
//! the same round. CPU time is that of both processes, as counted by the kernel.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::median::median;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of rounds; each runs every contender once
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Number of requests in flight at once
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64])]
    in_flight: Vec<u64>,
    /// Bytes of a request, and of its answer
    #[arg(long, default_value_t = 64)]
    bytes: usize,
    /// Number of requests of each run with one in flight; five times as many with more
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
}

/// Contenders: the program's word, and the name in the table. The last is the reference.
const CONTENDERS: [(&str, &str); 3] =
    [("wraith", "wraith"), ("wraith-movers", "wraith, two movers"), ("quinn", "quinn")];
/// Longest run in seconds.
const RUN_LIMIT_SECONDS: &str = "120";

/// The line of JSON that the program prints.
#[derive(Clone, Debug, Deserialize)]
struct Report {
    p50_us: f64,
    p99_us: f64,
    requests_per_second: f64,
    client_cpu_us: f64,
    server_cpu_us: f64,
}

impl Report {
    fn cpu_us(&self) -> f64 {
        self.client_cpu_us + self.server_cpu_us
    }
}

/// Runs the race and prints a table for each number of requests in flight.
pub fn run(args: &Args) -> Result<()> {
    crate::cargo::build(crate::cargo::LAB, "wraith-peers", &["--bin", "echo-peer"])?;
    for &in_flight in &args.in_flight {
        let requests = if in_flight == 1 { args.requests } else { 5 * args.requests };
        let mut reports = CONTENDERS.map(|_| Vec::new());
        for round in 1..=args.runs {
            for ((word, name), reports) in CONTENDERS.iter().zip(&mut reports) {
                let report = run_once(word, in_flight, requests, args.bytes)
                    .with_context(|| format!("{name} failed"))?;
                eprintln!(
                    "{in_flight} in flight, round {round}: {name} {:.1} µs, {:.0}/s",
                    report.p50_us, report.requests_per_second
                );
                reports.push(report);
            }
        }
        println!("\n{}", table(in_flight, args, &reports));
    }
    Ok(())
}

fn run_once(transport: &str, in_flight: u64, requests: u64, bytes: usize) -> Result<Report> {
    let program = crate::cargo::target().join("release/echo-peer");
    let output = Command::new("timeout")
        .arg(RUN_LIMIT_SECONDS)
        .arg(program)
        .args(["--transport", transport, "--in-flight", &in_flight.to_string()])
        .args(["--requests", &requests.to_string(), "--bytes", &bytes.to_string()])
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Formats the medians. A ratio above 1 means that wraith is that much better than quinn.
fn table(in_flight: u64, args: &Args, reports: &[Vec<Report>]) -> String {
    let mut out = format!(
        "**Echo of {} bytes, {in_flight} in flight, {} runs each**\n\n\
         | contender | p50 µs | × quinn | p99 µs | requests/s | × quinn | CPU µs/request | × quinn |\n\
         |---|---|---|---|---|---|---|---|\n",
        args.bytes, args.runs
    );
    let reference = reports.last().expect("quinn runs last");
    for ((_, name), own) in CONTENDERS.iter().zip(reports) {
        let medians = |value: fn(&Report) -> f64| median(own.iter().map(value));
        let ratio = |better: fn(&Report, &Report) -> f64| {
            median(own.iter().zip(reference).map(|(own, quinn)| better(own, quinn)))
        };
        out += &format!(
            "| {name} | {:.1} | {:.2} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} |\n",
            medians(|report| report.p50_us),
            ratio(|own, quinn| quinn.p50_us / own.p50_us),
            medians(|report| report.p99_us),
            medians(|report| report.requests_per_second),
            ratio(|own, quinn| own.requests_per_second / quinn.requests_per_second),
            medians(Report::cpu_us),
            ratio(|own, quinn| quinn.cpu_us() / own.cpu_us()),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_compare_the_runs_of_one_round() {
        let report = |p50_us: f64| Report {
            p50_us,
            p99_us: 2.0 * p50_us,
            requests_per_second: 1e6 / p50_us,
            client_cpu_us: p50_us,
            server_cpu_us: p50_us,
        };
        // Both take twice as long in the second round.
        let quinn = vec![report(40.0), report(80.0)];
        let wraith = vec![report(20.0), report(40.0)];
        let reports = vec![wraith.clone(), wraith, quinn];
        let args = Args { runs: 2, in_flight: vec![1], bytes: 64, requests: 1 };
        let table = table(1, &args, &reports);
        let row = table.lines().nth(4).unwrap();
        assert_eq!(row, "| wraith | 30.0 | 2.00 | 60 | 37500 | 2.00 | 60.00 | 2.00 |");
    }
}
