//! A file being read for sending: by chunk, from several threads, with its holes known and changes noticed.
//!
//! It is opened relative to a directory handle, without following links, and must still be the file that was listed. Reads
//! are positional, so a [`SourceFile`] can be shared. What was read is only to be called complete if
//! [`SourceFile::unchanged`] says so afterwards.

use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{Advice, FileType, OFlags, SeekFrom, Stat, fadvise, fstat, seek};
use rustix::io::Errno;

use crate::beneath::{Beneath, mtime_of};
use crate::entry::Mtime;
use crate::error::{Context, Error, Result};
use crate::hash::{CHUNK_BYTES, chunk_count, chunk_len};
use crate::path::{RelPath, shown};

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

/// A run of chunks that are alike on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// Chunks with something in them.
    Data(Range<u64>),
    /// Chunks that are entirely hole: zeros that take no space and need not be read.
    Hole(Range<u64>),
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
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[done..], offset + done as u64) {
                Ok(0) => return Err(Error::Changed { path: shown(self.path.as_bytes()) }),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::os(self.path.as_bytes(), "read it", errno)),
            }
        }
        Ok(())
    }

    /// Its chunks in order as runs of data and hole. Looks only if the file has fewer blocks than bytes; a file system that
    /// cannot tell yields one run of data.
    pub fn runs(&self) -> Runs<'_> {
        Runs { source: self, next: 0, hole_end: None }
    }

    /// True if the file is still exactly what was opened: same size, content time and change time.
    pub fn unchanged(&self) -> bool {
        fstat(&self.fd).is_ok_and(|stat| Stamp::of(&stat) == self.stamp)
    }

    /// First offset from `offset` on that is data (or hole). The file's end counts as the start of a hole.
    fn seek(&self, to: SeekFrom) -> Option<u64> {
        match seek(&self.fd, to) {
            Ok(offset) => Some(offset),
            Err(Errno::NXIO) => Some(self.stamp.size),
            Err(_) => None,
        }
    }
}

/// Fewer blocks than the size needs. Blocks are counted in units of 512 bytes everywhere.
pub(crate) fn is_sparse(stat: &Stat) -> bool {
    (stat.st_blocks as u64).saturating_mul(512) < stat.st_size as u64
}

/// Iterator of [`SourceFile::runs`].
#[derive(Debug)]
pub struct Runs<'a> {
    source: &'a SourceFile,
    next: u64,
    /// End of the hole that starts at `next`, found while looking for the end of the data before it.
    hole_end: Option<u64>,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let (chunk, size, count) = (CHUNK_BYTES as u64, self.source.size(), self.source.chunks());
        if self.next >= count {
            return None;
        }
        let first = self.next;
        if !self.source.sparse {
            self.next = count;
            return Some(Run::Data(first..count));
        }
        // A hole's last chunk counts if the hole reaches the end of the file within it.
        let whole_chunks_before = |end: u64| if end >= size { count } else { end / chunk };
        let data_from = match self.hole_end.take() {
            Some(end) => end,
            None => self.source.seek(SeekFrom::Data(first * chunk)).unwrap_or(first * chunk),
        };
        if whole_chunks_before(data_from) > first {
            self.next = whole_chunks_before(data_from);
            return Some(Run::Hole(first..self.next));
        }
        // Data, up to the first hole that covers a whole chunk.
        let mut at = data_from;
        loop {
            let hole = self.source.seek(SeekFrom::Hole(at)).unwrap_or(size);
            let data = if hole >= size {
                size
            } else {
                self.source.seek(SeekFrom::Data(hole)).unwrap_or(size)
            };
            let first_whole = hole.div_ceil(chunk);
            if hole >= size || whole_chunks_before(data) > first_whole {
                // At least one chunk, even if the file is being changed while we look.
                self.next = first_whole.clamp(first + 1, count);
                self.hole_end = Some(data);
                return Some(Run::Data(first..self.next));
            }
            at = data;
        }
    }
}
