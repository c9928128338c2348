//! The failure of a command: what happened, why, and what to do next.

use std::fmt;

use wraith_files::plain;

/// Kind of failure. The program has an exit code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Any failure without a kind of its own.
    Other,
    /// The command line is invalid, or a file is not what the command needs.
    Usage,
    /// A file cannot be read or written.
    Disk,
    /// A signature, a tag or a padding is wrong, or data is damaged.
    Verification,
    /// Done, except for some operations.
    Partial,
}

/// The result of a command that did not do everything.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Kind of failure.
    pub exit: Exit,
    /// What happened and why, in one sentence without a full stop.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure of a file operation.
    pub(crate) fn disk(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Disk, format!("{what}: {}", plain(error)))
    }
}
