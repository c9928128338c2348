//! Locates the state folder of this user.

use wraith::state::{StateDir, StateErrorKind, users_folder};

use crate::failure::{Exit, Failure};
use crate::output::Reporter;

/// Opens the state of this user. The folder need not exist.
///
/// # Errors
/// No environment variable names the folder, or others can write to it.
pub fn open() -> Result<StateDir, Failure> {
    let folder = users_folder().ok_or_else(|| {
        Failure::new(Exit::Other, "no folder for the identity: HOME is not set")
            .hint("set WRAITH_HOME to a folder of your own")
    })?;
    let state = StateDir::in_folder(folder);
    state.check()?;
    Ok(state)
}

/// Opens the state for one transfer. If no identity can be stored, the transfer gets a temporary
/// one, and a notice reports it.
///
/// # Errors
/// An identity exists and cannot be used.
pub fn open_for_transfer(reporter: &Reporter) -> Result<StateDir, Failure> {
    let why = match users_folder() {
        None => "HOME is not set".to_owned(),
        Some(folder) => {
            let state = StateDir::in_folder(&folder);
            match state.identity() {
                Ok(_) => return Ok(state),
                Err(error) if error.kind() == StateErrorKind::Disk => {
                    // An existing identity, or one that may exist, must not be replaced by another.
                    if state.may_have_identity() {
                        return Err(error.into());
                    }
                    error.to_string()
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    let message = format!("{why}; this run uses a temporary identity and saves nothing");
    reporter.note("", &message);
    Ok(StateDir::in_memory()?)
}
