//! Checks whether the file under a taken name already has the content of the new file for that
//! name.
//!
//! The content is always read and compared; equal sizes and times prove nothing. An unreadable file
//! is treated as different.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fstat};

use crate::beneath::open_child;
use crate::hash::Root;
use crate::read::{read_at, read_chunk};
use crate::runs::Runs;
use crate::tree::Tree;

/// Number of bytes compared at a time.
const COMPARE_BYTES: usize = 64 * 1024;

/// Returns true if `name` is a regular file with exactly the content of `own`.
pub(crate) fn has_content(dir: BorrowedFd<'_>, name: &[u8], own: BorrowedFd<'_>) -> bool {
    let Ok(size) = fstat(own).map(|stat| stat.st_size as u64) else { return false };
    let Some(fd) = open_regular(dir, name, size) else { return false };
    let mut ours = vec![0; COMPARE_BYTES];
    let mut theirs = vec![0; COMPARE_BYTES];
    let mut offset = 0;
    while offset < size {
        let len = COMPARE_BYTES.min((size - offset) as usize);
        let is_read = read_at(own, &mut ours[..len], offset) == Ok(len)
            && read_at(fd.as_fd(), &mut theirs[..len], offset) == Ok(len);
        if !is_read || ours[..len] != theirs[..len] {
            return false;
        }
        offset += len as u64;
    }
    true
}

/// Returns true if `name` is a regular file of `size` bytes with this root.
pub(crate) fn has_root(
    dir: BorrowedFd<'_>,
    name: &[u8],
    size: u64,
    (tree, root): (Tree, &Root),
) -> bool {
    open_regular(dir, name, size).is_some_and(|fd| has_root_open(fd.as_fd(), size, (tree, root)))
}

/// Returns true if `fd` is a file of `size` bytes with this root.
pub(crate) fn has_root_open(fd: BorrowedFd<'_>, size: u64, (tree, root): (Tree, &Root)) -> bool {
    let read = |index, buffer: &mut [u8]| read_chunk(fd, size, index, buffer);
    let is_as_long = || fstat(fd).is_ok_and(|stat| stat.st_size as u64 == size);
    let now = Runs::detect(fd, size).root(tree, read, || true);
    now == Ok(Some(*root)) && is_as_long()
}

fn open_regular(dir: BorrowedFd<'_>, name: &[u8], size: u64) -> Option<OwnedFd> {
    let fd = open_child(dir, name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let stat = fstat(&fd).ok()?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (regular && stat.st_size as u64 == size).then_some(fd)
}
