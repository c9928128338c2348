//! A vault in a folder: storage for the states of sessions, conversations and prekeys. Each state
//! is a record with one or two files, readable by their owner only. Each store of a record
//! increases its generation, a number within the record, by one.
//!
//! `NAME` holds the last record that was flushed to stable storage ([`Durability::Power`]).
//! `NAME.recent` holds the last record that was stored without a flush ([`Durability::Process`]).
//! Of the two files, the one with the higher generation is read. Each file is replaced by rename,
//! so unflushed data never overwrites flushed data.
//!
//! So `NAME` is intact after a power cut at any moment. A damaged `NAME` shows a fault of the disk,
//! or a change by another program. `NAME.recent` is then not used either: it may be much older than
//! the last content of `NAME`.
//!
//! Invariant: only one process at a time has the vault open. It holds a lock on the file `.lock`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use zeroize::Zeroizing;

use super::{Durability, KeyVault, NewRecord, Record, VaultError, is_record_name};

/// Upper bound for the size of a record file.
const RECORD_BYTES_MAX: u64 = 16 << 20;
const RECENT: &str = "recent";
const NEW: &str = "new";
const GENERATION: &str = "generation";
/// A tenth of a second in total: a process that was just killed may hold the lock for a moment.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Stores session records in a folder. The records are encrypted only if the disk is. On a device
/// with a key store, implement [`KeyVault`] on top of that store.
#[derive(Debug)]
pub struct FileVault {
    folder: PathBuf,
    anchor: Option<PathBuf>,
    /// The last known generation of each record.
    generations: Mutex<HashMap<String, u64>>,
    _lock: File,
}

impl FileVault {
    /// Opens the vault in `folder`; creates the folder if it is missing.
    ///
    /// # Errors
    /// The folder cannot be created or locked, or it is already open in this process or another.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, VaultError> {
        let folder = folder.into();
        make_own(&folder)?;
        let path = folder.join(".lock");
        let lock = lock(&path).map_err(|e| failed(&path, &e))?.ok_or_else(|| {
            VaultError::Failed(format!(
                "{} is in use: open elsewhere, in this process or another",
                folder.display()
            ))
        })?;
        Ok(Self { folder, anchor: None, generations: Mutex::default(), _lock: lock })
    }

    /// Stores the latest generation of each record in a second folder, preferably on another disk.
    /// This detects a record that was restored from a copy of the vault's folder.
    ///
    /// Only durable stores ([`Durability::Power`]) are counted. So a session in this vault
    /// stores opened messages durably, unless its
    /// [`set_durability`](crate::Session::set_durability) is called. A durable store
    /// waits for two flushes in each of the two folders.
    ///
    /// # Errors
    /// The second folder cannot be created.
    pub fn anchored(mut self, folder: impl Into<PathBuf>) -> Result<Self, VaultError> {
        let folder = folder.into();
        make_own(&folder)?;
        self.anchor = Some(folder);
        Ok(self)
    }

    fn path(&self, name: &str) -> Result<PathBuf, VaultError> {
        match is_record_name(name) {
            true => Ok(self.folder.join(name)),
            false => Err(VaultError::Failed(format!("not a name of a record: {name:?}"))),
        }
    }

    fn write(&self, path: &Path, record: &[u8], durability: Durability) -> io::Result<()> {
        match durability {
            Durability::Process => {
                let (new, _) = write_new(path, record)?;
                fs::rename(new, path.with_extension(RECENT))
            }
            Durability::Power => replace_durably(path, record),
        }
    }

    /// Reads the newer of the two files of this record. A damaged file has generation 0 and is
    /// returned, so that the caller refuses it.
    fn read(&self, path: &Path) -> io::Result<Option<(u64, Zeroizing<Vec<u8>>)>> {
        let generation = |bytes: &[u8]| Record::decode(bytes).map_or(0, |record| record.generation);
        let flushed = read_file(path)?.map(|bytes| (generation(&bytes), bytes));
        if matches!(flushed, Some((0, _))) {
            return Ok(flushed);
        }
        let recent = read_file(&path.with_extension(RECENT))?;
        let recent = recent.map(|bytes| (generation(&bytes), bytes));
        Ok(flushed.into_iter().chain(recent).max_by_key(|(generation, _)| *generation))
    }

    /// Returns the current generation; the next store must exceed it.
    fn held(&self, name: &str, path: &Path) -> Result<u64, VaultError> {
        match self.read(path).map_err(|e| failed(path, &e))? {
            Some((0, _)) => Err(VaultError::Failed(format!("{} is damaged", path.display()))),
            Some((held, _)) => Ok(held),
            None => Ok(self.latest(name)?.unwrap_or(0)),
        }
    }
}

impl KeyVault for FileVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        let NewRecord { generation, bytes, durability } = record;
        let path = self.path(name)?;
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let held = match generations.get(name) {
            Some(held) => *held,
            None => self.held(name, &path)?,
        };
        if held.checked_add(1) != Some(generation) {
            return Err(VaultError::Conflict);
        }
        self.write(&path, bytes, durability).map_err(|e| failed(&path, &e))?;
        generations.insert(name.to_owned(), generation);
        if let (Some(anchor), Durability::Power) = (&self.anchor, durability) {
            let path = anchor.join(name).with_extension(GENERATION);
            replace_durably(&path, &generation.to_le_bytes()).map_err(|e| failed(&path, &e))?;
        }
        Ok(())
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        let path = self.path(name)?;
        let _held = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.read(&path).map_err(|e| failed(&path, &e))?.map(|(_, bytes)| bytes))
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        let path = self.path(name)?;
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        for path in [path.with_extension(NEW), path.with_extension(RECENT), path] {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(&path, &e)),
                _ => {}
            }
        }
        generations.remove(name);
        Ok(())
    }

    fn latest(&self, name: &str) -> Result<Option<u64>, VaultError> {
        let Some(anchor) = &self.anchor else { return Ok(None) };
        self.path(name)?;
        let path = anchor.join(name).with_extension(GENERATION);
        let Some(bytes) = read_file(&path).map_err(|e| failed(&path, &e))? else { return Ok(None) };
        let generation = <[u8; 8]>::try_from(&bytes[..])
            .map_err(|_| VaultError::Failed(format!("{} is damaged", path.display())))?;
        Ok(Some(u64::from_le_bytes(generation)))
    }
}

/// Creates the folder if it is missing. Refuses a folder that others can write to: they could put
/// an older record there.
fn make_own(folder: &Path) -> Result<(), VaultError> {
    let make = || fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    make().map_err(|e| failed(folder, &e))?;
    let found = fs::metadata(folder).map_err(|e| failed(folder, &e))?;
    let is_own = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    let why = match (is_own, found.mode() & 0o022) {
        (true, 0) => return Ok(()),
        (false, _) => "it belongs to another user",
        (true, _) => "other users can write to it",
    };
    Err(VaultError::Failed(format!("cannot use {}: {why}", folder.display())))
}

/// Locks a file, which is created if it is missing and never removed. Returns `None` if another
/// process holds the lock.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
    for attempt in 0..=LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) if attempt < LOCK_TRIES => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
    }
    Ok(None)
}

/// Writes a new file beside `path`. An existing file, in particular a link, is removed and not
/// written through.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<(PathBuf, File)> {
    let new = path.with_extension(NEW);
    match fs::remove_file(&new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    Ok((new, file))
}

/// Replaces a file; the new content is on stable storage when this returns.
fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (new, file) = write_new(path, bytes)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    let folder = path.parent().expect("a record is in a folder");
    File::open(folder)?.sync_all()
}

fn read_file(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let len = file.metadata()?.len().min(RECORD_BYTES_MAX);
    // Allocated at full size: a growing buffer leaves copies of secrets behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize + 1));
    file.take(RECORD_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn failed(path: &Path, error: &io::Error) -> VaultError {
    VaultError::Failed(format!("{}: {error}", path.display()))
}
