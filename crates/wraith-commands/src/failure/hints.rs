//! Maps the library's errors to advice.

use wraith::state::OtherReceiver;
use wraith::{Cause, Error, ErrorKind, Role, TransferError};

use super::Failure;

/// Returns the text of the error from the point of view of the side `own`.
fn words(error: &Error, own: Role) -> String {
    match error.transfer() {
        Some(TransferError::Disk { role, what }) if *role == own => {
            format!("this machine's disk: {what}")
        }
        _ => error.to_string(),
    }
}

/// Converts an error into the failure of a command. `again` is the command that resumes it.
pub fn of(error: &Error, role: Role, again: &str) -> Failure {
    let failure = Failure::new(error.exit(), words(error, role));
    match (error.cause(), error.transfer()) {
        (Some(Cause::State(state)), _) => Failure::from(state.clone()),
        (Some(Cause::CannotBind(_)), _) => {
            failure.hint("choose another address or port with --listen")
        }
        (Some(Cause::ReceivedBy(OtherReceiver { process, .. })), _) => failure
            .hint(format!("let it finish, or stop it (kill {process}) and run again: {again}")),
        (_, Some(TransferError::Elsewhere)) => {
            failure.hint(format!("let it finish, or stop it and run again: {again}"))
        }
        (_, Some(TransferError::Refused { why })) if role == Role::Receiver => {
            let message = match why.as_str() {
                "" => "you declined; nothing was written".to_owned(),
                // The reason that the sender gave.
                why => why.to_owned(),
            };
            Failure::new(failure.exit, message)
        }
        (_, Some(TransferError::NoStream)) => failure.hint(match role {
            Role::Sender => {
                "the receiver needs -o DIR instead of -o -; for one stream, run: tar c FOLDER | wraith send -"
            }
            Role::Receiver => {
                "fetch it into a folder with -o DIR, if the sender still waits. For one stream, run there: tar c FOLDER | wraith send -"
            }
        }),
        (_, Some(TransferError::Partial { failed: 0, .. })) => failure.hint(match role {
            Role::Sender => {
                format!("they are listed above; correct them, then run again: {again}")
            }
            Role::Receiver => "the sender got the list of them, with the reasons".to_owned(),
        }),
        // Both sides have ended with this error. The end of this side's own stop is reported
        // elsewhere.
        _ if matches!(
            error.kind(),
            ErrorKind::Disk | ErrorKind::Partial | ErrorKind::Cancelled
        ) && role == Role::Receiver =>
        {
            failure.hint(format!("once the sender runs again, to continue: {again}"))
        }
        _ if error.is_resumable() => failure.hint(format!("to continue: {again}")),
        _ => failure,
    }
}
