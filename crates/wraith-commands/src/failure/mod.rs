//! The failure of a command: what happened, why, what to do next, and an exit code for scripts.

pub mod hints;

use std::fmt;

pub use wraith::Exit;
use wraith::state::{StateError, StateErrorKind};
pub use wraith_files::plain;

/// The result of a command that did not do everything.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Kind of failure.
    pub exit: Exit,
    /// What happened and why, in one sentence without a full stop.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure of a local file operation.
    pub fn disk(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Disk, format!("{what}: {}", plain(error)))
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        let elsewhere = "WRAITH_HOME names another folder for the state of wraith";
        let usual = (error.kind() == StateErrorKind::Disk).then_some(elsewhere);
        let hint = error.help().or(usual).map(str::to_owned);
        Self { exit: error.exit(), message: error.to_string(), hint }
    }
}
