//! After a restart of the machine: what of a part file really reached the disk?
//!
//! The journal and the part may have been written back in any order before the crash, so every recorded chunk is read and
//! hashed again. What is true goes into a second journal, which replaces the first when it is complete; until then the first
//! one stands, and a kill costs nothing but the reading.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::PoisonError;

use rustix::fs::{AtFlags, Mode, fdatasync, renameat, unlinkat};
use rustix::io::{Errno, pread};

use crate::chunks::ChunkRanges;
use crate::error::{Context, Error, Result};
use crate::hash::{
    CHUNK_BYTES, Cv, RootBuilder, chunk_count, chunk_hash, chunk_len, zero_chunk_hash,
};
use crate::journal::{Header, Journal, Record, boot_id};
use crate::part::{PartFile, file_id};
use crate::path::shown;
use crate::small::create_hidden;

impl PartFile {
    /// Reads the chunks that were recorded before the machine was restarted, and counts those that still have their hash.
    /// `progress` is told how many were read; if it returns false, nothing counts and it can be done again. Does nothing
    /// unless [`Self::needs_recheck`]. Takes the time of reading and hashing what is there.
    pub fn recheck(&mut self, progress: impl FnMut(u64) -> bool) -> Result<()> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut old) = state.journal.take_if(|_| state.unproven) else { return Ok(()) };
        let proven = prove(self, &mut old, progress);
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.journal = Some(old);
        if let Some(proven) = proven? {
            state.journal = Some(proven.journal);
            state.have = proven.have;
            state.root = proven.root;
            state.unhashed_holes = ChunkRanges::new();
            state.unproven = false;
        }
        Ok(())
    }
}

/// What was found true, and the journal that says so.
struct Proven {
    journal: Journal,
    have: ChunkRanges,
    root: RootBuilder,
}

/// The work of finding out.
struct Proof<'a> {
    part: &'a PartFile,
    proven: Proven,
    buffer: Vec<u8>,
}

/// Makes the second journal and puts it in place of the first. `None` if `progress` stopped it.
fn prove(
    part: &PartFile,
    old: &mut Journal,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<Option<Proven>> {
    let path = part.path.as_bytes();
    let mut proof = Proof::begin(part, old.header())?;
    let (mut read, mut stopped, mut failed) = (0, false, Ok(()));
    let replayed = old.replay(|record| {
        failed = match record {
            Record::Chunk { index, cv } => proof.check_chunk(index, cv),
            Record::Hole { first, count } => proof.check_hole(first..first + count),
        };
        read += 1;
        stopped = !progress(read);
        failed.is_ok() && !stopped
    });
    let (dir, new_name) = (part.parent.as_fd(), &part.names.new_journal);
    let replaced =
        failed.and_then(|()| replayed.context(path, "read its journal")).and_then(|()| {
            if stopped {
                return Ok(());
            }
            let synced = fdatasync(proof.proven.journal.fd());
            let replaced = synced.and_then(|()| renameat(dir, new_name, dir, &part.names.journal));
            replaced.context(path, "replace its journal")
        });
    if stopped || replaced.is_err() {
        // Hidden, and cleared by the next attempt.
        let _ = unlinkat(dir, new_name, AtFlags::empty());
    }
    replaced.map(|()| (!stopped).then_some(proof.proven))
}

impl<'a> Proof<'a> {
    fn begin(part: &'a PartFile, old: &Header) -> Result<Self> {
        let path = part.path.as_bytes();
        let fd =
            create_hidden(part.parent.as_fd(), &part.names.new_journal, Mode::RUSR | Mode::WUSR);
        let fd = fd.map_err(|errno| match errno {
            Errno::BUSY => Error::InUse { path: shown(path) },
            errno => Error::os(path, "create its journal", errno),
        })?;
        let id = file_id(&part.fd).context(path, "look at its part")?;
        let header = Header { boot_id: boot_id(), part: id, ..*old };
        let journal = Journal::begin(fd, header).map_err(|(_, errno)| errno);
        let journal = journal.context(path, "write its journal")?;
        let proven = Proven { journal, have: ChunkRanges::new(), root: RootBuilder::new() };
        Ok(Self { part, proven, buffer: vec![0; CHUNK_BYTES] })
    }

    fn check_chunk(&mut self, index: u64, cv: Cv) -> Result<()> {
        if self.proven.have.contains(index) || self.hash_on_disk(index)? != Some(cv) {
            return Ok(());
        }
        self.append(&Record::Chunk { index, cv })?;
        self.proven.have.insert(index..index + 1);
        self.proven.root.set(index, cv);
        Ok(())
    }

    fn check_hole(&mut self, range: Range<u64>) -> Result<()> {
        let mut zeros = range.start..range.start;
        for index in range {
            let expected = zero_chunk_hash(self.part.size, index);
            let offset = index * CHUNK_BYTES as u64;
            let len = chunk_len(self.part.size, index) as u64;
            let is_zero = !self.proven.have.contains(index)
                && (self.part.is_hole(offset, len) || self.hash_on_disk(index)? == Some(expected));
            if is_zero {
                self.proven.root.set(index, expected);
                zeros.end = index + 1;
            } else {
                self.append_hole(zeros)?;
                zeros = index + 1..index + 1;
            }
        }
        self.append_hole(zeros)
    }

    fn append_hole(&mut self, zeros: Range<u64>) -> Result<()> {
        if zeros.is_empty() {
            return Ok(());
        }
        self.append(&Record::Hole { first: zeros.start, count: zeros.end - zeros.start })?;
        self.proven.have.insert(zeros);
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<()> {
        self.proven.journal.append(record).context(self.part.path.as_bytes(), "write its journal")
    }

    /// Hash of chunk `index` as it is on disk. `None` if it is not all there.
    fn hash_on_disk(&mut self, index: u64) -> Result<Option<Cv>> {
        let size = self.part.size;
        debug_assert!(index < chunk_count(size));
        let len = chunk_len(size, index);
        let mut done = 0;
        while done < len {
            let offset = index * CHUNK_BYTES as u64 + done as u64;
            match pread(&self.part.fd, &mut self.buffer[done..len], offset) {
                Ok(0) => return Ok(None),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::os(self.part.path.as_bytes(), "read it", errno)),
            }
        }
        Ok(Some(chunk_hash(size, index, &[&self.buffer[..len]])))
    }
}
