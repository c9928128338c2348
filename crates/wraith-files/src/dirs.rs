//! Cache of handles of target directories, so that writing a file costs no path lookup.
//!
//! A handle names a directory, not a path: files written through it stay in that directory even if
//! its path is replaced by a link. The lock guards only the table; a cache hit makes no system call
//! under it.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, mkdirat};
use rustix::io::{Errno, Result};

use crate::beneath::{Beneath, DIR_HANDLE, open_child};
use crate::descriptors::descriptor_share;

/// Maximum number of cached handles. A manifest is in depth-first order, so a few per writer would
/// do.
const HANDLES_MAX: usize = 64;
/// The cache has at most this part of the process's descriptors.
const HANDLES_DIVISOR: u64 = 4;

/// Mode of directories without an entry of their own. The umask applies.
const IMPLIED_DIR_MODE: Mode = Mode::from_raw_mode(0o777);

/// Cached directories below the root, by path. The empty path is the root.
#[derive(Debug)]
pub(crate) struct Dirs {
    beneath: Beneath,
    cache: Mutex<Cache>,
}

#[derive(Debug)]
struct Cache {
    handles: HashMap<Box<[u8]>, (Arc<OwnedFd>, u64)>,
    handles_max: usize,
    /// Number of uses so far. The handle with the lowest count is evicted first.
    clock: u64,
}

impl Dirs {
    pub(crate) fn new(beneath: Beneath) -> Self {
        let handles_max = descriptor_share(HANDLES_DIVISOR, HANDLES_MAX);
        let cache = Cache { handles: HashMap::new(), handles_max, clock: 0 };
        Self { beneath, cache: Mutex::new(cache) }
    }

    pub(crate) fn beneath(&self) -> &Beneath {
        &self.beneath
    }

    /// Returns a handle of the directory `path`.
    pub(crate) fn get(&self, path: &[u8]) -> Result<Arc<OwnedFd>> {
        if let Some(fd) = self.lock().hit(path) {
            return Ok(fd);
        }
        let fd = Arc::new(self.beneath.open_dir(path)?);
        self.put(path, Arc::clone(&fd));
        Ok(fd)
    }

    /// Returns a handle of the directory `path`, creating it and its parents if necessary.
    pub(crate) fn get_or_make(&self, path: &[u8]) -> Result<Arc<OwnedFd>> {
        match self.get(path) {
            Err(Errno::NOENT) if !path.is_empty() => {}
            done => return done,
        }
        // Recurses up to the deepest existing directory; paths are at most DEPTH_MAX deep.
        let slash = path.iter().rposition(|&byte| byte == b'/');
        let (parent, name) = match slash {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        let parent = self.get_or_make(parent)?;
        match mkdirat(&parent, name, IMPLIED_DIR_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let fd = Arc::new(open_child(parent.as_fd(), name, DIR_HANDLE)?);
        self.put(path, Arc::clone(&fd));
        Ok(fd)
    }

    /// Adds a handle to the cache.
    pub(crate) fn put(&self, path: &[u8], fd: Arc<OwnedFd>) {
        self.lock().put(path, fd);
    }

    /// Drops the handle of `path` after its directory turned out to be deleted.
    pub(crate) fn forget(&self, path: &[u8]) {
        self.lock().handles.remove(path);
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        // The table is consistent between any two of its operations.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    fn hit(&mut self, path: &[u8]) -> Option<Arc<OwnedFd>> {
        self.clock += 1;
        let (fd, used) = self.handles.get_mut(path)?;
        *used = self.clock;
        Some(Arc::clone(fd))
    }

    fn put(&mut self, path: &[u8], fd: Arc<OwnedFd>) {
        if self.handles.len() >= self.handles_max && !self.handles.contains_key(path) {
            let oldest = self.handles.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(path, _)| path.clone()).expect("the table is full");
            self.handles.remove(&oldest);
        }
        self.clock += 1;
        self.handles.insert(path.into(), (fd, self.clock));
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::open;

    use super::*;

    #[test]
    fn any_number_of_directories_uses_a_bounded_number_of_handles() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = Dirs::new(Beneath::new(open(dir.path(), DIR_HANDLE, Mode::empty()).unwrap()));
        for n in 0..3 * HANDLES_MAX {
            dirs.get_or_make(format!("a/{n}/b").as_bytes()).unwrap();
            assert!(dirs.lock().handles.len() <= HANDLES_MAX);
        }
        assert!(dir.path().join("a/0/b").is_dir());
        assert!(dirs.lock().hit(b"a").is_some(), "what is used stays");
        assert!(dirs.lock().hit(b"a/0/b").is_none(), "what is not used goes");
    }
}
