//! Whether lengths identify wraith. Invariant: at most the share `SIZE_SHARE_MAX` of first
//! datagrams has the most frequent length. At most the share `SEQUENCE_SHARE_MAX` of dials has the
//! same sequence of lengths as another dial.

use std::collections::BTreeMap;

use super::CheckFigure;
use crate::finding::Figure;

/// Maximum share of one length in all dials.
const SIZE_SHARE_MAX: f64 = 0.02;
/// Maximum share of repeated sequences in all dials.
const SEQUENCE_SHARE_MAX: f64 = 0.01;

/// Returns the share of the most common length of these first datagrams.
pub fn sizes(firsts: &[Vec<u8>]) -> Vec<CheckFigure> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for first in firsts {
        *counts.entry(first.len()).or_default() += 1;
    }
    let (size, most) = counts.iter().max_by_key(|(_, count)| **count).expect("there are dials");
    let value = *most as f64 / firsts.len() as f64;
    let place = format!("{size} bytes, one of {} lengths", counts.len());
    let figure = Figure::AtMost { value, limit: SIZE_SHARE_MAX };
    vec![CheckFigure::new("size of first datagrams", place, figure)]
}

/// Returns the share of dials with the same lengths as another dial.
pub fn sequences(dials: &[Vec<usize>]) -> Vec<CheckFigure> {
    let mut counts: BTreeMap<&[usize], usize> = BTreeMap::new();
    for dial in dials {
        *counts.entry(dial).or_default() += 1;
    }
    let again: usize = counts.values().filter(|count| **count > 1).sum();
    let value = again as f64 / dials.len() as f64;
    let figure = Figure::AtMost { value, limit: SEQUENCE_SHARE_MAX };
    vec![CheckFigure::new("sequence of sizes", "whole handshakes", figure)]
}
