//! Errors of disk operations: specific enough for a user to act on, and for a program to decide
//! whether to continue.
//!
//! Paths are stored escaped ([`crate::shown`]), so an error never carries a hostile name to a
//! terminal.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::path::{UnsafeName, shown};

/// Result of a disk operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason for the failure of a disk operation. `path` is escaped and relative to its root.
#[derive(Debug, Error)]
pub enum Error {
    /// No space, quota or inode is left. Content that was verified before is kept.
    #[error("{path}: the disk is full (while trying to {operation})")]
    DiskFull {
        /// The affected path.
        path: String,
        /// The failed operation.
        operation: &'static str,
    },
    /// The file system is mounted read-only.
    #[error("{path}: the file system is read-only (while trying to {operation})")]
    ReadOnly {
        /// The affected path.
        path: String,
        /// The failed operation.
        operation: &'static str,
    },
    /// The user lacks the permission.
    #[error("{path}: no permission to {operation}")]
    Permission {
        /// The affected path.
        path: String,
        /// The failed operation.
        operation: &'static str,
    },
    /// The name must not be created or read.
    #[error(transparent)]
    UnsafeName(#[from] UnsafeName),
    /// A directory component of the path is a symlink or another object that is not a directory.
    #[error(
        "{path}: a symlink or a file is in the way (while trying to {operation}); nothing was written through it"
    )]
    InTheWay {
        /// The unreachable path.
        path: String,
        /// The failed operation.
        operation: &'static str,
    },
    /// Another object has the name, and the conflict policy may not replace it.
    #[error("{path}: the name is taken by another entry")]
    Exists {
        /// The taken name.
        path: String,
    },
    /// Another process or thread is receiving this file.
    #[error("{path}: is being received by another process")]
    InUse {
        /// The final name.
        path: String,
    },
    /// The file has changed since it was listed or opened.
    #[error("{path}: changed while it was being read or written")]
    Changed {
        /// The changed file.
        path: String,
    },
    /// Content does not have the expected hash or length. No part of the content was kept.
    #[error("{path}: content does not match its hash")]
    Mismatch {
        /// The affected file.
        path: String,
    },
    /// The caller requested a chunk that the file does not have, or finished a file with missing
    /// chunks.
    #[error("{path}: {what}")]
    Misuse {
        /// The affected file.
        path: String,
        /// The reason why the request is invalid.
        what: &'static str,
    },
    /// The order of the chunks leaves too many separate ranges to remember.
    #[error("{path}: its chunks form too many separate ranges")]
    TooManyPieces {
        /// The affected file.
        path: String,
    },
    /// Any other system error.
    #[error("{path}: cannot {operation}: {}", plain(.source))]
    Io {
        /// The affected path.
        path: String,
        /// The failed operation.
        operation: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// Returns the system's error text without its "(os error 2)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl Error {
    /// Classifies a system error. `operation` completes "cannot …".
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

    /// Returns the message without the leading `path`, for a line that already names it.
    pub fn about(&self, path: &str) -> String {
        if let Self::UnsafeName(unsafe_name) = self {
            return unsafe_name.reason.to_string();
        }
        let text = self.to_string();
        let rest = text.strip_prefix(path).and_then(|rest| rest.strip_prefix(": "));
        rest.map_or(text.clone(), str::to_owned)
    }

    /// Returns true if the target's file system refuses this entry for its name, size or type, and
    /// would accept others. Examples: a colon on FAT, a name of 200 bytes on eCryptfs, 4 GiB on FAT.
    pub fn is_entry_refused(&self) -> bool {
        let Self::Io { source, operation, .. } = self else { return false };
        let names = ["create it", "give it its name", "inspect it", "create the link"];
        match Errno::from_io_error(source) {
            Some(Errno::NAMETOOLONG | Errno::ILSEQ | Errno::FBIG) => true,
            Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => names.contains(operation),
            _ => false,
        }
    }

    /// Returns true if the object does not exist.
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
    fn system_errors_are_shown_without_their_number() {
        assert_eq!(plain(&Errno::NOSPC.into()), "No space left on device");
        assert_eq!(plain(&io::Error::other("cut")), "cut");
        let error = Error::os(b"a", "create it", Errno::NOENT);
        assert_eq!(error.to_string(), "a: cannot create it: No such file or directory");
    }
}
