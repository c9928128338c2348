//! Positional reads from an open file.

use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result, pread};

use crate::hash::{CHUNK_BYTES, chunk_len};

/// Fills `buffer` with the bytes from `offset` on. Returns how many were read: fewer if the file
/// ends earlier.
pub(crate) fn read_at(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match pread(fd, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Reads chunk `index` of a file of `size` bytes to the front of `buffer`. Returns the number of
/// bytes read: fewer if the file has become shorter.
pub(crate) fn read_chunk(
    fd: BorrowedFd<'_>,
    size: u64,
    index: u64,
    buffer: &mut [u8],
) -> Result<usize> {
    read_at(fd, &mut buffer[..chunk_len(size, index)], index * CHUNK_BYTES as u64)
}
