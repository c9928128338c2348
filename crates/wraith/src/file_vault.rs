//! The vault of sessions that is a folder: one or two files a record, readable by their owner only.
//!
//! `NAME` has what was stored to outlive a power cut, `NAME.recent` what came after it; the one of the two with the higher
//! generation counts. Both are replaced by renaming. So what is flushed is never overwritten by what is not, and after a power cut at any moment
//! the last flushed record is there, whole: if it is not, somebody or the disk has damaged it, and `NAME.recent`, which may be of long before, does
//! not count either.
//!
//! Invariant: one process at a time has the folder, by the lock on `.lock`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wraith_session::vault::{Durability, KeyVault, Record, VaultError, is_record_name};
use zeroize::Zeroizing;

use crate::state::{check_folder, lock_patiently, make_folder};

/// Longer than any record.
const RECORD_BYTES_MAX: u64 = 16 << 20;
const RECENT: &str = "recent";
const NEW: &str = "new";
const GENERATION: &str = "generation";

/// Keeps records of sessions in a folder. They are not encrypted beside what the disk is; on a device that has a store for keys, implement
/// [`KeyVault`] with that.
#[derive(Debug)]
pub struct FileVault {
    folder: PathBuf,
    anchor: Option<PathBuf>,
    /// The generation of each record that was looked at.
    generations: Mutex<HashMap<String, u64>>,
    _lock: File,
}

impl FileVault {
    /// The vault in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// The folder cannot be made or locked; it is open elsewhere, in this process or another.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, VaultError> {
        let folder = folder.into();
        make_own(&folder)?;
        let path = folder.join(".lock");
        let lock = lock_patiently(&path).map_err(|e| failed(&path, &e))?.ok_or_else(|| {
            VaultError::Failed(format!(
                "{} is in use: open elsewhere, in this process or another",
                folder.display()
            ))
        })?;
        Ok(Self { folder, anchor: None, generations: Mutex::default(), _lock: lock })
    }

    /// Remembers the latest generation of each record in another folder, best on another disk. A record that comes back from a copy of the vault's folder
    /// is then noticed.
    ///
    /// # Errors
    /// That folder cannot be made.
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

    /// The record of this name: the newer one of its two files. A damaged one counts as 0, and is given out to be refused.
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

    /// The generation after which the next one comes.
    fn held(&self, name: &str, path: &Path) -> Result<u64, VaultError> {
        match self.read(path).map_err(|e| failed(path, &e))? {
            Some((0, _)) => Err(VaultError::Failed(format!("{} is damaged", path.display()))),
            Some((held, _)) => Ok(held),
            None => Ok(self.latest(name)?.unwrap_or(0)),
        }
    }
}

impl KeyVault for FileVault {
    fn store(
        &self,
        name: &str,
        generation: u64,
        record: &[u8],
        durability: Durability,
    ) -> Result<(), VaultError> {
        let path = self.path(name)?;
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let held = match generations.get(name) {
            Some(held) => *held,
            None => self.held(name, &path)?,
        };
        if held.checked_add(1) != Some(generation) {
            return Err(VaultError::Conflict);
        }
        self.write(&path, record, durability).map_err(|e| failed(&path, &e))?;
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
        let bytes = read_file(&path).map_err(|e| failed(&path, &e))?;
        Ok(bytes.and_then(|bytes| bytes.first_chunk().copied()).map(u64::from_le_bytes))
    }
}

/// Makes the folder where it is missing, and refuses one that others can write to: they could put an older record there.
fn make_own(folder: &Path) -> Result<(), VaultError> {
    make_folder(folder).map_err(|e| failed(folder, &e))?;
    check_folder(folder).map_err(|e| VaultError::Failed(e.to_string()))
}

/// Writes a file beside its place, anew: what lies there, a link above all, is not written through.
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

/// Replaces a file, for good when this returns.
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
    // With the room it needs from the start: a buffer that grows leaves copies.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize + 1));
    file.take(RECORD_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn failed(path: &Path, error: &io::Error) -> VaultError {
    VaultError::Failed(format!("{}: {error}", path.display()))
}
