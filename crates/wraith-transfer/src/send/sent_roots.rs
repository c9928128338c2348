//! Roots of files that the sender has read for an earlier connection. A file need not be read again
//! if the receiver reports having exactly that content.
//!
//! Only an 8-byte hash of each file and its root is kept: the receiver names the root. Hashes can be
//! kept in a file, so that they outlive the process.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use wraith_files::Root;

use crate::lock::lock;
use crate::roots::{FileId, ROOTS_MAX, RecordLog, Roots, boot_id};

/// Bytes of a hash: 8 on disk, and about 18 in memory.
const MARK_BYTES: usize = 8;

/// Roots of sent files; see the module documentation. Cheap to clone: all connections of an offer
/// share one.
#[derive(Clone, Debug)]
pub struct SentRoots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    key: [u8; 32],
    state: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    known: HashSet<u64>,
    /// `None` in memory, and after a failed write.
    log: Option<RecordLog<MARK_BYTES>>,
}

impl SentRoots {
    /// Creates a store that ends with the process. Only this side has `key`.
    pub fn in_memory(key: &[u8; 32]) -> Self {
        Self::with(key, Marks::default())
    }

    /// Keeps the roots of this and earlier processes in `file`, which no other process writes. An
    /// unreadable file is treated as empty.
    pub fn kept_in(file: File, key: &[u8; 32]) -> Self {
        let mut known = HashSet::new();
        let log = RecordLog::open(file, |_, mark| {
            known.insert(u64::from_be_bytes(*mark));
        });
        Self::with(key, Marks { known, log: log.ok() })
    }

    fn with(key: &[u8; 32], marks: Marks) -> Self {
        let material = [&key[..], &boot_id()].concat();
        let key = wraith_crypto::kdf::derive("wraith/1 sent mark", &material);
        Self(Arc::new(Inner { key, state: Mutex::new(marks) }))
    }

    fn mark(&self, file: &FileId<'_>, root: &Root) -> u64 {
        let mut hasher = file.hasher(&self.0.key);
        hasher.update(root);
        u64::from_be_bytes(*hasher.finalize().as_bytes().first_chunk().expect("32 bytes"))
    }
}

impl Roots for SentRoots {
    fn root_of(&self, file: &FileId<'_>, claimed: Option<&Root>) -> Option<Root> {
        let claimed = claimed?;
        let mark = self.mark(file, claimed);
        lock(&self.0.state).known.contains(&mark).then_some(*claimed)
    }

    fn note(&self, file: &FileId<'_>, root: &Root) -> io::Result<()> {
        let mark = self.mark(file, root);
        let mut marks = lock(&self.0.state);
        if marks.known.len() >= ROOTS_MAX || !marks.known.insert(mark) {
            return Ok(());
        }
        marks.write(|log| log.push(file, &mark.to_be_bytes()))
    }

    fn flush(&self) -> io::Result<()> {
        lock(&self.0.state).write(RecordLog::flush)
    }
}

impl Marks {
    /// Writes to the log. After a failure nothing more is written: an incomplete record would
    /// invalidate those behind it.
    fn write(
        &mut self,
        write: impl FnOnce(&mut RecordLog<MARK_BYTES>) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = self.log.as_mut().map_or(Ok(()), write);
        if written.is_err() {
            self.log = None;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;
    use crate::roots::tests::{check, file};

    #[test]
    fn roots_outlive_the_process_and_fit_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roots");
        let open = |key| {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            SentRoots::kept_in(options.open(&path).unwrap(), &[key; 32])
        };
        let tear = || {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(b"torn").unwrap();
        };
        check(open, tear);
    }

    #[test]
    fn only_the_claimed_root_is_confirmed() {
        let roots = SentRoots::in_memory(&[1; 32]);
        roots.note(&file(b"a"), &[9; 32]).unwrap();
        assert_eq!(roots.root_of(&file(b"a"), Some(&[9; 32])), Some([9; 32]));
        assert_eq!(roots.root_of(&file(b"a"), Some(&[8; 32])), None);
        assert_eq!(roots.root_of(&file(b"a"), None), None);
    }
}
