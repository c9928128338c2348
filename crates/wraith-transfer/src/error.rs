//! Reasons for an early end of a transfer, reported alike on both sides.
//!
//! A side that gives up closes the connection with a [`close`] code and a sentence (SPEC §10.8).
//! The other side converts that pair back into a [`TransferError`] that names the responsible side.
//! Every error has an exit code.

use std::any::Any;
use std::sync::Arc;
use std::{fmt, io};

use thiserror::Error;
use wraith_core::CloseReason;
use wraith_files::UnsafeName;

use crate::limits::REASON_BYTES_MAX;
use crate::local_folders::LocalFolders;
use crate::lost_reason::LostReason;
use crate::role::Role;

/// Close codes of SPEC §10.8.
pub mod close {
    /// The receipt was accepted: every requested entry has arrived.
    pub const DONE: u64 = 0x100;
    /// The capability secret is unknown to the sender.
    pub const WRONG_SECRET: u64 = 0x101;
    /// The receiver declined the offer.
    pub const REFUSED: u64 = 0x102;
    /// A disk operation failed.
    pub const DISK: u64 = 0x103;
    /// Content did not match its hash.
    pub const VERIFICATION: u64 = 0x104;
    /// The peer violated SPEC section 10.
    pub const PROTOCOL: u64 = 0x105;
    /// The user cancelled the transfer.
    pub const CANCELLED: u64 = 0x106;
    /// A name that could leave the target directory, or a manifest out of order.
    pub const UNSAFE_NAME: u64 = 0x107;
    /// No data moved for too long.
    pub const STALLED: u64 = 0x108;
    /// Any other reason.
    pub const OTHER: u64 = 0x109;
    /// The receiver only previewed the offer and may come again.
    pub const POSTPONED: u64 = 0x10a;
    /// The sender is serving another run of the same receiver.
    pub const ELSEWHERE: u64 = 0x10b;
    /// The receiver wants one stream, but the offer has several files or a folder.
    pub const NO_STREAM: u64 = 0x10c;
    /// The reader or writer of a byte stream failed.
    pub const STREAM: u64 = 0x10d;
    /// The program panicked.
    pub const PANICKED: u64 = 0x10e;
    /// First code of a transfer; lower ones belong to the connection.
    pub(super) const FIRST: u64 = 0x100;
}

/// Why a transfer did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransferError {
    /// The secret of the ticket or code is not the one that the sender expects.
    #[error("this ticket belongs to another receiver. Ask the sender for a new one")]
    WrongSecret,
    /// The receiver declined the offer.
    #[error("the receiver refused the transfer{}", reason(.why))]
    Refused {
        /// The receiver's reason; may be empty.
        why: String,
    },
    /// The receiver only previewed the offer; the sender may keep waiting.
    #[error("the receiver only previewed the offer")]
    Postponed,
    /// The sender is serving another program with this receiver's identity.
    #[error("another wraith with this identity is already receiving this transfer")]
    Elsewhere,
    /// The output is a single stream, but the offer has several files.
    #[error("the sender offers several files or a folder, which cannot go to one stream")]
    NoStream,
    /// The connection ended. Received data is kept.
    #[error("the connection was lost: {why}")]
    NetworkLost {
        /// Why the connection ended.
        why: LostReason,
    },
    /// A disk operation failed on one of the two machines. Received data is kept.
    #[error("the {role}'s disk: {what}")]
    Disk {
        /// The side whose disk failed.
        role: Role,
        /// The failed operation and the reason.
        what: String,
    },
    /// The reader or writer of a byte stream failed on one of the two machines.
    #[error("{what}")]
    Stream {
        /// The side of the reader or writer.
        role: Role,
        /// The failure.
        what: String,
        /// The error of the reader or writer; `None` if it failed on the other machine.
        source: Option<IoFailure>,
    },
    /// A reader, writer or callback of one of the two programs panicked.
    #[error("the {role}'s program panicked{}", reason(.what))]
    Panicked {
        /// The side of the program.
        role: Role,
        /// The message of the panic; empty if it happened on the other machine.
        what: String,
    },
    /// Content did not have its announced hash.
    #[error("verification failed: {what}. Nothing unverified was kept under its final name")]
    Verification {
        /// The affected file and the kind of failure.
        what: String,
    },
    /// A name that this side refuses to create.
    #[error("refused an unsafe name: {what}")]
    UnsafeName {
        /// The name, escaped, and the reason.
        what: String,
    },
    /// The transfer is complete except for some files.
    #[error("{}", partial_words(*.role, *.failed, *.files, *.left_out))]
    Partial {
        /// The side that reports the error.
        role: Role,
        /// Number of files that failed.
        failed: u64,
        /// Number of files in the offer.
        files: u64,
        /// Number of files, folders and links that the sender could not offer.
        left_out: u64,
    },
    /// A user stopped the transfer.
    #[error("stopped by the {role}'s user")]
    Cancelled {
        /// The side of that user.
        role: Role,
    },
    /// The other side violated the transfer protocol.
    #[error(
        "the {peer} broke the transfer protocol: {what}. Use the same version of wraith on both sides"
    )]
    Protocol {
        /// The side at fault.
        peer: Role,
        /// The violation.
        what: String,
    },
    /// Any other error.
    #[error("{what}")]
    Other {
        /// A message with the problem, its reason and a remedy.
        what: String,
    },
}

/// The error of a reader or writer. Equal only to its clones.
#[derive(Clone, Debug)]
pub struct IoFailure(Arc<io::Error>);

impl IoFailure {
    /// Returns the error.
    pub fn error(&self) -> &io::Error {
        &self.0
    }
}

impl From<io::Error> for IoFailure {
    fn from(error: io::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl PartialEq for IoFailure {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for IoFailure {}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for IoFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl From<&UnsafeName> for TransferError {
    fn from(name: &UnsafeName) -> Self {
        Self::UnsafeName { what: format!("\"{}\": {}", name.name, name.reason) }
    }
}

fn partial_words(role: Role, failed: u64, files: u64, left_out: u64) -> String {
    let mut words = Vec::new();
    if failed > 0 {
        words.push(match failed <= files {
            true => {
                let plural = if files == 1 { "" } else { "s" };
                format!("{failed} of {files} file{plural} could not be transferred")
            }
            // Folders and links can fail too, so there may be more failures than files.
            false => format!("{failed} files and folders could not be transferred"),
        });
    }
    if left_out > 0 {
        let what = if left_out == 1 { "file or folder" } else { "files or folders" };
        words.push(match role {
            Role::Sender => format!("{left_out} {what} could not be sent"),
            Role::Receiver => format!("the sender left out {left_out} {what} that it cannot send"),
        });
    }
    let mut text = words.join(", and ");
    if failed < files {
        text.push_str("; everything else is complete");
    }
    // Files that cannot be sent stay so until the user fixes the cause; only failures are worth a
    // retry.
    if failed > 0 {
        text.push_str(
            ". Where a cause is named, remove it. Then repeat the transfer to get the rest",
        );
    }
    text
}

fn reason(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

impl TransferError {
    /// Returns the error of a thread that ends because the transfer is over. It is ignored; the
    /// reason was recorded before.
    pub(crate) fn stopped() -> Self {
        Self::Other { what: "stopped".into() }
    }

    /// Returns an error if entries are missing although the transfer is complete.
    pub(crate) fn partial(role: Role, failed: u64, files: u64, left_out: u64) -> Result<(), Self> {
        match (failed, left_out) {
            (0, 0) => Ok(()),
            _ => Err(Self::Partial { role, failed, files, left_out }),
        }
    }

    /// Returns the error for a panic on the side `role`, from the value of the panic.
    pub(crate) fn panicked(role: Role, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked { role, what: text.unwrap_or_default().to_owned() }
    }

    /// Returns the program's exit code for this error: 0, 1, 2, 4–8, 10, 11 or 130
    /// (docs/endings.md).
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Refused { .. } => 4,
            Self::WrongSecret => 5,
            Self::NetworkLost { .. } => 6,
            Self::Disk { .. } | Self::Stream { .. } => 7,
            Self::Verification { .. } => 8,
            Self::Partial { .. } => 10,
            Self::UnsafeName { .. } => 11,
            Self::Cancelled { .. } => 130,
            Self::Postponed => 0,
            Self::NoStream => 2,
            Self::Elsewhere
            | Self::Panicked { .. }
            | Self::Protocol { .. }
            | Self::Other { .. } => 1,
        }
    }

    /// Returns a keyword without file names, for logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WrongSecret => "wrong-secret",
            Self::Refused { .. } => "refused",
            Self::Postponed => "postponed",
            Self::Elsewhere => "elsewhere",
            Self::NoStream => "no-stream",
            Self::NetworkLost { .. } => "network-lost",
            Self::Disk { .. } => "disk",
            Self::Stream { .. } => "stream",
            Self::Panicked { .. } => "panicked",
            Self::Verification { .. } => "verification",
            Self::UnsafeName { .. } => "unsafe-name",
            Self::Partial { .. } => "partial",
            Self::Cancelled { .. } => "cancelled",
            Self::Protocol { .. } => "protocol",
            Self::Other { .. } => "other",
        }
    }

    /// Returns true if running the same command again continues the transfer.
    pub fn is_resumable(&self) -> bool {
        matches!(
            self,
            Self::NetworkLost { .. }
                | Self::Disk { .. }
                | Self::Cancelled { .. }
                | Self::Partial { .. }
        )
    }

    /// Returns the close code and at most 512 bytes of text for the peer when this side gives up
    /// with this error. The text contains no name of `folders`.
    pub(crate) fn to_close(&self, folders: &LocalFolders) -> (u64, String) {
        let (code, text) = match self {
            Self::WrongSecret => (close::WRONG_SECRET, String::new()),
            Self::Postponed => (close::POSTPONED, String::new()),
            Self::NoStream => (close::NO_STREAM, String::new()),
            Self::Elsewhere => (close::ELSEWHERE, String::new()),
            Self::Refused { why } => (close::REFUSED, why.clone()),
            Self::NetworkLost { why } => (close::STALLED, why.to_string()),
            Self::Disk { what, .. } => (close::DISK, what.clone()),
            Self::Stream { what, .. } => (close::STREAM, what.clone()),
            // The message of a panic is for this side only.
            Self::Panicked { .. } => (close::PANICKED, String::new()),
            Self::Verification { what } => (close::VERIFICATION, what.clone()),
            Self::UnsafeName { what } => (close::UNSAFE_NAME, what.clone()),
            Self::Cancelled { .. } => (close::CANCELLED, String::new()),
            Self::Protocol { what, .. } => (close::PROTOCOL, what.clone()),
            Self::Partial { .. } | Self::Other { .. } => (close::OTHER, self.to_string()),
        };
        (code, truncated(folders.hidden(&text), REASON_BYTES_MAX))
    }

    /// Converts the close reason of the connection to an error for the side `own`.
    pub fn from_close(reason: &CloseReason, own: Role) -> Self {
        let CloseReason::Peer { code, reason: words } = reason else {
            return match reason {
                CloseReason::Violation(what) => {
                    Self::Protocol { peer: own.peer(), what: what.to_string() }
                }
                other => Self::NetworkLost { why: LostReason::of(other) },
            };
        };
        let words = shown(words);
        match *code {
            wraith_core::code::PATH_MTU => Self::NetworkLost { why: LostReason::PathMtu },
            close::WRONG_SECRET => Self::WrongSecret,
            close::POSTPONED if own == Role::Sender => Self::Postponed,
            close::ELSEWHERE if own == Role::Receiver => Self::Elsewhere,
            close::NO_STREAM if own == Role::Sender => Self::NoStream,
            close::REFUSED => Self::Refused { why: words },
            close::DISK => Self::Disk { role: own.peer(), what: words },
            close::STREAM => Self::Stream { role: own.peer(), what: words, source: None },
            close::PANICKED => Self::Panicked { role: own.peer(), what: String::new() },
            close::VERIFICATION => Self::Verification { what: words },
            close::UNSAFE_NAME => Self::UnsafeName { what: words },
            close::CANCELLED => Self::Cancelled { role: own.peer() },
            close::PROTOCOL => Self::Protocol { peer: own, what: words },
            close::STALLED => Self::NetworkLost { why: LostReason::ReportedByPeer(words) },
            close::OTHER => Self::Other { what: format!("the {} stopped: {words}", own.peer()) },
            // A later version of the transfer protocol: the peer has ended the transfer.
            code if code >= close::FIRST && code != close::DONE => {
                Self::Other { what: format!("the {} stopped (code {code})", own.peer()) }
            }
            _ => Self::NetworkLost { why: LostReason::of(reason) },
        }
    }
}

/// Returns `text` cut to at most `max` bytes at a character boundary.
fn truncated(mut text: String, max: usize) -> String {
    if text.len() > max {
        let end = (0..=max).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Returns a peer's text with control characters replaced, so that it cannot control a terminal.
pub(crate) fn shown(words: &str) -> String {
    let bidi = |c: char| matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    words.chars().map(|c| if c.is_control() || bidi(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_the_wire(error: &TransferError, from: Role) -> TransferError {
        let (code, reason) = error.to_close(&LocalFolders::default());
        TransferError::from_close(&CloseReason::Peer { code, reason }, from.peer())
    }

    #[test]
    fn a_full_disk_at_the_receiver_is_the_receivers_disk_at_the_sender() {
        let local = TransferError::Disk { role: Role::Receiver, what: "no space left".into() };
        let there = over_the_wire(&local, Role::Receiver);
        assert_eq!(there, local);
        assert_eq!(there.exit_code(), 7);
        assert!(there.to_string().starts_with("the receiver's disk: no space left"));
    }

    #[test]
    fn folders_that_fail_are_no_files() {
        let of = |failed, files| partial_words(Role::Sender, failed, files, 0);
        assert!(of(1, 1).starts_with("1 of 1 file could not"));
        assert!(of(32, 31).starts_with("32 files and folders could not"));
    }

    #[test]
    fn every_error_keeps_its_exit_code_over_the_wire() {
        let what = || "x".to_string();
        for error in [
            TransferError::WrongSecret,
            TransferError::Elsewhere,
            TransferError::Refused { why: what() },
            TransferError::NetworkLost { why: LostReason::PathMtu },
            TransferError::Stream { role: Role::Sender, what: what(), source: None },
            TransferError::Panicked { role: Role::Sender, what: what() },
            TransferError::Disk { role: Role::Sender, what: what() },
            TransferError::Verification { what: what() },
            TransferError::UnsafeName { what: what() },
            TransferError::Cancelled { role: Role::Sender },
            TransferError::Protocol { peer: Role::Receiver, what: what() },
            TransferError::Other { what: what() },
        ] {
            assert_eq!(over_the_wire(&error, Role::Sender).exit_code(), error.exit_code());
        }
    }

    #[test]
    fn done_without_a_receipt_is_a_lost_network_and_later_codes_are_final() {
        let of = |code| {
            let reason = CloseReason::Peer { code, reason: String::new() };
            TransferError::from_close(&reason, Role::Sender)
        };
        assert!(matches!(of(close::DONE), TransferError::NetworkLost { .. }));
        assert!(matches!(of(0), TransferError::NetworkLost { .. }));
        assert!(matches!(of(0x1ff), TransferError::Other { .. }));
    }

    #[test]
    fn both_sides_name_a_path_that_is_too_narrow() {
        let there = CloseReason::Peer { code: wraith_core::code::PATH_MTU, reason: String::new() };
        let [here, there] = [CloseReason::PathMtu, there]
            .map(|reason| TransferError::from_close(&reason, Role::Sender));
        assert!(here.to_string().contains("drops packets of 660 bytes"), "{here}");
        assert_eq!(here, there);
    }

    #[test]
    fn a_peers_words_are_bounded_and_cannot_drive_the_terminal() {
        let error = TransferError::Other { what: "ä".repeat(4000) };
        assert!(error.to_close(&LocalFolders::default()).1.len() <= REASON_BYTES_MAX);
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
