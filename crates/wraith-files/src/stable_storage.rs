//! Flushes received data to stable storage and reports failures of the disk. A batch is a group of
//! complete files whose contents are flushed together, before they get their names.
//!
//! | file system | contents of a batch | names and metadata |
//! |---|---|---|
//! | ext4, XFS, btrfs, F2FS, bcachefs | up to [`FEW_FILES`] files: one `fsync` per file; more files: one `syncfs` | up to [`NOTED_MAX`] paths: one `fsync` per path; more paths: one `syncfs` |
//! | others: network, FUSE, FAT, overlay (its `syncfs` does not report errors of the upper file system) | one `fsync` per file | one `fsync` per path |
//! | in memory | nothing: there is no disk | nothing |
//!
//! `syncfs` costs one or two journal commits for any number of files; `fsync` costs one per file.
//! For a few files `fsync` is cheaper, because `syncfs` also writes dirty data of other programs.
//!
//! From Linux 5.8 on, `syncfs` returns an error if write-back has failed, but only on a descriptor
//! that was opened before the data was written. The root's descriptor is therefore opened first and
//! kept. After `syncfs`, an `fsync` of the root detects an aborted journal, which the `syncfs` of
//! older kernels does not report.
//!
//! The kernel reports a failed write-back only once. After that, the page cache still shows content
//! that the disk does not have. Invariant: after one failure, the content of a file that was open
//! is trusted only once it has been read from the disk again ([`StableStorage::has_failed`]).

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, fsync, openat, syncfs};
use rustix::io::Errno;

use crate::beneath::Beneath;
use crate::error::{Context, Error, Result};
use crate::lock::lock;
use crate::path::RelPath;

/// Maximum number of files in a batch for which each file is synced, instead of the whole file
/// system.
const FEW_FILES: usize = 8;

/// Maximum number of paths kept for syncing one by one at the end, on file systems where `syncfs`
/// can be used instead.
const NOTED_MAX: usize = 128;

/// Maximum bytes of paths kept on file systems where `syncfs` is not used. Paths beyond this limit
/// are not guaranteed to be synced.
const NOTED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of folders above the target that are synced, as they may have been created for
/// it.
const ANCESTORS_MAX: usize = 64;

/// Magic numbers of `statfs(2)`: ext2 to ext4, XFS, btrfs, F2FS, bcachefs.
const WHOLE: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0xCA45_1A4E];

/// Magic numbers of tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58F6];

const OPERATION: &str = "flush it to disk";

/// Which call reports the disk's errors for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncScope {
    /// The sync of the whole batch.
    Batch,
    /// Also its own `fsync`: an earlier `syncfs` may have consumed the error meant for it.
    BatchAndFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncMethod {
    /// `syncfs` is reliable for any number of files.
    Whole,
    Each,
    InMemory,
}

/// Sync state of one target; see the module documentation.
#[derive(Debug)]
pub(crate) struct StableStorage {
    way: SyncMethod,
    /// Device of the target itself.
    dev: u64,
    /// True if some files below the target lie on another file system, which `syncfs` does not
    /// reach.
    mixed: AtomicBool,
    /// True if the file system has refused to sync.
    refused: AtomicBool,
    /// True if a sync has failed.
    failed: AtomicBool,
    noted: Mutex<ChangedPaths>,
}

/// Changed paths.
#[derive(Debug, Default)]
struct ChangedPaths {
    paths: BTreeSet<Box<[u8]>>,
    bytes: usize,
    /// True if there were more than fit.
    many: bool,
}

impl StableStorage {
    /// Creates the sync state for the target `root`.
    pub(crate) fn of(root: &OwnedFd) -> Self {
        let magic = fstatfs(root).map_or(0, |stat| stat.f_type as u64);
        let way = match magic {
            magic if WHOLE.contains(&magic) => SyncMethod::Whole,
            magic if IN_MEMORY.contains(&magic) => SyncMethod::InMemory,
            _ => SyncMethod::Each,
        };
        Self {
            way,
            dev: fstat(root).map_or(0, |stat| stat.st_dev),
            mixed: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            noted: Mutex::default(),
        }
    }

    /// Notes that the file or folder at `path` changed, or is treated as changed, and so did its
    /// parent folders.
    pub(crate) fn note(&self, path: &[u8]) {
        let mut noted = lock(&self.noted);
        let mut path = path;
        loop {
            if noted.many || !path.is_empty() && noted.paths.contains(path) {
                return;
            }
            let is_full = match self.way {
                SyncMethod::Whole => noted.paths.len() >= NOTED_MAX,
                SyncMethod::Each => noted.bytes + path.len() > NOTED_BYTES_MAX,
                SyncMethod::InMemory => true,
            };
            if is_full {
                noted.many = true;
                return;
            }
            noted.bytes += path.len();
            noted.paths.insert(path.into());
            if path.is_empty() {
                return;
            }
            let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            path = &path[..slash];
        }
    }

    /// Notes a new name in the folder of `path`.
    pub(crate) fn note_parent(&self, path: &RelPath) {
        self.note(path.parent_bytes().unwrap_or_default());
    }

    /// See [`crate::TargetDir::sync_contents`].
    pub(crate) fn sync_contents<'f>(
        &self,
        root: &OwnedFd,
        files: impl ExactSizeIterator<Item = (BorrowedFd<'f>, &'f RelPath, SyncScope)>,
    ) -> Result<()> {
        if self.way == SyncMethod::InMemory {
            return Ok(());
        }
        let elsewhere = |fd: BorrowedFd<'_>| fstat(fd).is_ok_and(|stat| stat.st_dev != self.dev);
        let is_whole = self.way == SyncMethod::Whole && files.len() > FEW_FILES;
        if is_whole {
            self.sync_whole(root)?;
        }
        for (fd, path, asked) in files {
            let is_elsewhere = elsewhere(fd);
            if is_elsewhere {
                self.mixed.store(true, Relaxed);
            }
            if !is_whole || is_elsewhere || asked == SyncScope::BatchAndFile {
                self.sync_one(fd, path.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Flushes one file or folder to disk.
    pub(crate) fn sync_one(&self, fd: BorrowedFd<'_>, path: &[u8]) -> Result<()> {
        match fsync(fd) {
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.refused.store(true, Relaxed);
                Ok(())
            }
            done => self.record_result(done.context(path, OPERATION)),
        }
    }

    fn sync_whole(&self, root: &OwnedFd) -> Result<()> {
        self.record_result(syncfs(root).context(b".", OPERATION))?;
        self.sync_one(root.as_fd(), b".")
    }

    /// Records the result of a sync.
    pub(crate) fn record_result(&self, done: Result<()>) -> Result<()> {
        if done.is_err() {
            self.failed.store(true, Relaxed);
        }
        done
    }

    /// Returns true after a failed sync; see the module documentation.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Records that a received file, or one that is treated as received, is in the folder `parent`.
    pub(crate) fn record_device(&self, parent: BorrowedFd<'_>) {
        let is_elsewhere = || !fstat(parent).is_ok_and(|stat| stat.st_dev == self.dev);
        // The flag is only ever set: another thread may detect another file system at the same
        // time.
        if self.way == SyncMethod::Whole && !self.mixed.load(Relaxed) && is_elsewhere() {
            self.mixed.store(true, Relaxed);
        }
    }

    /// See [`crate::TargetDir::sync`].
    pub(crate) fn sync(&self, root: &OwnedFd, beneath: &Beneath) -> Result<bool> {
        if self.way == SyncMethod::InMemory {
            return Ok(false);
        }
        let noted = std::mem::take(&mut *lock(&self.noted));
        let (can_whole, is_mixed) = (self.way == SyncMethod::Whole, self.mixed.load(Relaxed));
        let mut needs_whole = noted.many;
        if !can_whole || is_mixed || !needs_whole {
            for path in &noted.paths {
                needs_whole |= !self.sync_path(beneath, path)?;
            }
        }
        if needs_whole && can_whole {
            self.sync_whole(root)?;
        } else {
            self.sync_ancestors(root)?;
        }
        let all_reached = !needs_whole || can_whole && !is_mixed;
        Ok(all_reached && !self.refused.load(Relaxed))
    }

    /// Syncs the file or folder at `path`. Returns false if this user may not open it.
    fn sync_path(&self, beneath: &Beneath, path: &[u8]) -> Result<bool> {
        match beneath.open_file(path, OFlags::RDONLY | OFlags::NONBLOCK) {
            // A pipe or a device at this path is not a received file.
            Ok(fd) if !is_file_or_folder(fd.as_fd()) => Ok(true),
            Ok(fd) => self.sync_one(fd.as_fd(), path).map(|()| true),
            // The user has removed or replaced it; leave it alone.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(true),
            Err(Errno::ACCESS | Errno::PERM) => Ok(false),
            Err(errno) => Err(Error::os(path, OPERATION, errno)),
        }
    }

    /// Syncs the folders above the target; they and the target may be new.
    fn sync_ancestors(&self, root: &OwnedFd) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut below = openat(root, c".", flags, Mode::empty()).context(b".", OPERATION)?;
        for _ in 0..ANCESTORS_MAX {
            // Folders that this user may not list were not created by this user.
            let Ok(above) = openat(&below, c"..", flags, Mode::empty()) else { break };
            let id = |fd: &OwnedFd| fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
            if id(&above) == id(&below) || id(&above).map(|id| id.0) != Some(self.dev) {
                break;
            }
            self.sync_one(above.as_fd(), b"..")?;
            below = above;
        }
        Ok(())
    }
}

fn is_file_or_folder(fd: BorrowedFd<'_>) -> bool {
    let kind = fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::RegularFile | FileType::Directory))
}
