//! Where this user's state is.

use wraith::state::{StateDir, StateErrorKind, users_folder};

use crate::failure::{Exit, Failure};
use crate::output::Reporter;

/// The state of this user, made or not.
///
/// # Errors
/// No variable of the environment says where it is, or others can write to it.
pub fn open() -> Result<StateDir, Failure> {
    let folder = users_folder().ok_or_else(|| {
        Failure::new(Exit::Other, "no folder for the identity: HOME is not set")
            .hint("set WRAITH_HOME to a folder of your own")
    })?;
    let state = StateDir::in_folder(folder);
    state.check()?;
    Ok(state)
}

/// The state for one transfer, which works without a memory: where no identity can be kept it has one of its own, and says so.
///
/// # Errors
/// There is an identity, and it cannot be used.
pub fn open_for_transfer(reporter: &Reporter) -> Result<StateDir, Failure> {
    let why = match users_folder() {
        None => "HOME is not set".to_owned(),
        Some(folder) => {
            let state = StateDir::in_folder(&folder);
            match state.identity() {
                Ok(_) => return Ok(state),
                Err(error) if error.kind() == StateErrorKind::Disk => {
                    // One that is there, or may be, is this machine's, and no other takes its place.
                    if state.may_have_identity() {
                        return Err(error.into());
                    }
                    error.to_string()
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    let message = format!("{why}; this run has an identity of its own and remembers nothing");
    reporter.note("", &message);
    Ok(StateDir::in_memory()?)
}
