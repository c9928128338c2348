//! The failure of a command: what happened, why, what to do next, and an exit code for scripts.

pub mod hints;

use std::fmt;

use wraith::state::{StateError, StateErrorKind};
pub use wraith_files::plain;

/// Exit codes. Scripts rely on them, so a code never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Any failure without a code of its own.
    Other = 1,
    /// The command line is invalid.
    Usage = 2,
    /// No address answered, or no peer came.
    PeerNotFound = 3,
    /// One of the two users declined.
    Refused = 4,
    /// The ticket matches no offer of the sender.
    WrongCode = 5,
    /// The connection was lost and did not come back; the same command resumes.
    NetworkLost = 6,
    /// The disk is full, read-only or unreadable; the same command resumes.
    Disk = 7,
    /// Bytes do not match their hash, or the peer violated the protocol.
    Verification = 8,
    /// Done, except for some files.
    Partial = 10,
    /// The peer used a name that could escape from the target folder.
    UnsafeName = 11,
    /// The terminal was closed.
    HungUp = 129,
    /// Ctrl-C.
    Interrupted = 130,
    /// Ctrl-\.
    Quit = 131,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// All exit codes except success, in ascending order.
    pub const ALL: [Self; 14] = [
        Self::Other,
        Self::Usage,
        Self::PeerNotFound,
        Self::Refused,
        Self::WrongCode,
        Self::NetworkLost,
        Self::Disk,
        Self::Verification,
        Self::Partial,
        Self::UnsafeName,
        Self::HungUp,
        Self::Interrupted,
        Self::Quit,
        Self::Terminated,
    ];

    /// Returns the meaning, for `--help` and the man pages. docs/GUIDE.md has a longer text.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Usage => "usage",
            Self::PeerNotFound => "peer not found",
            Self::Refused => "refused",
            Self::WrongCode => "wrong code or ticket",
            Self::NetworkLost => "network lost (run again to continue)",
            Self::Disk => "disk (run again to continue)",
            Self::Verification => "verification failed",
            Self::Partial => "some files were not transferred",
            Self::UnsafeName => "unsafe name refused",
            Self::HungUp => "terminal closed",
            Self::Interrupted => "interrupted",
            Self::Quit => "quit",
            Self::Terminated => "terminated",
        }
    }

    /// Returns the machine-readable name, which `--json` reports as `code`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Usage => "usage",
            Self::PeerNotFound => "peer_not_found",
            Self::Refused => "refused",
            Self::WrongCode => "wrong_code",
            Self::NetworkLost => "network_lost",
            Self::Disk => "disk",
            Self::Verification => "verification_failed",
            Self::Partial => "partial",
            Self::UnsafeName => "unsafe_name",
            Self::HungUp => "hung_up",
            Self::Interrupted => "interrupted",
            Self::Quit => "quit",
            Self::Terminated => "terminated",
        }
    }
}

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
        let exit = match error.kind() {
            StateErrorKind::Disk | StateErrorKind::Exposed => Exit::Disk,
            StateErrorKind::Ambiguous => Exit::Usage,
            _ => Exit::Other,
        };
        let elsewhere = "WRAITH_HOME names another folder for the state of wraith";
        let usual = (error.kind() == StateErrorKind::Disk).then_some(elsewhere);
        let hint = error.help().or(usual).map(str::to_owned);
        Self { exit, message: error.to_string(), hint }
    }
}
