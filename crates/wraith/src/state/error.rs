//! Errors of reading and writing the state.

use std::fmt;
use std::io;
use std::path::Path;

use thiserror::Error;
pub(super) use wraith_files::plain;

use crate::exit::Exit;

/// Why part of the state cannot be read or written: a kind, a message, and a hint for the user.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct StateError {
    kind: StateErrorKind,
    message: String,
    hint: Option<String>,
}

/// The kind of a [`StateError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// The disk is full, read-only or broken, or permission is missing.
    Disk,
    /// Other users can read a secret file.
    Exposed,
    /// The content of a file is damaged.
    Damaged,
    /// A file has the format of a newer version.
    Newer,
    /// The record does not exist.
    NotFound,
    /// The name matches several records.
    Ambiguous,
    /// A change of the contacts would violate one of their rules.
    Refused,
    /// The system provides no randomness.
    Randomness,
}

impl StateError {
    pub(super) fn new(kind: StateErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns the error for a failed file operation.
    pub(super) fn disk(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(StateErrorKind::Disk, format!("{what}: {}", plain(error)))
    }

    /// Returns the error for a failed write to `path`.
    pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Self {
        Self::disk(format_args!("cannot write {}", path.display()), error)
    }

    /// Returns the kind of the error.
    pub const fn kind(&self) -> StateErrorKind {
        self.kind
    }

    /// Returns the exit code of a program that fails with this error.
    pub const fn exit(&self) -> Exit {
        match self.kind {
            StateErrorKind::Disk | StateErrorKind::Exposed => Exit::Disk,
            StateErrorKind::Ambiguous => Exit::Usage,
            _ => Exit::Other,
        }
    }

    /// Returns a hint for the user, as a sentence.
    pub fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
