//! What the sender knows of every entry of its offer, so that no receipt is taken for more than it is (SPEC §10.7).
//!
//! Invariant: an entry is in the sum once for its content, if that was sent or is the same at the receiver, and once for the
//! reason why the receiver does not have it, if it says so or this side could not read it. The receiver can except only what
//! was settled before, and that once. Memory is two bits an entry.

use wraith_files::Root;

use crate::content_digest::ContentDigest;
use crate::exception::Exception;
use crate::message::Excepted;
use crate::receipt::Receipt;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Books {
    contents: ContentDigest,
    /// Files that were settled with a root, and other entries that were decided; without those that are excepted.
    files: EntrySet,
    others: EntrySet,
    figures: Figures,
    /// The bytes of a file that is excepted when it was settled are not known any more.
    bytes_known: bool,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Files that the receiver has.
    pub(super) verified: u64,
    /// Files whose content was sent or is the same there, and their bytes.
    pub(super) settled: u64,
    pub(super) bytes: u64,
    /// Entries in whose place something else stays.
    kept: u64,
    /// Entries that the receiver does not have for another reason.
    pub(super) failed: u64,
}

/// Why a receipt is not what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// The figures.
    Figures,
    /// What they are about.
    Contents,
}

impl Books {
    pub(super) fn new() -> Self {
        Self { bytes_known: true, ..Self::default() }
    }

    /// The content of a file was sent, or is the same at the receiver. Before anybody is told.
    pub(super) fn settled(&mut self, entry: u32, root: &Root, bytes: u64) {
        self.contents.add(entry, root);
        self.files.insert(entry);
        self.figures.verified += 1;
        self.figures.settled += 1;
        self.figures.bytes = self.figures.bytes.saturating_add(bytes);
    }

    /// An entry that is no file was decided.
    pub(super) fn passed(&mut self, entry: u32) {
        self.others.insert(entry);
    }

    /// A file is not sent, for a reason that both sides know.
    pub(super) fn left_out(&mut self, entry: u32, exception: Exception) {
        self.contents.except(entry, exception);
        self.count(exception);
    }

    /// The receiver does not have an entry. An error says how that is a lie.
    pub(super) fn except(&mut self, excepted: &Excepted) -> Result<(u32, Exception), &'static str> {
        let of_receiver = [Exception::Skipped, Exception::Stale, Exception::Blocked];
        let exception = Exception::from_number(excepted.reason);
        let exception = exception.filter(|exception| of_receiver.contains(exception));
        let exception = exception.ok_or("it lacks an entry for a reason that it cannot have")?;
        let entry = u32::try_from(excepted.entry).map_err(|_| NOT_SETTLED)?;
        if self.files.remove(entry) {
            self.figures.verified -= 1;
            self.bytes_known = false;
        } else if !self.others.remove(entry) {
            return Err(NOT_SETTLED);
        }
        self.left_out(entry, exception);
        Ok((entry, exception))
    }

    fn count(&mut self, exception: Exception) {
        let count = match exception.is_failure() {
            true => &mut self.figures.failed,
            false => &mut self.figures.kept,
        };
        *count += 1;
    }

    pub(super) fn figures(&self) -> Figures {
        self.figures
    }

    /// Compares a receipt with what is known, after everything was settled.
    pub(super) fn check(&self, receipt: &Receipt) -> Result<(), Mismatch> {
        let Figures { verified, bytes, kept, failed, .. } = self.figures;
        let bytes_fit =
            if self.bytes_known { receipt.bytes == bytes } else { receipt.bytes <= bytes };
        if (receipt.verified, receipt.kept, receipt.failed) != (verified, kept, failed)
            || !bytes_fit
        {
            return Err(Mismatch::Figures);
        }
        if receipt.contents != self.contents.digest() {
            return Err(Mismatch::Contents);
        }
        Ok(())
    }
}

const NOT_SETTLED: &str = "it lacks an entry twice, or one that was not sent";

/// Entry numbers, a bit each.
#[derive(Debug, Default)]
struct EntrySet(Vec<u64>);

impl EntrySet {
    /// Grows as far as `entry`, which is of this side's own manifest.
    fn insert(&mut self, entry: u32) {
        let (word, bit) = (entry as usize / 64, entry % 64);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    /// True if it was there.
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
    fn only_what_was_settled_can_be_excepted_and_that_once() {
        let mut books = Books::new();
        books.settled(7, &[1; 32], 100);
        books.passed(200);
        books.left_out(8, Exception::Unreadable);
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
            assert!(books.except(&lie).is_err(), "{lie:?}");
        }
        books.except(&excepted(7, Exception::Skipped)).unwrap();
        books.except(&excepted(200, Exception::Blocked)).unwrap();
        assert!(books.except(&excepted(7, Exception::Skipped)).is_err());
        assert!(books.except(&excepted(200, Exception::Blocked)).is_err());
        let figures = Figures { verified: 0, settled: 1, bytes: 100, kept: 1, failed: 2 };
        assert_eq!(books.figures(), figures);
    }
}
