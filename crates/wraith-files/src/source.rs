//! A file being read for sending: by chunk, from several threads, with its holes known and changes noticed.
//!
//! It is opened relative to a directory handle, without following links, and must still be the file that was listed. Reads
//! are positional, so a [`SourceFile`] can be shared. What was read is only to be called complete if
//! [`SourceFile::unchanged`] says so afterwards.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Advice, FileType, OFlags, Stat, fadvise, fstat};

use crate::beneath::{Beneath, mtime_of};
use crate::entry::Mtime;
use crate::error::{Context, Error, Result};
use crate::hash::{CHUNK_BYTES, Root, chunk_count, chunk_len};
use crate::path::{RelPath, shown};
use crate::read::read_at;
use crate::runs::{Run, RunCursor, Runs, is_sparse};
use crate::tree::Tree;

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of content.
    pub mtime: Mtime,
    /// Last change of content or attributes; no program can set it.
    pub ctime: Mtime,
}

impl Stamp {
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

/// Files from this size on get a read-ahead hint: below it the kernel's own guess has seen enough.
const READ_AHEAD_FROM_BYTES: u64 = 4 * 1024 * 1024;

/// An open file of a tree.
#[derive(Debug)]
pub struct SourceFile {
    fd: OwnedFd,
    path: RelPath,
    stamp: Stamp,
    sparse: bool,
}

impl SourceFile {
    /// Opens `real` below `root`. `listed` is what the walk saw: anything else under that name, or another size or
    /// modification time, is [`Error::Changed`].
    pub(crate) fn open(
        root: &Beneath,
        real: &[u8],
        path: &RelPath,
        listed: &Stamp,
    ) -> Result<Self> {
        // NONBLOCK: should a pipe have taken the file's place, opening it must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = root.open_file(real, flags).context(path.as_bytes(), "open it")?;
        let stat = fstat(&fd).context(path.as_bytes(), "look at it")?;
        let stamp = Stamp::of(&stat);
        let same = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && (stamp.dev, stamp.ino) == (listed.dev, listed.ino)
            && (stamp.size, stamp.mtime) == (listed.size, listed.mtime);
        if !same {
            return Err(Error::Changed { path: shown(path.as_bytes()) });
        }
        if stamp.size >= READ_AHEAD_FROM_BYTES {
            // A hint: a file system that does not take it reads all the same.
            let _ = fadvise(&fd, 0, None, Advice::Sequential);
        }
        let sparse = is_sparse(&stat);
        Ok(Self { fd, path: path.clone(), stamp, sparse })
    }

    /// Its path in the manifest.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    /// Chunks; 0 for an empty file.
    pub fn chunks(&self) -> u64 {
        chunk_count(self.stamp.size)
    }

    /// Reads chunk `index` to the front of `buffer` (at least [`chunk_len`] bytes) and returns its length.
    /// [`Error::Changed`] if the file has become shorter.
    pub fn read_chunk(&self, index: u64, buffer: &mut [u8]) -> Result<usize> {
        let len = chunk_len(self.stamp.size, index);
        let Some(buffer) = buffer.get_mut(..len) else {
            let path = shown(self.path.as_bytes());
            return Err(Error::Misuse { path, what: "the buffer is shorter than the chunk" });
        };
        self.read_at(index * CHUNK_BYTES as u64, buffer)?;
        Ok(len)
    }

    /// Fills `buffer` with the bytes from `offset` on. [`Error::Changed`] if the file ends before.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let read = read_at(self.fd.as_fd(), buffer, offset);
        if read.context(self.path.as_bytes(), "read it")? < buffer.len() {
            return Err(Error::Changed { path: shown(self.path.as_bytes()) });
        }
        Ok(())
    }

    /// Its chunks in order as runs of data and hole. Looks only if the file has fewer blocks than bytes; a file system that
    /// cannot tell yields one run of data.
    pub fn runs(&self) -> Runs<'_> {
        Runs::of(self.fd.as_fd(), self.cursor())
    }

    /// The same, for who asks for one run after the other: where the first one begins.
    pub fn cursor(&self) -> RunCursor {
        RunCursor::of(self.stamp.size, self.sparse)
    }

    /// The run at `cursor`, which then stands behind it.
    pub fn next_run(&self, cursor: &mut RunCursor) -> Option<Run> {
        cursor.next(self.fd.as_fd())
    }

    /// Its root, of which `tree` says what it is; its data is read in full. `None` as soon as `go_on`, which is asked before each
    /// chunk, says no. [`Error::Changed`] if it changes meanwhile.
    pub fn root(&self, tree: Tree, go_on: impl Fn() -> bool) -> Result<Option<Root>> {
        let read = |index, buffer: &mut [u8]| self.read_chunk(index, buffer);
        let root = self.runs().root(tree, read, go_on)?;
        if root.is_some() && !self.unchanged() {
            return Err(Error::Changed { path: shown(self.path.as_bytes()) });
        }
        Ok(root)
    }

    /// True if the file is still exactly what was opened: same size, content time and change time.
    pub fn unchanged(&self) -> bool {
        fstat(&self.fd).is_ok_and(|stat| Stamp::of(&stat) == self.stamp)
    }
}
