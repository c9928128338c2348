//! Reads content of an earlier version of a file from its part, while the part is being rewritten.
//!
//! The part is rewritten in place, chunk after chunk in ascending order. A piece that crosses the
//! border of two chunks, or that moved towards the end of the file, is needed after its place was
//! overwritten. The latest [`KEPT_CHUNKS`] are therefore kept in memory. Content that moved further
//! is fetched again.
//!
//! Nothing here is trusted: [`crate::Assembler`] verifies all of it.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::hash::{CHUNK_BYTES, chunk_len};
use crate::interval_set::IntervalSet;
use crate::part_file::{PartFile, bytes_of};
use crate::path::shown;
use crate::read::{read_at, read_chunk};
use crate::source::SourceFile;

/// Maximum number of overwritten chunks kept in memory (16 MiB).
const KEPT_CHUNKS: usize = 64;

/// Content that may contain pieces of a new file.
pub trait OldContent: Debug {
    /// Returns the size in bytes.
    fn size(&self) -> u64;

    /// Returns the ranges with content, in ascending order.
    fn ranges(&self) -> Vec<Range<u64>>;

    /// Fills `buffer` with the bytes from `offset` on.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Announces that chunk `index` of the new file is about to be written or requested. The caller
    /// announces chunks in ascending order.
    fn before_write(&self, index: u64);
}

impl OldContent for SourceFile {
    fn size(&self) -> u64 {
        Self::size(self)
    }

    fn ranges(&self) -> Vec<Range<u64>> {
        std::iter::once(0..Self::size(self)).collect()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        Self::read_at(self, offset, buffer)
    }

    // The new file is another one.
    fn before_write(&self, _index: u64) {}
}

/// Content of an earlier version in the part of the new one; see the module documentation.
#[derive(Debug)]
pub struct EarlierContent<'a> {
    part: &'a PartFile,
    /// Chunks received before: they are not rewritten.
    received: IntervalSet,
    content: IntervalSet,
    overwritten: Mutex<Overwritten>,
}

#[derive(Debug, Default)]
struct Overwritten {
    /// Chunks below this number are overwritten, unless they were received before.
    end: u64,
    /// The latest of them, with their earlier content.
    kept: VecDeque<(u64, Vec<u8>)>,
}

impl<'a> EarlierContent<'a> {
    /// Creates a reader of the content that `part` holds now.
    pub fn of(part: &'a PartFile) -> Self {
        let received = part.have();
        let mut content = part.lock().earlier.clone();
        // Received content may have moved, too.
        received.iter().for_each(|chunks| content.insert(bytes_of(&chunks, part.size)));
        Self { part, received, content, overwritten: Mutex::default() }
    }

    /// Reads bytes of chunk `index` from `skip` bytes after its start on.
    fn read_in_chunk(&self, index: u64, skip: usize, buffer: &mut [u8]) -> Result<()> {
        let changed = || Error::Changed { path: shown(self.part.path.as_bytes()) };
        let overwritten = self.overwritten.lock().unwrap_or_else(PoisonError::into_inner);
        if index < overwritten.end && !self.received.contains(index) {
            let kept = overwritten.kept.iter().find(|(kept, _)| *kept == index);
            let bytes = kept.and_then(|(_, bytes)| bytes.get(skip..skip + buffer.len()));
            buffer.copy_from_slice(bytes.ok_or_else(changed)?);
            return Ok(());
        }
        drop(overwritten);
        match read_at(self.part.fd(), buffer, index * CHUNK_BYTES as u64 + skip as u64) {
            Ok(read) if read == buffer.len() => Ok(()),
            Ok(_) => Err(changed()),
            Err(errno) => Err(Error::os(self.part.path.as_bytes(), "read it", errno)),
        }
    }
}

impl OldContent for EarlierContent<'_> {
    fn size(&self) -> u64 {
        self.content.last().map_or(0, |range| range.end)
    }

    fn ranges(&self) -> Vec<Range<u64>> {
        self.content.iter().collect()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let (index, skip) = (at / CHUNK_BYTES as u64, (at % CHUNK_BYTES as u64) as usize);
            let len = rest.len().min(CHUNK_BYTES - skip);
            let (now, later) = rest.split_at_mut(len);
            self.read_in_chunk(index, skip, now)?;
            (at, rest) = (at + len as u64, later);
        }
        Ok(())
    }

    fn before_write(&self, index: u64) {
        let mut overwritten = self.overwritten.lock().unwrap_or_else(PoisonError::into_inner);
        overwritten.end = index + 1;
        let is_full = overwritten.kept.len() >= KEPT_CHUNKS;
        let oldest = if is_full { overwritten.kept.pop_front() } else { None };
        let mut buffer = oldest.map_or_else(Vec::new, |(_, buffer)| buffer);
        buffer.resize(CHUNK_BYTES, 0);
        let (part, len) = (self.part, chunk_len(self.part.size, index));
        // Without its content, the chunk is fetched where it is needed again.
        if read_chunk(part.fd(), part.size, index, &mut buffer).is_ok_and(|read| read == len) {
            buffer.truncate(len);
            overwritten.kept.push_back((index, buffer));
        }
    }
}
