//! What became of a file, and why a receiver does not have an entry of the offer (SPEC §10.7).

/// What became of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// Moved now, whole or the part that was missing, and verified.
    Done,
    /// The receiver had exactly this file already; nothing was moved.
    AlreadyHere,
    /// A different file was in its place and the policy said to leave it.
    Skipped,
    /// It changed at the sender while it was being read; nothing was kept. Send it again.
    Changed,
    /// The sender could not read it.
    Unreadable,
    /// An earlier part of it did not belong to it any more and was thrown away. Receive it again.
    Stale,
    /// The receiver could not put it in place: something is in the way, or it must not write there.
    Blocked,
}

impl FileStatus {
    /// The word in `--json` events.
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

    /// True if the receiver does not have the file now.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Changed | Self::Unreadable | Self::Stale | Self::Blocked)
    }
}

/// The reason, as its number is signed in the receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exception {
    /// Something else has its name at the receiver, and stays.
    Skipped = 1,
    /// It changed at the sender while it was read.
    Changed = 2,
    /// The sender could not read it.
    Unreadable = 3,
    /// An earlier part of it did not belong to it any more.
    Stale = 4,
    /// The receiver could not put it in place.
    Blocked = 5,
}

impl Exception {
    /// All there are.
    pub const ALL: [Self; 5] =
        [Self::Skipped, Self::Changed, Self::Unreadable, Self::Stale, Self::Blocked];

    /// The number on the wire and under the signature.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// What `number` stands for, if anything.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|exception| u64::from(exception.number()) == number)
    }

    /// What became of a file that this is said of.
    pub const fn status(self) -> FileStatus {
        match self {
            Self::Skipped => FileStatus::Skipped,
            Self::Changed => FileStatus::Changed,
            Self::Unreadable => FileStatus::Unreadable,
            Self::Stale => FileStatus::Stale,
            Self::Blocked => FileStatus::Blocked,
        }
    }

    /// The word for programs, in lists and events.
    pub fn name(self) -> &'static str {
        self.status().name()
    }

    /// What [`Self::name`] says.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|exception| exception.name() == name)
    }

    /// True if something went wrong; otherwise it was left out because the receiver said so.
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
