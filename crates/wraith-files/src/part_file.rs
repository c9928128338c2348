//! A file that is being received chunk by chunk and survives the death of this process.
//!
//! Content is written in place to `.NAME.wraith-part`; [`crate::journal`] records the verified
//! chunks. The file gets its name once all chunks are present and the root (the hash of the file)
//! composed of their hashes is the sender's. Several threads may write chunks at once.
//!
//! Invariants:
//!
//! - A chunk is in `have` only if its bytes were handed to the kernel, and after them its journal
//!   entry.
//! - No two threads write the same chunk, because a thread claims a chunk before it writes. The
//!   hashed bytes are therefore the bytes on disk, unless another program writes there too;
//!   [`crate::only_writer`] detects that.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    Advice, FallocateFlags, OFlags, SeekFrom, fadvise, fallocate, fdatasync, fstat, fstatfs, seek,
};
use rustix::io::Errno;

use crate::beneath::open_child;
use crate::commit::{is_at, remove_hidden};
use crate::entry::{Entry, Mtime};
use crate::error::{Context, Error, Result};
use crate::hash::{CHUNK_BYTES, Cv, Root, chunk_count, chunk_len};
use crate::hidden_names::HiddenNames;
use crate::interval_set::IntervalSet;
use crate::journal::{Journal, JournalEntry};
use crate::only_writer::OnlyWriter;
use crate::own_file::is_own;
use crate::path::{RelPath, shown};
use crate::read::read_chunk;
use crate::root_builder::RootBuilder;
use crate::runs::HOLE_STEP_CHUNKS;
use crate::target_state::TargetState;
use crate::tree::Tree;
use crate::write::{is_all_zero, write_all_at, write_sparse_at};

/// Disk space reserved ahead of the chunks, in bytes. Reservations are rare enough to cost nothing
/// and small enough to be available at once. A kill may leave this much unused space behind.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes after which write-back of a part is due. Few enough to leave little work for the end;
/// enough that each journal commit of the file system is cheap beside them.
const WRITE_BACK_BYTES: u64 = 32 * 1024 * 1024;

/// `EXT4_SUPER_MAGIC` of `statfs(2)`, also used by ext2 and ext3.
const EXT4: u64 = 0xEF53;

/// Value of [`PartFile::reserved`] for a file without reservations.
const NOTHING_TO_RESERVE: u64 = u64::MAX;

/// A file that is being received; see the module documentation. If dropped unfinished, the file
/// stays on disk for resumption, unless no chunk of it was verified, in this version of the file or
/// an earlier one.
#[derive(Debug)]
pub struct PartFile {
    pub(crate) target: Arc<TargetState>,
    pub(crate) path: RelPath,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) mtime: Mtime,
    pub(crate) sparse: bool,
    pub(crate) tree: Tree,
    pub(crate) parent: Arc<OwnedFd>,
    pub(crate) names: HiddenNames,
    pub(crate) fd: OwnedFd,
    /// End of the range with reserved disk space.
    reserved: AtomicU64,
    /// Bytes written since [`Self::write_back`] was last due.
    unwritten: AtomicU64,
    pub(crate) state: Mutex<PartState>,
}

#[derive(Debug)]
pub(crate) struct PartState {
    /// Verified, written and recorded chunks.
    pub(crate) have: IntervalSet,
    /// Chunks that threads have claimed and are writing.
    pub(crate) writing: Vec<Range<u64>>,
    /// All chunks ever claimed of a sparse part that this process created and no other has touched.
    /// The rest is zeros, whether or not the file system reports holes. `None` for every other
    /// part.
    pub(crate) ever_claimed: Option<IntervalSet>,
    pub(crate) root: RootBuilder,
    /// Holes whose hashes are not in `root` yet: those of an earlier session, and the current one.
    pub(crate) unhashed_holes: IntervalSet,
    /// `None` once the file is finished or discarded.
    pub(crate) journal: Option<Journal>,
    /// The proven root.
    pub(crate) sealed: Option<Root>,
    /// Chunks named by the journal that are not used before [`PartFile::recheck`] has verified
    /// them.
    pub(crate) unproven: IntervalSet,
    /// Bytes of an earlier version of the file, as far as no chunk in `have` has replaced them. They
    /// are never used unverified ([`crate::EarlierContent`]).
    pub(crate) earlier: IntervalSet,
    pub(crate) writer: OnlyWriter,
}

impl PartFile {
    /// Creates the state for an open part and its journal, without reading part or journal.
    pub(crate) fn over(
        target: &Arc<TargetState>,
        entry: &Entry,
        parent: Arc<OwnedFd>,
        names: HiddenNames,
        fd: OwnedFd,
        journal: Journal,
    ) -> Self {
        let (sparse, tree) = (entry.is_sparse(), entry.tree());
        let state = PartState {
            have: IntervalSet::new(),
            writing: Vec::new(),
            ever_claimed: None,
            root: RootBuilder::of(tree),
            unhashed_holes: IntervalSet::new(),
            journal: Some(journal),
            sealed: None,
            unproven: IntervalSet::new(),
            earlier: IntervalSet::new(),
            writer: OnlyWriter::of(fd.as_fd(), entry.size()),
        };
        // Elsewhere, reserving was not measured or costs more than it saves.
        let gains = !sparse && fstatfs(&fd).is_ok_and(|stat| stat.f_type as u64 == EXT4);
        let reserved = AtomicU64::new(if gains { 0 } else { NOTHING_TO_RESERVE });
        Self {
            target: Arc::clone(target),
            path: entry.path.clone(),
            size: entry.size(),
            mode: target.modes.of(entry.mode),
            mtime: entry.mtime,
            sparse,
            tree,
            parent,
            names,
            fd,
            reserved,
            unwritten: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    /// Returns the final path, unless that turns out to be taken.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> u64 {
        chunk_count(self.size)
    }

    /// Returns the chunks that need not be sent any more.
    pub fn have(&self) -> IntervalSet {
        self.lock().have.clone()
    }

    /// Returns true if chunks must be read again by [`Self::recheck`] before they are used. This is
    /// the case if an earlier process left them, or if another program may have written to the part
    /// after this process did. Without the recheck, these chunks are received again.
    pub fn needs_recheck(&self) -> bool {
        !self.lock().unproven.is_empty()
    }

    /// Returns the chunks that are received, or may turn out to be received after
    /// [`Self::recheck`].
    pub fn may_have(&self) -> IntervalSet {
        let state = self.lock();
        if state.unproven.is_empty() { state.have.clone() } else { state.unproven.clone() }
    }

    /// Returns the bytes of an earlier version of the file that may still be useful: ranges that
    /// the journal names, without the chunks that are received.
    pub fn earlier(&self) -> IntervalSet {
        let state = self.lock();
        let mut earlier = state.earlier.clone();
        if !earlier.is_empty() {
            state.have.iter().for_each(|chunks| earlier.remove(bytes_of(&chunks, self.size)));
        }
        earlier
    }

    /// Returns the part of the size, in bytes, that has no disk space yet. Reserved space counts as
    /// disk space.
    pub fn unallocated_bytes(&self) -> u64 {
        let allocated =
            fstat(&self.fd).map_or(0, |stat| (stat.st_blocks as u64).saturating_mul(512));
        self.size.saturating_sub(allocated)
    }

    /// Writes chunk `index`, the concatenation of `pieces`. The caller has verified that `cv` is
    /// its hash ([`Tree::chunk_cv`]; for a file of one chunk its root) and the announced one. When
    /// this returns, the chunk is received for good, even after a kill. A chunk that was received
    /// before is left as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if the file has no such chunk, the length is wrong, or another thread is
    /// writing it. [`Error::TooManyPieces`] if the received chunks form too many separate ranges.
    pub fn write_chunk(&self, index: u64, pieces: &[&[u8]], cv: Cv) -> Result<()> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        if len == 0 || len != chunk_len(self.size, index) {
            return Err(self.misuse("it has no such chunk"));
        }
        debug_assert_eq!(self.tree.chunk_hash(self.size, index, pieces), cv, "the caller verifies");
        let Some(mut claim) = self.claim(index..index + 1)? else { return Ok(()) };
        let offset = index * CHUNK_BYTES as u64;
        self.reserve(offset..offset + len as u64);
        let written = if self.sparse && (claim.is_first || self.is_hole(offset, len as u64)) {
            claim.has_written = !pieces.iter().all(|piece| is_all_zero(piece));
            write_sparse_at(self.fd.as_fd(), pieces, offset)
        } else {
            claim.has_written = true;
            write_all_at(self.fd.as_fd(), pieces, offset)
        };
        written.context(self.path.as_bytes(), "write it")?;
        claim.record(&JournalEntry::Chunk { index, cv })?.root.set(index, cv);
        self.unwritten.fetch_add(len as u64, Relaxed);
        Ok(())
    }

    /// Writes a partly known chunk at full length, until the rest arrives. The chunk is not
    /// received yet: [`Self::read_unverified`] reads it back, and [`Self::write_chunk`] completes
    /// it. Not for chunks that another thread may write.
    pub fn write_unverified(&self, index: u64, bytes: &[u8]) -> Result<()> {
        let is_due = {
            let state = self.lock();
            state.journal.is_some() && !state.have.contains(index)
        };
        if !is_due || bytes.is_empty() || bytes.len() != chunk_len(self.size, index) {
            return Err(self.misuse("it has no such chunk to begin"));
        }
        let Some(mut claim) = self.claim(index..index + 1)? else { return Ok(()) };
        claim.has_written = true;
        let offset = index * CHUNK_BYTES as u64;
        self.reserve(offset..offset + bytes.len() as u64);
        write_all_at(self.fd.as_fd(), &[bytes], offset).context(self.path.as_bytes(), "write it")
    }

    /// Reads the bytes of [`Self::write_unverified`] back to the front of `buffer`. Returns their
    /// length.
    pub fn read_unverified(&self, index: u64, buffer: &mut [u8]) -> Result<usize> {
        let len = chunk_len(self.size, index);
        let read = read_chunk(self.fd(), self.size, index, buffer);
        if read.context(self.path.as_bytes(), "read it")? < len {
            return Err(Error::Changed { path: shown(self.path.as_bytes()) });
        }
        Ok(len)
    }

    /// Makes the chunks of `range` zeros, without using disk space where the file system supports
    /// holes.
    pub fn write_hole(&self, range: Range<u64>) -> Result<()> {
        self.write_hole_while(range, || true).map(drop)
    }

    /// Like [`Self::write_hole`], which is slow where the file system has no holes. As soon as
    /// `go_on` returns false, returns false, and no chunk is received.
    pub fn write_hole_while(&self, range: Range<u64>, go_on: impl Fn() -> bool) -> Result<bool> {
        if range.is_empty() || range.end > self.chunks() {
            return Err(self.misuse("it has no such chunks"));
        }
        let Some(mut claim) = self.claim(range.clone())? else { return Ok(true) };
        let start = range.start * CHUNK_BYTES as u64;
        let end = self.size.min(range.end * CHUNK_BYTES as u64);
        if !claim.is_first && !self.is_hole(start, end - start) {
            claim.has_written = true;
            let punched = self.punch(start..end, go_on);
            if !punched.context(self.path.as_bytes(), "punch a hole in it")? {
                return Ok(false);
            }
        }
        let entry = JournalEntry::Hole { first: range.start, count: range.end - range.start };
        let mut state = claim.record(&entry)?;
        if self.tree.knows_zeros() {
            state.root.set_zeros(range, self.size);
            return Ok(true);
        }
        state.unhashed_holes.insert(range.clone());
        drop(state);
        self.hash_hole(range);
        Ok(true)
    }

    /// Hashes the holes left by an earlier session, which otherwise [`Self::finish`] does. For
    /// terabytes this takes minutes. Calls `go_on` every [`HOLE_STEP_CHUNKS`]. Returns false as
    /// soon as `go_on` does, with the rest still to be hashed.
    pub fn hash_holes(&self, go_on: impl Fn() -> bool) -> bool {
        loop {
            let first = self.lock().unhashed_holes.iter().next();
            let Some(hole) = first else { return true };
            if !go_on() {
                return false;
            }
            self.hash_hole(hole.start..hole.end.min(hole.start + HOLE_STEP_CHUNKS));
        }
    }

    /// Hashes zeros and enters them in the root. This takes seconds, in which foreign writes must
    /// be detected, so it holds neither the lock nor a claim.
    fn hash_hole(&self, chunks: Range<u64>) {
        for index in chunks.clone() {
            let cv = self.tree.zero_chunk_hash(self.size, index);
            self.lock().root.set(index, cv);
        }
        self.lock().unhashed_holes.remove(chunks);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns true once for every [`WRITE_BACK_BYTES`] written. When it does, [`Self::write_back`]
    /// is due, on another thread.
    pub fn is_write_back_due(&self) -> bool {
        let unwritten = self.unwritten.load(Relaxed);
        unwritten >= WRITE_BACK_BYTES
            && self.unwritten.compare_exchange(unwritten, 0, Relaxed, Relaxed).is_ok()
    }

    /// Flushes the written content to disk while more is being written. If write-back fails, the
    /// kernel reports that only to this call, and not to later calls.
    pub fn write_back(&self) -> Result<()> {
        match fdatasync(&self.fd) {
            // Where syncing is refused, the final sync reports it.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            done => {
                let done = done.context(self.path.as_bytes(), "flush it to disk");
                self.target.stable.record_result(done)
            }
        }
    }

    /// Drops the cached content of the file. After a failed write-back the cache holds content that
    /// the disk does not have; after the drop, the next recheck reads the disk.
    pub(crate) fn distrust_cache(&self) {
        // Only a hint: the recheck reads any pages that stay in memory.
        let _ = fadvise(&self.fd, 0, None, Advice::DontNeed);
    }

    /// Removes the part and its journal.
    pub fn discard(&self) -> Result<()> {
        self.remove(&mut self.lock())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PartState> {
        // A panic between claim and record leaves a claim behind. That is safe: the chunk is
        // refused.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn misuse(&self, what: &'static str) -> Error {
        Error::Misuse { path: shown(self.path.as_bytes()), what }
    }

    /// Returns true if no byte of the range was ever written.
    pub(crate) fn is_hole(&self, offset: u64, len: u64) -> bool {
        match seek(&self.fd, SeekFrom::Data(offset)) {
            Ok(data) => data >= offset + len,
            Err(errno) => errno == Errno::NXIO,
        }
    }

    /// Returns true if nothing was written between the file's creation and its first stamp. The
    /// whole file is then zeros.
    pub(crate) fn is_untouched(&self) -> bool {
        let takes_nothing = || fstat(&self.fd).is_ok_and(|stat| stat.st_blocks == 0);
        self.lock().writer.is_new()
            && (self.is_hole(0, self.size) || !self.tells_holes() && takes_nothing())
    }

    /// Returns false if the whole file appears as data, as on a file system without holes.
    pub(crate) fn tells_holes(&self) -> bool {
        seek(&self.fd, SeekFrom::Hole(0)) != Ok(self.size)
    }

    /// Reserves disk space for the bytes of `chunk` and some behind them. Writing to reserved space
    /// costs ext4 a fifth less processor time than delayed allocation block by block. Only a hint:
    /// if the reservation fails, the write is still attempted.
    fn reserve(&self, chunk: Range<u64>) {
        let reserved = self.reserved.load(Relaxed);
        if chunk.end <= reserved {
            return;
        }
        // Never more than one step at once, wherever a peer begins.
        let from = chunk.start.max(reserved);
        let to = self.size.min(chunk.end + RESERVE_BYTES);
        if self.reserved.compare_exchange(reserved, to, Relaxed, Relaxed).is_ok()
            && fallocate(&self.fd, FallocateFlags::KEEP_SIZE, from, to - from).is_err()
        {
            self.reserved.store(NOTHING_TO_RESERVE, Relaxed);
        }
    }

    /// Turns written bytes into zeros. Returns false if `go_on` returned false first.
    fn punch(&self, bytes: Range<u64>, go_on: impl Fn() -> bool) -> rustix::io::Result<bool> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.fd, flags, bytes.start, bytes.end - bytes.start) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            done => return done.map(|()| true),
        }
        let zeros = [0; CHUNK_BYTES / 4];
        let mut at = bytes.start;
        while at < bytes.end {
            if !go_on() {
                return Ok(false);
            }
            let part = zeros.len().min((bytes.end - at) as usize);
            write_all_at(self.fd.as_fd(), &[&zeros[..part]], at)?;
            at += part as u64;
        }
        Ok(true)
    }

    /// Removes the part and its journal.
    pub(crate) fn remove(&self, state: &mut PartState) -> Result<()> {
        if state.journal.is_none() {
            return Ok(());
        }
        if is_at(self.fd.as_fd(), self.parent.as_fd(), &self.names.part) {
            remove_hidden(self.parent.as_fd(), &self.names.part, &self.path)?;
        }
        self.retire(state);
        Ok(())
    }

    pub(crate) fn retire(&self, state: &mut PartState) {
        if let Some(journal) = state.journal.take() {
            let name = self.names.journal.clone();
            self.target.journal_pool.retire(journal.into_fd(), Arc::clone(&self.parent), name);
        }
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        let mut state = self.lock();
        if state.have.is_empty() && state.unproven.is_empty() && state.earlier.is_empty() {
            // If the removal fails, the next receiver of this name removes the files.
            let _ = self.remove(&mut state);
        } else if self.target.stable.has_failed() {
            self.distrust_cache();
        } else if state.journal.is_some() && state.unproven.is_empty() {
            state.writer.remember(self.fd.as_fd());
        }
    }
}

/// Returns the bytes of some chunks of a file of `size` bytes.
pub(crate) fn bytes_of(chunks: &Range<u64>, size: u64) -> Range<u64> {
    let at = |chunk: u64| size.min(chunk.saturating_mul(CHUNK_BYTES as u64));
    at(chunks.start)..at(chunks.end)
}

/// Opens a part for reading and writing, even if a killed process had already made it read-only for
/// its final name.
pub(crate) fn open_part(parent: &OwnedFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    match open_child(parent.as_fd(), name, flags) {
        Err(Errno::ACCESS) => {}
        done => return done,
    }
    let handle = open_child(parent.as_fd(), name, OFlags::PATH)?;
    if !is_own(&handle) {
        return Err(Errno::ACCESS);
    }
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(path.as_str(), rustix::fs::Mode::from_raw_mode(0o600))?;
    open_child(parent.as_fd(), name, flags)
}
