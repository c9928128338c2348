//! State file of the completed files of a transfer, so that a resumption recognises them without
//! reading them.
//!
//! This hidden file in the target directory holds a 16-byte mark for each completed file, the
//! file's root, and a tag that binds mark and root. The root is the hash of the content. The mark
//! is a keyed hash of four values: the entry, the tree of its root, its final name, and its
//! identity on disk (device, inode, size, mtime, ctime).
//!
//! - Any change of the file changes its ctime, and the mark no longer matches.
//! - The key depends on the capability secret and the sender, so third parties can neither forge
//!   marks nor give them another root.
//! - The key also depends on the boot ID. After a crash of the machine marks are void, and files
//!   are read and compared instead.
//! - The receiver asks the sender whether its file still has this root.
//!
//! Marks are written in batches; if a kill loses a mark, the file is compared again, but never
//! transferred again.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use wraith_files::{Entry, Root, Stamp, TargetDir, Tree};

use crate::lock::lock;

/// Mark of a completed file in the state file.
pub(crate) type CompletedMark = [u8; 16];

/// Length of a record in the file in bytes: mark, root and tag.
const RECORD_BYTES: usize = 16 + 32 + 16;

/// Maximum number of marks in memory (40 MiB; the roots stay on disk). Further files are compared
/// by content.
const COMPLETED_MARKS_MAX: u64 = 2 * 1024 * 1024;

/// Maximum number of records waiting to be written.
const PENDING_MAX: usize = 64;

/// The completed files of one transfer in one target directory.
#[derive(Debug)]
pub(crate) struct CompletedFiles {
    key: [u8; 32],
    /// Marks of earlier connections, sorted, with their record numbers in the file.
    known: Vec<(CompletedMark, u32)>,
    target: TargetDir,
    name: String,
    out: Mutex<Out>,
}

#[derive(Debug)]
struct Out {
    file: File,
    pending: Vec<u8>,
}

/// Why the state file could not be opened.
#[derive(Debug)]
pub(crate) enum CompletedFilesError {
    /// Another process is receiving this transfer into this directory.
    InUse,
    /// The file cannot be opened.
    Disk(wraith_files::Error),
    /// The file cannot be read or locked.
    Io(io::Error),
}

/// Returns the name of the state file.
fn name_of(transfer_id: &[u8; 16]) -> String {
    let id: String = transfer_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".wraith-{id}.state")
}

impl CompletedFiles {
    /// Returns true if `directory` has a state file of `transfer_id` from an earlier connection.
    pub(crate) fn is_there(directory: &Path, transfer_id: &[u8; 16]) -> bool {
        directory.join(name_of(transfer_id)).symlink_metadata().is_ok()
    }

    /// Opens or creates the state file of `transfer_id` in `target`, and locks it.
    pub(crate) fn open(
        target: &TargetDir,
        transfer_id: &[u8; 16],
        key: &[u8; 32],
        boot_id: &[u8],
    ) -> Result<Self, CompletedFilesError> {
        let name = name_of(transfer_id);
        let file = target.open_hidden(&name).map_err(CompletedFilesError::Disk)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => CompletedFilesError::InUse,
            std::fs::TryLockError::Error(error) => CompletedFilesError::Io(error),
        })?;
        let known = read_completed_marks(&file).map_err(CompletedFilesError::Io)?;
        let key = wraith_crypto::kdf::derive("wraith/1 finished mark", &[key, boot_id].concat());
        let target = target.clone();
        Ok(Self { key, known, target, name, out: Mutex::new(Out { file, pending: Vec::new() }) })
    }

    /// Returns the mark of `entry`, completed as the file `identity` under the name `name`.
    pub(crate) fn mark_of(&self, entry: &Entry, name: &[u8], identity: &Stamp) -> CompletedMark {
        self.mark(entry.path.as_bytes(), entry.tree(), name, identity)
    }

    fn mark(&self, entry: &[u8], tree: Tree, name: &[u8], identity: &Stamp) -> CompletedMark {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(entry.len() as u64).to_be_bytes()).update(entry);
        hasher.update(&(name.len() as u64).to_be_bytes()).update(name);
        hasher.update(&identity.to_bytes());
        if tree == Tree::PositionFree {
            hasher.update(b"position-free");
        }
        *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    /// Returns the root of the file with this mark, if an earlier connection completed it.
    pub(crate) fn root_of(&self, mark: &CompletedMark) -> Option<Root> {
        let at = self.known.binary_search_by(|(known, _)| known.cmp(mark)).ok()?;
        let mut record = [0; RECORD_BYTES];
        let place = u64::from(self.known[at].1) * RECORD_BYTES as u64;
        lock(&self.out).file.read_exact_at(&mut record, place).ok()?;
        let root = *record[16..].first_chunk()?;
        (record == self.record(mark, &root)).then_some(root)
    }

    fn record(&self, mark: &CompletedMark, root: &Root) -> [u8; RECORD_BYTES] {
        let tag = blake3::Hasher::new_keyed(&self.key)
            .update(b"root")
            .update(mark)
            .update(root)
            .finalize();
        let mut record = [0; RECORD_BYTES];
        record[..16].copy_from_slice(mark);
        record[16..48].copy_from_slice(root);
        record[48..].copy_from_slice(&tag.as_bytes()[..16]);
        record
    }

    /// Returns true if an earlier connection completed any file.
    pub(crate) fn is_resumed(&self) -> bool {
        !self.known.is_empty()
    }

    /// Adds a mark with the file's root. With `now`, for a file that is expensive to compare, it is
    /// written at once.
    pub(crate) fn add(&self, mark: &CompletedMark, root: &Root, now: bool) -> io::Result<()> {
        let record = self.record(mark, root);
        let mut out = lock(&self.out);
        out.pending.extend_from_slice(&record);
        if now || out.pending.len() >= PENDING_MAX * RECORD_BYTES { out.write() } else { Ok(()) }
    }

    /// Writes the waiting records.
    pub(crate) fn flush(&self) -> io::Result<()> {
        lock(&self.out).write()
    }

    /// Writes the waiting records, and removes the file if it is empty.
    pub(crate) fn close(&self) {
        // Marks that cannot be written only cost a comparison.
        let _ = self.flush();
        let empty = lock(&self.out).file.metadata().is_ok_and(|meta| meta.len() == 0);
        if empty {
            self.remove();
        }
    }

    /// Removes the file; the transfer is complete and needs no marks any more.
    pub(crate) fn remove(&self) {
        // A leftover only costs 64 bytes per file.
        let _ = self.target.remove_hidden(&self.name);
    }
}

impl Out {
    fn write(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        self.file.write_all(&bytes)
    }
}

/// Reads the complete records in the file; cuts off an incomplete record at the end.
fn read_completed_marks(file: &File) -> io::Result<Vec<(CompletedMark, u32)>> {
    let len = file.metadata()?.len();
    let whole = len / RECORD_BYTES as u64;
    if whole * RECORD_BYTES as u64 != len {
        file.set_len(whole * RECORD_BYTES as u64)?;
    }
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut completed = Vec::new();
    for place in 0..whole.min(COMPLETED_MARKS_MAX) {
        let mut record = [0; RECORD_BYTES];
        reader.read_exact(&mut record)?;
        completed.push((*record.first_chunk().expect("a record is longer"), place as u32));
    }
    completed.sort_unstable();
    Ok(completed)
}

#[cfg(test)]
mod tests {
    use wraith_files::Mtime;

    use super::*;

    const IDENTITY: Stamp = Stamp {
        dev: 1,
        ino: 2,
        size: 3,
        mtime: Mtime { s: 4, ns: 5 },
        ctime: Mtime { s: 6, ns: 7 },
    };

    fn open(dir: &std::path::Path, boot: &[u8]) -> Result<CompletedFiles, CompletedFilesError> {
        CompletedFiles::open(&TargetDir::open(dir).unwrap(), &[1; 16], &[2; 32], boot)
    }

    #[test]
    fn a_mark_is_known_after_a_crash_and_a_torn_one_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let completed = open(dir.path(), b"boot").unwrap();
        let mark = completed.mark(b"a/b", Tree::Blake3, b"a/b", &IDENTITY);
        assert_eq!(completed.root_of(&mark), None);
        completed.add(&mark, &[7; 32], true).unwrap();
        lock(&completed.out).file.write_all(b"torn").unwrap();
        drop(completed);

        let completed = open(dir.path(), b"boot").unwrap();
        assert_eq!(completed.root_of(&mark), Some([7; 32]));
        let touched = Stamp { ctime: Mtime { s: 6, ns: 8 }, ..IDENTITY };
        assert_eq!(
            completed.root_of(&completed.mark(b"a/b", Tree::Blake3, b"a/b", &touched)),
            None
        );
        assert_eq!(completed.root_of(&completed.mark(b"a", Tree::Blake3, b"a/b", &IDENTITY)), None);
        completed
            .add(&completed.mark(b"c", Tree::Blake3, b"c", &IDENTITY), &[8; 32], false)
            .unwrap();
        completed.flush().unwrap();
        drop(completed);

        let completed = open(dir.path(), b"boot").unwrap();
        assert_eq!(
            completed.root_of(&completed.mark(b"c", Tree::Blake3, b"c", &IDENTITY)),
            Some([8; 32])
        );
        assert_eq!(completed.root_of(&mark), Some([7; 32]));
        completed.remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn after_a_restart_of_the_machine_marks_count_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let completed = open(dir.path(), b"boot 1").unwrap();
        completed
            .add(&completed.mark(b"a", Tree::Blake3, b"a", &IDENTITY), &[7; 32], true)
            .unwrap();
        drop(completed);
        let completed = open(dir.path(), b"boot 2").unwrap();
        assert_eq!(completed.root_of(&completed.mark(b"a", Tree::Blake3, b"a", &IDENTITY)), None);
    }

    #[test]
    fn an_edited_record_gives_no_root() {
        let dir = tempfile::tempdir().unwrap();
        let completed = open(dir.path(), b"boot").unwrap();
        let mark = completed.mark(b"a", Tree::Blake3, b"a", &IDENTITY);
        completed.add(&mark, &[7; 32], true).unwrap();
        drop(completed);
        let path = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut edited = good.clone();
            edited[at] ^= 1;
            std::fs::write(&path, edited).unwrap();
            assert_eq!(open(dir.path(), b"boot").unwrap().root_of(&mark), None, "{at}");
        }
    }

    #[test]
    fn two_receivers_do_not_share_a_target() {
        let dir = tempfile::tempdir().unwrap();
        let _first = open(dir.path(), b"boot").unwrap();
        assert!(matches!(open(dir.path(), b"boot"), Err(CompletedFilesError::InUse)));
    }
}
