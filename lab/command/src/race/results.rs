//! The results of a race: every sample, with the machine on which it was taken. They are kept in
//! `docs/performance/race.json`, the only source of the tables and charts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// One race.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Command that repeats the race.
    pub command: String,
    pub date: String,
    pub machine: Machine,
    pub tables: Vec<Table>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
}

/// Contenders that did the same work in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// Name of its chart.
    pub id: String,
    pub title: String,
    pub measure: Measure,
    pub rows: Vec<Row>,
}

/// The compared quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measure {
    /// Seconds for all of it: less is better.
    Seconds,
    /// 10^9 bits of payload per second: more is better.
    GbitPerSecond,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    /// Reason why samples are missing.
    pub skipped: Option<String>,
    pub samples: Vec<Sample>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes that arrived and were compared.
    pub bytes: u64,
    pub seconds: f64,
    /// CPU time of all processes of the contender.
    pub cpu_seconds: f64,
    /// Peak memory of the largest process, for each side.
    pub peak_rss_bytes: BTreeMap<String, u64>,
}

impl Results {
    /// Empty results of this machine and the current time.
    pub fn new() -> Result<Self> {
        let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?.stdout;
        Ok(Self {
            command: format!("cargo lab {}", portable(std::env::args().skip(1)).join(" ")),
            date: String::from_utf8_lossy(&date).trim().to_owned(),
            machine: Machine::this(),
            tables: Vec::new(),
        })
    }

    /// Path of the committed results.
    pub fn committed() -> PathBuf {
        crate::cargo::root().join("docs/performance/race.json")
    }

    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("no results at {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(())
    }

    /// The median of a row, if it ran.
    pub fn median(&self, table: &str, row: &str) -> Option<f64> {
        let table = self.tables.iter().find(|t| t.id == table)?;
        table.rows.iter().find(|r| r.name == row)?.spread(table.measure).map(|s| s.median)
    }
}

/// Returns the words of the command without folders of this machine, which are meaningless
/// elsewhere.
pub fn portable(mut words: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--dir" | "--tools" | "--wraith" => drop(words.next()),
            // A reader has these programs in other places.
            "--openhitls" | "--openhitls-rs" => {
                drop(words.next());
                kept.push(format!("{word} PROGRAM"));
            }
            _ if word.starts_with("--dir=") || word.starts_with("--tools=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: String, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map_or_else(String::new, |(_, value)| value.trim().to_owned())
        };
        let kib = field(read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>();
        Self {
            cpu: field(read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: (kib.unwrap_or(0) + (1 << 19)) >> 20,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl Row {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), skipped: None, samples: Vec::new() }
    }

    /// Median, minimum and maximum; `None` without samples.
    pub fn spread(&self, measure: Measure) -> Option<Spread> {
        Spread::of(self.samples.iter().map(|sample| sample.value(measure)))
    }

    /// Median CPU time per byte moved, in nanoseconds.
    pub fn cpu_ns_per_byte(&self) -> f64 {
        let each = self.samples.iter().map(|s| s.cpu_seconds * 1e9 / s.bytes.max(1) as f64);
        Spread::of(each).map_or(0.0, |s| s.median)
    }

    /// The highest peak of all runs, for each side.
    pub fn peak_rss_mib(&self) -> BTreeMap<&str, f64> {
        let mut peaks = BTreeMap::new();
        for (side, bytes) in self.samples.iter().flat_map(|sample| &sample.peak_rss_bytes) {
            let peak: &mut f64 = peaks.entry(side.as_str()).or_default();
            *peak = peak.max(*bytes as f64 / f64::from(1 << 20));
        }
        peaks
    }
}

impl Sample {
    fn value(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Seconds => self.seconds,
            Measure::GbitPerSecond => self.bytes as f64 * 8.0 / 1e9 / self.seconds,
        }
    }
}

/// Median and range of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Computes the spread. The median is the middle value, or the mean of the two middle ones.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let n = values.len();
        let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        Some(Self { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_command_that_is_recorded_names_no_folders() {
        let words = ["race", "--dir", "/a", "--runs", "3", "--tools=/b", "--record"];
        let kept = portable(words.into_iter().map(String::from));
        assert_eq!(kept, ["race", "--runs", "3", "--record"]);
    }
}
