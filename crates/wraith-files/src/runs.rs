//! Maps a file into runs of data and hole chunks, using the file system's extent map. Computes the
//! root from these runs.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, SeekFrom, Stat, fstat, seek};
use rustix::io::Errno;

use crate::hash::{CHUNK_BYTES, Root, chunk_count, chunk_len};
use crate::read::read_chunk;
use crate::root_builder::RootBuilder;
use crate::tree::{POSITION_FREE_BYTES_MIN, Tree};

/// Chunks of zeros hashed between two checks whether to go on (64 MiB: a hundredth of a second).
pub(crate) const HOLE_STEP_CHUNKS: u64 = 256;

/// Maximum number of holes smaller than a chunk to pass before a run of data is returned. A search
/// for the end of the run must not delay other threads. The limit is about a tenth of a
/// millisecond.
const LOOKS_MAX: usize = 32;

/// Returns true if the file has fewer blocks than its size needs. Blocks are always counted in
/// units of 512 bytes.
pub(crate) fn is_sparse(stat: &Stat) -> bool {
    hole_bytes(stat) > 0
}

/// Returns the hash tree of a sparse file; `None` for any other.
pub(crate) fn sparse_tree(stat: &Stat) -> Option<Tree> {
    match hole_bytes(stat) {
        0 => None,
        POSITION_FREE_BYTES_MIN.. => Some(Tree::PositionFree),
        _ => Some(Tree::Blake3),
    }
}

fn hole_bytes(stat: &Stat) -> u64 {
    (stat.st_size as u64).saturating_sub((stat.st_blocks as u64).saturating_mul(512))
}

/// Returns the BLAKE3 hash of a sparse file. `None` for any other file, and for a file shorter than
/// its reported size, which must be read to its end.
pub fn sparse_file_root(file: &File) -> io::Result<Option<Root>> {
    let stat = fstat(file)?;
    let size = stat.st_size as u64;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_sparse(&stat) {
        return Ok(None);
    }
    let read = |index, buffer: &mut [u8]| match read_chunk(file.as_fd(), size, index, buffer) {
        Ok(read) if read < chunk_len(size, index) => Err(None),
        done => done.map_err(Some),
    };
    match Runs::of(file.as_fd(), RunCursor::of(size, true)).root(Tree::Blake3, read, || true) {
        Ok(root) => Ok(root),
        Err(None) => Ok(None),
        Err(Some(errno)) => Err(errno.into()),
    }
}

/// A run of chunks of the same type on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// Chunks with data.
    Data(Range<u64>),
    /// Chunks that are entirely hole: zeros that take no space and need not be read.
    Hole(Range<u64>),
}

/// Position of the next run of a file. The extent map is queried run by run, so this takes a few
/// words of memory, however many holes the file has.
#[derive(Clone, Copy, Debug)]
pub struct RunCursor {
    size: u64,
    sparse: bool,
    next: u64,
    end: u64,
    /// End of the hole that starts at `next`, found while looking for the end of the data before
    /// it.
    hole_end: Option<u64>,
}

impl RunCursor {
    /// Covers all chunks of a file of `size` bytes. Queries the file system only if the file is
    /// `sparse`.
    pub(crate) fn of(size: u64, sparse: bool) -> Self {
        Self { size, sparse, next: 0, end: chunk_count(size), hole_end: None }
    }

    /// Covers all chunks of a file of `size` bytes as one run of data, ignoring any holes.
    pub fn dense(size: u64) -> Self {
        Self::of(size, false)
    }

    /// Returns the next run of the file `fd`.
    pub(crate) fn next(&mut self, fd: BorrowedFd<'_>) -> Option<Run> {
        let (chunk, size, end) = (CHUNK_BYTES as u64, self.size, self.end);
        if self.next >= end {
            return None;
        }
        let first = self.next;
        if !self.sparse {
            self.next = end;
            return Some(Run::Data(first..end));
        }
        // Returns the first offset of data (or hole). The file's end is treated as the start of a
        // hole.
        let seek = |to: SeekFrom| match seek(fd, to) {
            Ok(offset) => Some(offset),
            Err(Errno::NXIO) => Some(size),
            Err(_) => None,
        };
        // A hole's last chunk is included if the hole reaches the end of the file within that
        // chunk.
        let whole_chunks_before = |at: u64| if at >= size { end } else { end.min(at / chunk) };
        let data_from = match self.hole_end.take() {
            Some(end) => end,
            None => seek(SeekFrom::Data(first * chunk)).unwrap_or(first * chunk),
        };
        if whole_chunks_before(data_from) > first {
            self.next = whole_chunks_before(data_from);
            return Some(Run::Hole(first..self.next));
        }
        // Data, up to the first hole that covers a whole chunk, or as far as a bounded search goes.
        let mut at = data_from;
        for looks in 1.. {
            let hole = seek(SeekFrom::Hole(at)).unwrap_or(size);
            let data = if hole >= size { size } else { seek(SeekFrom::Data(hole)).unwrap_or(size) };
            let first_whole = hole.div_ceil(chunk);
            if hole >= size || first_whole >= end || whole_chunks_before(data) > first_whole {
                // At least one chunk, even if the file changes during the search.
                self.next = first_whole.clamp(first + 1, end);
                self.hole_end = Some(data);
                break;
            }
            at = data;
            if looks >= LOOKS_MAX && at / chunk > first {
                self.next = at / chunk;
                break;
            }
        }
        Some(Run::Data(first..self.next))
    }
}

/// Chunks of an open file as runs of data and hole, in order. A file system without an extent map
/// yields one run of data.
#[derive(Debug)]
pub struct Runs<'a> {
    fd: BorrowedFd<'a>,
    cursor: RunCursor,
}

impl<'a> Runs<'a> {
    /// Iterates over the runs from `cursor` on.
    pub(crate) fn of(fd: BorrowedFd<'a>, cursor: RunCursor) -> Self {
        Self { fd, cursor }
    }

    /// Iterates over all chunks of a file of `size` bytes, after checking whether it is sparse.
    pub(crate) fn detect(fd: BorrowedFd<'a>, size: u64) -> Self {
        Self::of(fd, RunCursor::of(size, fstat(fd).is_ok_and(|stat| is_sparse(&stat))))
    }

    /// Restricts the iterator to these chunks.
    pub(crate) fn within(mut self, chunks: &Range<u64>) -> Self {
        let end = self.cursor.end.min(chunks.end);
        self.cursor = RunCursor { next: chunks.start, end, hole_end: None, ..self.cursor };
        self
    }

    /// Returns the root of the file. Calls `read` to read data to the front of the given buffer,
    /// and hashes it. Holes are hashed unless `tree` knows zeros. Returns `None` as soon as `go_on`
    /// returns false; it is called before each chunk or 64 MiB of a hole.
    pub(crate) fn root<E>(
        self,
        tree: Tree,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<usize, E>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<Root>, E> {
        let size = self.cursor.size;
        let mut root = RootBuilder::of(tree);
        let mut buffer = vec![0; size.min(CHUNK_BYTES as u64) as usize];
        for run in self {
            let (chunks, step, is_hole) = match run {
                Run::Data(chunks) => (chunks, 1, false),
                Run::Hole(chunks) if tree.knows_zeros() => (chunks, u64::MAX, true),
                Run::Hole(chunks) => (chunks, HOLE_STEP_CHUNKS, true),
            };
            let mut first = chunks.start;
            while first < chunks.end {
                if !go_on() {
                    return Ok(None);
                }
                let end = chunks.end.min(first.saturating_add(step));
                if is_hole {
                    root.set_zeros(first..end, size);
                } else {
                    let len = read(first, &mut buffer)?;
                    root.set(first, tree.chunk_hash(size, first, &[&buffer[..len]]));
                }
                first = end;
            }
        }
        Ok(Some(root.finish(size).expect("the runs are all its chunks")))
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        self.cursor.next(self.fd)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    /// Returns a file of `len` bytes with data at some places, and its content.
    fn file(len: usize, places: &[usize]) -> (File, Vec<u8>) {
        let file = tempfile::tempfile_in(".").unwrap();
        file.set_len(len as u64).unwrap();
        let mut bytes = vec![0; len];
        for &at in places.iter().filter(|&&at| at < len) {
            bytes[at] = 1;
            file.write_all_at(&[1], at as u64).unwrap();
        }
        (file, bytes)
    }

    fn root_of(file: &File, tree: Tree) -> Option<Root> {
        let size = file.metadata().unwrap().len();
        let read = |index, buffer: &mut [u8]| read_chunk(file.as_fd(), size, index, buffer);
        Runs::detect(file.as_fd(), size).root(tree, read, || true).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_map_of_a_file_gives_the_root_of_its_bytes(
            len in 1..12 * CHUNK_BYTES,
            places in prop::collection::vec(0..12 * CHUNK_BYTES, 0..5),
            part in (0u64..12, 0u64..12),
        ) {
            let (file, bytes) = file(len, &places);
            prop_assert_eq!(root_of(&file, Tree::Blake3), Some(blake3::hash(&bytes).into()));
            if let Some(root) = sparse_file_root(&file).unwrap() {
                prop_assert_eq!(root, *blake3::hash(&bytes).as_bytes());
            }
            let (tree, size) = (Tree::PositionFree, len as u64);
            let mut expected = RootBuilder::of(tree);
            for (index, chunk) in (0..).zip(bytes.chunks(CHUNK_BYTES)) {
                expected.push(tree.chunk_hash(size, index, &[chunk]));
            }
            prop_assert_eq!(root_of(&file, tree), expected.finish(size));

            // A query for a part returns exactly that part.
            let part = part.0.min(part.1)..part.0.max(part.1).min(chunk_count(size));
            let mut next = part.start;
            for run in Runs::detect(file.as_fd(), size).within(&part) {
                let (Run::Data(chunks) | Run::Hole(chunks)) = &run;
                prop_assert!(chunks.start == next && chunks.end > next && chunks.end <= part.end);
                next = chunks.end;
                if let Run::Hole(chunks) = run {
                    let bytes = bytes.chunks(CHUNK_BYTES).take(chunks.end as usize);
                    let mut bytes = bytes.skip(chunks.start as usize).flatten();
                    prop_assert!(bytes.all(|&byte| byte == 0));
                }
            }
            prop_assert!(next == part.end || part.is_empty());
        }
    }

    #[test]
    fn a_root_that_is_not_wanted_any_more_is_given_up() {
        let (file, _) = file(5 * CHUNK_BYTES, &[3]);
        let read = |_, _: &mut [u8]| -> Result<usize, ()> { panic!("nothing is read") };
        let size = 5 * CHUNK_BYTES as u64;
        assert_eq!(Runs::detect(file.as_fd(), size).root(Tree::Blake3, read, || false), Ok(None));
    }

    #[test]
    fn a_sparse_file_that_cannot_be_read_has_no_root_and_is_not_read_again() {
        let path = tempfile::NamedTempFile::new_in(".").unwrap().into_temp_path();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(5 * CHUNK_BYTES as u64).unwrap();
        file.write_all_at(&[1], 0).unwrap();
        sparse_file_root(&file).unwrap_err();
        let file = File::open(&path).unwrap();
        assert!(sparse_file_root(&file).unwrap().is_some());
        // The file no longer has a hole.
        std::fs::write(&path, [1; 4096]).unwrap();
        assert_eq!(sparse_file_root(&file).unwrap(), None);
    }

    #[test]
    fn small_holes_without_number_do_not_make_a_run_take_long() {
        let chunks = 20;
        let every = 2 * 4096;
        // The last two chunks are a hole.
        let places: Vec<usize> = (0..(chunks - 2) * CHUNK_BYTES).step_by(every).collect();
        let (file, bytes) = file(chunks * CHUNK_BYTES, &places);
        let size = bytes.len() as u64;
        let runs: Vec<Run> = Runs::detect(file.as_fd(), size).collect();
        let (hole, data) = runs.split_last().unwrap();
        assert_eq!(*hole, Run::Hole(18..20));
        let most = (LOOKS_MAX * every) as u64 / CHUNK_BYTES as u64 + 1;
        for run in data {
            assert!(matches!(run, Run::Data(chunks) if chunks.end - chunks.start <= most));
        }
        assert_eq!(root_of(&file, Tree::Blake3), Some(blake3::hash(&bytes).into()));
    }

    #[test]
    fn only_holes_that_cost_much_give_another_tree() {
        let tree = |size: u64| {
            let file = tempfile::tempfile_in(".").unwrap();
            file.set_len(size).unwrap();
            file.write_all_at(&[1], 0).unwrap();
            file.sync_all().unwrap();
            sparse_tree(&fstat(&file).unwrap())
        };
        assert_eq!(tree(1), None);
        assert_eq!(tree(POSITION_FREE_BYTES_MIN), Some(Tree::Blake3));
        assert_eq!(tree(POSITION_FREE_BYTES_MIN + (1 << 20)), Some(Tree::PositionFree));
    }
}
