//! Limits how far a manifest may exceed its offer (SPEC §10.4). Trees may change while they are
//! sent, but a receiver that accepted one gigabyte does not get two. The sender skips entries
//! beyond the limit. The receiver treats such an entry as a violation of the protocol.

use crate::limits::{OFFER_SLACK_BYTES, OFFER_SLACK_ENTRIES};
use crate::message::Offer;

/// Remaining allowance of a manifest.
#[derive(Debug)]
pub(crate) struct OfferLimits {
    entries: u64,
    /// Remaining bytes; `u64::MAX` if the total exceeds 64 bits.
    bytes: u64,
}

impl OfferLimits {
    pub(crate) fn of(offer: &Offer) -> Self {
        let entries = offer.files.saturating_add(offer.dirs).saturating_add(offer.links);
        let slack = |n: u64, fixed| n.saturating_add(n / 16).saturating_add(fixed);
        Self {
            entries: slack(entries, OFFER_SLACK_ENTRIES),
            bytes: slack(offer.bytes, OFFER_SLACK_BYTES),
        }
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
    fn a_tree_may_grow_a_little_but_not_double() {
        let offer = Offer { files: 16_000, bytes: 16 << 30, ..Offer::default() };
        let mut limits = OfferLimits::of(&offer);
        assert!(limits.admit(17 << 30));
        assert!(!limits.admit(1 << 30));
        let admitted = (0..40_000).filter(|_| limits.admit(0)).count();
        assert_eq!(admitted, 16_000 + 1_000 + 1_024 - 1);
    }
}
