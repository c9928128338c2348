//! A small state file: read as a whole, checked for its version, changed under the state lock.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::commit::{self, FolderLock};
use super::error::{StateError, StateErrorKind};
use super::folder::is_absent;

/// Format of a kind of file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// The newest version that this program supports.
    pub version: u32,
    /// Extracts the version of a text. `None` if it has none; the file is then version 1 or
    /// damaged.
    pub version_of: fn(&str) -> Option<u32>,
    /// Size limit, far above any valid file.
    pub max_bytes: u64,
    /// Whether to refuse a file that others can read.
    pub is_secret: bool,
}

/// A state file.
#[derive(Clone, Debug)]
pub(super) struct StateFile {
    /// The state folder. Its lock is held during every change of the file.
    state: PathBuf,
    path: PathBuf,
    format: Format,
}

impl StateFile {
    /// Returns the file of this name below the state folder.
    pub(super) fn new(state: &Path, name: impl AsRef<Path>, format: Format) -> Self {
        Self { state: state.to_owned(), path: state.join(name), format }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the text; `None` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, is too large or no text, has a newer version, or is a secret that
    /// others can read.
    pub(super) fn read(&self) -> Result<Option<Zeroizing<String>>, StateError> {
        let shown = self.path.display();
        let failed = |e: &io::Error| StateError::disk(format_args!("cannot read {shown}"), e);
        // Opening a pipe without a writer would block.
        let mut options = File::options();
        let mut file = match options.read(true).custom_flags(NONBLOCK).open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            // A folder on the way to the state folder is no folder, as with HOME=/dev/null.
            Err(_) if is_absent(&self.state) => return Ok(None),
            Err(e) => return Err(failed(&e)),
        };
        let metadata = file.metadata().map_err(|e| failed(&e))?;
        if metadata.is_dir() {
            let why = "is a folder, and should be a file that wraith has written";
            return Err(self.damaged(why).hint("move it away"));
        }
        if !metadata.is_file() {
            return Err(self.damaged("is not a regular file"));
        }
        if self.format.is_secret && metadata.permissions().mode() & 0o077 != 0 {
            let why = "other users can read it, so it is no longer secret";
            return Err(StateError::new(
                StateErrorKind::Exposed,
                format!("cannot use {shown}: {why}"),
            )
            .hint(format!("if it is yours: chmod 600 {shown}")));
        }
        let mut text = Zeroizing::new(String::new());
        match (&mut file).take(self.format.max_bytes + 1).read_to_string(&mut text) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                return Err(self.damaged("is not text"));
            }
            Err(e) => return Err(failed(&e)),
        }
        if text.len() as u64 > self.format.max_bytes {
            return Err(self.damaged("is too large"));
        }
        match (self.format.version_of)(&text) {
            Some(found) if found > self.format.version => Err(self.newer(found)),
            _ => Ok(Some(text)),
        }
    }

    /// Replaces the text by the result of `change`, under the state lock; `None` leaves it
    /// unchanged. No other process changes the state meanwhile.
    ///
    /// # Errors
    /// Those of `change` and of [`Self::read`], or the file cannot be written. The old file is then
    /// unchanged.
    pub(super) fn change<T, E: From<StateError>>(
        &self,
        change: impl FnOnce(Option<&str>) -> Result<(Option<Zeroizing<String>>, T), E>,
    ) -> Result<T, E> {
        let failed = |e: io::Error| StateError::cannot_write(&self.path, &e);
        let lock = FolderLock::wait(&self.state).map_err(failed)?;
        let before = self.read()?;
        let (after, result) = change(before.as_deref().map(String::as_str))?;
        if let Some(after) = after {
            commit::replace(&self.path, after.as_bytes(), &lock).map_err(failed)?;
        }
        Ok(result)
    }

    /// Replaces the text, unless the file has a newer version. Also replaces a damaged file.
    pub(super) fn replace(&self, text: Zeroizing<String>) -> Result<(), StateError> {
        let failed = |e: io::Error| StateError::cannot_write(&self.path, &e);
        let lock = FolderLock::wait(&self.state).map_err(failed)?;
        match self.read() {
            Err(error) if error.kind() == StateErrorKind::Newer => Err(error),
            _ => commit::replace(&self.path, text.as_bytes(), &lock).map_err(failed),
        }
    }

    /// Returns the error for a damaged file.
    pub(super) fn damaged(&self, why: &str) -> StateError {
        StateError::new(StateErrorKind::Damaged, format!("{} {why}", self.path.display()))
    }

    fn newer(&self, found: u32) -> StateError {
        let (shown, known) = (self.path.display(), self.format.version);
        let message = format!(
            "{shown} was written by a newer wraith: it has format {found}, and this version supports {known}"
        );
        StateError::new(StateErrorKind::Newer, message)
            .hint("use the newer wraith; nothing was changed")
    }
}

/// `O_NONBLOCK`, which every Unix has but std does not export.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Parses the number after `prefix` at the start of a text.
pub(super) fn version_behind(text: &str, prefix: &str) -> Option<u32> {
    let rest = text.strip_prefix(prefix)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Parses the key `version` of a TOML text.
pub(super) fn version_in_toml(text: &str) -> Option<u32> {
    let document: toml_edit::Document<&str> = toml_edit::Document::parse(text).ok()?;
    let version = document.as_table().get("version")?.as_integer()?;
    Some(u32::try_from(version).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FORMAT: Format = Format {
        version: 1,
        version_of: |text| version_behind(text, "thing "),
        max_bytes: 100,
        is_secret: false,
    };

    fn file() -> (tempfile::TempDir, StateFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(&folder.path().join("home"), "thing", FORMAT);
        (folder, file)
    }

    #[test]
    fn a_newer_version_is_refused_and_left_alone() {
        let (_folder, file) = file();
        file.replace("thing 1\nold".to_owned().into()).unwrap();
        for newer in ["thing 2\nwhat only it knows", "thing 99", "thing 4294967295"] {
            fs::write(file.path(), newer).unwrap();
            let kind = |error: StateError| error.kind();
            assert_eq!(file.read().map_err(kind).unwrap_err(), StateErrorKind::Newer);
            let replaced = file.replace("thing 1\nnew".to_owned().into());
            assert_eq!(replaced.map_err(kind).unwrap_err(), StateErrorKind::Newer);
            let changed = file.change(|_| Ok::<_, StateError>((Some(String::new().into()), ())));
            assert_eq!(changed.map_err(kind).unwrap_err(), StateErrorKind::Newer);
            assert_eq!(fs::read_to_string(file.path()).unwrap(), newer);
        }
    }

    #[test]
    fn changes_by_several_handles_at_once_lose_nothing() {
        let (_folder, file) = file();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let file = file.clone();
                scope.spawn(move || {
                    for _ in 0..8 {
                        let longer = |text: Option<&str>| {
                            let longer = format!("{}x", text.unwrap_or_default());
                            Ok::<_, StateError>((Some(longer.into()), ()))
                        };
                        file.change(longer).unwrap();
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap().unwrap().len(), 64);
    }

    #[test]
    fn an_unreadable_file_is_reported_as_damaged_and_kept() {
        let (_folder, file) = file();
        file.replace(String::new().into()).unwrap();
        for damage in [&b"\xff\xfe"[..], &[b'a'; 101]] {
            fs::write(file.path(), damage).unwrap();
            let changed = file.change(|_| Ok::<_, StateError>((Some(String::new().into()), ())));
            assert_eq!(changed.unwrap_err().kind(), StateErrorKind::Damaged);
            assert_eq!(fs::read(file.path()).unwrap(), damage);
        }
    }
}
