//! The folders of a tree: made when they are listed, given their modes and times when everything in them is in place.
//!
//! A folder that is there already is used as it is. Where something else has the name, the caller says what becomes of it: a new
//! folder beside it, or one in its place.
//!
//! Invariant: no folder is ever removed for another one, and only a folder that is new is called new: `mkdirat` tells.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Mode, OFlags, StatxFlags, fchmod, fstat, mkdirat, statat, statx, unlinkat,
};
use rustix::io::Errno;

use crate::beneath::open_child;
use crate::commit::COPIES_MAX;
use crate::entry::{Entry, Mtime};
use crate::error::{Context, Error, Result};
use crate::lock::lock;
use crate::path::{RelPath, shown};
use crate::target::TargetDir;
use crate::write::{MetadataErrors, permissions, set_metadata};

/// Which folder it is. No other of its file system has both, also if its inode was given away again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderId {
    /// Its inode.
    pub ino: u64,
    /// When it was made.
    pub born: Mtime,
}

/// Whose a folder is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// This transfer made it, now or on an earlier connection.
    Ours,
    /// It was there.
    Found,
}

impl TargetDir {
    /// Makes the folder `entry`, and its parents if no entry did. One that exists is used as it is. Until
    /// [`Self::finish_dirs`] the owner may write in it, whatever its mode. True if it was made; [`Error::Exists`] if something
    /// else has the name.
    pub fn make_dir(&self, entry: &Entry) -> Result<bool> {
        let made = self.make_new(entry)?;
        self.begin_dir(entry, if made { Origin::Ours } else { Origin::Found })?;
        Ok(made)
    }

    /// Makes the folder `entry` under the first name beside its own that is free.
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

    /// Goes on with a folder that [`Self::make_dir_copy`] made on an earlier connection; the caller knows by its [`FolderId`].
    pub fn continue_dir(&self, entry: &Entry) -> Result<()> {
        self.begin_dir(entry, Origin::Ours)
    }

    /// Makes the folder `entry` in place of a file, link or anything else that is no folder. A folder is used as it is.
    pub fn replace_with_dir(&self, entry: &Entry) -> Result<bool> {
        let (path, operation) = (&entry.path, "replace what has its name");
        self.in_parent(path, operation, |parent| {
            let name = path.file_name();
            match unlinkat(parent, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
                // What some systems say of a folder.
                Err(Errno::PERM) if open_child(parent.as_fd(), name, DIR).is_ok() => Ok(()),
                Err(errno) => Err(Error::os(path.as_bytes(), operation, errno)),
            }
        })?;
        self.make_dir(entry)
    }

    /// Which folder stands at `path`. `None` if none does, or the file system does not tell when it was made.
    pub fn folder_id(&self, path: &RelPath) -> Result<Option<FolderId>> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::TYPE;
        let at = self.0.dirs.get(path.parent_bytes().unwrap_or_default());
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = match at.and_then(|dir| statx(dir, path.file_name(), flags, wanted)) {
            Err(Errno::NOENT | Errno::NOSYS) => return Ok(None),
            done => done.context(path.as_bytes(), "look at it")?,
        };
        let is_folder = rustix::fs::FileType::from_raw_mode(stat.stx_mode.into())
            == rustix::fs::FileType::Directory;
        let tells = StatxFlags::from_bits_retain(stat.stx_mask).contains(wanted);
        let born = Mtime { s: stat.stx_btime.tv_sec, ns: stat.stx_btime.tv_nsec };
        Ok((is_folder && tells).then_some(FolderId { ino: stat.stx_ino, born }))
    }

    /// True if the folder at `path` can be listed and has nothing in it.
    pub fn is_empty_dir(&self, path: &RelPath) -> bool {
        let Ok(fd) = self.0.dirs.beneath().open_file(path.as_bytes(), DIR) else { return false };
        let Ok(items) = rustix::fs::Dir::read_from(&fd) else { return false };
        items.flatten().all(|item| matches!(item.file_name().to_bytes(), b"." | b".."))
    }

    /// The first name beside `path` that nothing has.
    pub fn free_copy(&self, path: &RelPath) -> Option<RelPath> {
        let parent = self.0.dirs.get(path.parent_bytes().unwrap_or_default()).ok()?;
        let is_free = |copy: &RelPath| {
            let at = statat(&parent, copy.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            at.err() == Some(Errno::NOENT)
        };
        (1..=COPIES_MAX).map_while(|number| path.copy(number).ok()).find(is_free)
    }

    /// True if the folder was made; false if the name is taken, by whatever.
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

    /// Opens the folder for what comes into it, and remembers what it is to become.
    fn begin_dir(&self, entry: &Entry, origin: Origin) -> Result<()> {
        let (path, growing) = (&entry.path, self.growing(entry));
        let mode = self.0.modes.of(entry.mode);
        let parent = self.parent(path)?;
        self.0.stable.see(parent.as_fd());
        self.0.stable.note(path.as_bytes());
        let fd = match open_child(parent.as_fd(), path.file_name(), DIR) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(Error::Exists { path: shown(path.as_bytes()) });
            }
            // Somebody's folder that this user may enter but not list.
            Err(Errno::ACCESS) if origin == Origin::Found => return Ok(()),
            done => done.context(path.as_bytes(), "open it")?,
        };
        let stat = fstat(&fd).context(path.as_bytes(), "look at it")?;
        if origin == Origin::Ours {
            if permissions(&stat) != growing {
                let growing = Mode::from_raw_mode((stat.st_mode & 0o7000) | growing);
                // A file system without permissions; finish_dirs counts it.
                let _ = fchmod(&fd, growing);
            }
            lock(&self.0.made).push(path, mode, entry.mtime);
            self.0.dirs.put(path.as_bytes(), Arc::new(fd));
        } else if permissions(&stat) == growing {
            // A folder as an interrupted transfer leaves it is finished by this one. Permissions are never taken away from a
            // folder that was there: it may be the user's own.
            lock(&self.0.made).push(path, growing, entry.mtime);
            self.add_metadata_errors(MetadataErrors {
                modes: u64::from(growing != mode),
                times: 0,
            });
        }
        Ok(())
    }

    /// The mode of a folder while things come into it.
    fn growing(&self, entry: &Entry) -> u32 {
        self.0.modes.of(entry.mode) | 0o700
    }

    /// Gives the folders of [`Self::make_dir`] their modes and times, the deepest first. Call it when everything else is in
    /// place. Returns the first error after having tried all.
    pub fn finish_dirs(&self) -> Result<()> {
        // Removing a journal later would change its folder's time.
        self.0.journal_pool.clear();
        let mut first_error = Ok(());
        let made = std::mem::take(&mut *lock(&self.0.made));
        for (path, mode, mtime) in made.deepest_first() {
            match self.0.dirs.beneath().open_file(path, DIR) {
                Ok(fd) => self.add_metadata_errors(set_metadata(fd.as_fd(), mode, mtime)),
                // Removed or replaced by someone: then it is theirs.
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

const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
