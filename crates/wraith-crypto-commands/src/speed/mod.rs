//! `wraith speed`: measures the speed of each algorithm on this processor.
//!
//! The table `rows` defines the operations. Each operation is repeated until a time slice is
//! full. The result is the median of the slices, so that a short disturbance by other processes
//! does not change it.

mod args;
mod rows;

pub use args::SpeedArgs;

use std::time::Duration;

use rows::{Row, Work};
use wraith_suite::Backends;

use crate::failure::{Exit, Failure};
use crate::report::{Event, Reporter};

/// Number of time slices of a row.
const SLICES: f64 = 10.0;
/// Minimum duration of a slice, long enough for the resolution of the clock.
const SLICE_MIN: Duration = Duration::from_millis(1);
/// Columns of the longest name with its bytes.
const NAME_WIDTH: usize = 44;
/// Setup and warm-up of a row, as a fraction of its measuring time.
const BESIDE: f64 = 0.25;
/// Maximum number of suggestions for an unknown name.
const PROPOSED_MAX: usize = 3;

/// The result of a row.
struct Measurement {
    operations: u64,
    operations_per_second: f64,
}

/// Measures the operations that the arguments name, or lists them. Without a choice of backends,
/// each operation is measured with both where they differ.
///
/// # Errors
/// [`Exit::Usage`] for a name of no operation; [`Exit::Partial`] if some could not be measured.
pub fn run(args: &SpeedArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let chosen = Backends::chosen();
    let result = measure_all(args, chosen, reporter);
    Backends::choose(chosen);
    result
}

/// A row with the implementation of each choice of backends. If both have the same, there is one.
struct Pair {
    row: Row,
    conservative: Option<Row>,
}

/// Returns the rows for the choice of the user, or for both choices.
fn pairs(bytes: &[u32], chosen: Option<Backends>) -> Vec<Pair> {
    let of = |backends| {
        Backends::choose(Some(backends));
        rows::all(bytes)
    };
    if let Some(chosen) = chosen {
        return of(chosen).into_iter().map(|row| Pair { row, conservative: None }).collect();
    }
    let conservative = of(Backends::Conservative).into_iter();
    let pairs = of(Backends::Fast).into_iter().zip(conservative).map(|(row, other)| {
        debug_assert_eq!(row.name, other.name);
        let differs = row.backend != other.backend;
        Pair { row, conservative: differs.then_some(other) }
    });
    pairs.collect()
}

fn measure_all(
    args: &SpeedArgs,
    chosen: Option<Backends>,
    reporter: &dyn Reporter,
) -> Result<(), Failure> {
    let all = pairs(&args.bytes, chosen);
    let wanted = wanted(&args.names, &all);
    if let Some(name) = args.names.iter().find(|name| !all.iter().any(|pair| pair.row.is(name))) {
        return Err(no_row(name, &all));
    }
    if args.list {
        wanted.iter().for_each(|pair| list(pair, chosen, reporter));
        return Ok(());
    }
    reporter.status(&format!("This processor: {}.", processor()));
    if args.names.is_empty() {
        let twice = wanted.iter().filter(|pair| pair.conservative.is_some()).count();
        reporter.status(&format!("{}.", extent(wanted.len() + twice, args.seconds)));
    }
    let heading = format!(
        "{:NAME_WIDTH$}{:>8}{:>12}{:>15}{:>15}  computed by",
        "operation", "bytes", "MB/s", "operations/s", "conservative"
    );
    reporter.print(heading.as_bytes());
    let mut failed = 0;
    for pair in &wanted {
        if let Err(why) = measure_pair(pair, chosen, args.seconds, reporter) {
            reporter.note(&format!("{} cannot be measured: {why}", pair.row.name));
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        some => {
            let message = format!("{some} of {} operations could not be measured", wanted.len());
            Err(Failure::new(Exit::Partial, message))
        }
    }
}

/// Measures a row with each implementation, and reports it.
fn measure_pair(
    pair: &Pair,
    chosen: Option<Backends>,
    seconds: f64,
    reporter: &dyn Reporter,
) -> Result<(), String> {
    let with = |row: &Row, backends| {
        Backends::choose(Some(backends));
        Ok::<_, String>(measure(&mut row.prepare()?, seconds))
    };
    let first = with(&pair.row, chosen.unwrap_or(Backends::Fast))?;
    let other = pair.conservative.as_ref();
    let second = other.map(|row| with(row, Backends::Conservative)).transpose()?;
    event(&pair.row, name_of(pair, chosen), Some(&first), reporter);
    if let (Some(row), Some(measured)) = (other, &second) {
        event(row, Backends::Conservative.name(), Some(measured), reporter);
    }
    let (row, per_second) = (&pair.row, first.operations_per_second);
    let bytes = row.bytes.map_or_else(String::new, |bytes| bytes.to_string());
    let megabytes = row.bytes_per_second(&first).map(|rate| format!("{:.1}", rate / 1e6));
    let megabytes = megabytes.unwrap_or_default();
    let conservative = second.map(|measured| format!("{:.1}", measured.operations_per_second));
    let conservative = conservative.unwrap_or_default();
    let line = format!(
        "{:NAME_WIDTH$}{bytes:>8}{megabytes:>12}{per_second:>15.1}{conservative:>15}  {}",
        row.name,
        backend_of(pair)
    );
    reporter.print(line.as_bytes());
    Ok(())
}

/// Returns the choice of backends that the first measurement of a pair stands for.
fn name_of(pair: &Pair, chosen: Option<Backends>) -> &'static str {
    match (chosen, &pair.conservative) {
        (Some(chosen), _) => chosen.name(),
        (None, Some(_)) => Backends::Fast.name(),
        (None, None) => "both",
    }
}

/// Returns the implementations of a pair, the fast one first.
fn backend_of(pair: &Pair) -> String {
    match &pair.conservative {
        Some(other) => format!("{}, conservative: {}", pair.row.backend, other.backend),
        None => pair.row.backend.clone(),
    }
}

/// Describes the expected duration of the run.
fn extent(rows: usize, seconds: f64) -> String {
    let minutes = rows as f64 * seconds * (1.0 + BESIDE) / 60.0;
    let time = match minutes.ceil() {
        1.0 => "a minute at most".to_owned(),
        some => format!("about {some} minutes"),
    };
    format!("{rows} operations take {time}; wraith speed NAME measures a selection")
}

/// Returns the rows for each name: the row with this name, else the rows of the algorithm with this
/// name, else the rows that contain it. Without names, returns all rows.
fn wanted<'a>(names: &[String], all: &'a [Pair]) -> Vec<&'a Pair> {
    let ways = [Row::is_called, Row::is_of, Row::is];
    let way =
        |name: &String| ways.into_iter().find(|is| all.iter().any(|pair| is(&pair.row, name)));
    let meant: Vec<_> = names.iter().filter_map(|name| Some((name, way(name)?))).collect();
    let is_meant = |pair: &&Pair| meant.iter().any(|(name, is)| is(&pair.row, name));
    all.iter().filter(|row| names.is_empty() || is_meant(row)).collect()
}

/// Repeats the operation for about this many seconds.
fn measure(work: &mut Work, seconds: f64) -> Measurement {
    let slice = Duration::from_secs_f64(seconds / SLICES).max(SLICE_MIN);
    // Finds the number of operations that fill a slice. This is the warm-up too.
    let mut n = 1;
    let mut took = work(n);
    while took < slice / 4 {
        n *= 2;
        took = work(n);
    }
    let mut each = vec![took.as_secs_f64() / n as f64];
    let mut operations = n;
    let mut total = took.as_secs_f64();
    if total < seconds {
        // Discards the warm-up.
        (each, operations, total) = (Vec::new(), 0, 0.0);
        n = ((n as f64 * slice.as_secs_f64() / took.as_secs_f64().max(1e-9)) as u64).max(1);
    }
    while total < seconds {
        let took = work(n).as_secs_f64();
        each.push(took / n as f64);
        operations += n;
        total += took;
    }
    Measurement { operations, operations_per_second: 1.0 / median(each).max(1e-12) }
}

/// Returns the middle value, or the mean of the two middle ones.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

fn list(pair: &Pair, chosen: Option<Backends>, reporter: &dyn Reporter) {
    let row = &pair.row;
    event(row, name_of(pair, chosen), None, reporter);
    if let Some(other) = &pair.conservative {
        event(other, Backends::Conservative.name(), None, reporter);
    }
    let bytes = row.bytes.map_or_else(String::new, |bytes| bytes.to_string());
    let line = format!("{:NAME_WIDTH$}{bytes:>8}  {} ({})", row.name, row.scope, backend_of(pair));
    reporter.print(line.as_bytes());
}

fn event(row: &Row, backends: &str, measured: Option<&Measurement>, reporter: &dyn Reporter) {
    reporter.event(&Event::Speed {
        name: &row.name,
        bytes: row.bytes.map(u64::from),
        operations_per_second: measured.map(|measured| measured.operations_per_second),
        bytes_per_second: measured.and_then(|measured| row.bytes_per_second(measured)),
        operations: measured.map_or(0, |measured| measured.operations),
        backend: &row.backend,
        backends,
        scope: row.scope,
    });
}

impl Row {
    fn bytes_per_second(&self, measured: &Measurement) -> Option<f64> {
        self.bytes.map(|bytes| measured.operations_per_second * f64::from(bytes))
    }
}

fn no_row(name: &str, all: &[Pair]) -> Failure {
    let shown: String = name.chars().take(wraith_suite::NAME_MAX).collect();
    let wanted = rows::letters(&shown);
    let mut near: Vec<(usize, &str)> = all
        .iter()
        .map(|Pair { row, .. }| {
            (strsim::osa_distance(&rows::letters(&row.name), &wanted), &*row.name)
        })
        .collect();
    near.sort();
    near.dedup();
    let near: Vec<&str> = near.into_iter().take(PROPOSED_MAX).map(|(_, name)| name).collect();
    let shown = wraith_files::shown(shown.as_bytes());
    Failure::new(Exit::Usage, format!("no operation has '{shown}' in its name"))
        .hint(format!("similar names: {}; wraith speed --list shows all", near.join(", ")))
}

/// Returns the processor features that speed up algorithms.
fn processor() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! has {
            ($($name:tt)+) => { [$(($name, std::arch::is_x86_feature_detected!($name))),+] };
        }
        let features = has!("aes" "pclmulqdq" "sha" "bmi2" "adx" "avx2" "avx512f" "avx512ifma" "vaes" "vpclmulqdq" "gfni");
        let names: Vec<_> =
            features.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
        format!("x86-64 with {}", names.join(", "))
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_takes_long_is_done_once() {
        let mut calls = 0;
        let mut work: Work = Box::new(move |n| {
            calls += 1;
            assert!((n, calls) == (1, 1), "{n} {calls}");
            Duration::from_secs(7)
        });
        let measured = measure(&mut work, 1.0);
        assert_eq!(measured.operations, 1);
        assert!((measured.operations_per_second - 1.0 / 7.0).abs() < 1e-9);
    }

    #[test]
    fn an_algorithms_name_means_its_operations_and_not_those_that_contain_it() {
        let all = pairs(&[1024], None);
        let names = |word: &str| -> Vec<String> {
            wanted(&[word.to_owned()], &all).iter().map(|pair| pair.row.name.clone()).collect()
        };
        assert_eq!(names("sha256"), ["SHA-256 hash"]);
        assert_eq!(names("X25519"), ["X25519 keygen", "X25519 derive"]);
        assert_eq!(names("aes-128-gcm encrypt"), ["AES-128-GCM encrypt"]);
        assert_eq!(names("hpke").len(), 2);
        // No algorithm has exactly that name.
        assert_eq!(names("rsa-2048").len(), 7);
        assert!(names("verify").len() > 20);
    }

    #[test]
    fn a_run_of_everything_is_announced_with_its_length() {
        assert!(extent(400, 1.0).starts_with("400 operations take about 9 minutes;"));
        assert!(extent(400, 0.001).starts_with("400 operations take a minute at most;"));
    }

    #[test]
    fn a_slow_moment_does_not_count() {
        let mut calls = 0;
        let mut work: Work = Box::new(move |n| {
            calls += 1;
            let each = if calls % 4 == 0 { 100 } else { 1 };
            Duration::from_micros(n * each)
        });
        let measured = measure(&mut work, 1.0);
        assert!((measured.operations_per_second - 1e6).abs() < 1.0);
    }
}
