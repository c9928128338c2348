//! The ACK frame (SPEC §5, RFC 9000 §19.3): ranges of packet numbers in descending order.
//!
//! Invariant: an [`AckFrame`] exists only after all its ranges were walked once. Therefore
//! [`AckFrame::ranges`] can neither underflow nor run out of bytes.

use std::ops::RangeInclusive;

use super::{ACK_RANGES_MAX, Malformed};
use crate::varint;

/// Number of packets received with each ECN codepoint since the connection started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// ECT(0).
    pub ect0: u64,
    /// ECT(1).
    pub ect1: u64,
    /// Congestion experienced.
    pub ce: u64,
}

/// A validated ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame<'a> {
    /// Largest acknowledged packet number.
    pub largest: u64,
    /// Time from the arrival of `largest` to this frame, in microseconds.
    pub delay_us: u64,
    /// ECN counts, if reported.
    pub ecn: Option<EcnCounts>,
    /// Number of packets below `largest` in the first range.
    first: u64,
    /// Validated pairs (gap, range).
    pairs: &'a [u8],
}

impl<'a> AckFrame<'a> {
    /// Reads the body of an ACK. Returns it and the remaining bytes.
    pub(super) fn read(body: &'a [u8], with_ecn: bool) -> Result<(Self, &'a [u8]), Malformed> {
        const SHORT: Malformed = Malformed("ACK cut short");
        const BELOW_ZERO: Malformed = Malformed("ACK range below packet number 0");
        let number = |bytes: &'a [u8]| varint::read(bytes).ok_or(SHORT);

        let (largest, rest) = number(body)?;
        let (delay_us, rest) = number(rest)?;
        let (count, rest) = number(rest)?;
        let (first, pairs) = number(rest)?;
        if count >= ACK_RANGES_MAX {
            return Err(Malformed("ACK with too many ranges"));
        }
        let mut smallest = largest.checked_sub(first).ok_or(BELOW_ZERO)?;
        let mut rest = pairs;
        for _ in 0..count {
            let (gap, after) = number(rest)?;
            let (range, after) = number(after)?;
            // Both values are below 2^62, so the sum does not wrap.
            smallest = smallest.checked_sub(gap + 2 + range).ok_or(BELOW_ZERO)?;
            rest = after;
        }
        let pairs = &pairs[..pairs.len() - rest.len()];
        let mut ecn = None;
        if with_ecn {
            let (ect0, after) = number(rest)?;
            let (ect1, after) = number(after)?;
            let (ce, after) = number(after)?;
            ecn = Some(EcnCounts { ect0, ect1, ce });
            rest = after;
        }
        Ok((Self { largest, delay_us, ecn, first, pairs }, rest))
    }

    /// Returns the acknowledged ranges in descending order, disjoint and not adjacent. There is at
    /// least one and at most [`ACK_RANGES_MAX`].
    #[inline]
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges { next: Some(self.largest - self.first..=self.largest), pairs: self.pairs }
    }
}

/// Iterator returned by [`AckFrame::ranges`].
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    next: Option<RangeInclusive<u64>>,
    pairs: &'a [u8],
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let current = self.next.take()?;
        if let Some((gap, rest)) = varint::read(self.pairs)
            && let Some((range, rest)) = varint::read(rest)
        {
            let largest = *current.start() - gap - 2;
            self.next = Some(largest - range..=largest);
            self.pairs = rest;
        }
        Some(current)
    }
}
