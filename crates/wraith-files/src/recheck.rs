//! Verifies a left-behind part file against its journal.
//!
//! Before a crash of the machine, journal and part may have been written back in any order. Between
//! two runs, another program may have written to the part. Every recorded chunk is therefore read
//! and hashed again. Recorded holes are read only where the file system reports data.
//!
//! Verified entries go to a second journal, which replaces the first once it is complete. Until
//! then the first journal stays valid. If the process is killed, only the reading must be repeated.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::PoisonError;

use rustix::fs::{AtFlags, Mode, fdatasync, renameat, unlinkat};
use rustix::io::Errno;

use crate::error::{Context, Error, Result};
use crate::hash::{CHUNK_BYTES, Cv, chunk_count, chunk_len};
use crate::interval_set::IntervalSet;
use crate::journal::{Header, Journal, JournalEntry, boot_id};
use crate::only_writer::OnlyWriter;
use crate::own_file::file_id;
use crate::part_file::PartFile;
use crate::path::shown;
use crate::read::read_chunk;
use crate::root_builder::RootBuilder;
use crate::runs::{Run, Runs};
use crate::small_file::create_hidden;
use crate::write::is_all_zero;

impl PartFile {
    /// Reads the chunks recorded by an earlier process, and accepts those that still have their
    /// hash. Takes the time of reading and hashing them. Does nothing unless
    /// [`Self::needs_recheck`].
    ///
    /// Calls `progress` with the number of chunks read, where a hole counts as one chunk. If
    /// `progress` returns false, no chunk is accepted, and the recheck can be repeated.
    pub fn recheck(&mut self, mut progress: impl FnMut(u64) -> bool) -> Result<()> {
        // An earlier process may have ended before it saw a failed write-back. The page cache then
        // proves nothing.
        if self.needs_recheck() && self.write_back().is_err() {
            self.distrust_cache();
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut old) = state.journal.take_if(|_| !state.unproven.is_empty()) else {
            return Ok(());
        };
        // A change during the reading must also be detected.
        let writer = OnlyWriter::of(self.fd.as_fd(), self.size);
        let proven = prove(self, &mut old, &mut progress);
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.journal = Some(old);
        if let Some(proven) = proven? {
            state.journal = Some(proven.journal);
            state.have = proven.have;
            state.root = proven.root;
            state.unhashed_holes = proven.unhashed_holes;
            state.unproven = IntervalSet::new();
            state.writer = writer;
        }
        Ok(())
    }
}

/// Verified chunks and the new journal that lists them.
struct Proven {
    journal: Journal,
    have: IntervalSet,
    root: RootBuilder,
    /// Holes whose hashes are not in `root`.
    unhashed_holes: IntervalSet,
}

/// State of a running verification.
struct Proof<'a> {
    part: &'a PartFile,
    proven: Proven,
    buffer: Vec<u8>,
    read: u64,
    progress: &'a mut dyn FnMut(u64) -> bool,
    stopped: bool,
}

/// Writes the second journal and replaces the first with it. Returns `None` if `progress` stopped
/// it.
fn prove(
    part: &PartFile,
    old: &mut Journal,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Proven>> {
    let path = part.path.as_bytes();
    let mut proof = Proof::begin(part, old.header(), progress)?;
    let mut failed = Ok(());
    let replayed = old.replay(|record| {
        failed = match record {
            JournalEntry::Chunk { index, cv } => proof.check_chunk(index, cv),
            JournalEntry::Hole { first, count } => proof.check_hole(first..first + count),
            // Not content of this version: nothing to check.
            JournalEntry::Earlier { .. } => {
                failed = proof.append(&record);
                return failed.is_ok();
            }
        };
        proof.step();
        failed.is_ok() && !proof.stopped
    });
    let stopped = proof.stopped;
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
        // The file is hidden, and the next attempt clears it.
        let _ = unlinkat(dir, new_name, AtFlags::empty());
    }
    replaced.map(|()| (!stopped).then_some(proof.proven))
}

impl<'a> Proof<'a> {
    fn begin(
        part: &'a PartFile,
        old: &Header,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Result<Self> {
        let path = part.path.as_bytes();
        let fd =
            create_hidden(part.parent.as_fd(), &part.names.new_journal, Mode::RUSR | Mode::WUSR);
        let fd = fd.map_err(|errno| match errno {
            Errno::BUSY => Error::InUse { path: shown(path) },
            errno => Error::os(path, "create its journal", errno),
        })?;
        let id = file_id(&part.fd).context(path, "inspect its part file")?;
        let header = Header { boot_id: boot_id(), part: id, ..*old };
        let journal = Journal::begin(fd, header).map_err(|(_, errno)| errno);
        let journal = journal.context(path, "write its journal")?;
        let (have, unhashed_holes) = (IntervalSet::new(), IntervalSet::new());
        let proven = Proven { journal, have, root: RootBuilder::of(part.tree), unhashed_holes };
        Ok(Self { part, proven, buffer: vec![0; CHUNK_BYTES], read: 0, progress, stopped: false })
    }

    /// Counts a chunk read or a hole inspected.
    fn step(&mut self) {
        self.read += 1;
        self.stopped = self.stopped || !(self.progress)(self.read);
    }

    fn check_chunk(&mut self, index: u64, cv: Cv) -> Result<()> {
        if self.proven.have.contains(index) || !self.read_chunk(index)? {
            return Ok(());
        }
        let len = chunk_len(self.part.size, index);
        if self.part.tree.chunk_hash(self.part.size, index, &[&self.buffer[..len]]) != cv {
            return Ok(());
        }
        self.append(&JournalEntry::Chunk { index, cv })?;
        self.proven.have.insert(index..index + 1);
        self.proven.root.set(index, cv);
        Ok(())
    }

    /// Accepts holes reported by the file system, and reads every other chunk.
    fn check_hole(&mut self, range: Range<u64>) -> Result<()> {
        let gaps: Vec<Range<u64>> = self.proven.have.gaps(range).collect();
        for gap in gaps {
            let mut zeros = gap.start..gap.start;
            for run in Runs::detect(self.part.fd.as_fd(), self.part.size).within(&gap) {
                match run {
                    Run::Hole(chunks) => zeros.end = chunks.end,
                    Run::Data(chunks) => zeros = self.check_zeros(zeros, chunks)?,
                }
            }
            self.append_hole(zeros)?;
        }
        Ok(())
    }

    /// Reads chunks that should be zeros and follow the verified `zeros`. Returns the run of zeros
    /// at the end.
    fn check_zeros(&mut self, mut zeros: Range<u64>, chunks: Range<u64>) -> Result<Range<u64>> {
        for index in chunks {
            if self.stopped {
                break;
            }
            let len = chunk_len(self.part.size, index);
            if self.read_chunk(index)? && is_all_zero(&self.buffer[..len]) {
                zeros.end = index + 1;
            } else {
                self.append_hole(zeros)?;
                zeros = index + 1..index + 1;
            }
            self.step();
        }
        Ok(zeros)
    }

    fn append_hole(&mut self, zeros: Range<u64>) -> Result<()> {
        if zeros.is_empty() {
            return Ok(());
        }
        self.append(&JournalEntry::Hole { first: zeros.start, count: zeros.end - zeros.start })?;
        self.proven.have.insert(zeros.clone());
        if self.part.tree.knows_zeros() {
            self.proven.root.set_zeros(zeros, self.part.size);
        } else {
            self.proven.unhashed_holes.insert(zeros);
        }
        Ok(())
    }

    fn append(&mut self, record: &JournalEntry) -> Result<()> {
        self.proven.journal.append(record).context(self.part.path.as_bytes(), "write its journal")
    }

    /// Reads chunk `index` to the front of the buffer. Returns false if it is incomplete.
    fn read_chunk(&mut self, index: u64) -> Result<bool> {
        let size = self.part.size;
        debug_assert!(index < chunk_count(size));
        let read = read_chunk(self.part.fd(), size, index, &mut self.buffer);
        let read = read.context(self.part.path.as_bytes(), "read it")?;
        Ok(read == chunk_len(size, index))
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use rustix::io::pread;

    use super::*;
    use crate::commit::CommitOptions;
    use crate::entry::{Entry, Kind, Mtime};
    use crate::hash::small_root;
    use crate::path::RelPath;
    use crate::target::TargetDir;
    use crate::tree::Tree;

    const KEY: [u8; 32] = [1; 32];
    const CHUNKS: usize = 9;

    fn content() -> Vec<u8> {
        let mut bytes = vec![0; CHUNKS * CHUNK_BYTES - 100];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes[6 * CHUNK_BYTES..8 * CHUNK_BYTES].fill(0);
        bytes
    }

    fn entry(bytes: &[u8]) -> Entry {
        Entry {
            path: RelPath::parse(b"f").unwrap(),
            kind: Kind::File { size: bytes.len() as u64, sparse: Some(Tree::Blake3) },
            mode: 0o644,
            mtime: Mtime { s: 5, ns: 5 },
        }
    }

    fn put(part: &PartFile, bytes: &[u8], index: usize) {
        let chunk = bytes.chunks(CHUNK_BYTES).nth(index).unwrap();
        part.write_chunk(index as u64, &[chunk], Tree::Blake3.chunk_cv(index as u64, &[chunk]))
            .unwrap();
    }

    /// Makes the journal in `dir` look as if it came from another boot.
    fn restart_machine(dir: &Path) {
        let path = dir.join(".f.wraith-journal");
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let header = Journal::read_header(&file.try_clone().unwrap().into()).unwrap().unwrap();
        let old = tempfile::tempfile().unwrap();
        let journal = Journal::begin(old.into(), Header { boot_id: [7; 16], ..header }).unwrap();
        let mut bytes = [0; crate::journal::HEADER_BYTES];
        pread(journal.fd(), &mut bytes, 0).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
    }

    /// A part with chunks 0, 2, 3, 5, 8 and the hole 6..8, written before a restart of the machine.
    fn old_part(dir: &Path, bytes: &[u8]) -> PartFile {
        let target = TargetDir::open(dir).unwrap();
        let part = target.open_or_resume(&entry(bytes), &KEY).unwrap();
        [0, 2, 3, 5, 8].iter().for_each(|index| put(&part, bytes, *index));
        part.write_hole(6..8).unwrap();
        drop(part);
        restart_machine(dir);
        target.resume(&entry(bytes), &KEY).unwrap().unwrap()
    }

    fn spoil(dir: &Path, chunk: u64) {
        let part = File::options().write(true).open(dir.join(".f.wraith-part")).unwrap();
        part.write_all_at(b"lost", chunk * CHUNK_BYTES as u64 + 4096).unwrap();
    }

    fn ranges(part: &PartFile) -> Vec<Range<u64>> {
        part.have().iter().collect()
    }

    #[test]
    fn after_a_restart_only_chunks_on_disk_are_valid() {
        let (dir, bytes) = (tempfile::tempdir().unwrap(), content());
        let mut part = old_part(dir.path(), &bytes);
        assert!(part.needs_recheck() && part.have().is_empty());
        spoil(dir.path(), 2);
        spoil(dir.path(), 7);
        let mut read = 0;
        part.recheck(|now| {
            read = now;
            true
        })
        .unwrap();
        // Five chunks, the hole, and the chunk in it that is no longer zeros.
        assert_eq!((read, part.needs_recheck()), (7, false));
        assert_eq!(ranges(&part), [0..1, 3..4, 5..7, 8..9]);
        // As long as no other program writes to it, this process trusts the result.
        put(&part, &bytes, 1);
        drop(part);
        let target = TargetDir::open(dir.path()).unwrap();
        let part = target.resume(&entry(&bytes), &KEY).unwrap().unwrap();
        assert!(!part.needs_recheck());
        assert_eq!(ranges(&part), [0..2, 3..4, 5..7, 8..9]);
        [2, 4].iter().for_each(|index| put(&part, &bytes, *index));
        part.write_hole(7..8).unwrap();
        part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
        drop((part, target));
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), bytes);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_recheck_that_is_stopped_or_never_made_loses_nothing() {
        let (dir, bytes) = (tempfile::tempdir().unwrap(), content());
        let mut part = old_part(dir.path(), &bytes);
        part.recheck(|read| read < 3).unwrap();
        assert!(part.needs_recheck() && part.have().is_empty());
        drop(part);
        let target = TargetDir::open(dir.path()).unwrap();
        let part = target.resume(&entry(&bytes), &KEY).unwrap().unwrap();
        // Without a recheck, new chunks are accepted at once, and are checked with the rest after
        // the next start.
        put(&part, &bytes, 4);
        put(&part, &bytes, 0);
        assert_eq!(ranges(&part), [0..1, 4..5]);
        drop(part);
        let mut part = target.resume(&entry(&bytes), &KEY).unwrap().unwrap();
        assert!(part.needs_recheck());
        part.recheck(|_| true).unwrap();
        assert_eq!(ranges(&part), [0..1, 2..9]);
        put(&part, &bytes, 1);
        part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), bytes);
    }

    /// Returns a part with its first chunk.
    fn begun() -> (tempfile::TempDir, Vec<u8>, TargetDir, PartFile) {
        let (dir, bytes) = (tempfile::tempdir().unwrap(), content());
        let target = TargetDir::open(dir.path()).unwrap();
        let part = target.open_or_resume(&entry(&bytes), &KEY).unwrap();
        put(&part, &bytes, 0);
        (dir, bytes, target, part)
    }

    #[test]
    fn a_part_copied_from_elsewhere_is_proven_first() {
        let (dir, bytes, target, part) = begun();
        drop(part);
        let hidden = dir.path().join(".f.wraith-part");
        let copied = fs::read(&hidden).unwrap();
        fs::rename(&hidden, dir.path().join("away")).unwrap();
        fs::write(&hidden, copied).unwrap();
        let mut part = target.resume(&entry(&bytes), &KEY).unwrap().unwrap();
        assert!(part.needs_recheck() && part.have().is_empty());
        part.recheck(|_| true).unwrap();
        assert_eq!(ranges(&part), [0..1]);
    }

    #[test]
    fn after_the_disk_failed_once_nothing_that_was_open_counts_unread() {
        let (_dir, bytes, target, part) = begun();
        // Even a failure of another file.
        let failed = crate::error::Error::Changed { path: "g".into() };
        assert!(part.target.stable.record_result(Err(failed)).is_err());
        drop(part);
        let part = target.resume(&entry(&bytes), &KEY).unwrap().unwrap();
        assert!(part.needs_recheck() && part.have().is_empty());
    }
}
