//! Folders of a tree: they are created when they are listed, and get modes and times once their
//! contents are in place.
//!
//! An existing folder is used as it is. If another object has the name, the caller decides: a new
//! folder beside it, or a folder in its place.
//!
//! Invariant: no folder is ever removed to make room for another one, and a folder is new only if
//! `mkdirat` created it.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, StatxFlags, fchmod, fstat, mkdirat, statat, statx, unlinkat};
use rustix::io::Errno;

use crate::beneath::{DIR, open_child};
use crate::commit::COPIES_MAX;
use crate::entry::{Entry, Mtime};
use crate::error::{Context, Error, Result};
use crate::lock::lock;
use crate::path::{RelPath, shown};
use crate::target::TargetDir;
use crate::write::{MetadataErrors, permissions, set_metadata};

/// Identity of a folder, unique in its file system even if the inode number is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderId {
    /// Inode number.
    pub ino: u64,
    /// Creation time.
    pub born: Mtime,
}

/// Origin of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// This transfer created it, now or on an earlier connection.
    Ours,
    /// It already existed.
    Found,
}

impl TargetDir {
    /// Creates the folder `entry`, and its parents if they have no entry. An existing folder is
    /// used as it is. Until [`Self::finish_dirs`] the owner may write to it, independently of its
    /// mode. Returns true if the folder was created, and [`Error::Exists`] if another object has
    /// the name.
    pub fn make_dir(&self, entry: &Entry) -> Result<bool> {
        let made = self.make_new(entry)?;
        self.begin_dir(entry, if made { Origin::Ours } else { Origin::Found })?;
        Ok(made)
    }

    /// Creates the folder `entry` under the first free name beside its own.
    pub fn make_dir_copy(&self, entry: &Entry) -> Result<RelPath> {
        for number in 1..=COPIES_MAX {
            let copy = Entry { path: entry.path.copy(number)?, ..entry.clone() };
            if self.make_new(&copy)? {
                self.begin_dir(&copy, Origin::Ours)?;
                return Ok(copy.path);
            }
        }
        Err(Error::Exists { path: shown(entry.path.as_bytes()) })
    }

    /// Continues with a folder that [`Self::make_dir_copy`] created on an earlier connection. The
    /// caller recognises it by its [`FolderId`] or its token ([`Self::has_token`]).
    pub fn continue_dir(&self, entry: &Entry) -> Result<()> {
        self.begin_dir(entry, Origin::Ours)
    }

    /// Creates the folder `entry` in place of a file, link or other object. An existing folder is
    /// used as it is.
    pub fn replace_with_dir(&self, entry: &Entry) -> Result<bool> {
        let (path, operation) = (&entry.path, "replace what has its name");
        self.in_parent(path, operation, |parent| {
            let name = path.file_name();
            match unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
                // Some systems return this for a folder.
                Err(Errno::PERM) if open_child(parent.as_fd(), name, DIR).is_ok() => Ok(()),
                Err(errno) => Err(Error::os(path.as_bytes(), operation, errno)),
            }
        })?;
        self.make_dir(entry)
    }

    /// Returns the identity of the folder at `path`. `None` if there is no folder, or the file
    /// system does not record creation times.
    pub fn folder_id(&self, path: &RelPath) -> Result<Option<FolderId>> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::TYPE;
        let at = self.0.dirs.get(path.parent_bytes().unwrap_or_default());
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = match at.and_then(|dir| statx(dir, path.file_name(), flags, wanted)) {
            Err(Errno::NOENT | Errno::NOSYS) => return Ok(None),
            done => done.context(path.as_bytes(), "inspect it")?,
        };
        let is_folder = rustix::fs::FileType::from_raw_mode(stat.stx_mode.into())
            == rustix::fs::FileType::Directory;
        let tells = StatxFlags::from_bits_retain(stat.stx_mask).contains(wanted);
        let born = Mtime { s: stat.stx_btime.tv_sec, ns: stat.stx_btime.tv_nsec };
        Ok((is_folder && tells).then_some(FolderId { ino: stat.stx_ino, born }))
    }

    /// Calls `each` with the name of each object in the folder at `path`. The empty path is the
    /// target itself. Fails if the folder cannot be listed, possibly after a part of the names.
    pub fn list(&self, path: &[u8], mut each: impl FnMut(&[u8])) -> Result<()> {
        let dir = self.0.dirs.get(path);
        let dir = dir.and_then(|dir| open_child(dir.as_fd(), b".", DIR));
        let mut items = dir.and_then(rustix::fs::Dir::new).context(path, "list it")?;
        while let Some(item) = items.read() {
            match item.context(path, "list it")?.file_name().to_bytes() {
                b"." | b".." => {}
                name => each(name),
            }
        }
        Ok(())
    }

    /// Returns true if the folder at `path` can be listed and is empty.
    pub fn is_empty_dir(&self, path: &RelPath) -> bool {
        let Ok(fd) = self.0.dirs.beneath().open_file(path.as_bytes(), DIR) else { return false };
        let Ok(items) = rustix::fs::Dir::read_from(&fd) else { return false };
        items.flatten().all(|item| matches!(item.file_name().to_bytes(), b"." | b".."))
    }

    /// Returns the first free name beside `path`.
    pub fn free_copy(&self, path: &RelPath) -> Option<RelPath> {
        let parent = self.0.dirs.get(path.parent_bytes().unwrap_or_default()).ok()?;
        let is_free = |copy: &RelPath| {
            let at = statat(&parent, copy.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            at.err() == Some(Errno::NOENT)
        };
        (1..=COPIES_MAX).map_while(|number| path.copy(number).ok()).find(is_free)
    }

    /// Returns true if the folder was created, and false if any object has the name.
    fn make_new(&self, entry: &Entry) -> Result<bool> {
        let path = &entry.path;
        self.in_parent(path, "create it", |parent| {
            match mkdirat(parent, path.file_name(), Mode::from_raw_mode(self.growing(entry))) {
                Ok(()) => Ok(true),
                Err(Errno::EXIST) => Ok(false),
                Err(errno) => Err(Error::os(path.as_bytes(), "create it", errno)),
            }
        })
    }

    /// Makes the folder writable for its contents and records its final mode and time.
    fn begin_dir(&self, entry: &Entry, origin: Origin) -> Result<()> {
        let (path, growing) = (&entry.path, self.growing(entry));
        let mode = self.0.modes.of(entry.mode);
        let parent = self.parent(path)?;
        self.0.stable.record_device(parent.as_fd());
        self.0.stable.note(path.as_bytes());
        let fd = match open_child(parent.as_fd(), path.file_name(), DIR) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(Error::Exists { path: shown(path.as_bytes()) });
            }
            // A folder of another user that this user may enter but not list.
            Err(Errno::ACCESS) if origin == Origin::Found => return Ok(()),
            done => done.context(path.as_bytes(), "open it")?,
        };
        let stat = fstat(&fd).context(path.as_bytes(), "inspect it")?;
        if origin == Origin::Ours {
            if permissions(&stat) != growing {
                let growing = Mode::from_raw_mode((stat.st_mode & 0o7000) | growing);
                // This fails on a file system without permissions. In that case, finish_dirs
                // reports the failure.
                let _ = fchmod(&fd, growing);
            }
            lock(&self.0.made).push(path, mode, entry.mtime);
            self.0.dirs.put(path.as_bytes(), Arc::new(fd));
        } else if permissions(&stat) == growing {
            // The mode suggests a folder that an interrupted transfer left, so this transfer
            // finishes it. An existing folder never loses permissions: it may be the user's own.
            lock(&self.0.made).push(path, growing, entry.mtime);
            self.add_metadata_errors(MetadataErrors {
                modes: u64::from(growing != mode),
                times: 0,
            });
        }
        Ok(())
    }

    /// Returns the mode of a folder while its contents arrive.
    fn growing(&self, entry: &Entry) -> u32 {
        self.0.modes.of(entry.mode) | 0o700
    }

    /// Gives the folders of [`Self::make_dir`] their modes and times, deepest first. Call it once
    /// everything else is in place. Tries all folders, then returns the first error.
    pub fn finish_dirs(&self) -> Result<()> {
        // Removing a journal later would change its folder's time.
        self.0.journal_pool.clear();
        let mut first_error = Ok(());
        let made = std::mem::take(&mut *lock(&self.0.made));
        for (path, mode, mtime) in made.deepest_first() {
            match self.0.dirs.beneath().open_file(path, DIR) {
                Ok(fd) => self.add_metadata_errors(set_metadata(fd.as_fd(), mode, mtime)),
                // The user has removed or replaced the folder; leave it alone.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) if first_error.is_ok() => {
                    first_error = Err(Error::os(path, "finish the folder", errno));
                }
                Err(_) => {}
            }
        }
        self.add_metadata_errors(MetadataErrors { modes: 0, times: made.forgotten() });
        first_error
    }
}
