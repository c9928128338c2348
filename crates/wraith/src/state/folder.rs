//! Checks of the state's folder on disk.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::{StateError, StateErrorKind};

/// Checks that only this user can write to the folder: another writer could replace the identity,
/// contacts and settings. A missing folder is fine.
pub(super) fn check_folder(folder: &Path) -> Result<(), StateError> {
    let Ok(facts) = fs::metadata(folder) else { return Ok(()) };
    let shown = folder.display();
    let refused =
        |why: &str| StateError::new(StateErrorKind::Exposed, format!("cannot use {shown}: {why}"));
    if !facts.is_dir() {
        let why = "it is a file, and should be a folder";
        return Err(refused(why).hint("choose a folder with WRAITH_HOME"));
    }
    let owner = facts.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        let why = "it belongs to another user, so its content may not be yours";
        return Err(refused(why).hint("choose a folder of your own with WRAITH_HOME"));
    }
    if facts.mode() & 0o022 != 0 {
        let why = "other users can write to it, so its content may not be yours";
        let hint = format!("if the folder and its content are yours: chmod 700 {shown}");
        return Err(refused(why).hint(hint));
    }
    Ok(())
}

/// Returns true if `path` certainly does not exist. A path that cannot be examined may exist.
pub(super) fn is_absent(path: &Path) -> bool {
    let absences = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    path.symlink_metadata().is_err_and(|e| absences.contains(&e.kind()))
}
