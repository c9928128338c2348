//! The folder of the identity: there, ours, and nobody else's.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use wraith::state::{IDENTITY_FILE, users_folder};

use rustix::fs::Access;

use super::Check;
use crate::config;

const NAME: &str = "home folder";

pub fn check(tell: &mut impl FnMut(Check)) {
    let Some(folder) = users_folder() else {
        let meaning = "there is no place for the identity, so nothing is remembered";
        tell(Check::fail(NAME, "none: HOME is not set", meaning).next("set WRAITH_HOME"));
        return;
    };
    tell(folder_check(&folder));
    tell(config_check());
}

fn folder_check(folder: &Path) -> Check {
    let shown = folder.display().to_string();
    let meaning = "the identity is there, and no other user can read it";
    let facts = match fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return not_yet(folder),
        Err(error) => {
            let found = format!("{shown}: {}", crate::failure::plain(&error));
            return Check::fail(NAME, found, "the identity cannot be read")
                .next("choose another folder with WRAITH_HOME");
        }
        Ok(facts) => facts,
    };
    let me = rustix::process::geteuid().as_raw();
    if !facts.is_dir() || (facts.uid() != me && me != 0) {
        let meaning = "it is no folder of this user, so the identity cannot be kept there";
        return Check::fail(NAME, shown, meaning).next("choose another folder with WRAITH_HOME");
    }
    let identity = folder.join(IDENTITY_FILE);
    let mode = |path: &Path| fs::metadata(path).map_or(0, |facts| facts.permissions().mode());
    if mode(&identity) & 0o077 != 0 {
        let meaning = "other users can read the secret key, so it is not used";
        return Check::fail(NAME, format!("{} is open to others", identity.display()), meaning)
            .next(format!("chmod 600 {}", identity.display()));
    }
    if mode(folder) & 0o022 != 0 {
        let meaning =
            "other users can put another identity or config file there, so it is not used";
        return Check::fail(NAME, format!("{shown} can be written by others"), meaning)
            .next(format!("chmod 700 {shown}"));
    }
    if rustix::fs::access(folder, Access::WRITE_OK).is_err() {
        let meaning =
            "transfers work and remember nothing: no contacts, no continuing after a restart";
        return Check::warn(NAME, format!("{shown} cannot be written"), meaning)
            .next("choose another folder with WRAITH_HOME");
    }
    Check::ok(NAME, shown, meaning)
}

/// It is made on first use, if it can be.
fn not_yet(folder: &Path) -> Check {
    let there = folder.ancestors().skip(1).find(|above| above.exists());
    let writable = there.is_some_and(|above| rustix::fs::access(above, Access::WRITE_OK).is_ok());
    let found = format!("{} does not exist yet", folder.display());
    match writable {
        true => Check::ok(NAME, found, "it is made on first use"),
        false => Check::fail(NAME, found, "it cannot be made there, so there is no identity")
            .next("choose another folder with WRAITH_HOME"),
    }
}

fn config_check() -> Check {
    match config::check() {
        Ok(0) => Check::none("config file", "none, or empty", "everything is as built in"),
        Ok(settings) => {
            let found = format!("{settings} settings");
            Check::ok("config file", found, "wraith config shows what is in force")
        }
        Err(failure) => {
            let check = Check::fail("config file", failure.message, "no command works with it");
            match failure.hint {
                Some(hint) => check.next(hint),
                None => check,
            }
        }
    }
}
