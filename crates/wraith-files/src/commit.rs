//! Moves a finished file to its final name, atomically and without replacing another file by
//! default.
//!
//! A name is taken with calls that fail if it exists (`linkat`, `renameat2` with NOREPLACE,
//! `symlinkat`), so no check can race. Only [`OnConflict::Overwrite`] replaces, with a rename: the
//! name always shows the old file or the new one.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, OFlags, RenameFlags, flock, fstat, linkat, renameat,
    renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::beneath::open_child;
use crate::error::{Context, Error, Result};
use crate::hidden_names::{HiddenNames, copy_name, replacement_name};
use crate::lock::lock;
use crate::path::{RelPath, shown};
use crate::source::Stamp;

/// Policy for a name that something else has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Keep both: the new file is called `name (1).ext`.
    #[default]
    Rename,
    /// Replace the old file. Only an empty folder is replaced; beside any other folder the new file
    /// gets a number.
    Overwrite,
    /// Keep the old file.
    Skip,
}

/// How a finished file gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitOptions {
    /// Policy for a name that is already taken.
    pub on_conflict: OnConflict,
    /// Flush the content to disk before the rename, so that the name has the content even after a
    /// power cut.
    pub sync: bool,
}

/// Result of committing a file or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has its own name.
    Created,
    /// It replaced another file.
    Replaced,
    /// It has the name in [`Committed::path`].
    Renamed,
    /// The same content was already present; nothing was changed.
    AlreadyHere,
    /// Something else has the name and was kept.
    Skipped,
}

impl Outcome {
    /// Returns true if the received content was newly placed under a name.
    pub fn is_new(self) -> bool {
        matches!(self, Self::Created | Self::Replaced | Self::Renamed)
    }
}

/// Final state of a committed file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Result of the commit.
    pub outcome: Outcome,
    /// The name under which it is found.
    pub path: RelPath,
    /// Device, inode, size and times of the file at that name. `None` if it was skipped or has
    /// already disappeared.
    pub stamp: Option<Stamp>,
}

/// A finished object that can be given a name.
pub(crate) trait Nameable {
    /// Takes `name` in `dir`, or fails with `EXIST`.
    fn take(&self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()>;
    /// Takes `name` in `dir`, replacing the object there.
    fn replace(&self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()>;
    /// Returns true if the object at `name` in `dir` has the same content.
    fn is_same(&self, dir: BorrowedFd<'_>, name: &[u8]) -> bool;
}

/// Maximum number of copy names tried beside one name.
pub(crate) const COPIES_MAX: u32 = 9999;

/// Gives `thing` the name `path` in the parent `dir`, or the name chosen by the conflict policy.
pub(crate) fn commit(
    thing: &impl Nameable,
    dir: BorrowedFd<'_>,
    path: &RelPath,
    on_conflict: OnConflict,
) -> Result<Committed> {
    let name = path.file_name();
    let done = |outcome, path: &RelPath| {
        let at = statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW);
        let stamp = at.ok().filter(|_| outcome != Outcome::Skipped).map(|stat| Stamp::of(&stat));
        Ok(Committed { outcome, path: path.clone(), stamp })
    };
    match thing.take(dir, name) {
        Ok(()) => return done(Outcome::Created, path),
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(failed(path, errno)),
    }
    if thing.is_same(dir, name) {
        return done(Outcome::AlreadyHere, path);
    }
    match on_conflict {
        OnConflict::Skip => return done(Outcome::Skipped, path),
        // Never delete a tree to make room for one file: a folder that is not empty stays.
        OnConflict::Overwrite if is_folder(dir, name) => {
            if unlinkat(dir, name, AtFlags::REMOVEDIR).is_ok() && thing.take(dir, name).is_ok() {
                return done(Outcome::Replaced, path);
            }
        }
        OnConflict::Overwrite => {
            return match thing.replace(dir, name) {
                Ok(()) => done(Outcome::Replaced, path),
                // The object at the name has become a folder since the check above.
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    Err(Error::Exists { path: shown(path.as_bytes()) })
                }
                Err(errno) => Err(failed(path, errno)),
            };
        }
        OnConflict::Rename => {}
    }
    for number in 1..=COPIES_MAX {
        let copy = path.with_file_name(&copy_name(name, number))?;
        match thing.take(dir, copy.file_name()) {
            Ok(()) => return done(Outcome::Renamed, &copy),
            Err(Errno::EXIST) if thing.is_same(dir, copy.file_name()) => {
                return done(Outcome::AlreadyHere, &copy);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(path, errno)),
        }
    }
    Err(Error::Exists { path: shown(path.as_bytes()) })
}

fn is_folder(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn failed(path: &RelPath, errno: Errno) -> Error {
    match errno {
        Errno::TXTBSY | Errno::BUSY => Error::InUse { path: shown(path.as_bytes()) },
        Errno::STALE => Error::Changed { path: shown(path.as_bytes()) },
        errno => Error::os(path.as_bytes(), "give it its name", errno),
    }
}

/// Renames `from` to `to`, unless `to` exists.
pub(crate) fn rename_noreplace(
    dir: BorrowedFd<'_>,
    from: &[u8],
    to: &[u8],
) -> rustix::io::Result<()> {
    match renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return done,
    }
    // The file system lacks NOREPLACE. A hard link also refuses a taken name.
    match linkat(dir, from, dir, to, AtFlags::empty()) {
        Ok(()) => return unlinkat(dir, from, AtFlags::empty()),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {}
        Err(errno) => return Err(errno),
    }
    // The file system has no hard links either: check, then rename. Threads of this process must
    // not take the same name at once; against another process there is nothing better.
    static CHECK_AND_RENAME: Mutex<()> = Mutex::new(());
    let _alone = lock(&CHECK_AND_RENAME);
    match statat(dir, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(dir, from, dir, to),
        Ok(_) => Err(Errno::EXIST),
        Err(errno) => Err(errno),
    }
}

/// Returns true if `name` in `dir` is the file behind `fd`.
pub(crate) fn is_at(fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let (Ok(ours), Ok(there)) = (fstat(fd), statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)) else {
        return false;
    };
    (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)
}

/// Time to wait for a lock that may be held by a child of this process. Between fork and exec, a
/// child holds a copy of every descriptor, and so of every lock just released.
const FORK_TIME: Duration = Duration::from_millis(100);
const TRY_INTERVAL: Duration = Duration::from_millis(2);
/// After this many waits that ended with the lock still held, further calls fail at once. Two
/// receivers of the same names then get their error without delay.
const WAITS_MAX: u32 = 32;

/// Locks a hidden file for this process. Fails with `BUSY` if another process holds the lock. The
/// lock ends with the descriptor, and so also when the process is killed.
pub(crate) fn lock_file(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    static WAITED_IN_VAIN: AtomicU32 = AtomicU32::new(0);
    let begin = Instant::now();
    loop {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if WAITED_IN_VAIN.load(Relaxed) >= WAITS_MAX => {
                return Err(Errno::BUSY);
            }
            Err(Errno::WOULDBLOCK) if begin.elapsed() >= FORK_TIME => {
                WAITED_IN_VAIN.fetch_add(1, Relaxed);
                return Err(Errno::BUSY);
            }
            Err(Errno::WOULDBLOCK) => std::thread::sleep(TRY_INTERVAL),
            // A file system without locks: the user must ensure that there is only one receiver at
            // a time.
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(()),
            done => return done,
        }
    }
}

/// Removes the hidden file `name` left behind by an earlier process. Fails with `BUSY` if that
/// process is alive.
pub(crate) fn clear_stale(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    match open_child(dir, name, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(fd) => {
            lock_file(fd.as_fd())?;
            if !is_at(fd.as_fd(), dir, name) {
                return Err(Errno::BUSY);
            }
        }
        Err(Errno::NOENT) => return Ok(()),
        // A link, or an unreadable file that is complete except for its name: no process writes to
        // it any more.
        Err(Errno::LOOP | Errno::ACCESS | Errno::NXIO) => {}
        Err(errno) => return Err(errno),
    }
    unlinkat(dir, name, AtFlags::empty())
}

/// Creates an object under the hidden replacement name of `name`, then renames it to `name`.
pub(crate) fn replace_via_hidden(
    dir: BorrowedFd<'_>,
    name: &[u8],
    make: impl Fn(&[u8]) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let hidden = replacement_name(name);
    match make(&hidden) {
        Err(Errno::EXIST) => {
            clear_stale(dir, &hidden)?;
            make(&hidden)?;
        }
        done => done?,
    }
    renameat(dir, &hidden, dir, name).inspect_err(|_| {
        // Return the error of the rename; ignore that of the clean-up.
        let _ = unlinkat(dir, &hidden, AtFlags::empty());
    })
}

/// A complete file under a hidden name.
#[derive(Debug)]
pub(crate) struct HiddenFile<'a, F> {
    pub(crate) fd: &'a OwnedFd,
    pub(crate) name: &'a [u8],
    /// Compares the content with that of an existing file.
    pub(crate) same: F,
}

impl<F: Fn(BorrowedFd<'_>, &[u8]) -> bool> Nameable for HiddenFile<'_, F> {
    fn take(&self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        // An attacker who puts another file under the hidden name must not get it renamed to the
        // final name.
        if !is_at(self.fd.as_fd(), dir, self.name) {
            return Err(Errno::STALE);
        }
        rename_noreplace(dir, self.name, name)
    }

    fn replace(&self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        if !is_at(self.fd.as_fd(), dir, self.name) {
            return Err(Errno::STALE);
        }
        renameat(dir, self.name, dir, name)
    }

    fn is_same(&self, dir: BorrowedFd<'_>, name: &[u8]) -> bool {
        (self.same)(dir, name)
    }
}

/// A symbolic link that has not been created yet.
#[derive(Debug)]
pub(crate) struct NewLink<'a> {
    pub(crate) target: &'a [u8],
}

impl Nameable for NewLink<'_> {
    fn take(&self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        symlinkat(self.target, dir, name)
    }

    fn replace(&self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        replace_via_hidden(dir, name, |hidden| symlinkat(self.target, dir, hidden))
    }

    fn is_same(&self, dir: BorrowedFd<'_>, name: &[u8]) -> bool {
        rustix::fs::readlinkat(dir, name, Vec::new())
            .is_ok_and(|there| there.as_bytes() == self.target)
    }
}

/// Removes a hidden file of this process. Succeeds if it is already gone.
pub(crate) fn remove_hidden(dir: BorrowedFd<'_>, name: &[u8], path: &RelPath) -> Result<()> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        done => done.context(path.as_bytes(), "remove its unfinished part"),
    }
}

/// Removes the files under one pair of names whose journal this process has locked.
pub(crate) fn clear(
    parent: &OwnedFd,
    names: &HiddenNames,
    journal: OwnedFd,
    path: &RelPath,
) -> Result<()> {
    for name in [&names.part, &names.new_journal, &names.journal] {
        remove_hidden(parent.as_fd(), name, path)?;
    }
    // Unlock only now that no other process can find it.
    drop(journal);
    Ok(())
}
