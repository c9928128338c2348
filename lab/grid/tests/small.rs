//! The small grid, which runs with every change: wraith's default on each kind of link, beside
//! quinn in the same cells. Time is simulated and all results follow from the seed, so no floor
//! depends on the machine. quinn's BBR is excluded: it starts at a random phase, and wastes up to
//! half of its packets.

use wraith_grid::cell::{Cell, Condition, LossKind};
use wraith_grid::cells::small;
use wraith_grid::compare::{BEHIND, compare};
use wraith_grid::contender::Contender;
use wraith_grid::quinn::Control;
use wraith_grid::report::{Row, table};
use wraith_grid::run::{RunEnd, run_all};

const SEED: u64 = 1;
/// Minimum share of the capacity, if only congestion loses packets and the transfer is long enough.
const GOODPUT_MIN: f64 = 0.85;
/// The same where the path back has a hundredth of the rate: the drawn sizes of the first packets delay
/// the start.
const GOODPUT_MIN_NARROW_ACKS: f64 = 0.80;
/// Maximum share of needless retransmissions in the packets sent.
const SPURIOUS_MAX: f64 = 0.01;
/// Minimum of Jain's index for two flows of the same kind.
const FAIRNESS_MIN: f64 = 0.95;

/// Returns our minimum share of quinn's goodput; some cells allow less than [`BEHIND`]. Under ten
/// percent of loss, the window of CUBIC is its minimum for both, and chance decides which of them
/// has a timeout.
fn floor_of_quinn(cell: &Cell) -> f64 {
    if cell.loss == LossKind::Random(10.0) { 0.85 } else { BEHIND }
}

fn grid() -> Vec<Row> {
    let contenders = [Contender::default_wraith(), Contender::Quinn(Control::Cubic)];
    let work: Vec<_> =
        small().iter().flat_map(|cell| contenders.map(|c| (cell.clone(), c))).collect();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let results = run_all(&work, SEED, jobs, |_| {});
    let rows = work.into_iter().zip(results);
    rows.map(|((cell, contender), figures)| Row { cell, contender, figures }).collect()
}

/// Describes the fault of one of our rows, if there is one.
fn complaint(row: &Row) -> Option<String> {
    let Row { cell, figures, .. } = row;
    let lossless = cell.loss == LossKind::Random(0.0);
    // A fifth of the first is slow start; the second holds a burst and then drops.
    let start_counts = cell.rtt.as_millis() >= 600;
    let easy = lossless && !start_counts && cell.condition != Condition::Policer;
    let goodput_min = match cell.condition {
        Condition::NarrowAcks => GOODPUT_MIN_NARROW_ACKS,
        _ => GOODPUT_MIN,
    };
    let wrong = if matches!(figures.end, RunEnd::Aborted(_)) {
        "gave up"
    } else if easy && figures.goodput < goodput_min {
        "goodput"
    } else if figures.spurious > SPURIOUS_MAX {
        "needless retransmissions"
    } else if cell.condition == Condition::TwoAlike
        && figures.fairness.is_none_or(|(jain, _)| jain < FAIRNESS_MIN)
    {
        "unfair"
    } else {
        return None;
    };
    Some(format!("{cell}: {wrong}: {figures:?}"))
}

#[test]
fn no_small_cell_is_worse_than_it_must_be_nor_behind_quinn() {
    let rows = grid();
    let ours = Contender::default_wraith();
    let mut complaints: Vec<String> =
        rows.iter().filter(|row| row.contender == ours).filter_map(complaint).collect();
    let comparisons = compare(&rows, ours);
    assert!(comparisons.len() >= 15, "only {} cells were compared", comparisons.len());
    for comparison in comparisons {
        let (cell, ratio) = (&comparison.ours.cell, comparison.ratio());
        if ratio < floor_of_quinn(cell) {
            complaints.push(format!("{cell}: {ratio:.3} of quinn's goodput"));
        }
    }
    assert!(complaints.is_empty(), "{}\n{}", complaints.join("\n"), table(&rows));
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    let cell = Cell::new(std::time::Duration::from_millis(20), 10).loss(LossKind::Random(2.0));
    let run = |contender, seed| {
        let figures = wraith_grid::run::run(&cell, contender, seed);
        (figures.time, figures.packets)
    };
    for contender in [Contender::default_wraith(), Contender::Quinn(Control::Cubic)] {
        assert_eq!(run(contender, 3), run(contender, 3), "{contender}");
        assert_ne!(run(contender, 3), run(contender, 4), "{contender}");
    }
}
