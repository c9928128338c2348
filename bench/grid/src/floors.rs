//! Floors of the small grid: what each cell must reach, kept in the repository (`bench/grid/floors.tsv`).
//!
//! `cargo xtask grid --ci` runs the small cells with both of wraith's controllers and fails where one falls below its floor.
//! Time is simulated and everything follows from the seed, so a floor depends on no machine. It lies [`MARGIN`] below what the
//! cell reached when it was written, because a harmless change throws the dice anew. `--bless` writes the floors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cell::Cell;
use crate::cells::small;
use crate::contender::Contender;
use crate::report::Row;
use crate::run::{End, run_all};

/// The seed of the runs that floors are of.
const SEED: u64 = 1;
/// The part of its goodput that a cell may lose.
const MARGIN: f64 = 0.03;

/// Cell and contender, and the goodput of the capacity that they must reach.
type Floors = BTreeMap<(String, String), f64>;

/// The file with the floors.
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("floors.tsv")
}

/// Runs the small cells with wraith's controllers, on `jobs` threads.
pub fn run_small(jobs: usize) -> Vec<Row> {
    let ours = Contender::ALL.into_iter().filter(|contender| !contender.is_baseline());
    let work: Vec<(Cell, Contender)> =
        ours.flat_map(|contender| small().into_iter().map(move |cell| (cell, contender))).collect();
    let figures = run_all(&work, SEED, jobs, |_| {});
    let rows = work.into_iter().zip(figures);
    rows.map(|((cell, contender), figures)| Row { cell, contender, figures }).collect()
}

/// What is wrong with `rows` beside the floors in the repository.
pub fn complaints(rows: &[Row]) -> Result<Vec<String>> {
    let file = file();
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}; `--bless` writes it", file.display()))?;
    Ok(compare(rows, parse(&text)?))
}

/// Writes floors a little below `rows`.
pub fn bless(rows: &[Row]) -> Result<()> {
    let file = file();
    std::fs::write(&file, encode(rows)).with_context(|| format!("cannot write {}", file.display()))
}

fn compare(rows: &[Row], mut floors: Floors) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in rows {
        let (cell, contender) = key(row);
        let goodput = row.figures.goodput;
        match floors.remove(&key(row)) {
            None => complaints.push(format!("{cell}, {contender}: there is no floor")),
            Some(_) if matches!(row.figures.end, End::Aborted(_)) => {
                complaints.push(format!("{cell}, {contender}: gave up"));
            }
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
        "# The least goodput, of the capacity, of each cell of the small grid. `cargo xtask grid --ci` compares, and with\n\
         # `--bless` rewrites this file.\n",
    );
    for row in rows {
        let (cell, contender) = key(row);
        let floor = row.figures.goodput * (1.0 - MARGIN);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{cell}\t{contender}\t{floor:.4}");
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

    /// The cheapest cell, as it went.
    fn row() -> Row {
        let cell = small().into_iter().min_by_key(Cell::transfer_bytes).unwrap();
        let contender = Contender::default_wraith();
        Row { figures: run(&cell, contender, SEED), cell, contender }
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
    fn the_floors_in_the_repository_are_of_the_small_cells() {
        let text = std::fs::read_to_string(file()).unwrap();
        let floors = parse(&text).unwrap();
        let ours = Contender::ALL.into_iter().filter(|c| !c.is_baseline()).count();
        assert_eq!(floors.len(), ours * small().len());
        assert!(floors.values().all(|floor| (0.0..1.0).contains(floor)));
    }
}
