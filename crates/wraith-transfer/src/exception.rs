//! Results of files, and the reasons why a receiver lacks an entry of the offer (SPEC §10.7).

use wraith_crypto::wire_enum;

/// Result of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// Transferred now, whole or the missing part, and verified.
    Done,
    /// The receiver already had exactly this file; nothing was transferred.
    AlreadyHere,
    /// Another file has its name, and the policy keeps the other file.
    Skipped,
    /// The file changed at the sender during reading; nothing was kept. It must be sent again.
    Changed,
    /// The sender could not read it.
    Unreadable,
    /// An earlier part no longer matched the file and was discarded. It must be received again.
    Stale,
    /// The receiver could not put the file in place: another object is in the way, or the receiver
    /// lacks permission.
    Blocked,
}

impl FileStatus {
    /// Returns the word used in `--json` events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::AlreadyHere => "already-here",
            Self::Skipped => "skipped",
            Self::Changed => "changed",
            Self::Unreadable => "unreadable",
            Self::Stale => "stale",
            Self::Blocked => "blocked",
        }
    }

    /// Returns true if the receiver lacks the file because of a failure.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Changed | Self::Unreadable | Self::Stale | Self::Blocked)
    }
}

wire_enum! {
    /// Why the receiver lacks an entry. The number is signed in the receipt.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Exception {
        /// Another object has its name at the receiver and was kept.
        Skipped = 1,
        /// The file changed at the sender during reading.
        Changed = 2,
        /// The sender could not read it.
        Unreadable = 3,
        /// An earlier part no longer matched the file.
        Stale = 4,
        /// The receiver could not put it in place.
        Blocked = 5,
    }
}

impl Exception {
    /// All variants.
    pub const ALL: [Self; 5] =
        [Self::Skipped, Self::Changed, Self::Unreadable, Self::Stale, Self::Blocked];

    /// Returns the number used on the wire and under the signature.
    pub const fn number(self) -> u8 {
        self.byte()
    }

    /// Returns the variant for `number`, if there is one.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::from_byte(number.try_into().ok()?)
    }

    /// Returns the corresponding result of a file.
    pub const fn status(self) -> FileStatus {
        match self {
            Self::Skipped => FileStatus::Skipped,
            Self::Changed => FileStatus::Changed,
            Self::Unreadable => FileStatus::Unreadable,
            Self::Stale => FileStatus::Stale,
            Self::Blocked => FileStatus::Blocked,
        }
    }

    /// Returns the word used in machine-readable lists and events.
    pub fn name(self) -> &'static str {
        self.status().name()
    }

    /// Returns the variant with this [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|exception| exception.name() == name)
    }

    /// Returns true for a failure, and false if the receiver chose to skip the entry.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_read_as_they_are_written() {
        for exception in Exception::ALL {
            assert_eq!(Exception::from_number(exception.number().into()), Some(exception));
            assert_eq!(Exception::from_name(exception.name()), Some(exception));
            assert_eq!(exception.is_failure(), exception.status().is_failure());
        }
        assert_eq!(Exception::from_number(0), None);
        assert_eq!(Exception::from_number(6), None);
        assert_eq!(Exception::from_name("done"), None);
    }
}
