//! The sender's records of every entry of its offer, to check the receipt against (SPEC §10.7).
//!
//! Invariants:
//!
//! - An entry's content is in the digest once, if it was sent or is the same at the receiver.
//! - An entry's exception is the reason why the receiver lacks the entry. It is in the digest once,
//!   if the receiver reported it or the sender could not read the file.
//! - The receiver can except only resolved entries, each once.
//!
//! Memory: two bits per entry.

use wraith_files::Root;

use crate::content_digest::ContentDigest;
use crate::exception::Exception;
use crate::message::Excepted;
use crate::receipt::Receipt;

/// Records of the entries; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct EntryLedger {
    contents: ContentDigest,
    /// Files resolved with a root, and other decided entries; excepted ones are removed.
    files: EntrySet,
    others: EntrySet,
    counts: EntryCounts,
    /// False once a resolved file was excepted: its bytes are no longer known.
    bytes_known: bool,
}

/// Counts of the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryCounts {
    /// Number of files that the receiver has.
    pub(super) verified: u64,
    /// Number of files whose content was sent or is the same at the receiver, and their bytes.
    pub(super) resolved: u64,
    pub(super) bytes: u64,
    /// Number of entries that the receiver skipped because it kept another object under their
    /// names.
    kept: u64,
    /// Number of entries that the receiver lacks for another reason.
    pub(super) failed: u64,
}

/// Mismatch between a receipt and the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// The counts differ.
    EntryCounts,
    /// The contents digest differs.
    Contents,
}

impl EntryLedger {
    pub(super) fn new() -> Self {
        Self { bytes_known: true, ..Self::default() }
    }

    /// Records that the content of a file was sent, or is the same at the receiver. Call it before
    /// the record is sent.
    pub(super) fn resolved(&mut self, entry: u32, root: &Root, bytes: u64) {
        self.contents.add(entry, root);
        self.files.insert(entry);
        self.counts.verified += 1;
        self.counts.resolved += 1;
        self.counts.bytes = self.counts.bytes.saturating_add(bytes);
    }

    /// Records that an entry without content was decided.
    pub(super) fn passed(&mut self, entry: u32) {
        self.others.insert(entry);
    }

    /// Records that a file is not sent, for a reason known to both sides.
    pub(super) fn left_out(&mut self, entry: u32, exception: Exception) {
        self.contents.except(entry, exception);
        self.count(exception);
    }

    /// Records that the receiver lacks an entry. An error describes an invalid claim.
    pub(super) fn except(&mut self, excepted: &Excepted) -> Result<(u32, Exception), &'static str> {
        let of_receiver = [Exception::Skipped, Exception::Stale, Exception::Blocked];
        let exception = Exception::from_number(excepted.reason);
        let exception = exception.filter(|exception| of_receiver.contains(exception));
        let exception = exception.ok_or("an exception with an invalid reason")?;
        let entry = u32::try_from(excepted.entry).map_err(|_| NOT_SETTLED)?;
        if self.files.remove(entry) {
            self.counts.verified -= 1;
            self.bytes_known = false;
        } else if !self.others.remove(entry) {
            return Err(NOT_SETTLED);
        }
        self.left_out(entry, exception);
        Ok((entry, exception))
    }

    fn count(&mut self, exception: Exception) {
        let count = match exception.is_failure() {
            true => &mut self.counts.failed,
            false => &mut self.counts.kept,
        };
        *count += 1;
    }

    pub(super) fn counts(&self) -> EntryCounts {
        self.counts
    }

    /// Compares a receipt with the records, once every entry is resolved.
    pub(super) fn check(&self, receipt: &Receipt) -> Result<(), Mismatch> {
        let EntryCounts { verified, bytes, kept, failed, .. } = self.counts;
        let bytes_fit =
            if self.bytes_known { receipt.bytes == bytes } else { receipt.bytes <= bytes };
        if (receipt.verified, receipt.kept, receipt.failed) != (verified, kept, failed)
            || !bytes_fit
        {
            return Err(Mismatch::EntryCounts);
        }
        if receipt.contents != self.contents.digest() {
            return Err(Mismatch::Contents);
        }
        Ok(())
    }
}

const NOT_SETTLED: &str = "it lacks an entry twice, or one that was not sent";

/// Set of entry numbers, one bit each.
#[derive(Debug, Default)]
struct EntrySet(Vec<u64>);

impl EntrySet {
    /// Adds `entry`. The set grows up to `entry`, which comes from this side's own manifest.
    fn insert(&mut self, entry: u32) {
        let (word, bit) = (entry as usize / 64, entry % 64);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    /// Removes `entry`. Returns true if it was in the set.
    fn remove(&mut self, entry: u32) -> bool {
        let Some(word) = self.0.get_mut(entry as usize / 64) else { return false };
        let bit = 1 << (entry % 64);
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excepted(entry: u64, exception: Exception) -> Excepted {
        Excepted { entry, reason: exception.number().into() }
    }

    #[test]
    fn only_resolved_entries_can_be_excepted_and_only_once() {
        let mut ledger = EntryLedger::new();
        ledger.resolved(7, &[1; 32], 100);
        ledger.passed(200);
        ledger.left_out(8, Exception::Unreadable);
        for lie in [
            excepted(0, Exception::Blocked),
            excepted(8, Exception::Blocked),
            excepted(64, Exception::Skipped),
            excepted(u64::MAX, Exception::Skipped),
            excepted(7 + (1 << 32), Exception::Skipped),
            excepted(7, Exception::Changed),
            excepted(7, Exception::Unreadable),
            Excepted { entry: 7, reason: 0 },
            Excepted { entry: 7, reason: 261 },
        ] {
            assert!(ledger.except(&lie).is_err(), "{lie:?}");
        }
        ledger.except(&excepted(7, Exception::Skipped)).unwrap();
        ledger.except(&excepted(200, Exception::Blocked)).unwrap();
        assert!(ledger.except(&excepted(7, Exception::Skipped)).is_err());
        assert!(ledger.except(&excepted(200, Exception::Blocked)).is_err());
        let counts = EntryCounts { verified: 0, resolved: 1, bytes: 100, kept: 1, failed: 2 };
        assert_eq!(ledger.counts(), counts);
    }
}
