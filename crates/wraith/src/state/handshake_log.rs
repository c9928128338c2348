//! The file `handshakes`: IDs of the handshakes that this identity has received. With it,
//! a listener recognises a replay that an earlier process received, without a clock (SPEC §3.4).
//!
//! ```text
//! header(16) = "wraith hs 1" ‖ complete(1) ‖ NodeId[0..4]        entry = key tag(2) ‖ id(14)
//! ```
//!
//! Invariant: while `complete` is 1, the file has an entry for every authentic H1 under any access
//! key of this identity, except the public one and those of parallel connections (SPEC §3.4), and
//! except the H1s under a key beyond its share. So the file is created together with the identity; a
//! file that is created later begins incomplete. A file that is full, torn or cannot be written
//! becomes incomplete for ever.
//!
//! All processes of an identity share the file. A lock orders them. Entries are not flushed to the
//! disk: a power cut loses the last seconds.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use wraith_crypto::NodeId;
use wraith_transport::{AccessKey, HandshakeLog, LogResult};

const FILE: &str = "handshakes";
const MAGIC: &[u8; 11] = b"wraith hs 1";
const COMPLETE_AT: usize = MAGIC.len();
const NODE_ID_AT: usize = COMPLETE_AT + 1;
const ENTRY_BYTES: usize = 16;
const TAG_BYTES: usize = 2;
/// Maximum number of entries, 256 KiB: twenty handshakes on each day of two years. A search takes
/// some 20 µs.
const ENTRIES_MAX: usize = (1 << 14) - 1;
/// Maximum number of entries of one access key, so that no holder of a key fills the log. Beyond it,
/// the time decides for this key.
const ENTRIES_OF_KEY_MAX: usize = ENTRIES_MAX / 8;

type Entry = [u8; ENTRY_BYTES];

/// The log of a state folder.
#[derive(Debug)]
pub(crate) struct HandshakeLogFile {
    path: PathBuf,
    /// The identity that uses the log, which is not always that of the folder.
    node_id: NodeId,
    /// True after a failure that could not be recorded in the file.
    is_unmarked: AtomicBool,
}

/// Creates the complete, empty log of a new identity.
pub(super) fn create(folder: &Path, node_id: NodeId) -> io::Result<()> {
    let path = folder.join(FILE);
    // The log of an earlier identity. The user has moved the file of that identity away.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let new = options().create_new(true).open(path)?;
    (&new).write_all(&header(true, node_id))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn header(is_complete: bool, node_id: NodeId) -> [u8; ENTRY_BYTES] {
    let mut header = [0; ENTRY_BYTES];
    header[..COMPLETE_AT].copy_from_slice(MAGIC);
    header[COMPLETE_AT] = u8::from(is_complete);
    header[NODE_ID_AT..].copy_from_slice(&node_id.as_bytes()[..ENTRY_BYTES - NODE_ID_AT]);
    header
}

impl HandshakeLogFile {
    pub fn of(folder: &Path, node_id: NodeId) -> Self {
        Self { path: folder.join(FILE), node_id, is_unmarked: AtomicBool::new(false) }
    }

    fn try_record(&self, entry: &Entry) -> io::Result<LogResult> {
        let file = match options().open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.begin_late()?,
            opened => opened?,
        };
        match file.try_lock() {
            // Waiting would hold up all connections. The initiator soon sends another H1.
            Err(TryLockError::WouldBlock) => return Ok(LogResult::Known),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        if self.is_unmarked.load(Relaxed) {
            self.mark_incomplete()?;
        }
        self.record_in(&file, entry)
    }

    /// Makes the log incomplete, as an entry is missing. If the file cannot be written, it is
    /// removed: the next one begins incomplete.
    fn mark_incomplete(&self) -> io::Result<()> {
        let marked = options().open(&self.path).and_then(|file| {
            // Needs no more space on most file systems.
            file.write_all_at(&[0], COMPLETE_AT as u64)
        });
        let marked = marked.or_else(|_| fs::remove_file(&self.path));
        self.is_unmarked.store(marked.is_err(), Relaxed);
        marked
    }

    /// Creates the log of an identity that has a past.
    fn begin_late(&self) -> io::Result<File> {
        let file = options().create(true).truncate(false).open(&self.path)?;
        file.try_lock()?;
        if file.metadata()?.len() == 0 {
            (&file).write_all(&header(false, self.node_id))?;
        }
        file.unlock()?;
        Ok(file)
    }

    fn record_in(&self, file: &File, entry: &Entry) -> io::Result<LogResult> {
        let mut file = file;
        let mut content = Vec::new();
        let bytes_max = (ENTRIES_MAX + 1) * ENTRY_BYTES;
        file.take(bytes_max as u64 + 1).read_to_end(&mut content)?;
        let (entries, torn) = content.as_chunks::<ENTRY_BYTES>();
        let Some((header, entries)) = entries.split_first() else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if !torn.is_empty() || !header.starts_with(MAGIC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if header[NODE_ID_AT..] != self.node_id.as_bytes()[..ENTRY_BYTES - NODE_ID_AT] {
            return Ok(LogResult::Unknown);
        }
        if entries.contains(entry) {
            return Ok(LogResult::Known);
        }
        let of_key =
            entries.iter().filter(|other| other[..TAG_BYTES] == entry[..TAG_BYTES]).count();
        if header[COMPLETE_AT] != 1 || of_key >= ENTRIES_OF_KEY_MAX {
            return Ok(LogResult::Unknown);
        }
        if entries.len() >= ENTRIES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        file.seek(SeekFrom::End(0))?;
        file.write_all(entry)?;
        Ok(LogResult::New)
    }
}

impl HandshakeLog for HandshakeLogFile {
    fn record(&self, access_key: &AccessKey, id: &[u8; 16]) -> LogResult {
        let mut entry = *id;
        entry[..TAG_BYTES].copy_from_slice(&access_key.tag());
        self.try_record(&entry).unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot use the log of handshakes; the clocks decide");
            // After a failure, the next call tries again.
            let _ = self.mark_incomplete();
            LogResult::Unknown
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const OWN: NodeId = NodeId([5; 32]);

    fn id(n: usize) -> [u8; 16] {
        (n as u128 + 1).to_be_bytes()
    }

    fn key(n: u8) -> AccessKey {
        AccessKey::of_ticket(&[n; 16], OWN)
    }

    fn entry(key: &AccessKey, n: usize) -> Entry {
        let mut entry = id(n);
        entry[..TAG_BYTES].copy_from_slice(&key.tag());
        entry
    }

    fn log() -> (tempfile::TempDir, HandshakeLogFile) {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), OWN).unwrap();
        let log = HandshakeLogFile::of(folder.path(), OWN);
        (folder, log)
    }

    #[test]
    fn an_entry_is_known_to_every_later_process() {
        let (folder, log) = log();
        assert_eq!(log.record(&key(1), &id(1)), LogResult::New);
        assert_eq!(log.record(&key(1), &id(1)), LogResult::Known);
        let later = HandshakeLogFile::of(folder.path(), OWN);
        assert_eq!(later.record(&key(1), &id(1)), LogResult::Known);
        assert_eq!(later.record(&key(1), &id(2)), LogResult::New);
        assert_eq!(log.record(&key(1), &id(2)), LogResult::Known, "both processes write one file");
    }

    #[test]
    fn a_log_that_was_lost_proves_nothing_any_more() {
        let (folder, log) = log();
        assert_eq!(log.record(&key(1), &id(1)), LogResult::New);
        fs::remove_file(folder.path().join(FILE)).unwrap();
        for n in 1..4 {
            assert_eq!(log.record(&key(1), &id(n)), LogResult::Unknown);
        }
    }

    #[test]
    fn the_log_of_another_identity_proves_nothing_and_stays() {
        let (folder, log) = log();
        let other = HandshakeLogFile::of(folder.path(), NodeId([6; 32]));
        assert_eq!(other.record(&key(1), &id(1)), LogResult::Unknown);
        assert_eq!(log.record(&key(1), &id(1)), LogResult::New);
    }

    #[test]
    fn a_torn_log_proves_nothing_any_more() {
        let (_folder, log) = log();
        assert_eq!(log.record(&key(1), &id(1)), LogResult::New);
        let torn = fs::read(&log.path).unwrap();
        fs::write(&log.path, &torn[..torn.len() - 3]).unwrap();
        assert_eq!(log.record(&key(1), &id(2)), LogResult::Unknown);
        fs::write(&log.path, [&fs::read(&log.path).unwrap()[..], &[0; 3]].concat()).unwrap();
        assert_eq!(log.record(&key(1), &id(2)), LogResult::Unknown);
    }

    #[test]
    fn a_full_log_grows_no_further_and_proves_nothing_any_more() {
        let (_folder, log) = log();
        let full: Vec<u8> =
            (0..ENTRIES_MAX - 1).flat_map(|n| entry(&key((n % 9) as u8), n)).collect();
        fs::write(&log.path, [&header(true, OWN)[..], &full].concat()).unwrap();
        assert_eq!(log.record(&key(10), &id(ENTRIES_MAX)), LogResult::New);
        let bytes = fs::metadata(&log.path).unwrap().len();
        for _ in 0..2 {
            assert_eq!(log.record(&key(10), &id(ENTRIES_MAX + 1)), LogResult::Unknown);
        }
        assert_eq!(log.record(&key(7), &id(7)), LogResult::Known);
        assert_eq!(fs::metadata(&log.path).unwrap().len(), bytes);
    }

    #[test]
    fn the_holder_of_one_key_cannot_fill_the_log() {
        let (_folder, log) = log();
        let share: Vec<u8> = (0..ENTRIES_OF_KEY_MAX).flat_map(|n| entry(&key(1), n)).collect();
        fs::write(&log.path, [&header(true, OWN)[..], &share].concat()).unwrap();
        let bytes = fs::metadata(&log.path).unwrap().len();
        for n in 0..3 {
            assert_eq!(log.record(&key(1), &id(ENTRIES_OF_KEY_MAX + n)), LogResult::Unknown);
        }
        assert_eq!(fs::metadata(&log.path).unwrap().len(), bytes);
        assert_eq!(log.record(&key(1), &id(5)), LogResult::Known);
        assert_eq!(log.record(&key(2), &id(1)), LogResult::New, "another key has its own share");
    }

    #[test]
    fn a_log_that_could_not_be_opened_for_a_while_proves_nothing_any_more() {
        let (folder, log) = log();
        let aside = folder.path().join("aside");
        fs::rename(&log.path, &aside).unwrap();
        fs::create_dir(&log.path).unwrap();
        assert_eq!(log.record(&key(1), &id(1)), LogResult::Unknown);
        fs::remove_dir(&log.path).unwrap();
        fs::rename(&aside, &log.path).unwrap();
        assert_eq!(log.record(&key(1), &id(2)), LogResult::Unknown);
        let later = HandshakeLogFile::of(folder.path(), OWN);
        assert_eq!(later.record(&key(1), &id(3)), LogResult::Unknown);
    }

    #[test]
    fn a_lock_of_another_process_does_not_stop_the_caller() {
        let (_folder, log) = log();
        let other = options().open(&log.path).unwrap();
        other.lock().unwrap();
        assert_eq!(log.record(&key(1), &id(1)), LogResult::Known, "silence, for now");
        other.unlock().unwrap();
        assert_eq!(log.record(&key(1), &id(2)), LogResult::New);
    }

    #[test]
    fn a_new_identity_in_a_used_folder_has_a_complete_log() {
        let (folder, log) = log();
        assert_eq!(log.record(&key(1), &id(1)), LogResult::New);
        let new = NodeId([6; 32]);
        create(folder.path(), new).unwrap();
        let log = HandshakeLogFile::of(folder.path(), new);
        assert_eq!(log.record(&key(1), &id(1)), LogResult::New);
    }
}
