//! Roots of files that were read before: a file need not be read again while it is unchanged.
//!
//! A file is known by a keyed hash of its names, the tree of its root, and its identity on disk
//! (device, inode, size, mtime, ctime).
//!
//! - Any change of the file changes its ctime, and the hash no longer matches.
//! - The key depends on a secret of the transfer, so third parties can neither forge records nor
//!   give a file another root.
//! - The key also depends on the boot ID. After a crash of the machine all records are void, and
//!   files are read again.
//!
//! Invariant: if a record is lost, the only cost is that a file is read again. Hence records are
//! written in batches.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use wraith_files::{CHUNK_BYTES, Root, Stamp, Tree};

/// Maximum number of records that are used. Further files are read again.
pub(crate) const ROOTS_MAX: usize = 2 * 1024 * 1024;

/// Maximum number of records waiting to be written.
const PENDING_MAX: usize = 64;

/// One state of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileId<'a> {
    /// Path of its entry.
    pub(crate) entry: &'a [u8],
    /// Its own path, which may differ after a conflict of names.
    pub(crate) path: &'a [u8],
    /// The tree of its root.
    pub(crate) tree: Tree,
    pub(crate) stamp: &'a Stamp,
}

impl FileId<'_> {
    /// Returns a keyed hasher that has this file's identity.
    pub(crate) fn hasher(&self, key: &[u8; 32]) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(key);
        for name in [self.entry, self.path] {
            hasher.update(&(name.len() as u64).to_be_bytes()).update(name);
        }
        hasher.update(&self.stamp.to_bytes());
        if self.tree == Tree::PositionFree {
            hasher.update(b"position-free");
        }
        hasher
    }

    /// Returns true if the file is expensive to read again. Its record is written at once.
    fn is_costly(&self) -> bool {
        self.stamp.size > CHUNK_BYTES as u64
    }
}

/// Roots of files; see the module documentation.
pub(crate) trait Roots {
    /// Returns the root of `file`, if it was noted for exactly this file. `claimed` is the root that
    /// the peer has: a store that keeps only hashes of roots can confirm it, but not name another.
    fn root_of(&self, file: &FileId<'_>, claimed: Option<&Root>) -> Option<Root>;

    /// Notes the root of `file`, which was just read and verified.
    ///
    /// # Errors
    /// The disk is full or fails.
    fn note(&self, file: &FileId<'_>, root: &Root) -> io::Result<()>;

    /// Writes the waiting records.
    ///
    /// # Errors
    /// The disk is full or fails.
    fn flush(&self) -> io::Result<()>;
}

/// Returns an identifier of the current boot of this machine. If the system has no boot ID, returns
/// a value that never repeats, so that no mark is ever valid.
pub(crate) fn boot_id() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since_epoch.unwrap_or_default().as_nanos().to_be_bytes().to_vec()
    })
}

/// An append-only file of records of `N` bytes, of which no other process appends any.
#[derive(Debug)]
pub(crate) struct RecordLog<const N: usize> {
    pub(crate) file: File,
    pending: Vec<u8>,
}

impl<const N: usize> RecordLog<N> {
    /// Passes up to [`ROOTS_MAX`] records to `each`, with their numbers. Cuts off an incomplete
    /// record at the end.
    pub(crate) fn open(mut file: File, mut each: impl FnMut(u32, &[u8; N])) -> io::Result<Self> {
        let len = file.metadata()?.len();
        let whole = len / N as u64;
        if whole * N as u64 != len {
            file.set_len(whole * N as u64)?;
        }
        let mut reader = BufReader::with_capacity(64 << 10, &mut file);
        let mut record = [0; N];
        for number in 0..whole.min(ROOTS_MAX as u64) {
            reader.read_exact(&mut record)?;
            each(number as u32, &record);
        }
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file, pending: Vec::new() })
    }

    /// Adds a record of `file`.
    pub(crate) fn push(&mut self, file: &FileId<'_>, record: &[u8; N]) -> io::Result<()> {
        self.pending.extend_from_slice(record);
        let is_due = file.is_costly() || self.pending.len() >= PENDING_MAX * N;
        if is_due { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        self.file.write_all(&bytes)
    }
}

/// The checks that every store passes.
#[cfg(test)]
pub(crate) mod tests {
    use wraith_files::Mtime;

    use super::*;

    const STAMP: Stamp = Stamp {
        dev: 1,
        ino: 2,
        size: 3,
        mtime: Mtime { s: 4, ns: 5 },
        ctime: Mtime { s: 6, ns: 7 },
    };

    pub(crate) fn file(name: &'static [u8]) -> FileId<'static> {
        FileId { entry: name, path: name, tree: Tree::Blake3, stamp: &STAMP }
    }

    fn is_known<R: Roots>(roots: &R, file: &FileId<'_>, root: Root) -> bool {
        let known = roots.root_of(file, Some(&root));
        assert!(known.is_none() || known == Some(root), "it names another root");
        known.is_some()
    }

    /// Checks a store. `open` opens it anew with a key; `tear` appends part of a record.
    pub(crate) fn check<R: Roots>(open: impl Fn(u8) -> R, tear: impl Fn()) {
        let changed = Stamp { ctime: Mtime { s: 6, ns: 8 }, ..STAMP };
        let (a, b) = (file(b"a/b"), file(b"c"));
        let roots = open(1);
        assert!(!is_known(&roots, &a, [7; 32]));
        roots.note(&a, &[7; 32]).unwrap();
        roots.flush().unwrap();
        drop(roots);
        tear();

        let roots = open(1);
        assert!(is_known(&roots, &a, [7; 32]));
        for other in [
            FileId { stamp: &changed, ..a },
            FileId { tree: Tree::PositionFree, ..a },
            FileId { entry: b"a", ..a },
            FileId { path: b"a/", ..a },
            // The names together are the same bytes.
            FileId { entry: b"a/ba", path: b"/b", ..a },
            b,
        ] {
            assert!(!is_known(&roots, &other, [7; 32]), "{other:?}");
        }
        roots.note(&b, &[8; 32]).unwrap();
        roots.flush().unwrap();
        drop(roots);

        let roots = open(1);
        assert!(is_known(&roots, &a, [7; 32]) && is_known(&roots, &b, [8; 32]));
        drop(roots);
        assert!(!is_known(&open(2), &a, [7; 32]), "the records of another key");
    }
}
