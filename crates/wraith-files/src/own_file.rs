//! Checks of an open file before this process writes to it.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Stat, fstat};

/// Returns true for a regular file of this user with only one name: writing to it changes nothing
/// else.
pub(crate) fn is_own(fd: &OwnedFd) -> bool {
    fstat(fd).is_ok_and(|stat| is_own_file(&stat))
}

/// Like [`is_own`], and no other user may write to it, so its content comes from this user.
pub(crate) fn is_private(fd: &OwnedFd) -> bool {
    fstat(fd).is_ok_and(|stat| is_own_file(&stat) && stat.st_mode & 0o022 == 0)
}

fn is_own_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_nlink == 1
        && stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Returns device and inode.
pub(crate) fn file_id(fd: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    let stat = fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}
