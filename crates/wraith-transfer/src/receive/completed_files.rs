//! Roots of the files that an earlier connection completed, so that a resumption recognises them
//! without reading them. The receiver asks the sender whether its file still has this root.
//!
//! They are in a hidden file in the target directory. A record has a 16-byte mark of the file
//! ([`FileId`]), its root, and a tag that binds both.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use wraith_files::{Root, TargetDir};

use crate::lock::lock;
use crate::roots::{FileId, RecordLog, Roots};

/// Mark of a completed file in the state file.
type CompletedMark = [u8; 16];

/// Length of a record in the file in bytes: mark, root and tag.
const RECORD_BYTES: usize = 16 + 32 + 16;

/// The completed files of one transfer in one target directory.
#[derive(Debug)]
pub(crate) struct CompletedFiles {
    key: [u8; 32],
    /// Marks of earlier connections, sorted, with their record numbers in the file. At most 40 MiB:
    /// the roots stay on disk.
    known: Vec<(CompletedMark, u32)>,
    target: TargetDir,
    name: String,
    log: Mutex<RecordLog<RECORD_BYTES>>,
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
        let mut known: Vec<(CompletedMark, u32)> = Vec::new();
        let mark = |record: &[u8; RECORD_BYTES]| *record.first_chunk().expect("it is longer");
        let log = RecordLog::open(file, |number, record| known.push((mark(record), number)));
        let log = Mutex::new(log.map_err(CompletedFilesError::Io)?);
        known.sort_unstable();
        let key = wraith_crypto::kdf::derive("wraith/1 finished mark", &[key, boot_id].concat());
        Ok(Self { key, known, target: target.clone(), name, log })
    }

    fn mark(&self, file: &FileId<'_>) -> CompletedMark {
        *file.hasher(&self.key).finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
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

    /// Writes the waiting records, and removes the file if it is empty.
    pub(crate) fn close(&self) {
        // Marks that cannot be written only cost a comparison.
        let _ = self.flush();
        let empty = lock(&self.log).file.metadata().is_ok_and(|meta| meta.len() == 0);
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

impl Roots for CompletedFiles {
    fn root_of(&self, file: &FileId<'_>, _claimed: Option<&Root>) -> Option<Root> {
        let mark = self.mark(file);
        let at = self.known.binary_search_by(|(known, _)| known.cmp(&mark)).ok()?;
        let mut record = [0; RECORD_BYTES];
        let place = u64::from(self.known[at].1) * RECORD_BYTES as u64;
        lock(&self.log).file.read_exact_at(&mut record, place).ok()?;
        let root = *record[16..].first_chunk()?;
        (record == self.record(&mark, &root)).then_some(root)
    }

    fn note(&self, file: &FileId<'_>, root: &Root) -> io::Result<()> {
        let record = self.record(&self.mark(file), root);
        lock(&self.log).push(file, &record)
    }

    fn flush(&self) -> io::Result<()> {
        lock(&self.log).flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::roots::tests::{check, file};

    fn open_with(dir: &Path, key: u8, boot: &[u8]) -> Result<CompletedFiles, CompletedFilesError> {
        CompletedFiles::open(&TargetDir::open(dir).unwrap(), &[1; 16], &[key; 32], boot)
    }

    fn open(dir: &Path, boot: &[u8]) -> Result<CompletedFiles, CompletedFilesError> {
        open_with(dir, 2, boot)
    }

    /// Leaves the root of one file.
    fn complete_one(dir: &Path, boot: &[u8]) {
        let completed = open(dir, boot).unwrap();
        completed.note(&file(b"a"), &[7; 32]).unwrap();
        completed.flush().unwrap();
    }

    #[test]
    fn a_mark_is_known_after_a_crash_and_a_torn_one_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let tear = || {
            let completed = open(dir.path(), b"boot").unwrap();
            lock(&completed.log).file.write_all(b"torn").unwrap();
        };
        check(|key| open_with(dir.path(), key, b"boot").unwrap(), tear);
        open(dir.path(), b"boot").unwrap().remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn after_a_restart_of_the_machine_marks_count_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        complete_one(dir.path(), b"boot 1");
        let known = |boot| open(dir.path(), boot).unwrap().root_of(&file(b"a"), None);
        assert_eq!((known(b"boot 2"), known(b"boot 1")), (None, Some([7; 32])));
    }

    #[test]
    fn an_edited_record_gives_no_root() {
        let dir = tempfile::tempdir().unwrap();
        complete_one(dir.path(), b"boot");
        let path = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut edited = good.clone();
            edited[at] ^= 1;
            std::fs::write(&path, edited).unwrap();
            assert_eq!(open(dir.path(), b"boot").unwrap().root_of(&file(b"a"), None), None, "{at}");
        }
    }

    #[test]
    fn two_receivers_do_not_share_a_target() {
        let dir = tempfile::tempdir().unwrap();
        let _first = open(dir.path(), b"boot").unwrap();
        assert!(matches!(open(dir.path(), b"boot"), Err(CompletedFilesError::InUse)));
    }
}
