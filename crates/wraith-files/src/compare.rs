//! Is what stands under a name already the file that is to get it? Asked only when the name is taken.
//!
//! Content is always read and compared; equal sizes and times prove nothing. Anything that cannot be read is not the same.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::{Errno, pread};

use crate::beneath::open_child;
use crate::hash::{CHUNK_BYTES, Root};

/// Bytes compared at a time.
const COMPARE_BYTES: usize = 64 * 1024;

/// True if `name` is a regular file with exactly this content.
pub(crate) fn has_content(dir: BorrowedFd<'_>, name: &[u8], pieces: &[&[u8]]) -> bool {
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    let Some(fd) = open_regular(dir, name, len as u64) else { return false };
    let mut buffer = vec![0; COMPARE_BYTES.min(len)];
    let mut offset = 0;
    for piece in pieces.iter().flat_map(|piece| piece.chunks(COMPARE_BYTES)) {
        let mut rest = piece;
        while !rest.is_empty() {
            match pread(&fd, &mut buffer[..rest.len()], offset) {
                Ok(0) => return false,
                Ok(read) if buffer[..read] != rest[..read] => return false,
                Ok(read) => {
                    rest = &rest[read..];
                    offset += read as u64;
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
    true
}

/// True if `name` is a regular file of `size` bytes whose BLAKE3 is `root`.
pub(crate) fn has_root(dir: BorrowedFd<'_>, name: &[u8], size: u64, root: &Root) -> bool {
    let Some(fd) = open_regular(dir, name, size) else { return false };
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    loop {
        match pread(&fd, &mut buffer, offset) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&buffer[..read]);
                offset += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    offset == size && hasher.finalize() == *root
}

fn open_regular(dir: BorrowedFd<'_>, name: &[u8], size: u64) -> Option<OwnedFd> {
    let fd = open_child(dir, name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let stat = fstat(&fd).ok()?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (regular && stat.st_size as u64 == size).then_some(fd)
}
