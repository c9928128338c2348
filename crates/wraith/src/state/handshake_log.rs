//! The file `handshakes`: IDs of the handshakes and calls that this identity has received. With it,
//! a listener recognises a replay that an earlier process received, without a clock (SPEC §3.4).
//!
//! ```text
//! header(16) = "wraith hs 1" ‖ complete(1) ‖ NodeId[0..4]        entry = id(16)
//! ```
//!
//! Invariant: while `complete` is 1, the file has an entry for every handshake and call under any
//! access key of this identity except the public one. So it is created together with the identity;
//! a file that is created later begins incomplete. A file that is full, torn or cannot be written
//! becomes incomplete for ever.
//!
//! All processes of an identity share the file. A lock orders them. Entries are not flushed to the
//! disk: a power cut loses the last seconds.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use wraith_crypto::NodeId;
use wraith_transport::{HandshakeLog, LogResult};

const FILE: &str = "handshakes";
const MAGIC: &[u8; 11] = b"wraith hs 1";
const COMPLETE_AT: usize = MAGIC.len();
const NODE_ID_AT: usize = COMPLETE_AT + 1;
const ENTRY_BYTES: usize = 16;
/// Maximum number of entries, 256 KiB: twenty handshakes on each day of two years. A search takes
/// some 20 µs.
const ENTRIES_MAX: usize = (1 << 14) - 1;

/// The log of a state folder.
#[derive(Debug)]
pub(crate) struct HandshakeLogFile {
    path: PathBuf,
    /// The identity that uses the log, which is not always that of the folder.
    node_id: NodeId,
}

/// Creates the complete, empty log of a new identity.
pub(super) fn create(folder: &Path, node_id: NodeId) -> io::Result<()> {
    let new = options().create_new(true).open(folder.join(FILE))?;
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
        Self { path: folder.join(FILE), node_id }
    }

    fn try_record(&self, id: &[u8; ENTRY_BYTES]) -> io::Result<LogResult> {
        let file = match options().open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.begin_late()?,
            opened => opened?,
        };
        file.lock()?;
        let result = self.record_in(&file, id);
        if result.is_err() {
            // Needs no space on the disk.
            file.write_all_at(&[0], COMPLETE_AT as u64)?;
        }
        result
    }

    /// Creates the log of an identity that has a past.
    fn begin_late(&self) -> io::Result<File> {
        let file = options().create(true).truncate(false).open(&self.path)?;
        file.lock()?;
        if file.metadata()?.len() == 0 {
            (&file).write_all(&header(false, self.node_id))?;
        }
        file.unlock()?;
        Ok(file)
    }

    fn record_in(&self, file: &File, id: &[u8; ENTRY_BYTES]) -> io::Result<LogResult> {
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
        if entries.contains(id) {
            return Ok(LogResult::Known);
        }
        if header[COMPLETE_AT] != 1 {
            return Ok(LogResult::Unknown);
        }
        if entries.len() >= ENTRIES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        file.seek(SeekFrom::End(0))?;
        file.write_all(id)?;
        Ok(LogResult::New)
    }
}

impl HandshakeLog for HandshakeLogFile {
    fn record(&self, id: &[u8; ENTRY_BYTES]) -> LogResult {
        self.try_record(id).unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot use the log of handshakes; the clocks decide");
            LogResult::Unknown
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const OWN: NodeId = NodeId([5; 32]);

    fn id(n: usize) -> [u8; ENTRY_BYTES] {
        (n as u128 + 1).to_be_bytes()
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
        assert_eq!(log.record(&id(1)), LogResult::New);
        assert_eq!(log.record(&id(1)), LogResult::Known);
        let later = HandshakeLogFile::of(folder.path(), OWN);
        assert_eq!(later.record(&id(1)), LogResult::Known);
        assert_eq!(later.record(&id(2)), LogResult::New);
        assert_eq!(log.record(&id(2)), LogResult::Known, "both processes write one file");
    }

    #[test]
    fn a_log_that_was_lost_proves_nothing_any_more() {
        let (folder, log) = log();
        assert_eq!(log.record(&id(1)), LogResult::New);
        fs::remove_file(folder.path().join(FILE)).unwrap();
        for n in 1..4 {
            assert_eq!(log.record(&id(n)), LogResult::Unknown);
        }
    }

    #[test]
    fn the_log_of_another_identity_proves_nothing_and_stays() {
        let (folder, log) = log();
        let other = HandshakeLogFile::of(folder.path(), NodeId([6; 32]));
        assert_eq!(other.record(&id(1)), LogResult::Unknown);
        assert_eq!(log.record(&id(1)), LogResult::New);
    }

    #[test]
    fn a_torn_log_proves_nothing_any_more() {
        let (_folder, log) = log();
        assert_eq!(log.record(&id(1)), LogResult::New);
        let torn = fs::read(&log.path).unwrap();
        fs::write(&log.path, &torn[..torn.len() - 3]).unwrap();
        assert_eq!(log.record(&id(2)), LogResult::Unknown);
        fs::write(&log.path, [&fs::read(&log.path).unwrap()[..], &[0; 3]].concat()).unwrap();
        assert_eq!(log.record(&id(2)), LogResult::Unknown);
    }

    #[test]
    fn a_full_log_grows_no_further_and_proves_nothing_any_more() {
        let (_folder, log) = log();
        let full: Vec<u8> = (0..ENTRIES_MAX - 1).flat_map(id).collect();
        fs::write(&log.path, [&header(true, OWN)[..], &full].concat()).unwrap();
        assert_eq!(log.record(&id(ENTRIES_MAX)), LogResult::New);
        let bytes = fs::metadata(&log.path).unwrap().len();
        for _ in 0..2 {
            assert_eq!(log.record(&id(ENTRIES_MAX + 1)), LogResult::Unknown);
        }
        assert_eq!(log.record(&id(7)), LogResult::Known);
        assert_eq!(fs::metadata(&log.path).unwrap().len(), bytes);
    }
}
