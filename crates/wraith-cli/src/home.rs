//! Where this user's state is.

use wraith::state::{StateDir, users_folder};

use crate::failure::{Exit, Failure};

/// The state of this user, made or not.
///
/// # Errors
/// No variable of the environment says where it is.
pub fn open() -> Result<StateDir, Failure> {
    let folder = users_folder().ok_or_else(|| {
        Failure::new(Exit::Other, "no folder for the identity: HOME is not set")
            .hint("set WRAITH_HOME to a folder of your own")
    })?;
    Ok(StateDir::in_folder(folder))
}
