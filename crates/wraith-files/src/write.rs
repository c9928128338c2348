//! Writes bytes and metadata to an open file.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, Stat, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat, futimens};
use rustix::io::{Errno, Result, pwrite, pwritev};
use smallvec::SmallVec;

use crate::entry::Mtime;

/// Maximum number of slices passed to the kernel at once: `IOV_MAX` of Linux.
const PIECES_MAX: usize = 1024;

/// Alignment and maximum size in bytes of a write. Linux uses page-cache folios as large as the
/// write where the file system can (ext4 since 6.16, XFS). Up to 32 KiB (`PAGE_ALLOC_COSTLY_ORDER`)
/// such a folio is usually available. For a larger folio, a machine whose memory is full of cached
/// pages must move other pages. In a measurement that doubled the time to write a gigabyte. Smaller
/// writes cost more calls and more bookkeeping.
const WRITE_BYTES: u64 = 32 * 1024;

/// Permission bits. Set-uid, set-gid and sticky never come from a peer: only the owner may decide
/// that a program runs as its owner.
pub(crate) const PERMISSION_BITS: u32 = 0o777;

/// Writes the concatenation of `pieces` completely, from `offset` on.
pub(crate) fn write_all_at(fd: BorrowedFd<'_>, pieces: &[&[u8]], mut offset: u64) -> Result<()> {
    // Bytes not yet written: the rest of the current piece, and the pieces after it.
    let (mut rest, mut after): (&[u8], _) = (&[], pieces);
    loop {
        while rest.is_empty() {
            let Some((first, others)) = after.split_first() else { return Ok(()) };
            (rest, after) = (first, others);
        }
        let room = (WRITE_BYTES - offset % WRITE_BYTES) as usize;
        if after.is_empty() || rest.len() >= room {
            let (now, later) = rest.split_at(room.min(rest.len()));
            write_piece_at(fd, now, offset)?;
            (rest, offset) = (later, offset + now.len() as u64);
            continue;
        }
        // A boundary between pieces: this call writes the end of one piece and the beginning of the
        // next ones.
        let mut run: SmallVec<[&[u8]; 4]> = SmallVec::new();
        let mut left = room;
        loop {
            let (now, later) = rest.split_at(left.min(rest.len()));
            run.push(now);
            (rest, left) = (later, left - now.len());
            match after.split_first() {
                Some((first, others)) if left > 0 => (rest, after) = (first, others),
                _ => break,
            }
        }
        write_run_at(fd, &run, offset)?;
        offset += (room - left) as u64;
    }
}

fn write_run_at(fd: BorrowedFd<'_>, pieces: &[&[u8]], mut offset: u64) -> Result<()> {
    if let [piece] = pieces {
        return write_piece_at(fd, piece, offset);
    }
    for batch in pieces.chunks(PIECES_MAX) {
        let mut slices: SmallVec<[IoSlice<'_>; 4]> =
            batch.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = slices.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match pwritev(fd, rest, offset) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

fn write_piece_at(fd: BorrowedFd<'_>, mut piece: &[u8], mut offset: u64) -> Result<()> {
    while !piece.is_empty() {
        match pwrite(fd, piece, offset) {
            // No file system should return this; without the check the loop would never end.
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => {
                piece = &piece[written..];
                offset += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Metadata that could not be set, for example because the file system does not support it.
/// Counted, not fatal: the content is more important.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataErrors {
    /// Number of permissions that could not be set.
    pub modes: u64,
    /// Number of modification times that could not be set.
    pub times: u64,
}

impl std::ops::AddAssign for MetadataErrors {
    fn add_assign(&mut self, other: Self) {
        self.modes += other.modes;
        self.times += other.times;
    }
}

/// Sets permissions (the low nine bits of `mode`) and modification time. Returns the errors.
pub(crate) fn set_metadata(fd: BorrowedFd<'_>, mode: u32, mtime: Mtime) -> MetadataErrors {
    let mut metadata_errors = MetadataErrors::default();
    match fstat(fd) {
        // Usually right from creation; checking is cheaper than setting.
        Ok(stat) if permissions(&stat) == mode & PERMISSION_BITS => {}
        Ok(stat) => {
            // Keep bits that a directory inherited from its parent (set-gid).
            let special = stat.st_mode & 0o7000;
            let mode = Mode::from_raw_mode(special | (mode & PERMISSION_BITS));
            metadata_errors.modes += u64::from(fchmod(fd, mode).is_err());
        }
        Err(_) => metadata_errors.modes += 1,
    }
    metadata_errors.times += u64::from(futimens(fd, &timestamps(mtime)).is_err());
    metadata_errors
}

pub(crate) fn permissions(stat: &Stat) -> u32 {
    stat.st_mode & PERMISSION_BITS
}

/// Sets the modification time and leaves the access time.
pub(crate) fn timestamps(mtime: Mtime) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.s, tv_nsec: mtime.ns.into() },
    }
}

/// Size in bytes of the blocks checked for zeros: the page and block size of practically every file
/// system.
const ZERO_BLOCK_BYTES: usize = 4096;

/// Writes `pieces` at `offset`, a multiple of 4 KiB, leaving out blocks of zeros. The range must be
/// a hole before.
pub(crate) fn write_sparse_at(fd: BorrowedFd<'_>, pieces: &[&[u8]], offset: u64) -> Result<()> {
    // Consecutive blocks of the same type are written with one call. Pieces end anywhere, so blocks
    // may cross their borders.
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut start = 0;
    while start < len {
        let block_end = |at: usize| (at + ZERO_BLOCK_BYTES).min(len);
        let is_zero = |at: usize| cut(pieces, at, block_end(at)).all(is_all_zero);
        let zero = is_zero(start);
        let mut end = block_end(start);
        while end < len && is_zero(end) == zero {
            end = block_end(end);
        }
        if !zero {
            let run: Vec<&[u8]> = cut(pieces, start, end).collect();
            write_all_at(fd.as_fd(), &run, offset + start as u64)?;
        }
        start = end;
    }
    Ok(())
}

/// Iterates over the parts of `pieces` that make up bytes `start..end` of the whole.
fn cut<'a>(
    pieces: &'a [&'a [u8]],
    start: usize,
    end: usize,
) -> impl Iterator<Item = &'a [u8]> + 'a {
    let mut at = 0;
    pieces.iter().filter_map(move |piece| {
        let (from, to) = (start.max(at), end.min(at + piece.len()));
        let part = (from < to).then(|| &piece[from - at..to - at]);
        at += piece.len();
        part
    })
}

pub(crate) fn is_all_zero(bytes: &[u8]) -> bool {
    // Compare words first: the compiler vectorises this.
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0) && rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    use proptest::prelude::*;

    use super::*;

    /// Cuts `bytes` at the positions `cuts`.
    fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        ends.push(bytes.len());
        ends.sort_unstable();
        let starts = std::iter::once(0).chain(ends.clone());
        starts.zip(ends.clone()).map(|(start, end)| &bytes[start..end]).collect()
    }

    fn content_of(mut file: std::fs::File) -> Vec<u8> {
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn more_pieces_than_the_kernel_takes_are_written() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..3000u32).map(|n| n as u8).collect();
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        write_all_at(file.as_fd(), &pieces, 0).unwrap();
        assert_eq!(content_of(file), bytes);
    }

    #[test]
    fn blocks_of_zeros_take_no_space() {
        let file = tempfile::tempfile_in(".").unwrap();
        let mut bytes = vec![0; 256 * 1024];
        bytes[100_000] = 1;
        file.set_len(bytes.len() as u64).unwrap();
        write_sparse_at(file.as_fd(), &pieces(&bytes, &[1, 5000, 99_999]), 0).unwrap();
        file.sync_all().unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 64 * 1024);
        assert_eq!(content_of(file), bytes);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sparse_and_plain_writing_give_the_same_content(
            blocks in proptest::collection::vec((any::<bool>(), 0usize..4096), 1..12),
            tail in 0usize..5000,
            cuts in proptest::collection::vec(any::<usize>(), 0..6),
        ) {
            let mut bytes = vec![0; blocks.len() * 4096 + tail];
            for (n, (zero, at)) in blocks.iter().enumerate() {
                bytes[n * 4096 + at] = u8::from(!zero);
            }
            let (sparse, plain) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            sparse.set_len(bytes.len() as u64).unwrap();
            write_sparse_at(sparse.as_fd(), &pieces(&bytes, &cuts), 0).unwrap();
            write_all_at(plain.as_fd(), &pieces(&bytes, &cuts), 0).unwrap();
            prop_assert_eq!(content_of(sparse), bytes.clone());
            prop_assert_eq!(content_of(plain), bytes);
        }
    }
}
