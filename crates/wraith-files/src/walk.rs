//! Walks the trees to send, in the order of a manifest, in bounded memory.
//!
//! Each root (a path to send) keeps its last name. Entries are sorted component by component, a
//! folder before its content. Links are returned, not followed, except that a root that is itself a
//! link stands for its target. Sockets, pipes, devices, names that no receiver would accept, and
//! folders that cannot be listed are returned as [`Skipped`].
//!
//! One directory per level is open. Of a large directory only the next [`NAMES_MAX`] names in order
//! are held; the directory is read again for the following ones.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, readlinkat, statat};
use rustix::io::{Errno, fcntl_dupfd_cloexec, pread};
use thiserror::Error;

use crate::beneath::{Beneath, DIR_HANDLE, mtime_of, open_child};
use crate::change::Change;
use crate::entry::{Entry, Kind, LINK_TARGET_BYTES_MAX, MODE_BITS};
use crate::error::{Context, Error, Result};
use crate::path::{RelPath, UnsafeName, shown};
use crate::runs::sparse_tree;
use crate::source::{SourceFile, Stamp};

/// Names of one directory held at once: about 5 MiB with ordinary names.
const NAMES_MAX: usize = 65_536;

/// Names of one directory read between two checks whether to stop: less than a millisecond.
const NAMES_BETWEEN_STOPS: u32 = 1024;

/// Counts of the entries found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkSummary {
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub dirs: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Total bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest file.
    pub largest: u64,
    /// Files, folders and links skipped because of their names or because they cannot be inspected.
    pub skipped: u64,
    /// Sockets, pipes and devices skipped: they have no content to send.
    pub special: u64,
}

/// An entry found by a walk, with access to its content.
#[derive(Clone, Debug)]
pub struct WalkEntry {
    /// Its metadata.
    pub entry: Entry,
    root: Arc<WalkRoot>,
    stamp: Stamp,
}

impl WalkEntry {
    /// Opens the file. [`Error::Changed`] if it is no longer the listed file.
    pub fn open(&self) -> Result<SourceFile> {
        let path = &self.entry.path;
        SourceFile::open(&self.root.parent, &self.root.real(path), path, &self.stamp)
    }

    /// Returns how the current file differs from the listed one.
    pub fn change(&self) -> Option<Change> {
        Change::of(&self.root.parent, &self.root.real(&self.entry.path), &self.stamp)
    }

    /// Returns device, inode, size and times at the time of listing.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }
}

/// An object that will not be sent.
#[derive(Debug, Error)]
#[error("{path}: {}", self.what())]
pub struct Skipped {
    /// Its path, escaped.
    pub path: String,
    /// The reason.
    pub why: SkipReason,
}

impl Skipped {
    /// Returns true if it has no content to send, so that nothing is lost.
    pub fn is_special(&self) -> bool {
        matches!(self.why, SkipReason::Special)
    }

    /// Returns the reason without the path.
    pub fn what(&self) -> String {
        match &self.why {
            SkipReason::Special | SkipReason::Unsized => self.why.to_string(),
            SkipReason::Name(name) => name.reason.to_string(),
            SkipReason::Unreadable(error) => error.about(&self.path),
        }
    }
}

/// Why an entry is skipped.
#[derive(Debug, Error)]
pub enum SkipReason {
    /// It is a socket, pipe or device.
    #[error("not a file, folder or link")]
    Special,
    /// Its size is 0, and yet it has content, like the files of `/proc`: the system makes the
    /// content when it is read, so there is no size to offer and nothing to resume.
    #[error("its content is made while it is read; copy it to a file first, or send it with -")]
    Unsized,
    /// No receiver would create its name.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// It could not be inspected or listed.
    #[error(transparent)]
    Unreadable(#[from] Error),
}

/// A path of the command line.
#[derive(Debug)]
struct WalkRoot {
    /// Its parent directory.
    parent: Beneath,
    /// Its name in the parent directory.
    real_name: Vec<u8>,
    /// Its name in the manifest.
    path: RelPath,
}

impl WalkRoot {
    fn new(given: &Path) -> Result<Self> {
        let bytes = given.as_os_str().as_bytes();
        let io = |source| Error::Io { path: shown(bytes), operation: "find it", source };
        let real = given.canonicalize().map_err(io)?;
        let (Some(parent), Some(real_name)) = (real.parent(), real.file_name()) else {
            return Err(Error::Misuse {
                path: shown(bytes),
                what: "the root folder has no name, so it cannot be sent",
            });
        };
        let name = given.file_name().unwrap_or(real_name);
        let parent = open(parent, DIR_HANDLE | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            parent: Beneath::new(parent.context(bytes, "open its folder")?),
            real_name: real_name.as_bytes().to_vec(),
            path: RelPath::parse(name.as_bytes())?,
        })
    }

    /// Returns the path of an entry of this root, relative to [`Self::parent`].
    fn real(&self, path: &RelPath) -> Vec<u8> {
        let below = &path.as_bytes()[self.path.as_bytes().len()..];
        [self.real_name.as_slice(), below].concat()
    }
}

/// Iterator over all entries of some roots.
#[derive(Debug)]
pub struct Walk {
    /// Remaining roots, the next one last.
    roots: Vec<Arc<WalkRoot>>,
    /// Open directories from the current root down.
    levels: Vec<OpenFolder>,
    summary: WalkSummary,
    stop: StopCondition,
}

/// Callback that returns true once the walk should stop.
struct StopCondition(Box<dyn Fn() -> bool + Send>);

impl std::fmt::Debug for StopCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stop").field(&(self.0)()).finish()
    }
}

impl Walk {
    /// Prepares to walk `roots`. Fails if one of them does not exist, has no name, or has the name
    /// of another.
    pub fn new<P: AsRef<Path>>(roots: &[P]) -> Result<Self> {
        let roots: Result<Vec<_>> = roots.iter().map(|path| WalkRoot::new(path.as_ref())).collect();
        let mut roots = roots?;
        roots.sort_by(|a, b| b.path.cmp(&a.path));
        if let Some(twins) = roots.windows(2).find(|pair| pair[0].path == pair[1].path) {
            let path = twins[0].path.display().to_string();
            return Err(Error::Misuse { path, what: "two of the paths to send have this name" });
        }
        let roots = roots.into_iter().map(Arc::new).collect();
        let stop = StopCondition(Box::new(|| false));
        Ok(Self { roots, levels: Vec::new(), summary: WalkSummary::default(), stop })
    }

    /// Ends the walk as soon as `is_over` returns true, as if there were no more entries. It is
    /// called before each entry and while a large directory is listed.
    #[must_use]
    pub fn stop_when(self, is_over: impl Fn() -> bool + Send + 'static) -> Self {
        Self { stop: StopCondition(Box::new(is_over)), ..self }
    }

    /// Returns the counts of the entries yielded so far.
    pub fn summary(&self) -> &WalkSummary {
        &self.summary
    }

    fn step(&mut self) -> Option<std::result::Result<WalkEntry, Skipped>> {
        while let Some(level) = self.levels.last_mut() {
            if (self.stop.0)() {
                return None;
            }
            match level.next_name(&self.stop) {
                Ok(Some(name)) => return Some(self.visit_name(&name)),
                Ok(None) => {
                    self.levels.pop();
                }
                Err(errno) => {
                    let path = level.path.clone();
                    self.levels.pop();
                    return Some(Err(unreadable(&path, "list it", errno)));
                }
            }
        }
        if (self.stop.0)() {
            return None;
        }
        let root = self.roots.pop()?;
        let path = root.path.clone();
        let parent = match root.parent.open_dir(b"") {
            Ok(parent) => parent,
            Err(errno) => return Some(Err(unreadable(&path, "open its folder", errno))),
        };
        let name = root.real_name.clone();
        Some(self.visit(&root, parent.as_fd(), &name, path))
    }

    /// Visits an entry of the innermost open directory.
    fn visit_name(&mut self, name: &[u8]) -> std::result::Result<WalkEntry, Skipped> {
        let level = self.levels.last().expect("the name came from it");
        let path = level.path.join(name).map_err(|error| {
            let path = shown(&[level.path.as_bytes(), b"/", name].concat());
            Skipped { path, why: error.into() }
        })?;
        let root = Arc::clone(&level.root);
        let fd = Arc::clone(&level.fd);
        self.visit(&root, fd.as_fd(), name, path)
    }

    /// Inspects `name` in `dir`; a directory is opened, to be listed next.
    fn visit(
        &mut self,
        root: &Arc<WalkRoot>,
        dir: BorrowedFd<'_>,
        name: &[u8],
        path: RelPath,
    ) -> std::result::Result<WalkEntry, Skipped> {
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| unreadable(&path, "inspect it", errno))?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                if stat.st_size == 0 && has_unsized_content(dir, name) {
                    let path = path.display().to_string();
                    return Err(Skipped { path, why: SkipReason::Unsized });
                }
                Kind::File { size: stat.st_size as u64, sparse: sparse_tree(&stat) }
            }
            FileType::Directory => {
                let opened = open_child(dir, name, OFlags::RDONLY | OFlags::DIRECTORY);
                let level =
                    opened.and_then(|fd| OpenFolder::new(fd, path.clone(), Arc::clone(root)));
                let level = level.map_err(|errno| unreadable(&path, "list it", errno))?;
                self.levels.push(level);
                Kind::Dir
            }
            FileType::Symlink => {
                let target = readlinkat(dir, name, Vec::new())
                    .map_err(|errno| unreadable(&path, "read the link", errno))?;
                let target = target.into_bytes();
                if target.is_empty() || target.len() > LINK_TARGET_BYTES_MAX {
                    return Err(unreadable(&path, "read the link", Errno::NAMETOOLONG));
                }
                Kind::Symlink { target }
            }
            _ => {
                return Err(Skipped { path: path.display().to_string(), why: SkipReason::Special });
            }
        };
        self.count(&kind);
        let entry = entry_of(path, kind, &stat);
        Ok(WalkEntry { entry, root: Arc::clone(root), stamp: Stamp::of(&stat) })
    }

    fn count(&mut self, kind: &Kind) {
        match kind {
            Kind::File { size, .. } => {
                self.summary.files += 1;
                self.summary.bytes = self.summary.bytes.saturating_add(*size);
                self.summary.largest = self.summary.largest.max(*size);
            }
            Kind::Dir => self.summary.dirs += 1,
            Kind::Symlink { .. } => self.summary.symlinks += 1,
        }
    }
}

impl Iterator for Walk {
    type Item = std::result::Result<WalkEntry, Skipped>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.step();
        if let Some(Err(skipped)) = &item {
            let special = skipped.is_special();
            self.summary.special += u64::from(special);
            self.summary.skipped += u64::from(!special);
        }
        item
    }
}

fn entry_of(path: RelPath, kind: Kind, stat: &Stat) -> Entry {
    Entry { path, kind, mode: stat.st_mode & MODE_BITS, mtime: mtime_of(stat) }
}

fn unreadable(path: &RelPath, operation: &'static str, errno: Errno) -> Skipped {
    let error = Error::os(path.as_bytes(), operation, errno);
    Skipped { path: path.display().to_string(), why: error.into() }
}

/// A directory that is being listed.
#[derive(Debug)]
struct OpenFolder {
    /// Descriptor for inspecting its entries.
    fd: Arc<OwnedFd>,
    /// Stream for listing them.
    dir: Dir,
    path: RelPath,
    root: Arc<WalkRoot>,
    /// The next names in order, the next one last.
    names: Vec<Vec<u8>>,
    /// The last name put into `names` so far; all names up to it are done.
    listed_to: Option<Vec<u8>>,
    /// True if all remaining names are in `names`.
    complete: bool,
}

impl OpenFolder {
    fn new(fd: OwnedFd, path: RelPath, root: Arc<WalkRoot>) -> rustix::io::Result<Self> {
        let dir = Dir::new(fcntl_dupfd_cloexec(&fd, 0)?)?;
        let fd = Arc::new(fd);
        Ok(Self { fd, dir, path, root, names: Vec::new(), listed_to: None, complete: false })
    }

    fn next_name(&mut self, stop: &StopCondition) -> rustix::io::Result<Option<Vec<u8>>> {
        if self.names.is_empty() && !self.complete {
            self.list(NAMES_MAX, stop)?;
        }
        Ok(self.names.pop())
    }

    /// Reads the directory from the start and keeps the `max` smallest names after those listed
    /// before. Keeps none if `stop` returns true meanwhile.
    fn list(&mut self, max: usize, stop: &StopCondition) -> rustix::io::Result<()> {
        let mut smallest = BinaryHeap::new();
        let mut complete = true;
        self.dir.rewind();
        let mut read = 0u32;
        while let Some(item) = self.dir.read() {
            let item = item?;
            read += 1;
            if read.is_multiple_of(NAMES_BETWEEN_STOPS) && (stop.0)() {
                self.complete = true;
                return Ok(());
            }
            let name = item.file_name().to_bytes();
            let is_done = self.listed_to.as_ref().is_some_and(|last| name <= last.as_slice());
            if name == b"." || name == b".." || is_done {
                continue;
            }
            if smallest.len() < max {
                smallest.push(name.to_vec());
                continue;
            }
            complete = false;
            if let Some(mut largest) = smallest.peek_mut()
                && name < largest.as_slice()
            {
                *largest = name.to_vec();
            }
        }
        self.complete = complete;
        self.names = smallest.into_sorted_vec();
        if let Some(last) = self.names.last() {
            self.listed_to = Some(last.clone());
        }
        self.names.reverse();
        Ok(())
    }
}

/// Returns the name under which a command-line path will appear, for messages. `None` if it has
/// none.
pub fn root_name(given: &Path) -> Option<String> {
    Some(shown(name_given(given)?.as_bytes()))
}

/// Returns the name under which a command-line path will appear. `None` if it has no name that a
/// receiver would create.
pub fn root_path(given: &Path) -> Option<RelPath> {
    RelPath::parse(name_given(given)?.as_bytes()).ok()
}

fn name_given(given: &Path) -> Option<OsString> {
    let name = given.file_name().map(OsStr::to_os_string);
    name.or_else(|| given.canonicalize().ok()?.file_name().map(OsStr::to_os_string))
}

/// Returns true if the empty file `name` in `dir` yields a byte. A file that cannot be opened has
/// none: it is reported when it is read.
fn has_unsized_content(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    // NONBLOCK: a file may have replaced it, or the system may make its content later.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let is_empty_file = |stat: &Stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size == 0
    };
    let Ok(file) = open_child(dir, name, flags) else { return false };
    if !fstat(&file).is_ok_and(|stat| is_empty_file(&stat)) {
        return false;
    }
    match pread(&file, &mut [0], 0) {
        Ok(0) => false,
        // Not if another program has just begun to write it.
        Ok(_) | Err(Errno::AGAIN) => fstat(&file).is_ok_and(|stat| is_empty_file(&stat)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_directory_larger_than_the_buffer_is_listed_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut expected: Vec<String> = (0..101).map(|n| format!("{:03}", n * 37 % 101)).collect();
        expected.iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        expected.sort();
        let root = Arc::new(WalkRoot::new(dir.path()).unwrap());
        let fd = open(dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        for max in [1, 7, 100, 101, 102] {
            let fd = fcntl_dupfd_cloexec(&fd, 0).unwrap();
            let mut level = OpenFolder::new(fd, root.path.clone(), Arc::clone(&root)).unwrap();
            let mut names = Vec::new();
            while !level.complete || !level.names.is_empty() {
                if level.names.is_empty() {
                    level.list(max, &StopCondition(Box::new(|| false))).unwrap();
                    assert!(level.names.len() <= max);
                }
                names.extend(level.names.pop());
            }
            let names: Vec<_> = names.into_iter().map(|n| String::from_utf8(n).unwrap()).collect();
            assert_eq!(names, expected, "{max} at a time");
        }
    }

    #[test]
    fn a_walk_that_is_stopped_ends_also_within_one_large_directory() {
        let dir = tempfile::tempdir().unwrap();
        let names = 3 * NAMES_BETWEEN_STOPS;
        (0..names).for_each(|n| fs::write(dir.path().join(n.to_string()), "").unwrap());
        let asked = Arc::new(AtomicU32::new(0));
        let stop_at = |limit: u32| {
            let asked = Arc::clone(&asked);
            let walk = Walk::new(&[dir.path()]).unwrap();
            walk.stop_when(move || asked.fetch_add(1, Relaxed) + 1 >= limit)
        };
        // Called before the root, before it is listed, for each thousand of its names, and before
        // each of its entries.
        for (limit, entries, questions) in
            [(1, 0, 1), (2, 1, 2), (3, 1, 4), (6, 2, 6), (16, 12, 16)]
        {
            assert_eq!(stop_at(limit).count(), entries, "{limit}");
            assert_eq!(asked.swap(0, Relaxed), questions, "{limit}");
        }
    }
}
