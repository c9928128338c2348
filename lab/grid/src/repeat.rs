//! Repeats close cells. The result of one seed is random, and may decide a cell in which the
//! contenders differ little.
//!
//! Invariant: all contenders in a cell have the same seeds. The reported run is a real run: the one
//! with the median goodput.

use std::collections::HashSet;

use crate::cell::Cell;
use crate::compare::{CLOSE, RUNS, compare};
use crate::contender::Contender;
use crate::report::Row;
use crate::run::{Figures, run_all};

/// Runs the cells in which our default is not clearly ahead with further seeds, and keeps the
/// median of all runs. It does the same if a row already has its further runs, from an earlier
/// grid.
pub fn repeat_close(rows: &mut [Row], seed: u64, jobs: usize, done: impl Fn(usize, usize) + Sync) {
    let compared = compare(rows, Contender::default_wraith());
    let close = compared.iter().filter(|comparison| comparison.ratio() < CLOSE);
    let begun = rows.iter().filter(|row| row.figures.runs > 1).map(|row| row.cell.to_string());
    let close: HashSet<String> =
        close.map(|comparison| comparison.ours.cell.to_string()).chain(begun).collect();
    let again: Vec<&mut Row> = rows
        .iter_mut()
        .filter(|row| row.figures.runs < RUNS && close.contains(&row.cell.to_string()))
        .collect();
    let work: Vec<(Cell, Contender)> =
        again.iter().map(|row| (row.cell.clone(), row.contender)).collect();
    let mut runs: Vec<Vec<Figures>> = again.iter().map(|row| vec![row.figures.clone()]).collect();
    for more in 1..RUNS {
        let finished = (more - 1) as usize * work.len();
        let of = (RUNS - 1) as usize * work.len();
        let figures = run_all(&work, seed + u64::from(more), jobs, |now| done(finished + now, of));
        runs.iter_mut().zip(figures).for_each(|(runs, figures)| runs.push(figures));
    }
    for (row, runs) in again.into_iter().zip(runs) {
        row.figures = median(runs);
    }
}

/// Returns the run with the median goodput.
fn median(mut runs: Vec<Figures>) -> Figures {
    runs.sort_by(|a, b| a.goodput.total_cmp(&b.goodput));
    let count = runs.len();
    Figures { runs: count as u32, ..runs.swap_remove(count / 2) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::small;
    use crate::run::run;

    /// Actual results of a cheap cell, but with the goodput of our default set to `ours` times the
    /// best baseline's.
    fn rows(ours: f64) -> Vec<Row> {
        let cell = small()
            .into_iter()
            .filter(|cell| !cell.has_two_flows())
            .min_by_key(Cell::transfer_bytes)
            .unwrap();
        let row =
            |contender| Row { cell: cell.clone(), contender, figures: run(&cell, contender, 1) };
        let mut rows: Vec<Row> = Contender::ALL.into_iter().map(row).collect();
        let best = rows.iter().filter(|row| row.contender.is_baseline());
        let best = best.map(|row| row.figures.goodput).fold(0.0, f64::max);
        for row in rows.iter_mut().filter(|row| row.contender == Contender::default_wraith()) {
            row.figures.goodput = ours * best;
        }
        rows
    }

    #[test]
    fn a_cell_that_was_lost_is_run_again_by_all() {
        let mut rows = rows(0.9);
        let before = rows.clone();
        repeat_close(&mut rows, 1, 2, |_, _| {});
        assert!(rows.iter().all(|row| row.figures.runs == RUNS));
        // The given result is the lowest of five, so the others decide.
        let ours = |rows: &[Row]| {
            rows.iter()
                .find(|r| r.contender == Contender::default_wraith())
                .unwrap()
                .figures
                .goodput
        };
        assert!(ours(&rows) > ours(&before), "{} after {}", ours(&rows), ours(&before));
        let after: Vec<f64> = rows.iter().map(|row| row.figures.goodput).collect();
        repeat_close(&mut rows, 1, 2, |_, _| panic!("they all had their runs"));
        assert_eq!(after, rows.iter().map(|row| row.figures.goodput).collect::<Vec<_>>());
    }

    #[test]
    fn a_cell_of_which_the_baseline_is_a_median_is_run_as_often_by_us() {
        let mut rows = rows(1.1);
        for row in rows.iter_mut().filter(|row| row.contender.is_baseline()) {
            row.figures.runs = RUNS;
        }
        repeat_close(&mut rows, 1, 2, |_, _| {});
        assert!(rows.iter().all(|row| row.figures.runs == RUNS));
    }

    #[test]
    fn a_cell_that_was_won_is_left_alone() {
        let mut rows = rows(1.1);
        repeat_close(&mut rows, 1, 2, |_, _| panic!("nothing is close"));
        assert!(rows.iter().all(|row| row.figures.runs == 1));
    }
}
