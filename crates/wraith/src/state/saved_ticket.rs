//! The ticket that a code delivered, stored until the transfer is done. A code works once, but the
//! same command must resume after a crash. The ticket of a code for several receivers stays: its
//! sender may serve any number of times.
//!
//! Invariant: a record is readable by its owner only, and its name is a hash of the code. The
//! record is removed when the transfer has ended for good, or after a week.

use std::fs;
use std::path::Path;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use wraith_discovery::{Code, Ticket};
use zeroize::Zeroizing;

use super::dir::StateDir;
use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile, version_behind};

const FOLDER: &str = "codes";
/// As long as the sender keeps an unfinished send.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Prefix of the first line, before the version. Files of version 1 contain the ticket only.
const HEADER: &str = "wraith ticket of a code ";
const FORMAT: Format = Format {
    version: 2,
    version_of: |text| version_behind(text, HEADER),
    max_bytes: 4096,
    is_secret: true,
};

/// The record of one code's ticket.
pub struct SavedTicket {
    state: StateDir,
    /// `None` in memory: nothing is stored.
    file: Option<StateFile>,
    code: String,
}

// The code is a secret.
wraith_crypto::redacted_debug!(SavedTicket);

impl SavedTicket {
    /// Returns the record for `code`, whether it exists or not.
    pub fn of(state: &StateDir, code: &Code) -> Self {
        let code = code.to_string();
        let hash = wraith_crypto::kdf::derive("wraith/1 saved code", code.as_bytes());
        let name = BASE32_NOPAD.encode(&hash[..20]).to_ascii_lowercase();
        let file = state.folder().map(|folder| {
            forget_old(folder);
            StateFile::new(folder, Path::new(FOLDER).join(name), FORMAT)
        });
        Self { state: state.clone(), file, code }
    }

    /// Returns the code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns whether the code is for several receivers.
    pub fn is_for_several(&self) -> bool {
        self.code.parse::<Code>().is_ok_and(|code| code.is_for_several())
    }

    /// Returns the stored ticket, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or has a newer version.
    pub fn ticket(&self) -> Result<Option<Ticket>, StateError> {
        let Some(file) = &self.file else { return Ok(None) };
        match file.read() {
            Ok(text) => Ok(text.and_then(|text| parse(&text))),
            Err(error)
                if matches!(error.kind(), StateErrorKind::Damaged | StateErrorKind::Exposed) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores the ticket.
    ///
    /// # Errors
    /// The file cannot be written, or has a newer version.
    pub fn keep(&self, ticket: &Ticket) -> Result<(), StateError> {
        self.state.with_subfolder(FOLDER)?;
        let version = FORMAT.version;
        let text = Zeroizing::new(format!("{HEADER}{version}\n{ticket}\n"));
        self.file.as_ref().map_or(Ok(()), |file| file.replace(text))
    }

    /// Removes the record: the transfer has ended for good and will not be resumed.
    pub fn forget(&self) {
        if let Some(file) = &self.file {
            // A failure is harmless: the record expires.
            let _ = fs::remove_file(file.path());
        }
    }
}

fn parse(text: &str) -> Option<Ticket> {
    match version_behind(text, HEADER) {
        Some(_) => text.split_once('\n')?.1.trim().parse().ok(),
        None => text.trim().parse().ok(),
    }
}

/// Removes records older than [`MAX_AGE`]. A failure is retried the next time.
fn forget_old(state: &Path) {
    for entry in fs::read_dir(state.join(FOLDER)).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let age = entry.metadata().and_then(|m| m.modified()).map(|t| t.elapsed());
        let is_newer = || {
            let read = StateFile::new(state, entry.path(), FORMAT).read();
            read.is_err_and(|error| error.kind() == StateErrorKind::Newer)
        };
        if matches!(age, Ok(Ok(age)) if age > MAX_AGE) && !is_newer() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use wraith_crypto::SecretIdentity;
    use wraith_discovery::Capability;

    use super::*;

    fn ticket() -> Ticket {
        let node_id = SecretIdentity::from_seed([1; 32]).node_id();
        Ticket::new(node_id, Capability::from_bytes([2; 16]), vec!["127.0.0.1:9".parse().unwrap()])
    }

    fn saved(folder: &Path, n: u8) -> SavedTicket {
        SavedTicket::of(&StateDir::in_folder(folder), &Code::new(7, [n; 4]))
    }

    fn path(saved: &SavedTicket) -> PathBuf {
        saved.file.as_ref().unwrap().path().to_owned()
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_ticket_is_kept_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let saved = |n| saved(folder.path(), n);
        assert_eq!(saved(1).ticket().unwrap(), None);
        saved(1).keep(&ticket()).unwrap();
        assert_eq!(saved(1).ticket().unwrap(), Some(ticket()));
        assert_eq!(saved(2).ticket().unwrap(), None);
        saved(1).forget();
        assert_eq!(saved(1).ticket().unwrap(), None);
    }

    #[test]
    fn a_file_of_the_first_format_is_read_and_a_newer_one_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let saved = saved(folder.path(), 1);
        write(&path(&saved), &format!("{}\n", ticket()));
        assert_eq!(saved.ticket().unwrap(), Some(ticket()));
        saved.keep(&ticket()).unwrap();
        assert_eq!(saved.ticket().unwrap(), Some(ticket()));
        let newer = "wraith ticket of a code 3\nanother world";
        write(&path(&saved), newer);
        assert_eq!(saved.ticket().unwrap_err().kind(), StateErrorKind::Newer);
        assert_eq!(saved.keep(&ticket()).unwrap_err().kind(), StateErrorKind::Newer);
        assert_eq!(fs::read_to_string(path(&saved)).unwrap(), newer);
    }

    #[test]
    fn a_record_older_than_a_week_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let saved = || saved(folder.path(), 1);
        saved().keep(&ticket()).unwrap();
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        OpenOptions::new().write(true).open(path(&saved())).unwrap().set_modified(old).unwrap();
        assert_eq!(saved().ticket().unwrap(), None);
    }
}
