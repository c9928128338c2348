//! How reading or writing the state fails.

use std::fmt;
use std::io;
use std::path::Path;

use thiserror::Error;
pub(super) use wraith_files::plain;

/// Why something of the state cannot be read or written: a sentence for people, what may help, and which kind it is.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct StateError {
    kind: StateErrorKind,
    message: String,
    hint: Option<String>,
}

/// Which kind of [`StateError`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// The disk is full, read-only or broken, or permission is missing.
    Disk,
    /// A secret file can be read by other users.
    Exposed,
    /// A file is not what was written there.
    Damaged,
    /// A file has a format that only a newer version knows.
    Newer,
    /// There is no such record.
    NotFound,
    /// What was named fits several records.
    Ambiguous,
    /// A change of the contacts would break a rule of theirs.
    Refused,
    /// The system gives no randomness.
    Randomness,
}

impl StateError {
    /// An error of this kind.
    pub(super) fn new(kind: StateErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A file operation that failed.
    pub(super) fn disk(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(StateErrorKind::Disk, format!("{what}: {}", plain(error)))
    }

    /// The file at `path` could not be written.
    pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Self {
        Self::disk(format_args!("cannot write {}", path.display()), error)
    }

    /// Which kind it is.
    pub const fn kind(&self) -> StateErrorKind {
        self.kind
    }

    /// What may help, as a sentence for people.
    pub fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
