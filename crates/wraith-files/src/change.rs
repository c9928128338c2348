//! Detects how a file changed between being listed and being read.

use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;

use crate::beneath::Beneath;
use crate::source::Stamp;

/// How a file differs from the listed one, as far as that can be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Change {
    /// The file no longer exists.
    Missing = 1,
    /// Another file or another kind of object has the name.
    Replaced = 2,
    /// The file is longer.
    Grew = 3,
    /// The file is shorter.
    Shrank = 4,
}

impl Change {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Replaced, Self::Grew, Self::Shrank];

    /// Returns the number used on the wire.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the variant for the wire number `number`, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.number() == number)
    }

    /// Returns the word used in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Replaced => "replaced",
            Self::Grew => "grew",
            Self::Shrank => "shrank",
        }
    }

    /// Compares the file `real` below `root` with its stamp `listed`. Returns `None` if its length
    /// is unchanged or it cannot be inspected.
    pub(crate) fn of(root: &Beneath, real: &[u8], listed: &Stamp) -> Option<Self> {
        let stat = match root.open_file(real, OFlags::PATH).and_then(fstat) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return Some(Self::Missing),
            Err(Errno::LOOP) => return Some(Self::Replaced),
            Err(_) => return None,
        };
        let now = Stamp::of(&stat);
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || (now.dev, now.ino) != (listed.dev, listed.ino) {
            return Some(Self::Replaced);
        }
        match now.size.cmp(&listed.size) {
            std::cmp::Ordering::Greater => Some(Self::Grew),
            std::cmp::Ordering::Less => Some(Self::Shrank),
            std::cmp::Ordering::Equal => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for change in Change::ALL {
            assert_eq!(Change::from_number(change.number()), Some(change));
        }
        assert_eq!((Change::from_number(0), Change::from_number(5)), (None, None));
    }
}
