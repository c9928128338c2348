//! Whether the sizes of the first datagrams of a session identify wraith. Invariants: no size of
//! either direction, and no difference of two successive sizes of a direction, occurs in more than
//! the share [`SHARED_MAX`] of sessions. The first datagram above 1200 bytes comes at the same place
//! in at most the share [`PLACE_SHARE_MAX`] of sessions.
//!
//! A difference of 0 is no finding: after the packets with drawn sizes, full packets follow each
//! other in every session with bulk data.
//!
//! The order of directions and the gaps between datagrams follow the content and the path. Their
//! shares are reported and not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::CheckFigure;
use crate::driver::{Session, Shape};
use crate::finding::Figure;

/// Datagrams of a session that are examined.
pub const FIRST_DATAGRAMS: usize = 30;
/// Datagrams of the handshake. Other tests judge their sizes.
pub const HANDSHAKE_DATAGRAMS: usize = 5;
/// Maximum share of sessions with the same size, or the same difference.
const SHARED_MAX: f64 = 0.25;
/// Maximum share of sessions with the first large datagram at the same place.
const PLACE_SHARE_MAX: f64 = 0.25;
/// Size above which a datagram is an MTU probe, or follows one.
const LARGE: usize = 1200;
/// Resolution of reported gaps.
const GAP_MICROS: u128 = 100;

/// Returns the judged figures of these sessions.
pub fn figures(sessions: &[Session]) -> Vec<CheckFigure> {
    let sizes = most_common(sessions, |session| {
        late(session).map(|shape| (shape.direction, shape.len)).collect()
    });
    let steps = most_common(sessions, |session| {
        let mut steps = BTreeSet::new();
        for direction in 0..2 {
            let lens: Vec<_> = late(session)
                .filter(|shape| shape.direction == direction)
                .map(|shape| shape.len as i64)
                .collect();
            let differences = lens.windows(2).map(|pair| pair[1] - pair[0]);
            steps.extend(differences.filter(|step| *step != 0).map(|step| (direction, step)));
        }
        steps
    });
    let places = most_common(sessions, |session| {
        let large = |direction| {
            late(session)
                .filter(|shape| shape.direction == direction)
                .position(|shape| shape.len > LARGE)
                .map(|place| (direction, place))
        };
        (0..2).filter_map(large).collect()
    });
    let figure = |(place, value), limit| (place, Figure::AtMost { value, limit });
    [
        ("size in many sessions", figure(sizes, SHARED_MAX)),
        ("difference in many sessions", figure(steps, SHARED_MAX)),
        ("place of the first large", figure(places, PLACE_SHARE_MAX)),
    ]
    .into_iter()
    .map(|(test, (place, figure))| CheckFigure::new(test, place, figure))
    .collect()
}

/// Returns notes about directions and gaps.
pub fn notes(sessions: &[Session]) -> Vec<String> {
    let (directions, share) = most_common(sessions, |session| {
        BTreeSet::from([session.iter().map(|shape| shape.direction).collect::<Vec<_>>()])
    });
    let (gap, gap_share) = most_common(sessions, |session| {
        let gap = |pair: &[Shape]| (pair[1].at - pair[0].at).as_micros() / GAP_MICROS;
        session.windows(2).map(gap).filter(|gap| *gap > 0).collect()
    });
    vec![format!(
        "report: of the first {FIRST_DATAGRAMS} datagrams, {:.0} % of sessions have the directions {directions}, and {:.0} % a gap of \
         {gap} × {GAP_MICROS} µs. Both follow the content and the path.",
        100.0 * share,
        100.0 * gap_share
    )]
}

/// Returns the datagrams after the handshake.
fn late(session: &Session) -> impl Iterator<Item = &Shape> {
    session.iter().skip(HANDSHAKE_DATAGRAMS)
}

/// Returns the feature that most sessions have, and their share.
fn most_common<F: Ord + Debug>(
    sessions: &[Session],
    features: impl Fn(&Session) -> BTreeSet<F>,
) -> (String, f64) {
    let mut counts: BTreeMap<F, usize> = BTreeMap::new();
    for session in sessions {
        for feature in features(session) {
            *counts.entry(feature).or_default() += 1;
        }
    }
    let most = counts.iter().max_by_key(|(_, count)| **count);
    most.map_or(("none".to_owned(), 0.0), |(feature, count)| {
        (format!("{feature:?}"), *count as f64 / sessions.len() as f64)
    })
}
