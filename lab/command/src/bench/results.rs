//! Reads criterion's results from disk: one folder for each row, with its samples.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// One measured row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Median over all samples.
    pub(super) median_ns: f64,
    /// The fastest sample, which is the least disturbed by other processes.
    pub(super) fastest_ns: f64,
    pub(super) moves: Throughput,
}

/// Bytes or elements that one repetition processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Throughput {
    Bytes(f64),
    Elements(f64),
    Nothing,
}

/// All rows by their names, `group/row`.
pub(super) type Results = BTreeMap<String, Measured>;

pub(super) fn read(folder: &Path) -> Result<Results> {
    let mut rows = BTreeMap::new();
    for group in folders(folder)? {
        for row in folders(&folder.join(&group))? {
            let new = folder.join(&group).join(&row).join("new");
            if new.is_dir() {
                rows.insert(format!("{group}/{row}"), measured(&new)?);
            }
        }
    }
    Ok(rows)
}

fn folders(folder: &Path) -> Result<Vec<String>> {
    let items =
        fs::read_dir(folder).with_context(|| format!("no results in {}", folder.display()))?;
    let mut names = Vec::new();
    for item in items {
        let item = item?;
        if item.file_type()?.is_dir() {
            names.push(item.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

fn measured(folder: &Path) -> Result<Measured> {
    let json = |name: &str| -> Result<Value> {
        let file = folder.join(name);
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(serde_json::from_slice(&text)?)
    };
    let (estimates, sample, benchmark) =
        (json("estimates.json")?, json("sample.json")?, json("benchmark.json")?);
    let median_ns = estimates["median"]["point_estimate"].as_f64().context("no median")?;
    let numbers =
        |name: &str| sample[name].as_array().into_iter().flatten().filter_map(Value::as_f64);
    let fastest_ns = numbers("times").zip(numbers("iters")).map(|(time, count)| time / count);
    let throughput = &benchmark["throughput"];
    let moves = match (throughput["Bytes"].as_f64(), throughput["Elements"].as_f64()) {
        (Some(bytes), _) => Throughput::Bytes(bytes),
        (_, Some(elements)) => Throughput::Elements(elements),
        _ => Throughput::Nothing,
    };
    Ok(Measured { median_ns, fastest_ns: fastest_ns.fold(f64::INFINITY, f64::min), moves })
}
