//! Where the records are: `received/` in the home folder, a file each, named after its time and the hash of its receipt.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use wraith_transfer::Receipt;

use super::record::{self, Fault, Head, Lines};
use crate::failure::{Exit, Failure};
use crate::home::Home;

const FOLDER: &str = "received";
const RECORD: &str = ".record";
pub const PART: &str = ".part";
pub const NEW: &str = ".new.";

/// Records that are kept, and bytes of all of them. The newest is kept in any case, but has a bound of its own.
const RECORDS_MAX: usize = 256;
const BYTES_MAX: u64 = 512 << 20;
/// Lists of transfers that were not finished; all of them together have no more bytes than the records.
const PARTS_MAX: usize = 16;
/// A file that was being written this long ago is not written any more.
const NEW_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Hexadecimal digits of an id, and how many of them are enough to name it.
const ID_LETTERS: usize = 12;
const ID_LETTERS_MIN: usize = 4;

/// The records.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Shelved {
    pub id: String,
    path: PathBuf,
    bytes: u64,
}

impl Shelved {
    /// What it begins with, and its lines.
    pub fn open(&self) -> Result<(Head, Lines), Fault> {
        record::open(File::open(&self.path)?)
    }
}

/// The name of a transfer for people: the beginning of the hash of its receipt.
pub fn id(receipt: &Receipt) -> String {
    blake3::hash(&receipt.to_bytes()).to_hex()[..ID_LETTERS].to_owned()
}

impl Shelf {
    pub fn of(home: &Home) -> Result<Self, Failure> {
        Ok(Self { folder: home.subfolder(FOLDER)? })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the record of this receipt belongs.
    pub fn place(&self, receipt: &Receipt) -> PathBuf {
        self.folder.join(format!("{:012}-{}{RECORD}", receipt.unix_seconds, id(receipt)))
    }

    /// All records, the newest first.
    pub fn all(&self) -> io::Result<Vec<Shelved>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let id = name.strip_suffix(RECORD).and_then(|name| name.split_once('-'));
            let Some((_, id)) = id else { continue };
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            all.push((name.clone(), Shelved { id: id.to_owned(), path: entry.path(), bytes }));
        }
        all.sort_by(|a, b| b.0.cmp(&a.0));
        Ok(all.into_iter().map(|(_, shelved)| shelved).collect())
    }

    /// The record whose id begins so.
    pub fn find(&self, id: &str) -> Result<Shelved, Failure> {
        let all = self.all().map_err(|error| self.unreadable(&error))?;
        let id = id.to_ascii_lowercase();
        let mut found = all.into_iter().filter(|shelved| shelved.id.starts_with(&id));
        let hint = "wraith verify --list shows what can be checked";
        match (found.next(), found.next()) {
            (Some(one), None) if id.len() >= ID_LETTERS_MIN => Ok(one),
            (Some(_), _) => {
                let what = format!("{id} is the beginning of several ids, or too short");
                Err(Failure::new(Exit::Usage, what).hint(hint))
            }
            (None, _) => {
                let what = format!("there is no record of a transfer {}", id.escape_debug());
                Err(Failure::new(Exit::Other, what).hint(hint))
            }
        }
    }

    pub fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::disk(format!("cannot read {}", self.folder.display()), error)
    }

    /// Removes what is beyond the bounds, the oldest first.
    pub fn tidy(&self) -> io::Result<()> {
        let mut bytes = 0u64;
        for (n, shelved) in self.all()?.iter().enumerate() {
            bytes = bytes.saturating_add(shelved.bytes);
            if n > 0 && (n >= RECORDS_MAX || bytes > BYTES_MAX) {
                fs::remove_file(&shelved.path)?;
            }
        }
        let mut parts = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let Ok(written) = entry.metadata().and_then(|metadata| metadata.modified()) else {
                continue;
            };
            let age = SystemTime::now().duration_since(written).unwrap_or_default();
            if name.ends_with(PART) {
                let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
                parts.push((age, bytes, entry.path()));
            } else if name.starts_with(NEW) && age > NEW_LIFE {
                fs::remove_file(entry.path())?;
            }
        }
        parts.sort();
        let mut bytes = 0u64;
        parts.iter().enumerate().try_for_each(|(n, (_, len, path))| {
            bytes = bytes.saturating_add(*len);
            let is_one_too_many = n >= PARTS_MAX || n > 0 && bytes > BYTES_MAX;
            if is_one_too_many { fs::remove_file(path) } else { Ok(()) }
        })
    }
}
