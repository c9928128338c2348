//! Has anybody but this process written to a part file?
//!
//! Every change of a file changes its ctime, which no program can set. A part whose ctime (and size and inode) is the one that
//! our last write left was written by nobody else since. That holds from one write of ours to the next, so a change that falls
//! into the very time of one of our writes, or into the same tick of the file system's clock, is not seen.
//!
//! A new part has a name, and so other writers, before anything is known of it. It is marked with a modification time that no write
//! leaves ([`mark_new`]), then its stamp is taken, then it is looked at: what was written before the mark is found there, and what
//! comes after it takes the mark away, in the same tick too.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{fstat, futimens};

use crate::entry::Mtime;
use crate::lock::lock;
use crate::source::Stamp;
use crate::write::timestamps;

/// Parts that are remembered between two connections of this process.
const REMEMBERED_MAX: usize = 4096;

/// How this process left the parts that it has closed, by device and inode.
static LEFT: Mutex<BTreeMap<(u64, u64), Stamp>> = Mutex::new(BTreeMap::new());

/// Modification time of a part to which nobody has written: in the past, and one that every file system can keep (2000-01-01).
const NEVER_WRITTEN: Mtime = Mtime { s: 946_684_800, ns: 0 };

/// See the module.
#[derive(Debug)]
pub(crate) struct OnlyWriter {
    /// As our last write left it. `None` where the system does not tell: then somebody may have.
    stamp: Option<Stamp>,
    disturbed: bool,
    /// Since [`Self::before_write`] something was written.
    has_written: bool,
}

impl OnlyWriter {
    /// From now on. Of a part of `size` bytes: another size is somebody else's.
    pub(crate) fn of(fd: BorrowedFd<'_>, size: u64) -> Self {
        let stamp = stamp_of(fd).filter(|stamp| stamp.size == size);
        Self { stamp, disturbed: false, has_written: false }
    }

    /// True if nobody has written from [`mark_new`] to [`Self::of`].
    pub(crate) fn is_new(&self) -> bool {
        self.stamp.is_some_and(|stamp| stamp.mtime == NEVER_WRITTEN)
    }

    /// True if this process has closed the part, and nobody has written to it from then to [`Self::of`].
    pub(crate) fn is_as_we_left_it(&self) -> bool {
        let left = |stamp: Stamp| lock(&LEFT).get(&(stamp.dev, stamp.ino)) == Some(&stamp);
        self.stamp.is_some_and(left)
    }

    /// Before a write of ours, while no other one is under way.
    pub(crate) fn before_write(&mut self, fd: BorrowedFd<'_>) {
        self.disturbed |= !self.is_as_left(fd);
    }

    /// A write of ours has ended, maybe beside others.
    pub(crate) fn wrote(&mut self) {
        self.has_written = true;
    }

    /// After writes of ours, while no other one is under way. If none of them [`wrote`](Self::wrote) anything, a change is somebody
    /// else's.
    pub(crate) fn after_write(&mut self, fd: BorrowedFd<'_>) {
        if !std::mem::take(&mut self.has_written) {
            self.disturbed |= !self.is_as_left(fd);
            return;
        }
        let now = stamp_of(fd);
        let same = |a: Stamp, b: Stamp| (a.dev, a.ino, a.size) == (b.dev, b.ino, b.size);
        // Our writes never change its size.
        self.disturbed |= !self.stamp.zip(now).is_some_and(|(then, now)| same(then, now));
        self.stamp = now;
    }

    /// Somebody else has written.
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// True if nobody else has written since [`Self::of`].
    pub(crate) fn is_alone(&self, fd: BorrowedFd<'_>) -> bool {
        !self.disturbed && self.is_as_left(fd)
    }

    fn is_as_left(&self, fd: BorrowedFd<'_>) -> bool {
        self.stamp.is_some() && self.stamp == stamp_of(fd)
    }

    /// The part is closed: what counts of it counts again as long as it stays like this.
    pub(crate) fn remember(&self, fd: BorrowedFd<'_>) {
        let Some(stamp) = self.stamp.filter(|_| self.is_alone(fd)) else { return };
        let mut left = lock(&LEFT);
        if left.len() >= REMEMBERED_MAX {
            // They are hashed again, which costs time and nothing else.
            left.clear();
        }
        left.insert((stamp.dev, stamp.ino), stamp);
    }
}

/// Of a part that was just made. A file system that does not keep the time makes every part one that may have been written to.
pub(crate) fn mark_new(fd: BorrowedFd<'_>) {
    let _ = futimens(fd, &timestamps(NEVER_WRITTEN));
}

fn stamp_of(fd: BorrowedFd<'_>) -> Option<Stamp> {
    fstat(fd).ok().map(|stat| Stamp::of(&stat))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Is it seen that somebody else writes between our looks before and after?
    fn is_seen(ours: impl Fn(&File, &mut OnlyWriter)) -> bool {
        let file = tempfile::tempfile_in(".").unwrap();
        file.set_len(9).unwrap();
        let mut writer = OnlyWriter::of(file.as_fd(), 9);
        // Beyond the tick of any clock.
        std::thread::sleep(std::time::Duration::from_millis(30));
        writer.before_write(file.as_fd());
        file.write_all_at(b"theirs", 0).unwrap();
        ours(&file, &mut writer);
        writer.after_write(file.as_fd());
        !writer.is_alone(file.as_fd())
    }

    #[test]
    fn a_new_part_that_was_written_to_is_not_new_in_the_same_tick_either() {
        let file = tempfile::tempfile_in(".").unwrap();
        file.set_len(9).unwrap();
        mark_new(file.as_fd());
        let writer = OnlyWriter::of(file.as_fd(), 9);
        assert!(writer.is_new() && writer.is_alone(file.as_fd()));
        assert!(!OnlyWriter::of(file.as_fd(), 8).is_alone(file.as_fd()));
        file.write_all_at(b"x", 0).unwrap();
        assert!(!writer.is_alone(file.as_fd()));
        assert!(!OnlyWriter::of(file.as_fd(), 9).is_new());
    }

    #[test]
    fn a_change_while_nothing_is_written_is_somebody_elses() {
        assert!(is_seen(|_, _| {}));
        // The limit of what a ctime tells.
        assert!(!is_seen(|file, writer| {
            file.write_all_at(b"ours", 0).unwrap();
            writer.wrote();
        }));
    }
}
