//! The lists of cells.

use std::time::Duration;

use crate::cell::{Cell, Condition, LossKind, QueueKind};

/// Round trips: a local network, a country, a continent, an ocean, the other side of the world, a
/// satellite.
const RTTS_MICROS: [u64; 6] = [200, 20_000, 50_000, 100_000, 200_000, 600_000];
/// Mbit/s.
const RATES: [u64; 6] = [1, 10, 100, 500, 1000, 10_000];
/// Losses: none, good and bad lines, bad radio; and fading, which takes ten packets in a row.
pub const LOSSES: [LossKind; 6] = [
    LossKind::Random(0.0),
    LossKind::Random(0.1),
    LossKind::Random(0.5),
    LossKind::Random(2.0),
    LossKind::Random(10.0),
    LossKind::Bursts(0.5, 10.0),
];
/// Queues.
pub const QUEUES: [QueueKind; 3] = [QueueKind::Shallow, QueueKind::Bdp, QueueKind::Deep];
/// Links of the special conditions: milliseconds and Mbit/s.
const PECULIAR_LINKS: [(u64, u64); 3] = [(50, 100), (20, 1000), (200, 10)];
const CONDITIONS: [Condition; 10] = [
    Condition::Reordering,
    Condition::Jitter,
    Condition::WildJitter,
    Condition::Policer,
    Condition::NarrowAcks,
    Condition::Batches,
    Condition::TenTimesUp,
    Condition::TenTimesDown,
    Condition::TwoAlike,
    Condition::AgainstCubic,
];

/// Returns the full cross product of round trips, rates, losses and queues.
pub fn product() -> Vec<Cell> {
    let mut cells = Vec::new();
    for micros in RTTS_MICROS {
        for rate in RATES {
            let cell = Cell::new(Duration::from_micros(micros), rate);
            for loss in LOSSES {
                cells.extend(QUEUES.map(|queue| cell.clone().loss(loss).queue(queue)));
            }
        }
    }
    cells
}

/// Returns every special condition on a few links; if two flows share a link, with a shallow and
/// with a full queue.
pub fn peculiar() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (rtt, mbit) in PECULIAR_LINKS {
        let cell = Cell::new(Duration::from_millis(rtt), mbit);
        for condition in CONDITIONS {
            let cell = cell.clone().condition(condition);
            if cell.has_two_flows() {
                cells.push(cell.clone().queue(QueueKind::Shallow));
            }
            cells.push(cell);
        }
    }
    cells
}

/// Returns a few cheap cells of every kind, which are tested with every change.
pub fn small() -> Vec<Cell> {
    let ms = Duration::from_millis;
    let base = Cell::new(ms(50), 100);
    let mut cells = vec![
        Cell::new(Duration::from_micros(200), 1000),
        Cell::new(ms(20), 10),
        base.clone(),
        base.clone().queue(QueueKind::Shallow),
        base.clone().queue(QueueKind::Deep),
        Cell::new(ms(200), 1),
        Cell::new(ms(600), 10),
    ];
    let slow = Cell::new(ms(50), 10);
    cells.extend(LOSSES[1..].iter().map(|loss| slow.clone().loss(*loss)));
    let peculiar = CONDITIONS.iter().filter(|c| **c != Condition::TenTimesUp);
    cells.extend(peculiar.map(|condition| slow.clone().condition(*condition)));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_listed_twice_and_names_are_unique() {
        let cells: Vec<_> = product().into_iter().chain(peculiar()).collect();
        assert_eq!(cells.len(), 6 * 6 * 6 * 3 + 3 * 12);
        let names: std::collections::BTreeSet<_> = cells.iter().map(Cell::to_string).collect();
        assert_eq!(names.len(), cells.len());
    }
}
