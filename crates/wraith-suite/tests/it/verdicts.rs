//! Verdicts on the vectors of Wycheproof, compared with the published ones.

use std::fmt::{Debug, Display};

/// Compares verdicts. Each is the ID of a vector, its comment, whether it was accepted, and whether
/// it has to be. Returns their number.
pub(crate) fn compare(
    name: impl Debug,
    verdicts: impl Iterator<Item = (usize, impl Display, bool, bool)>,
) -> usize {
    let checked = verdicts.map(|(id, comment, found, expected)| {
        assert_eq!(found, expected, "{name:?} {id}: {comment}");
    });
    checked.count()
}

/// Returns the number of vectors in all `sets`, of which `run` checks one.
pub(crate) fn total<Set>(
    sets: impl IntoIterator<Item = Set>,
    run: impl FnMut(Set) -> usize,
) -> usize {
    sets.into_iter().map(run).sum()
}

/// Pairs values of an enum with the vectors of Wycheproof for them.
macro_rules! sets {
    ($of:ident, $name:ident: $($value:ident = $vectors:ident),* $(,)?) => {
        [$(($of::$value, $name::$vectors)),*]
    };
}
pub(crate) use sets;
