//! The reason why a single file did not arrive, and the sender's way to send it.

use wraith::{FileStatus, Role};
use wraith_files::Change;

/// Returns the reason as text for people. `None` if the file arrived, or if a note has named the
/// reason on this side.
pub(super) fn reason(role: Role, status: FileStatus, change: Option<Change>) -> Option<String> {
    let reason = match (status, change) {
        (FileStatus::Changed | FileStatus::Unreadable, Some(Change::Missing)) => {
            "missing: it was deleted at the sender"
        }
        (FileStatus::Changed | FileStatus::Unreadable, Some(Change::Replaced)) => {
            "replaced by another entry while it was sent; nothing of it was kept"
        }
        (FileStatus::Changed, Some(Change::Grew)) => {
            "grew while it was sent; nothing of it was kept"
        }
        (FileStatus::Changed, Some(Change::Shrank)) => {
            "became shorter while it was sent; nothing of it was kept"
        }
        (FileStatus::Changed, None) => "changed while it was sent; nothing of it was kept",
        (FileStatus::Unreadable, _) => "the sender cannot read it",
        (FileStatus::Stale, _) => "an earlier part belonged to another file and was discarded",
        (FileStatus::Blocked, _) if role == Role::Sender => {
            "the receiver could not store it; its screen shows the reason"
        }
        // A note has named the entry and the reason.
        (FileStatus::Blocked, _) => return None,
        (FileStatus::Done | FileStatus::AlreadyHere | FileStatus::Skipped, _) => return None,
    };
    let advice = match (role, status, change) {
        (Role::Receiver, ..) => None,
        (_, FileStatus::Changed, Some(Change::Grew)) => {
            Some("If a program keeps writing to it: cat FILE | wraith send --name NAME -")
        }
        (_, FileStatus::Changed, Some(Change::Shrank) | None) => {
            Some("Send it again once no program writes to it")
        }
        _ => None,
    };
    Some(match advice {
        Some(advice) => format!("{reason}. {advice}"),
        None => reason.to_owned(),
    })
}
