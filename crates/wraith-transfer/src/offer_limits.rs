//! Limits how far a manifest may exceed its offer (SPEC §10.4). A tree may grow a little while its
//! sender waits for an answer, and the question shows by how much. The sender skips entries beyond
//! the limit. The receiver treats such an entry as a violation of the protocol.

use crate::limits::{
    OFFER_GROWTH_BYTES_MAX, OFFER_GROWTH_BYTES_MIN, OFFER_GROWTH_ENTRIES_MAX,
    OFFER_GROWTH_ENTRIES_MIN,
};
use crate::message::Offer;

/// Remaining allowance of a manifest.
#[derive(Debug)]
pub(crate) struct OfferLimits {
    entries: u64,
    /// Remaining bytes; `u64::MAX` if the total exceeds 64 bits.
    bytes: u64,
}

impl Offer {
    /// Returns the most entries and bytes that a manifest of this offer may have. An acceptance
    /// covers them, so show them with the question.
    #[must_use]
    pub fn growth_limits(&self) -> (u64, u64) {
        let entries = self.files.saturating_add(self.dirs).saturating_add(self.links);
        let grown =
            |n: u64, least, most| n.saturating_add((n / 16).min(most)).saturating_add(least);
        (
            grown(entries, OFFER_GROWTH_ENTRIES_MIN, OFFER_GROWTH_ENTRIES_MAX),
            grown(self.bytes, OFFER_GROWTH_BYTES_MIN, OFFER_GROWTH_BYTES_MAX),
        )
    }
}

impl OfferLimits {
    pub(crate) fn of(offer: &Offer) -> Self {
        let (entries, bytes) = offer.growth_limits();
        Self { entries, bytes }
    }

    /// Counts an entry of `bytes` bytes. Returns false, without counting it, if it exceeds the
    /// limits.
    pub(crate) fn admit(&mut self, bytes: u64) -> bool {
        let bytes = if self.bytes == u64::MAX { 0 } else { bytes };
        let left = (self.entries.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(entries), Some(bytes)) = left else { return false };
        (self.entries, self.bytes) = (entries, bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_than_can_be_counted_are_as_many_as_there_are() {
        let offer = Offer { files: 5, bytes: u64::MAX, ..Offer::default() };
        let mut limits = OfferLimits::of(&offer);
        assert!((0..5).all(|_| limits.admit(i64::MAX as u64)));
    }

    #[test]
    fn a_small_offer_may_grow_by_a_few_entries_and_a_mebibyte() {
        let offer = Offer { files: 2, dirs: 1, bytes: 12_000, ..Offer::default() };
        assert_eq!(offer.growth_limits(), (3 + 16, 12_000 + 12_000 / 16 + (1 << 20)));
        let mut limits = OfferLimits::of(&offer);
        assert!(!limits.admit(2 << 20));
        assert_eq!((0..100).filter(|_| limits.admit(0)).count(), 19);
    }

    #[test]
    fn a_large_offer_may_grow_by_a_sixteenth_and_at_most_a_gibibyte() {
        let offer = Offer { files: 16_000, bytes: 8 << 30, ..Offer::default() };
        assert_eq!(offer.growth_limits(), (17_016, (8 << 30) + (512 << 20) + (1 << 20)));
        let offer = Offer { files: 1 << 20, bytes: 1 << 40, ..Offer::default() };
        assert_eq!(
            offer.growth_limits(),
            ((1 << 20) + 1024 + 16, (1 << 40) + (1 << 30) + (1 << 20))
        );
    }
}
