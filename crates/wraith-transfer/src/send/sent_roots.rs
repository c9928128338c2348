//! Remembers the roots (content hashes) of files read for an earlier connection. A file need not be
//! read again if the receiver reports having exactly that content.
//!
//! A mark is a keyed hash of the path in the manifest, the file's identity on disk (device, inode,
//! size, mtime, ctime), and its root with the root's tree. Any change of the file changes its
//! ctime, and the mark no longer matches. Marks can be kept in a file, so that they outlive the
//! process. The key depends on the boot ID, so that after a crash of the machine files are read
//! again.
//!
//! Invariant: if a mark is lost, the only cost is that the file is read again. At most
//! [`MARKS_MAX`] marks are kept.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::{Arc, Mutex};

use wraith_files::{CHUNK_BYTES, Root, Stamp, Tree};

use crate::lock::lock;

/// Maximum number of marks: 8 bytes each on disk, and about 18 in memory.
const MARKS_MAX: usize = 2 * 1024 * 1024;

/// Maximum number of marks waiting to be written.
const PENDING_MAX: usize = 64;

/// Marks of sent files; see the module documentation. Cheap to clone: all connections of an offer
/// share one.
#[derive(Clone, Debug)]
pub struct SentRoots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    key: [u8; 32],
    state: Mutex<RootsState>,
}

#[derive(Debug, Default)]
struct RootsState {
    marks: HashSet<u64>,
    pending: Vec<u8>,
    /// The file with the marks; `None` after a failed write.
    file: Option<File>,
}

impl SentRoots {
    /// Creates marks that end with the process. Only this side has `key`.
    pub fn in_memory(key: &[u8; 32]) -> Self {
        Self::with(key, RootsState::default())
    }

    /// Keeps marks of this and earlier processes in `file`, which no other process writes. An
    /// unreadable file is treated as empty.
    pub fn kept_in(mut file: File, key: &[u8; 32]) -> Self {
        let mut bytes = Vec::new();
        let whole = (&mut file).take(8 * MARKS_MAX as u64).read_to_end(&mut bytes);
        let whole = whole.map_or(0, |len| len - len % 8);
        let marks = bytes[..whole].as_chunks().0.iter().map(|mark| u64::from_be_bytes(*mark));
        let marks = marks.collect();
        // A torn mark at the end is overwritten.
        let is_usable = file.seek(std::io::SeekFrom::Start(whole as u64)).is_ok();
        let file = Some(file).filter(|_| is_usable);
        Self::with(key, RootsState { marks, pending: Vec::new(), file })
    }

    fn with(key: &[u8; 32], state: RootsState) -> Self {
        let key = wraith_crypto::kdf::derive(
            "wraith/1 sent mark",
            &[&key[..], &crate::boot_id()].concat(),
        );
        Self(Arc::new(Inner { key, state: Mutex::new(state) }))
    }

    fn mark(&self, path: &[u8], stamp: &Stamp, (tree, root): (Tree, &Root)) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0.key);
        hasher.update(root).update(&stamp.to_bytes()).update(path);
        if tree == Tree::PositionFree {
            // No path contains this byte.
            hasher.update(&[0]);
        }
        u64::from_be_bytes(*hasher.finalize().as_bytes().first_chunk().expect("32 bytes"))
    }

    /// Records that the file with this stamp has this root.
    pub(super) fn add(&self, path: &[u8], stamp: &Stamp, root: (Tree, &Root)) {
        let mark = self.mark(path, stamp, root);
        let mut state = lock(&self.0.state);
        if state.marks.len() >= MARKS_MAX || !state.marks.insert(mark) || state.file.is_none() {
            return;
        }
        state.pending.extend_from_slice(&mark.to_be_bytes());
        // Written at once for a file that is expensive to read again.
        if stamp.size > CHUNK_BYTES as u64 || state.pending.len() >= 8 * PENDING_MAX {
            state.write();
        }
    }

    /// Returns true if the file with this stamp was read before and has this root.
    pub(super) fn has(&self, path: &[u8], stamp: &Stamp, root: (Tree, &Root)) -> bool {
        let mark = self.mark(path, stamp, root);
        lock(&self.0.state).marks.contains(&mark)
    }

    /// Writes the waiting marks.
    pub(super) fn flush(&self) {
        lock(&self.0.state).write();
    }
}

impl RootsState {
    fn write(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if let Some(file) = &mut self.file
            && file.write_all(&pending).is_err()
        {
            // A full disk only costs reading these files again.
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use wraith_files::Mtime;

    const STAMP: Stamp = Stamp {
        dev: 1,
        ino: 2,
        size: 3,
        mtime: Mtime { s: 4, ns: 5 },
        ctime: Mtime { s: 6, ns: 7 },
    };

    #[test]
    fn marks_outlive_the_process_and_fit_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("marks");
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).open(&path).unwrap()
        };
        let marks = SentRoots::kept_in(open(), &[1; 32]);
        marks.add(b"a", &STAMP, (Tree::Blake3, &[9; 32]));
        assert!(marks.has(b"a", &STAMP, (Tree::Blake3, &[9; 32])));
        marks.flush();
        std::io::Write::write_all(
            &mut OpenOptions::new().append(true).open(&path).unwrap(),
            b"torn",
        )
        .unwrap();

        let marks = SentRoots::kept_in(open(), &[1; 32]);
        assert!(marks.has(b"a", &STAMP, (Tree::Blake3, &[9; 32])));
        let touched = Stamp { ctime: Mtime { s: 6, ns: 8 }, ..STAMP };
        assert!(!marks.has(b"a", &touched, (Tree::Blake3, &[9; 32])));
        assert!(!marks.has(b"a", &STAMP, (Tree::PositionFree, &[9; 32])));
        assert!(!marks.has(b"b", &STAMP, (Tree::Blake3, &[9; 32])));
        assert!(!marks.has(b"a", &STAMP, (Tree::Blake3, &[8; 32])));
        marks.add(b"b", &STAMP, (Tree::Blake3, &[9; 32]));
        marks.flush();
        let marks = SentRoots::kept_in(open(), &[1; 32]);
        assert!(
            marks.has(b"a", &STAMP, (Tree::Blake3, &[9; 32]))
                && marks.has(b"b", &STAMP, (Tree::Blake3, &[9; 32]))
        );
        assert!(!SentRoots::kept_in(open(), &[2; 32]).has(b"a", &STAMP, (Tree::Blake3, &[9; 32])));
    }
}
