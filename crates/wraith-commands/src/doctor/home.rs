//! Checks the state folder: it exists, belongs to this user, and is closed to others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use wraith::state::{IDENTITY_FILE, StateDir, users_folder};

use rustix::fs::Access;

use super::Check;
use crate::config;

const NAME: &str = "home folder";

pub fn check(report: &mut impl FnMut(Check)) {
    let Some(folder) = users_folder() else {
        report(without_memory("none: HOME is not set".to_owned()));
        return;
    };
    report(folder_check(&folder));
    report(config_check());
    if let Err(failure) = config::check_environment() {
        let meaning = "no command with this option works";
        let check = Check::fail("environment", failure.message, meaning);
        report(check.next(failure.hint.unwrap_or_default()));
    }
    if let Err(error) = StateDir::in_folder(&folder).contacts().load() {
        let meaning = "sending to contacts does not work, and wraith listen does not start";
        let check = Check::fail("contacts", error.to_string(), meaning);
        report(check.next(error.help().unwrap_or("correct it or move it away")));
    }
}

fn folder_check(folder: &Path) -> Check {
    let shown = folder.display().to_string();
    let meaning = "the identity exists, and no other user can read it";
    let facts = match fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return not_yet(folder),
        Err(error) => {
            let found = format!("{shown}: {}", crate::failure::plain(&error));
            return Check::fail(NAME, found, "the identity cannot be read")
                .next("choose another folder with WRAITH_HOME");
        }
        Ok(facts) => facts,
    };
    if !facts.is_dir() {
        let meaning = "it is not a folder, so the identity cannot be stored there";
        return Check::fail(NAME, shown, meaning).next("choose another folder with WRAITH_HOME");
    }
    if let Err(error) = StateDir::in_folder(folder).check() {
        let meaning =
            "other users could replace the identity or the config file, so the folder is not used";
        let check = Check::fail(NAME, error.to_string(), meaning);
        return check.next(error.help().unwrap_or_default());
    }
    let identity = folder.join(IDENTITY_FILE);
    let mode = |path: &Path| fs::metadata(path).map_or(0, |facts| facts.permissions().mode());
    if mode(&identity) & 0o077 != 0 {
        let meaning = "other users can read the secret key, so it is not used";
        return Check::fail(
            NAME,
            format!("{} is accessible to others", identity.display()),
            meaning,
        )
        .next(format!("chmod 600 {}", identity.display()));
    }
    if rustix::fs::access(folder, Access::WRITE_OK).is_err() {
        return without_memory(format!("{shown} cannot be written"));
    }
    Check::ok(NAME, shown, meaning)
}

/// Checks that the first use can create the folder.
fn not_yet(folder: &Path) -> Check {
    let there = folder.ancestors().skip(1).find(|above| above.exists());
    let writable = there.is_some_and(|above| rustix::fs::access(above, Access::WRITE_OK).is_ok());
    let found = format!("{} does not exist yet", folder.display());
    match writable {
        true => Check::ok(NAME, found, "it is created on first use"),
        false => without_memory(format!("{found}, and cannot be created")),
    }
}

/// Returns the warning for a missing folder, without which transfers still work.
fn without_memory(found: String) -> Check {
    let meaning = "transfers work, but save nothing: no new contacts, no resume after a restart";
    Check::warn(NAME, found, meaning).next("choose a folder with WRAITH_HOME")
}

fn config_check() -> Check {
    match config::check() {
        Ok(0) => Check::none("config file", "none, or empty", "every setting has its default"),
        Ok(settings) => {
            let found = format!("{settings} setting{}", if settings == 1 { "" } else { "s" });
            Check::ok("config file", found, "wraith config lists the settings")
        }
        Err(failure) => {
            let check =
                Check::fail("config file", failure.message, "no command works with this file");
            match failure.hint {
                Some(hint) => check.next(hint),
                None => check,
            }
        }
    }
}
