//! The benchmark program of openhitls-rs, built with criterion. Its set-up takes seconds, so one
//! start measures all requested rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::super::contests::Contest;
use super::said;

pub fn measure(program: &Path, contests: &[&Contest], seconds: f64) -> Result<Vec<Result<f64>>> {
    let names: Vec<&str> = contests.iter().filter_map(|each| each.rs.as_deref()).collect();
    // A fresh folder: otherwise criterion would also print comparisons with earlier results.
    let scratch = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.args(["--bench", &exactly(&names), "--noplot", "--sample-size", "10"]);
    command.args(["--warm-up-time", "0.1", "--measurement-time", &seconds.to_string()]);
    command.args(["--nresamples", "1000"]).env("CRITERION_HOME", scratch.path());
    let output = said(&mut command)?;
    let figures = found(&output);
    let figure = |contest: &&Contest| {
        let name = contest.rs.as_deref().context("it has no such row")?;
        let figure = figures.get(name).copied();
        figure.with_context(|| format!("it gives no figure for {name}"))
    };
    Ok(contests.iter().map(figure).collect())
}

/// Returns the regular expression that matches exactly these names.
fn exactly(names: &[&str]) -> String {
    format!("^({})$", names.join("|").replace('+', "\\+").replace('.', "\\."))
}

/// Returns the operations a second of each benchmark. A name precedes its times, or is on the line
/// above if it is long.
fn found(output: &str) -> BTreeMap<&str, f64> {
    let mut figures = BTreeMap::new();
    let mut above = "";
    for line in output.lines() {
        if let Some((name, times)) = line.split_once("time:") {
            let name = if name.trim().is_empty() { above } else { name.trim() };
            if let Some(figure) = figure(times) {
                figures.insert(name, figure);
            }
        }
        above = line.trim();
    }
    figures
}

/// Returns the middle value of `[1.2 µs 1.3 µs 1.4 µs]`, as operations a second.
fn figure(times: &str) -> Option<f64> {
    let (times, _) = times.trim_start().strip_prefix('[')?.split_once(']')?;
    let mut words = times.split_whitespace().skip(2);
    let (value, unit) = (words.next()?.parse::<f64>().ok()?, words.next()?);
    let seconds = match unit {
        "ps" => value * 1e-12,
        "ns" => value * 1e-9,
        "µs" | "us" => value * 1e-6,
        "ms" => value * 1e-3,
        "s" => value,
        _ => return None,
    };
    Some(1.0 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_found_with_names_beside_and_above_them() {
        let text = "Gnuplot not found, using plotters backend\n\
            sm3/hash/8192           time:   [35.553 µs 40.000 µs 39.617 µs]\n\
            \u{20}                       thrpt:  [197.20 MiB/s 198 MiB/s 199 MiB/s]\n\
            Found 2 outliers among 10 measurements (20.00%)\n\n\
            aes-gcm/aes-128-gcm/encrypt/1024\n\
            \u{20}                       time:   [1 s 2.0 s 3 s]\n\
            x                       time:   [1 y 2 y 3 y]\n";
        let found = found(text);
        assert_eq!(
            found.keys().copied().collect::<Vec<_>>(),
            ["aes-gcm/aes-128-gcm/encrypt/1024", "sm3/hash/8192"]
        );
        assert!((found["sm3/hash/8192"] - 25_000.0).abs() < 1e-6);
        assert!((found["aes-gcm/aes-128-gcm/encrypt/1024"] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_name_is_no_part_of_another() {
        assert_eq!(exactly(&["hpke/setup+seal", "sm4/x"]), "^(hpke/setup\\+seal|sm4/x)$");
    }
}
