//! Detects whether another process has written to a part file.
//!
//! Every change of a file changes its ctime, which no program can set. If the part's ctime, size
//! and inode equal those after this process's last write, no other process has written after that
//! write. This holds between two writes of this process. Exception: a foreign change during such a
//! write, or in the same tick of the file system's clock, is not detected.
//!
//! A new part has a name, and so possibly other writers, before its state is known. Three steps
//! close that gap:
//!
//! 1. The part gets a modification time that no write leaves ([`mark_new`]).
//! 2. Its stamp (ctime, size and inode) is read.
//! 3. Its content is inspected, which finds earlier writes. Later writes remove the mark, even in
//!    the same tick.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{fstat, futimens};

use crate::entry::Mtime;
use crate::lock::lock;
use crate::source::Stamp;
use crate::write::timestamps;

/// Maximum number of parts remembered between two connections of this process.
const REMEMBERED_MAX: usize = 4096;

/// Stamps of the parts that this process has closed, by device and inode.
static LEFT: Mutex<BTreeMap<(u64, u64), Stamp>> = Mutex::new(BTreeMap::new());

/// Modification time of a part that was never written: in the past, and representable in every file
/// system (2000-01-01).
const NEVER_WRITTEN: Mtime = Mtime { s: 946_684_800, ns: 0 };

/// Detector of foreign writes to one part; see the module documentation.
#[derive(Debug)]
pub(crate) struct OnlyWriter {
    /// Stamp after this process's last write. `None` if the system does not return a stamp; a
    /// foreign write is then considered possible.
    stamp: Option<Stamp>,
    disturbed: bool,
    /// True if something was written since [`Self::before_write`].
    has_written: bool,
}

impl OnlyWriter {
    /// Starts detection for a part of `size` bytes. If the part has any other size, that is treated
    /// as a foreign write.
    pub(crate) fn of(fd: BorrowedFd<'_>, size: u64) -> Self {
        let stamp = stamp_of(fd).filter(|stamp| stamp.size == size);
        Self { stamp, disturbed: false, has_written: false }
    }

    /// Returns true if no process wrote between [`mark_new`] and [`Self::of`].
    pub(crate) fn is_new(&self) -> bool {
        self.stamp.is_some_and(|stamp| stamp.mtime == NEVER_WRITTEN)
    }

    /// Returns true if this process closed the part and no other process wrote to it between then
    /// and [`Self::of`].
    pub(crate) fn is_as_we_left_it(&self) -> bool {
        let left = |stamp: Stamp| lock(&LEFT).get(&(stamp.dev, stamp.ino)) == Some(&stamp);
        self.stamp.is_some_and(left)
    }

    /// Call this before a write of this process, while no other such write is in progress.
    pub(crate) fn before_write(&mut self, fd: BorrowedFd<'_>) {
        self.disturbed |= !self.is_as_left(fd);
    }

    /// Records the end of a write of this process. Other such writes may still be in progress.
    pub(crate) fn wrote(&mut self) {
        self.has_written = true;
    }

    /// Call this after writes of this process, while no other such write is in progress. If none of
    /// these writes called [`wrote`](Self::wrote), any change is foreign.
    pub(crate) fn after_write(&mut self, fd: BorrowedFd<'_>) {
        if !std::mem::take(&mut self.has_written) {
            self.disturbed |= !self.is_as_left(fd);
            return;
        }
        let now = stamp_of(fd);
        let same = |a: Stamp, b: Stamp| (a.dev, a.ino, a.size) == (b.dev, b.ino, b.size);
        // The writes of this process never change the size.
        self.disturbed |= !self.stamp.zip(now).is_some_and(|(then, now)| same(then, now));
        self.stamp = now;
    }

    /// Records a foreign write.
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// Returns true if no other process has written after [`Self::of`].
    pub(crate) fn is_alone(&self, fd: BorrowedFd<'_>) -> bool {
        !self.disturbed && self.is_as_left(fd)
    }

    fn is_as_left(&self, fd: BorrowedFd<'_>) -> bool {
        self.stamp.is_some() && self.stamp == stamp_of(fd)
    }

    /// Remembers the stamp of a part that is being closed. While the stamp stays the same, the
    /// chunks need no recheck.
    pub(crate) fn remember(&self, fd: BorrowedFd<'_>) {
        let Some(stamp) = self.stamp.filter(|_| self.is_alone(fd)) else { return };
        let mut left = lock(&LEFT);
        if left.len() >= REMEMBERED_MAX {
            // Parts that are no longer remembered are hashed again, which only costs time.
            left.clear();
        }
        left.insert((stamp.dev, stamp.ino), stamp);
    }
}

/// Marks a part that was just created. A file system that does not keep the time makes every part
/// look written to.
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

    /// Returns true if a foreign write between `before_write` and `after_write` is detected.
    fn is_seen(ours: impl Fn(&File, &mut OnlyWriter)) -> bool {
        let file = tempfile::tempfile_in(".").unwrap();
        file.set_len(9).unwrap();
        let mut writer = OnlyWriter::of(file.as_fd(), 9);
        // Longer than the tick of any clock.
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
    fn a_change_without_an_own_write_is_foreign() {
        assert!(is_seen(|_, _| {}));
        // A ctime cannot show more than this.
        assert!(!is_seen(|file, writer| {
            file.write_all_at(b"ours", 0).unwrap();
            writer.wrote();
        }));
    }
}
