//! The file of contacts, `contacts.toml` in the folder of the identity.
//!
//! Invariants: a change is made under a lock and replaces the whole file at once, so whoever reads sees it before or after,
//! never in between; only its owner can read it; and a damaged file is reported and left as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use super::book::Book;
use crate::failure::{Exit, Failure};
use crate::home::Home;

const FILE: &str = "contacts.toml";
const LOCK: &str = "contacts.lock";
/// Far more than all contacts take with everything that is known of them.
const MAX_BYTES: u64 = 1 << 20;

/// Where the contacts are kept.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    lock: PathBuf,
}

impl Store {
    pub fn of(home: &Home) -> Self {
        Self { path: home.file(FILE), lock: home.file(LOCK) }
    }

    /// All contacts; none if there is no file yet.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(&self) -> Result<Book, Failure> {
        let shown = self.path.display();
        let mut text = String::new();
        match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Book::empty()),
            Err(error) => return Err(Failure::disk(format!("cannot read {shown}"), &error)),
            Ok(file) => match file.take(MAX_BYTES + 1).read_to_string(&mut text) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(self.damaged("it is no text"));
                }
                Err(error) => return Err(Failure::disk(format!("cannot read {shown}"), &error)),
            },
        }
        if text.len() as u64 > MAX_BYTES {
            return Err(self.damaged("it is larger than 1 MiB"));
        }
        Book::parse(&text).map_err(|why| self.damaged(&why))
    }

    /// Changes the contacts, unless `change` fails. Changes by several processes come one after the other.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Book) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let failed = |error| Failure::disk(format!("cannot write {}", self.path.display()), &error);
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(&self.lock);
        let lock = lock.map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut book = self.load()?;
        let before = book.text();
        let result = change(&mut book)?;
        let text = book.text();
        if text != before || !self.path.exists() {
            self.write(text.as_bytes()).map_err(failed)?;
        }
        Ok(result)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // A link leads to where the user keeps the file.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = path.parent().expect("the file is in a folder");
        // It is made with mode 0600.
        let mut new = tempfile::NamedTempFile::with_prefix_in(".contacts.", folder)?;
        new.write_all(bytes)?;
        new.as_file().sync_all()?;
        new.persist(&path)?;
        File::open(folder)?.sync_all()
    }

    fn damaged(&self, why: &str) -> Failure {
        let shown = self.path.display();
        Failure::new(Exit::Other, format!("the contacts in {shown} are damaged: {why}"))
            .hint("repair the file, or move it away to begin with none; nothing was changed")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use wraith_crypto::SecretIdentity;

    use super::*;

    fn home() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::of(&Home::at(folder.path().join("home")).unwrap());
        (folder, store)
    }

    fn add(store: &Store, n: u8) -> Result<(), Failure> {
        store.change(|book| {
            let id = SecretIdentity::from_seed([n; 32]).node_id();
            book.add(&format!("c{n}").parse().unwrap(), id).unwrap();
            Ok(())
        })
    }

    #[test]
    fn the_file_is_the_owners_alone_and_nothing_is_left_beside_it() {
        let (_folder, store) = home();
        assert!(store.load().unwrap().contacts().is_empty());
        assert!(!store.path.exists(), "reading makes nothing");
        add(&store, 1).unwrap();
        fs::set_permissions(&store.path, PermissionsExt::from_mode(0o644)).unwrap();
        add(&store, 2).unwrap();
        assert_eq!(fs::metadata(&store.path).unwrap().permissions().mode() & 0o777, 0o600);
        let names = fs::read_dir(store.path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 2, "the file and its lock");
    }

    #[test]
    fn changes_at_the_same_time_are_all_made() {
        let (_folder, store) = home();
        std::thread::scope(|scope| {
            for n in 0..16 {
                let store = &store;
                scope.spawn(move || add(store, n).unwrap());
            }
        });
        assert_eq!(store.load().unwrap().contacts().len(), 16);
    }

    #[test]
    fn a_damaged_file_is_reported_and_kept() {
        let (_folder, store) = home();
        add(&store, 1).unwrap();
        for damage in [&b"[contacts"[..], b"\xff\xfe", &vec![b'#'; MAX_BYTES as usize + 1]] {
            fs::write(&store.path, damage).unwrap();
            let failure = add(&store, 2).unwrap_err();
            assert!(failure.message.contains("damaged"), "{failure:?}");
            assert!(failure.hint.is_some());
            assert_eq!(fs::read(&store.path).unwrap(), damage);
        }
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let (_folder, store) = home();
        add(&store, 1).unwrap();
        let failed = store.change(|book| -> Result<(), _> {
            book.remove(&"c1".parse().unwrap()).unwrap();
            Err(Failure::new(Exit::Other, "no"))
        });
        failed.unwrap_err();
        assert_eq!(store.load().unwrap().contacts().len(), 1);
    }
}
