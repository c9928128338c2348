//! Medians and shares of the link's rate, as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::peers::Peer;
use super::{Calibration, Measured, Row, Run, RunEnd};
use crate::machine;
use crate::median::median;

/// Formats the results of all links, with the context needed to judge them.
pub fn render(all: &[Measured<'_>]) -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut out = format!(
        "# Over real sockets and simulated links\n\n\
         `cargo lab {}` on {}. Goodput in Mbit/s: median (lowest–highest) of the rounds; the share is of the \
         link's rate in whole IP packets, of which at most 95–96 % can be payload. `*`: not finished in time in \
         some round; what passed the link until then counts. `†`: gave up in some round, which counts as nothing. \"lost\" is what the sender found lost or sent again.\n",
        words.join(" "),
        machine(),
    );
    for measured in all {
        let link = measured.link;
        let _ = write!(out, "\n## {}\n\n`{}` there, `{}` back.", link.name, link.up, link.down);
        if let Some(of) = &measured.calibration {
            let _ = write!(out, " Calibration: {}.", calibration(of));
        }
        out.push_str("\n\n| peer | Mbit/s | share | lost | CPU s | link late p50 / p99 |\n|---|---|---|---|---|---|\n");
        for row in &measured.rows {
            let _ = writeln!(out, "{}", table_row(row, link.mbit));
        }
    }
    out
}

fn table_row(row: &Row, mbit: u64) -> String {
    let rates = || row.runs.iter().map(|run| run.sample.mbit);
    let (low, high) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
    let middle = median(rates());
    let share = 100.0 * middle / mbit as f64;
    let mark = row.runs.iter().map(|run| mark(&run.end)).max().unwrap_or_default();
    let lost: Vec<f64> =
        row.runs.iter().filter_map(|run| run.sample.lost).map(|lost| lost as f64).collect();
    let lost =
        if lost.is_empty() { "–".into() } else { format!("{:.0}", median(lost.into_iter())) };
    let cpu = median(row.runs.iter().map(|run| run.sample.cpu_seconds));
    let late = |key: &str| median(row.runs.iter().map(|run| number(run, key)));
    let (p50, p99) = (late("late_p50_us"), late("late_p99_us"));
    format!(
        "| {} | {middle:.1}{mark} ({low:.1}–{high:.1}) | {share:.0} % | {lost} | {cpu:.2} | {p50:.0} / {p99:.0} µs |",
        row.peer,
    )
}

fn mark(end: &RunEnd) -> &'static str {
    match end {
        RunEnd::Finished => "",
        RunEnd::OutOfTime => "*",
        RunEnd::Failed(_) => "†",
    }
}

fn number(run: &Run, key: &str) -> f64 {
    run.link.json["up"][key].as_f64().unwrap_or_default()
}

/// Formats one run for the progress output.
pub fn line(peer: &Peer, run: &Run) -> String {
    let mark = match &run.end {
        RunEnd::Finished => String::new(),
        RunEnd::OutOfTime => " (not finished)".into(),
        RunEnd::Failed(why) => format!(" (gave up: {why})"),
    };
    let trouble = match troubles(run) {
        0 => String::new(),
        n => format!("; {n} packets lost by the lab itself"),
    };
    format!(
        "{} {:.1} Mbit/s{mark}, link late {:.0} / {:.0} µs, its CPU {:.2} s{trouble}",
        peer.name(),
        run.sample.mbit,
        number(run, "late_p50_us"),
        number(run, "late_p99_us"),
        run.link.json["cpu_seconds"].as_f64().unwrap_or_default(),
    )
}

/// Packets that this machine lost, not the model of the link.
fn troubles(run: &Run) -> u64 {
    let of = |way: &str| run.link.json[way]["over_limit"].as_u64().unwrap_or_default();
    run.link.missed + of("up") + of("down")
}

pub fn calibration(of: &Calibration) -> String {
    let report = &of.link.json;
    format!(
        "round trip {:.2} ms, UDP {:.1} Mbit/s, packets late {} / {} µs (p50 / p99), the link's CPU {:.0} % of one core",
        of.rtt_ms,
        of.udp_mbit,
        report["up"]["late_p50_us"],
        report["up"]["late_p99_us"],
        100.0 * report["cpu_seconds"].as_f64().unwrap_or_default()
            / report["seconds"].as_f64().unwrap_or(1.0),
    )
}

/// All runs as JSON.
pub fn json(all: &[Measured<'_>]) -> Value {
    let run = |run: &Run| {
        json!({
            "mbit": run.sample.mbit,
            "end": match &run.end {
                RunEnd::Finished => "finished",
                RunEnd::OutOfTime => "out of time",
                RunEnd::Failed(why) => why,
            },
            "lost": run.sample.lost,
            "cpu_seconds": run.sample.cpu_seconds,
            "missed_by_the_lab": run.link.missed,
            "link": run.link.json,
        })
    };
    let row = |row: &Row| json!({ "peer": row.peer, "runs": row.runs.iter().map(run).collect::<Vec<_>>() });
    let link = |m: &Measured<'_>| {
        json!({
            "link": m.link.name,
            "up": m.link.up,
            "down": m.link.down,
            "calibration": m.calibration.as_ref().map(|c| json!({
                "rtt_ms": c.rtt_ms, "udp_mbit": c.udp_mbit, "link": c.link.json,
            })),
            "peers": m.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    json!({ "machine": machine(), "links": all.iter().map(link).collect::<Vec<_>>() })
}

/// Processor, kernel, congestion control and day.
pub fn machine() -> String {
    let control = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let control = control.as_deref().map_or("?", str::trim);
    format!("{}, TCP default {control}, {}", machine::hardware(), machine::today())
}
