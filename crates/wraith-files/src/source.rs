//! A file that is read for sending: by chunk, from several threads, with holes and changes
//! detected.
//!
//! The file is opened relative to a directory handle, without following links, and must still be
//! the listed file. Reads are positional, so a [`SourceFile`] can be shared. What was read is one
//! state of the file only if [`SourceFile::still_has`] returns true after the last read.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Advice, FileType, OFlags, Stat, fadvise, fstat};

use crate::beneath::{Beneath, mtime_of};
use crate::entry::Mtime;
use crate::error::{Context, Error, Result};
use crate::hash::{CHUNK_BYTES, Root, chunk_count, chunk_len};
use crate::path::{RelPath, shown};
use crate::read::read_at;
use crate::runs::{Run, RunCursor, Runs, is_sparse};
use crate::tree::Tree;

/// Distinguishes one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last content change.
    pub mtime: Mtime,
    /// Time of the last change of content or attributes; no program can set it.
    pub ctime: Mtime,
}

impl Stamp {
    /// Returns the fields in their order, each big-endian: 48 bytes to hash.
    pub fn to_bytes(&self) -> [u8; 48] {
        let mut bytes = [0; 48];
        let numbers = [self.dev, self.ino, self.size].map(u64::to_be_bytes);
        bytes[..24].copy_from_slice(numbers.as_flattened());
        for (time, bytes) in [self.mtime, self.ctime].iter().zip(bytes[24..].chunks_mut(12)) {
            bytes[..8].copy_from_slice(&time.s.to_be_bytes());
            bytes[8..].copy_from_slice(&time.ns.to_be_bytes());
        }
        bytes
    }

    pub(crate) fn of(stat: &Stat) -> Self {
        let ctime = Mtime { s: stat.st_ctime, ns: stat.st_ctime_nsec as u32 };
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            size: stat.st_size as u64,
            mtime: mtime_of(stat),
            ctime,
        }
    }
}

/// Minimum size in bytes for a read-ahead hint. Below it, the kernel's own heuristic suffices.
const READ_AHEAD_FROM_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum number of reads of one file. It is read again if its times change meanwhile.
const READS_MAX: usize = 3;

/// An open file of a tree.
#[derive(Debug)]
pub struct SourceFile {
    fd: OwnedFd,
    path: RelPath,
    stamp: Stamp,
    /// The state whose content was read, or compared with it.
    confirmed: Mutex<Stamp>,
    sparse: bool,
}

impl SourceFile {
    /// Opens `real` below `root`. `listed` is the stamp from the walk. Another object under that
    /// name, or another size or modification time, is [`Error::Changed`].
    pub(crate) fn open(
        root: &Beneath,
        real: &[u8],
        path: &RelPath,
        listed: &Stamp,
    ) -> Result<Self> {
        // NONBLOCK: if a pipe has replaced the file, opening it must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = root.open_file(real, flags).context(path.as_bytes(), "open it")?;
        let stat = fstat(&fd).context(path.as_bytes(), "inspect it")?;
        let stamp = Stamp::of(&stat);
        let same = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && (stamp.dev, stamp.ino) == (listed.dev, listed.ino)
            && (stamp.size, stamp.mtime) == (listed.size, listed.mtime);
        if !same {
            return Err(Error::Changed { path: shown(path.as_bytes()) });
        }
        if stamp.size >= READ_AHEAD_FROM_BYTES {
            // A hint: reading works without it.
            let _ = fadvise(&fd, 0, None, Advice::Sequential);
        }
        let sparse = is_sparse(&stat);
        Ok(Self { fd, path: path.clone(), stamp, confirmed: Mutex::new(stamp), sparse })
    }

    /// Returns its path in the manifest.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    /// Returns the number of chunks; 0 for an empty file.
    pub fn chunks(&self) -> u64 {
        chunk_count(self.stamp.size)
    }

    /// Reads chunk `index` to the front of `buffer` (at least [`chunk_len`] bytes) and returns its
    /// length. [`Error::Changed`] if the file has become shorter.
    pub fn read_chunk(&self, index: u64, buffer: &mut [u8]) -> Result<usize> {
        let len = chunk_len(self.stamp.size, index);
        let Some(buffer) = buffer.get_mut(..len) else {
            let path = shown(self.path.as_bytes());
            return Err(Error::Misuse { path, what: "the buffer is shorter than the chunk" });
        };
        self.read_at(index * CHUNK_BYTES as u64, buffer)?;
        Ok(len)
    }

    /// Fills `buffer` with the bytes from `offset` on. [`Error::Changed`] if the file ends earlier.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let read = read_at(self.fd.as_fd(), buffer, offset);
        if read.context(self.path.as_bytes(), "read it")? < buffer.len() {
            return Err(Error::Changed { path: shown(self.path.as_bytes()) });
        }
        Ok(())
    }

    /// Iterates over its chunks as runs of data and hole. Queries the file system only if the file
    /// has fewer blocks than bytes. A file system without an extent map yields one run of data.
    pub fn runs(&self) -> Runs<'_> {
        Runs::of(self.fd.as_fd(), self.cursor())
    }

    /// Returns a cursor at the first run, for [`Self::next_run`].
    pub fn cursor(&self) -> RunCursor {
        RunCursor::of(self.stamp.size, self.sparse)
    }

    /// Returns the run at `cursor` and advances the cursor past it.
    pub fn next_run(&self, cursor: &mut RunCursor) -> Option<Run> {
        cursor.next(self.fd.as_fd())
    }

    /// Returns the file's root in `tree`. Reads all its data, again if the file's times change
    /// meanwhile. Returns `None` as soon as `go_on`, called before each chunk, returns false, and
    /// [`Error::Changed`] if the size changes, or the times at every read.
    pub fn root(&self, tree: Tree, go_on: impl FnMut() -> bool) -> Result<Option<Root>> {
        Ok(self.root_and_stamp(tree, go_on)?.map(|(root, _)| root))
    }

    /// Returns true if the content that was read since the opening, which has this root, is still
    /// the file's content. Reads the file again if its times changed: a program may have changed
    /// only its mode, its links or its attributes. Returns `None` as [`Self::root`] does.
    pub fn still_has(
        &self,
        (tree, root): (Tree, &Root),
        go_on: impl FnMut() -> bool,
    ) -> Result<Option<bool>> {
        if self.unchanged() {
            return Ok(Some(true));
        }
        let (now, stamp) = match self.root_and_stamp(tree, go_on) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(None),
            Err(Error::Changed { .. }) => return Ok(Some(false)),
            Err(error) => return Err(error),
        };
        if now == *root {
            *self.confirmed() = stamp;
        }
        Ok(Some(now == *root))
    }

    /// Returns true if size and times are those of the content that was read.
    pub fn unchanged(&self) -> bool {
        self.stamp_now() == Some(*self.confirmed())
    }

    fn confirmed(&self) -> MutexGuard<'_, Stamp> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root_and_stamp(
        &self,
        tree: Tree,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<(Root, Stamp)>> {
        for _ in 0..READS_MAX {
            let Some(before) = self.stamp_now().filter(|now| now.size == self.stamp.size) else {
                break;
            };
            let read = |index, buffer: &mut [u8]| self.read_chunk(index, buffer);
            let Some(root) = self.runs().root(tree, read, &mut go_on)? else { return Ok(None) };
            if self.stamp_now() == Some(before) {
                return Ok(Some((root, before)));
            }
        }
        Err(Error::Changed { path: shown(self.path.as_bytes()) })
    }

    fn stamp_now(&self) -> Option<Stamp> {
        fstat(&self.fd).ok().map(|stat| Stamp::of(&stat))
    }
}
