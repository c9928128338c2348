//! Floors of the small grid: the minimum goodput of each cell, kept in the repository
//! (`lab/grid/floors.tsv`).
//!
//! `cargo lab grid --ci` runs the small cells with both of wraith's controllers and fails if a cell
//! is below its floor. `--bless` writes the floors.
//!
//! Time is simulated and all results follow from the seeds, so a floor does not depend on the
//! machine. A harmless change can alter the random course of a run, so a cell is judged by its mean
//! over [`SEEDS`] runs. Its floor is below the mean at the time of writing: by [`MARGIN`], or by
//! [`ERRORS`] standard errors if the runs differ much (a cell can develop in two ways).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cell::Cell;
use crate::cells::small;
use crate::contender::Contender;
use crate::report::Row;
use crate::run::{RunEnd, run_all};

/// Runs of each cell, with the seeds from 1 on.
const SEEDS: u64 = 15;
/// Share of its goodput that a cell may lose.
const MARGIN: f64 = 0.03;
/// Standard errors of the mean that a cell may lose.
const ERRORS: f64 = 3.0;

/// Minimum goodput as a share of the capacity, by cell and contender.
type Floors = BTreeMap<(String, String), f64>;

/// Path of the file with the floors.
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("floors.tsv")
}

/// Runs the small cells with wraith's controllers on `jobs` threads: all of one seed, then all of
/// the next.
pub fn run_small(jobs: usize) -> Vec<Row> {
    let ours = Contender::ALL.into_iter().filter(|contender| !contender.is_baseline());
    let work: Vec<(Cell, Contender)> =
        ours.flat_map(|contender| small().into_iter().map(move |cell| (cell, contender))).collect();
    let run = |seed| {
        let figures = run_all(&work, seed, jobs, |_| {});
        let rows = work.clone().into_iter().zip(figures);
        rows.map(|((cell, contender), figures)| Row { cell, contender, figures })
    };
    (1..=SEEDS).flat_map(run).collect()
}

/// Number of rows of a seed.
pub fn cells() -> usize {
    small().len() * Contender::ALL.into_iter().filter(|c| !c.is_baseline()).count()
}

/// Results of a cell in all of its runs.
struct Sample {
    cell: String,
    contender: String,
    goodputs: Vec<f64>,
    gave_up: bool,
}

impl Sample {
    /// Collects the samples of all cells, in the order of the first runs.
    fn all(rows: &[Row]) -> Vec<Self> {
        let mut samples: Vec<Self> = Vec::new();
        for row in rows {
            let (cell, contender) = key(row);
            let known = samples.iter().position(|s| s.cell == cell && s.contender == contender);
            let at = known.unwrap_or_else(|| {
                samples.push(Self { cell, contender, goodputs: Vec::new(), gave_up: false });
                samples.len() - 1
            });
            samples[at].goodputs.push(row.figures.goodput);
            samples[at].gave_up |= matches!(row.figures.end, RunEnd::Aborted(_));
        }
        samples
    }

    fn mean(&self) -> f64 {
        self.goodputs.iter().sum::<f64>() / self.goodputs.len() as f64
    }

    /// Standard error of the mean.
    fn error(&self) -> f64 {
        let (mean, n) = (self.mean(), self.goodputs.len() as f64);
        let squares: f64 = self.goodputs.iter().map(|goodput| (goodput - mean).powi(2)).sum();
        (squares / (n - 1.0).max(1.0) / n).sqrt()
    }

    fn floor(&self) -> f64 {
        let mean = self.mean();
        (mean * (1.0 - MARGIN)).min(mean - ERRORS * self.error()).max(0.0)
    }
}

/// Describes each row that is below its floor in the repository.
pub fn complaints(rows: &[Row]) -> Result<Vec<String>> {
    let file = file();
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}; `--bless` writes it", file.display()))?;
    Ok(compare(rows, parse(&text)?))
}

/// Writes floors slightly below `rows`.
pub fn bless(rows: &[Row]) -> Result<()> {
    let file = file();
    std::fs::write(&file, encode(rows)).with_context(|| format!("cannot write {}", file.display()))
}

fn compare(rows: &[Row], mut floors: Floors) -> Vec<String> {
    let mut complaints = Vec::new();
    for sample in Sample::all(rows) {
        let goodput = sample.mean();
        let Sample { cell, contender, gave_up, .. } = sample;
        match floors.remove(&(cell.clone(), contender.clone())) {
            None => complaints.push(format!("{cell}, {contender}: the file has no floor")),
            Some(_) if gave_up => complaints.push(format!("{cell}, {contender}: gave up")),
            Some(floor) if goodput < floor => complaints.push(format!(
                "{cell}, {contender}: {goodput:.4} of the capacity, the floor is {floor:.4}"
            )),
            Some(_) => {}
        }
    }
    let left = floors.into_keys();
    complaints.extend(left.map(|(cell, contender)| format!("{cell}, {contender}: no such cell")));
    complaints
}

fn key(row: &Row) -> (String, String) {
    (row.cell.to_string(), row.contender.to_string())
}

fn encode(rows: &[Row]) -> String {
    let mut text = String::from(
        "# The least mean goodput, of the capacity, of each cell of the small grid. `cargo lab grid --ci` compares, and with\n\
         # `--bless` rewrites this file.\n",
    );
    for sample in Sample::all(rows) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}\t{}\t{:.4}", sample.cell, sample.contender, sample.floor());
    }
    text
}

fn parse(text: &str) -> Result<Floors> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let floors = lines.map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().with_context(|| format!("not a floor: {line}"));
        let (cell, contender, floor) = (field()?, field()?, field()?);
        let floor = floor.parse().with_context(|| format!("not a floor: {line}"))?;
        Ok(((cell.to_owned(), contender.to_owned()), floor))
    });
    floors.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;

    /// An actual result of the cheapest cell.
    fn row() -> Row {
        let cell = small().into_iter().min_by_key(Cell::transfer_bytes).unwrap();
        let contender = Contender::default_wraith();
        Row { figures: run(&cell, contender, 1), cell, contender }
    }

    #[test]
    fn a_cell_below_its_floor_without_one_or_that_is_gone_is_a_complaint() {
        let mut row = row();
        let floors = parse(&encode(std::slice::from_ref(&row))).unwrap();
        assert!(compare(std::slice::from_ref(&row), floors.clone()).is_empty());
        row.figures.goodput *= 1.0 - 2.0 * MARGIN;
        let worse = compare(std::slice::from_ref(&row), floors.clone());
        assert!(worse.len() == 1 && worse[0].contains("the floor is"), "{worse:?}");
        assert_eq!(compare(&[], floors).len(), 1);
        assert_eq!(compare(&[row], Floors::new()).len(), 1);
    }

    #[test]
    fn runs_that_differ_much_make_a_lower_floor() {
        let sample = |goodputs: &[f64]| Sample {
            cell: String::new(),
            contender: String::new(),
            goodputs: goodputs.to_vec(),
            gave_up: false,
        };
        assert!((sample(&[0.9; 4]).floor() - 0.9 * (1.0 - MARGIN)).abs() < 1e-9);
        // The standard deviation is 0.2, the error half of that.
        let two_ways = sample(&[0.6, 0.9464, 0.6, 0.9464]);
        assert!((two_ways.error() - 0.1).abs() < 1e-4, "{}", two_ways.error());
        assert!((two_ways.floor() - 0.4732).abs() < 1e-3, "{}", two_ways.floor());
    }

    #[test]
    fn the_floors_in_the_repository_are_of_the_small_cells() {
        let text = std::fs::read_to_string(file()).unwrap();
        let floors = parse(&text).unwrap();
        assert_eq!(floors.len(), cells());
        assert!(floors.values().all(|floor| (0.0..1.0).contains(floor)));
    }
}
