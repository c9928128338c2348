//! What can go wrong on a disk, told so that a person knows what to do and a program knows whether to go on.
//!
//! Paths are kept already escaped ([`crate::shown`]): an error never carries a hostile name to a terminal.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::path::{UnsafeName, shown};

/// Result of a disk operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a disk operation failed. `path` is relative to the root it belongs to, and escaped.
#[derive(Debug, Error)]
pub enum Error {
    /// No space (or quota, or room for another inode). What was verified before is kept.
    #[error("{path}: the disk is full (while trying to {operation})")]
    DiskFull {
        /// What it was about.
        path: String,
        /// What was being done.
        operation: &'static str,
    },
    /// The file system is mounted read-only.
    #[error("{path}: the file system is read-only (while trying to {operation})")]
    ReadOnly {
        /// What it was about.
        path: String,
        /// What was being done.
        operation: &'static str,
    },
    /// The system says this user must not.
    #[error("{path}: no permission to {operation}")]
    Permission {
        /// What it was about.
        path: String,
        /// What was being done.
        operation: &'static str,
    },
    /// A name that must not be created or read.
    #[error(transparent)]
    UnsafeName(#[from] UnsafeName),
    /// A symlink, or something that is no directory, stands where a directory of the path should be.
    #[error(
        "{path}: a symlink or a file is in the way (while trying to {operation}); nothing was written through it"
    )]
    InTheWay {
        /// The path that cannot be reached.
        path: String,
        /// What was being done.
        operation: &'static str,
    },
    /// The name is taken by something that the conflict policy may not replace.
    #[error("{path}: exists already and is something else")]
    Exists {
        /// The name.
        path: String,
    },
    /// Another process or thread is receiving this file.
    #[error("{path}: is being received by another process")]
    InUse {
        /// The final name.
        path: String,
    },
    /// A file is not what it was when it was listed or opened.
    #[error("{path}: changed while it was being read or written")]
    Changed {
        /// The file.
        path: String,
    },
    /// Content does not have the hash or length it should have. Nothing of it was kept.
    #[error("{path}: content does not match its hash")]
    Mismatch {
        /// The file.
        path: String,
    },
    /// A caller asked for a chunk that the file does not have, or to finish a file with chunks missing.
    #[error("{path}: {what}")]
    Misuse {
        /// The file.
        path: String,
        /// What was wrong with the request.
        what: &'static str,
    },
    /// The chunks come in an order that takes too much to remember.
    #[error("{path}: its chunks come in too many pieces")]
    TooManyPieces {
        /// The file.
        path: String,
    },
    /// Anything else the system said.
    #[error("{path}: cannot {operation}: {}", plain(.source))]
    Io {
        /// What it was about.
        path: String,
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// The system's words without "(os error 2)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl Error {
    /// Sorts a system error. `operation` completes "cannot …".
    pub(crate) fn os(path: &[u8], operation: &'static str, errno: Errno) -> Self {
        let path = shown(path);
        match errno {
            Errno::NOSPC | Errno::DQUOT => Self::DiskFull { path, operation },
            Errno::ROFS => Self::ReadOnly { path, operation },
            Errno::ACCESS | Errno::PERM => Self::Permission { path, operation },
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV => Self::InTheWay { path, operation },
            other => Self::Io { path, operation, source: other.into() },
        }
    }

    /// What went wrong, for a line that names `path` already.
    pub fn about(&self, path: &str) -> String {
        if let Self::UnsafeName(unsafe_name) = self {
            return unsafe_name.reason.to_string();
        }
        let text = self.to_string();
        let rest = text.strip_prefix(path).and_then(|rest| rest.strip_prefix(": "));
        rest.map_or(text.clone(), str::to_owned)
    }

    /// True if the file system does not take the name: a colon on FAT, 200 bytes where names are encrypted.
    pub fn is_name_refused(&self) -> bool {
        let Self::Io { source, operation: "create it" | "give it its name", .. } = self else {
            return false;
        };
        let errno = Errno::from_io_error(source);
        matches!(errno, Some(Errno::INVAL | Errno::NAMETOOLONG | Errno::ILSEQ))
    }

    /// True if the thing does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Attaches path and operation to a system error.
pub(crate) trait Context<T> {
    fn context(self, path: &[u8], operation: &'static str) -> Result<T>;
}

impl<T> Context<T> for rustix::io::Result<T> {
    fn context(self, path: &[u8], operation: &'static str) -> Result<T> {
        self.map_err(|errno| Error::os(path, operation, errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_shown_without_its_number() {
        assert_eq!(plain(&Errno::NOSPC.into()), "No space left on device");
        assert_eq!(plain(&io::Error::other("cut")), "cut");
        let error = Error::os(b"a", "create it", Errno::NOENT);
        assert_eq!(error.to_string(), "a: cannot create it: No such file or directory");
    }
}
