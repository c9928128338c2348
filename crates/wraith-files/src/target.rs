//! The target directory: the only way to create, change or inspect anything while receiving.
//!
//! Invariant: every path is resolved by [`Dirs`], which opens parents beneath the root without
//! following links. Every name is one component relative to such a handle. So nothing outside the
//! target is touched, whatever names a peer sends, and even if an attacker replaces directories by
//! links meanwhile.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, fstatvfs, open, openat, readlinkat, stat, statat,
    unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::beneath::{Beneath, DIR_HANDLE};
use crate::commit::{CommitOptions, Committed, NewLink, OnConflict, commit};
use crate::dirs::Dirs;
use crate::entry::{Entry, Kind};
use crate::error::{Context, Error, Result};
use crate::hash::{CHUNK_BYTES, Root};
use crate::journal_pool::JournalPool;
use crate::lock::lock;
use crate::modes::KeptModes;
use crate::orphans::SearchedFolders;
use crate::part_file::PartFile;
use crate::path::{RelPath, shown};
use crate::resume::{self, OtherVersion};
use crate::small_file::{Linking, UnnamedFile};
use crate::source::{SourceFile, Stamp};
use crate::stable_storage::StableStorage;
use crate::target_state::TargetState;
use crate::tree::Tree;
use crate::uncommitted_file::{Content, UncommittedFile};
use crate::write::{MetadataErrors, timestamps};

/// A directory into which files are received. Cloning is cheap; any number of threads may use it at
/// once.
#[derive(Clone, Debug)]
pub struct TargetDir(pub(crate) Arc<TargetState>);

/// An existing object under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Its type.
    pub kind: ExistingKind,
    /// Device, inode, size, times.
    pub stamp: Stamp,
}

/// Types of existing objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A socket, pipe or device.
    Other,
}

impl TargetDir {
    /// Opens an existing directory. If `dir` itself is a link, it is followed, because the user
    /// named it. Received permissions are restricted by the umask of this process.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_with(dir, KeptModes::by_umask())
    }

    /// Like [`Self::open`], but applies all received permissions. Set-uid, set-gid and sticky are
    /// never applied.
    pub fn open_keeping_modes(dir: &Path) -> Result<Self> {
        Self::open_with(dir, KeptModes::all())
    }

    fn open_with(dir: &Path, modes: KeptModes) -> Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let shown_dir = dir.as_os_str().as_bytes();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(dir, OFlags::RDONLY | flags, Mode::empty());
        let root = root.context(shown_dir, "open the target folder")?;
        let handle = rustix::fs::openat(&root, c".", DIR_HANDLE | OFlags::CLOEXEC, Mode::empty());
        let handle = handle.context(shown_dir, "open the target folder")?;
        let stable = StableStorage::of(&root);
        Ok(Self(Arc::new(TargetState {
            root,
            stable,
            modes,
            dirs: Dirs::new(Beneath::new(handle)),
            linking: Linking::default(),
            made: Mutex::default(),
            metadata_errors: Mutex::default(),
            journal_pool: JournalPool::default(),
            searched: SearchedFolders::default(),
            size_tried: AtomicU64::new(CHUNK_BYTES as u64),
        })))
    }

    /// Returns the bytes that this user may still write to the file system of the target.
    pub fn free_bytes(&self) -> Result<u64> {
        let stat = fstatvfs(&self.0.root).context(b".", "ask for free space")?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Returns the metadata errors so far.
    pub fn metadata_errors(&self) -> MetadataErrors {
        *lock(&self.0.metadata_errors)
    }

    /// Inspects the object at `path`, without following links. Returns `None` if there is none.
    pub fn existing(&self, path: &RelPath) -> Result<Option<Existing>> {
        let at = self.0.dirs.get(path.parent_bytes().unwrap_or_default());
        let at = at.and_then(|dir| statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW));
        let stat = match at {
            Err(Errno::NOENT) => return Ok(None),
            done => done.context(path.as_bytes(), "inspect it")?,
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => ExistingKind::File,
            FileType::Directory => ExistingKind::Dir,
            FileType::Symlink => ExistingKind::Symlink,
            _ => ExistingKind::Other,
        };
        Ok(Some(Existing { kind, stamp: Stamp::of(&stat) }))
    }

    /// Returns the target of the link at `path`.
    pub fn link_target(&self, path: &RelPath) -> Result<Vec<u8>> {
        let dir = self.0.dirs.get(path.parent_bytes().unwrap_or_default());
        let read = dir.and_then(|dir| readlinkat(dir, path.file_name(), Vec::new()));
        Ok(read.context(path.as_bytes(), "read the link")?.into_bytes())
    }

    /// Opens or creates the hidden file `name` in the target itself, for reading and appending. The
    /// caller must use a name that no peer can use.
    pub fn open_hidden(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        let opened =
            openat(&self.0.root, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
        Ok(opened.context(name.as_bytes(), "open it")?.into())
    }

    /// Returns up to `max` bytes of the hidden file `name`. Returns nothing if it does not exist,
    /// without creating it.
    pub fn read_hidden(&self, name: &str, max: usize) -> Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = match openat(&self.0.root, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            done => done.context(name.as_bytes(), "open it")?.into(),
        };
        let mut bytes = Vec::new();
        file.take(max as u64).read_to_end(&mut bytes).map_err(|source| Error::Io {
            path: shown(name.as_bytes()),
            operation: "read it",
            source,
        })?;
        Ok(bytes)
    }

    /// Removes a file created by [`Self::open_hidden`], even if the target has been moved in the
    /// meantime.
    pub fn remove_hidden(&self, name: &str) -> Result<()> {
        unlinkat(&self.0.root, name, AtFlags::empty()).context(name.as_bytes(), "remove it")
    }

    /// Returns the current path of the target if it was moved away from `path`, under which it was
    /// opened. `None` also where the system does not report it.
    pub fn moved_from(&self, path: &Path) -> Option<PathBuf> {
        let ours = fstat(&self.0.root).ok()?;
        let there = stat(path).ok();
        if there.is_some_and(|s| (s.st_dev, s.st_ino) == (ours.st_dev, ours.st_ino)) {
            return None;
        }
        std::fs::read_link(format!("/proc/self/fd/{}", self.0.root.as_raw_fd())).ok()
    }

    /// Returns true if the target folder has been deleted, with everything in it.
    pub fn is_deleted(&self) -> bool {
        fstat(&self.0.root).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Opens the regular file `existing` at `path`, to compare it with a peer's offer.
    pub fn open_existing(&self, path: &RelPath, existing: &Existing) -> Result<SourceFile> {
        SourceFile::open(self.0.dirs.beneath(), path.as_bytes(), path, &existing.stamp)
    }

    /// Returns [`SourceFile::root`] of the regular file at `path`. `None` also if there is no such
    /// file.
    pub fn root_of(
        &self,
        path: &RelPath,
        tree: Tree,
        go_on: impl FnMut() -> bool,
    ) -> Result<Option<Root>> {
        match self.existing(path)? {
            Some(existing) if existing.kind == ExistingKind::File => {
                self.open_existing(path, &existing)?.root(tree, go_on)
            }
            _ => Ok(None),
        }
    }

    /// Creates the link `entry`. This crate never follows it, so it may point anywhere; see
    /// [`Entry::leads_out`].
    pub fn make_symlink(&self, entry: &Entry, on_conflict: OnConflict) -> Result<Committed> {
        let path = &entry.path;
        let Kind::Symlink { target } = &entry.kind else {
            return Err(Error::Misuse {
                path: shown(path.as_bytes()),
                what: "it is not a symbolic link",
            });
        };
        self.in_parent(path, "create the link", |parent| {
            let committed = commit(&NewLink { target }, parent.as_fd(), path, on_conflict)?;
            self.0.stable.record_device(parent.as_fd());
            self.0.stable.note_parent(path);
            if committed.outcome.is_new() {
                let (name, times) = (committed.path.file_name(), timestamps(entry.mtime));
                let set = utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW);
                self.add_metadata_errors(MetadataErrors {
                    modes: 0,
                    times: u64::from(set.is_err()),
                });
            }
            Ok(committed)
        })
    }

    /// Creates the file `entry` with the concatenation of `pieces` as content, already verified by
    /// the caller ([`crate::slices_root`]). It appears complete or not at all. [`Error::Mismatch`]
    /// if the length differs from the entry's.
    pub fn write_small(
        &self,
        entry: &Entry,
        pieces: &[&[u8]],
        commit_options: CommitOptions,
    ) -> Result<Committed> {
        let mut unnamed = self.write_unnamed(entry, pieces)?;
        if commit_options.sync {
            self.sync_contents([&unnamed])?;
        }
        self.name(&mut unnamed, commit_options.on_conflict)
    }

    /// The first half of [`Self::write_small`]: creates the complete file, which has no visible
    /// name before [`Self::name`].
    pub fn write_unnamed(&self, entry: &Entry, pieces: &[&[u8]]) -> Result<UncommittedFile> {
        let entry = &Entry { mode: self.0.modes.of(entry.mode), ..entry.clone() };
        self.in_parent(&entry.path, "create it", |parent| {
            let mut metadata_errors = MetadataErrors::default();
            let linking = &self.0.linking;
            let written = UnnamedFile::write(linking, parent, entry, pieces, &mut metadata_errors);
            self.add_metadata_errors(metadata_errors);
            written.map(UncommittedFile::small)
        })
    }

    /// Gives a file created in this target its name.
    pub fn name(&self, file: &mut UncommittedFile, on_conflict: OnConflict) -> Result<Committed> {
        let file = match &mut file.0 {
            Content::Part(part) => return part.name(on_conflict),
            Content::Small(file) => file,
        };
        let path = file.path().clone();
        let committed = self.in_parent(&path, "create it", |parent| {
            file.name(&self.0.linking, parent, on_conflict)
        })?;
        self.0.stable.note_parent(&path);
        Ok(committed)
    }

    /// Flushes the contents and metadata of these files to disk. If a write failed, returns
    /// [`Error::Io`] or [`Error::DiskFull`]; none of the files may then get its name.
    pub fn sync_contents<'f>(
        &self,
        files: impl IntoIterator<Item = &'f UncommittedFile, IntoIter: ExactSizeIterator>,
    ) -> Result<()> {
        let files = files.into_iter().map(|file| (file.fd(), file.path(), file.sync_scope()));
        self.0.stable.sync_contents(&self.0.root, files)
    }

    /// Marks the existing file at `path` as received, so that [`Self::sync`] covers it.
    pub fn keep_existing(&self, path: &RelPath) {
        // Without its folder, the file no longer exists.
        if let Ok(parent) = self.0.dirs.get(path.parent_bytes().unwrap_or_default()) {
            self.0.stable.record_device(parent.as_fd());
        }
        self.0.stable.note(path.as_bytes());
    }

    pub(crate) fn sync_file(&self, fd: BorrowedFd<'_>, path: &RelPath) -> Result<()> {
        self.0.stable.sync_one(fd, path.as_bytes())
    }

    pub(crate) fn note_parent(&self, path: &RelPath) {
        self.0.stable.note_parent(path);
    }

    /// Flushes the names and metadata of everything received to disk. The contents were flushed
    /// before they got their names ([`Self::sync_contents`]). Call it after [`Self::finish_dirs`].
    /// Returns false if the file system cannot sync: it has no disk, or refuses.
    pub fn sync(&self) -> Result<bool> {
        self.0.stable.sync(&self.0.root, self.0.dirs.beneath())
    }

    /// Continues the file `entry` where an earlier process stopped, if that process left a part of
    /// this size and time under this `key`. The key names the sender and the transfer.
    /// [`Error::InUse`] if that process is alive.
    pub fn resume(&self, entry: &Entry, key: &[u8; 32]) -> Result<Option<PartFile>> {
        resume::resume(&self.0, entry, key, OtherVersion::Leave)
    }

    /// Like [`Self::resume`], and makes a part of another version a part of this one. No chunk of it
    /// is received then, but its content may serve as an old copy ([`crate::EarlierContent`]). It
    /// takes no additional disk space.
    pub fn resume_or_renew(&self, entry: &Entry, key: &[u8; 32]) -> Result<Option<PartFile>> {
        resume::resume(&self.0, entry, key, OtherVersion::Renew)
    }

    /// Like [`Self::resume`], and removes a part of another version.
    pub fn resume_or_remove(&self, entry: &Entry, key: &[u8; 32]) -> Result<Option<PartFile>> {
        resume::resume(&self.0, entry, key, OtherVersion::Remove)
    }

    /// Resumes the file like [`Self::resume`], or begins it anew. Leftovers under another key are
    /// not touched.
    pub fn open_or_resume(&self, entry: &Entry, key: &[u8; 32]) -> Result<PartFile> {
        self.in_parent(&entry.path, "create it", |_| resume::open_or_resume(&self.0, entry, key))
    }

    /// Removes the leftovers of an earlier process for the file `entry` under this `key`.
    pub fn sweep(&self, entry: &Entry, key: &[u8; 32]) -> Result<()> {
        resume::sweep(&self.0, entry, key)
    }

    pub(crate) fn parent(&self, path: &RelPath) -> Result<Arc<OwnedFd>> {
        self.0.parent(path)
    }

    /// Calls `act` with the parent of `path`. If the parent turns out to be removed, creates it
    /// again, once.
    pub(crate) fn in_parent<T>(
        &self,
        path: &RelPath,
        operation: &'static str,
        mut act: impl FnMut(&Arc<OwnedFd>) -> Result<T>,
    ) -> Result<T> {
        let parent_path = path.parent_bytes().unwrap_or_default();
        let get = || self.0.dirs.get_or_make(parent_path).context(path.as_bytes(), operation);
        match act(&get()?) {
            Err(error) if error.is_not_found() && !parent_path.is_empty() => {
                self.0.dirs.forget(parent_path);
                act(&get()?)
            }
            done => done,
        }
    }

    pub(crate) fn add_metadata_errors(&self, metadata_errors: MetadataErrors) {
        self.0.add_metadata_errors(metadata_errors);
    }
}
