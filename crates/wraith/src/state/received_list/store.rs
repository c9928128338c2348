//! The folder of the lists: `received/` in the state folder, with one file per list, named after
//! its time and the hash of its receipt.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wraith_transfer::Receipt;

use super::format::{self, ProofError, ReceiptHeader, ReceivedListReader};
use crate::state::dir::StateDir;
use crate::state::error::{StateError, StateErrorKind};

const FOLDER: &str = "received";
const RECORD: &str = ".record";
pub(super) const PART: &str = ".part";

/// Maximum number of records, and bytes of all of them. The newest is always kept; it has a limit
/// of its own.
const RECORDS_MAX: usize = 256;
const BYTES_MAX: u64 = 512 << 20;
/// Maximum number of parts of unfinished transfers. All parts together have the same size limit as
/// the records.
const PARTS_MAX: usize = 16;

/// Hexadecimal digits of an ID, and the minimum number of them that selects a list.
const ID_LETTERS: usize = 12;
const ID_LETTERS_MIN: usize = 4;

/// All received lists of this machine.
#[derive(Debug)]
pub struct ReceivedStore {
    /// `None` in memory: there are no lists.
    folder: Option<PathBuf>,
}

/// One received list.
#[derive(Clone, Debug)]
pub struct ReceivedList {
    /// ID for people: the first hexadecimal digits of the hash of its receipt.
    pub id: String,
    path: PathBuf,
    bytes: u64,
}

impl ReceivedList {
    /// Opens the list and returns its head and its entries.
    ///
    /// # Errors
    /// It cannot be read, has a newer version, or does not start like a record.
    pub fn open(&self) -> Result<(ReceiptHeader, ReceivedListReader), ProofError> {
        format::open(File::open(&self.path)?)
    }
}

/// Returns the ID of a transfer for people: the first digits of the hash of its receipt.
fn id(receipt: &Receipt) -> String {
    blake3::hash(&receipt.to_bytes()).to_hex()[..ID_LETTERS].to_owned()
}

impl ReceivedStore {
    /// Returns the lists of this machine.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn of(state: &StateDir) -> Result<Self, StateError> {
        Ok(Self { folder: state.with_subfolder(FOLDER)?.map(|state| state.join(FOLDER)) })
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns all lists, the newest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(&self) -> Result<Vec<ReceivedList>, StateError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let failed = |e| StateError::disk(format_args!("cannot read {}", folder.display()), &e);
        lists_in(folder).map_err(failed)
    }

    /// Returns the list whose ID starts with `id`.
    ///
    /// # Errors
    /// The folder cannot be read, there is no such list ([`StateErrorKind::NotFound`]), or there
    /// are several ([`StateErrorKind::Ambiguous`]).
    pub fn find(&self, id: &str) -> Result<ReceivedList, StateError> {
        let id = id.to_ascii_lowercase();
        let mut found = self.all()?.into_iter().filter(|list| list.id.starts_with(&id));
        match (found.next(), found.next()) {
            (Some(one), None) if id.len() >= ID_LETTERS_MIN => Ok(one),
            (Some(_), _) => {
                let what = format!("{id} is the beginning of several ids, or too short");
                Err(StateError::new(StateErrorKind::Ambiguous, what))
            }
            (None, _) => {
                let what = format!("there is no record of a transfer {}", id.escape_debug());
                Err(StateError::new(StateErrorKind::NotFound, what))
            }
        }
    }
}

/// Returns the path for the list of this receipt.
pub(super) fn place(folder: &Path, receipt: &Receipt) -> PathBuf {
    folder.join(format!("{:012}-{}{RECORD}", receipt.unix_seconds, id(receipt)))
}

fn lists_in(folder: &Path) -> io::Result<Vec<ReceivedList>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let id = name.strip_suffix(RECORD).and_then(|name| name.split_once('-'));
        let Some((_, id)) = id else { continue };
        let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
        all.push((name.clone(), ReceivedList { id: id.to_owned(), path: entry.path(), bytes }));
    }
    all.sort_by(|a, b| b.0.cmp(&a.0));
    Ok(all.into_iter().map(|(_, list)| list).collect())
}

/// Removes lists beyond the limits, the oldest first.
pub(super) fn tidy(folder: &Path) -> io::Result<()> {
    let mut bytes = 0u64;
    for (n, list) in lists_in(folder)?.iter().enumerate() {
        bytes = bytes.saturating_add(list.bytes);
        if n > 0 && (n >= RECORDS_MAX || bytes > BYTES_MAX) {
            fs::remove_file(&list.path)?;
        }
    }
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let Ok(metadata) = entry.metadata() else { continue };
        let Ok(written) = metadata.modified() else { continue };
        if name.ends_with(PART) {
            let age = SystemTime::now().duration_since(written).unwrap_or_default();
            parts.push((age, metadata.len(), entry.path()));
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
