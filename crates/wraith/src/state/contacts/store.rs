//! The store of contacts: `contacts.toml` in the state folder, or memory.
//!
//! Invariant: a change is made as a whole or not at all, and concurrent changes are serialized. A
//! damaged file is reported and left unchanged.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::book::{ContactBook, ContactError};
use crate::state::error::{StateError, StateErrorKind};
use crate::state::file::{Format, StateFile, version_in_toml};

const FILE: &str = "contacts.toml";
const FORMAT: Format = Format {
    version: ContactBook::VERSION,
    version_of: version_in_toml,
    // Far more than the maximum number of complete contacts takes.
    max_bytes: 1 << 20,
    is_secret: false,
};

/// The store of contacts. Clones are handles of the same store.
#[derive(Clone, Debug)]
pub struct ContactStore(Backing);

#[derive(Clone, Debug)]
enum Backing {
    File(StateFile),
    Memory(Arc<Mutex<ContactBook>>, watch::Sender<()>),
}

impl ContactStore {
    pub(in crate::state) fn in_folder(folder: &Path) -> Self {
        Self(Backing::File(StateFile::new(folder, FILE, FORMAT)))
    }

    pub(in crate::state) fn in_memory() -> Self {
        let book = Arc::new(Mutex::new(ContactBook::empty()));
        Self(Backing::Memory(book, watch::Sender::new(())))
    }

    /// Returns a receiver that signals each change of contacts in memory; contacts in a file signal
    /// none.
    pub(in crate::state) fn changes_in_memory(&self) -> watch::Receiver<()> {
        match &self.0 {
            Backing::Memory(_, changes) => changes.subscribe(),
            Backing::File(_) => watch::channel(()).1,
        }
    }

    /// Loads all contacts; none if there is no file yet.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has a newer version.
    pub fn load(&self) -> Result<ContactBook, StateError> {
        match &self.0 {
            Backing::Memory(book, _) => {
                Ok(book.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            Backing::File(file) => match file.read() {
                Ok(text) => parse(file, text.as_deref().map(String::as_str)),
                Err(error) => Err(with_help(error)),
            },
        }
    }

    /// Changes the contacts, unless `change` fails. Concurrent changes by several processes are
    /// serialized. A `change` that returns [`StateError`] can use `?` on the errors of the book.
    ///
    /// # Errors
    /// Those of `change` and of [`Self::load`], or the file cannot be written. Nothing is then
    /// changed.
    pub fn change<T, E: From<StateError>>(
        &self,
        change: impl FnOnce(&mut ContactBook) -> Result<T, E>,
    ) -> Result<T, E> {
        match &self.0 {
            Backing::Memory(book, changes) => {
                let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                let mut changed = book.clone();
                let result = change(&mut changed)?;
                *book = changed;
                drop(book);
                changes.send_replace(());
                Ok(result)
            }
            Backing::File(file) => {
                // Reports errors with a hint, which the file does not have.
                self.load()?;
                file.change(|before| {
                    let mut book = parse(file, before)?;
                    let result = change(&mut book)?;
                    let after = book.text();
                    let is_changed = before != Some(after.as_str());
                    Ok((is_changed.then(|| after.into()), result))
                })
            }
        }
    }
}

fn parse(file: &StateFile, text: Option<&str>) -> Result<ContactBook, StateError> {
    let damaged = |why: String| with_help(file.damaged(&format!("is damaged: {why}")));
    ContactBook::parse(text.unwrap_or_default()).map_err(damaged)
}

fn with_help(error: StateError) -> StateError {
    if error.kind() != StateErrorKind::Damaged {
        return error;
    }
    error.hint("repair the file, or move it away to begin with none; nothing was changed")
}

/// A refused change of the contacts.
impl From<ContactError> for StateError {
    fn from(why: ContactError) -> Self {
        Self::new(StateErrorKind::Refused, why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::Command;

    use wraith_crypto::SecretIdentity;

    use super::*;

    /// The folder in which a child process adds contacts, and the number of the first one.
    const CHILD: &str = "WRAITH_TEST_CONTACTS";

    fn home() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        (folder, home)
    }

    fn add(store: &ContactStore, n: u8) -> Result<(), StateError> {
        store.change(|book| {
            let id = SecretIdentity::from_seed([n; 32]).node_id();
            Ok(book.add(&format!("c{n}").parse().unwrap(), id)?)
        })
    }

    #[test]
    fn the_file_is_the_owners_alone_and_nothing_is_left_beside_it() {
        let (_folder, home) = home();
        let (store, path) = (ContactStore::in_folder(&home), home.join(FILE));
        assert!(store.load().unwrap().contacts().is_empty());
        assert!(!home.exists(), "reading makes nothing");
        add(&store, 1).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        add(&store, 2).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 2, "the file and the lock");
    }

    #[test]
    fn processes_that_add_contacts_at_once_lose_none() {
        if let Some(child) = std::env::var_os(CHILD) {
            let (first, home) = child.to_str().unwrap().split_once(' ').unwrap();
            let first: u8 = first.parse().unwrap();
            let store = ContactStore::in_folder(Path::new(home));
            (first..first + 12).for_each(|n| add(&store, n).unwrap());
            return;
        }
        let (_folder, home) = home();
        let name = "state::contacts::store::tests::processes_that_add_contacts_at_once_lose_none";
        let children: Vec<_> = [0, 50, 100]
            .map(|first| {
                let mut child = Command::new(std::env::current_exe().unwrap());
                child.args(["--exact", name]).env(CHILD, format!("{first} {}", home.display()));
                child.stdout(std::process::Stdio::null()).spawn().unwrap()
            })
            .into_iter()
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(ContactStore::in_folder(&home).load().unwrap().contacts().len(), 36);
    }

    #[test]
    fn threads_with_handles_of_their_own_lose_none() {
        let (_folder, home) = home();
        std::thread::scope(|scope| {
            for n in 0..16 {
                let home = &home;
                scope.spawn(move || add(&ContactStore::in_folder(home), n).unwrap());
            }
        });
        assert_eq!(ContactStore::in_folder(&home).load().unwrap().contacts().len(), 16);
    }

    #[test]
    fn a_damaged_or_newer_file_is_reported_and_kept() {
        let (_folder, home) = home();
        let (store, path) = (ContactStore::in_folder(&home), home.join(FILE));
        add(&store, 1).unwrap();
        let large = vec![b'#'; FORMAT.max_bytes as usize + 1];
        for (text, kind) in [
            (&b"[contacts"[..], StateErrorKind::Damaged),
            (b"\xff\xfe", StateErrorKind::Damaged),
            (&large, StateErrorKind::Damaged),
            (b"version = 2\n[people]\n", StateErrorKind::Newer),
        ] {
            fs::write(&path, text).unwrap();
            let error = add(&store, 2).unwrap_err();
            assert_eq!(error.kind(), kind, "{error:?}");
            assert!(error.help().is_some());
            assert_eq!(fs::read(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_without_a_version_is_read_and_stays_as_its_owner_wrote_it() {
        let (_folder, home) = home();
        let (store, path) = (ContactStore::in_folder(&home), home.join(FILE));
        fs::create_dir(&home).unwrap();
        let id = SecretIdentity::from_seed([9; 32]).node_id();
        let text = format!("# mine\n[contacts.anna]\nnode_id = \"{id}\"\n");
        fs::write(&path, &text).unwrap();
        add(&store, 1).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with(&text));
        assert_eq!(store.load().unwrap().contacts().len(), 2);
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let (_folder, home) = home();
        for store in [ContactStore::in_folder(&home), ContactStore::in_memory()] {
            add(&store, 1).unwrap();
            let failed = store.change(|book| -> Result<(), StateError> {
                book.remove(&"c1".parse().unwrap())?;
                Err(StateError::new(StateErrorKind::NotFound, "no"))
            });
            failed.unwrap_err();
            assert_eq!(store.load().unwrap().contacts().len(), 1);
        }
    }
}
