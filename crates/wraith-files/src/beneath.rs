//! Opens files beneath a directory handle, regardless of the links an attacker may have planted
//! there.
//!
//! Invariant: no call in this module follows a symbolic link, a magic link of `/proc` or a `..`, at
//! any component. This holds even if a component is replaced during the call. The kernel enforces
//! it in `openat2`. Before Linux 5.6 and in some sandboxes that call is missing or refused; then
//! each component is opened relative to the previous one with `O_NOFOLLOW`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, openat, openat2};
use rustix::io::{Errno, Result};

use crate::entry::Mtime;

/// A directory handle that gives access to nothing above it.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    has_openat2: AtomicBool,
}

/// Flags for a directory that serves as the starting point of other calls. Needs no permission to
/// list it.
pub(crate) const DIR_HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Flags for a directory that is listed or changed.
pub(crate) const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Number of `openat2` attempts that may lose a race against a rename before falling back to
/// opening component by component.
const RACE_RETRIES: usize = 3;

impl Beneath {
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root, has_openat2: AtomicBool::new(true) }
    }

    /// Like [`Self::new`], but never calls `openat2`. For tests of the fallback.
    #[cfg(test)]
    pub(crate) fn without_openat2(root: OwnedFd) -> Self {
        Self { root, has_openat2: AtomicBool::new(false) }
    }

    /// Opens the directory `path`, or the root itself if `path` is empty.
    pub(crate) fn open_dir(&self, path: &[u8]) -> Result<OwnedFd> {
        self.open_file(path, DIR_HANDLE)
    }

    /// Opens `path`, which has no empty, `.` or `..` component. A symbolic link fails with `ELOOP`
    /// or `ENOTDIR`.
    pub(crate) fn open_file(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if path.is_empty() {
            return openat(&self.root, c".", flags, Mode::empty());
        }
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..RACE_RETRIES {
            if !self.has_openat2.load(Relaxed) {
                break;
            }
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS) => self.has_openat2.store(false, Relaxed),
                // Sandboxes return these for system calls that they do not know.
                Err(Errno::PERM | Errno::INVAL) => break,
                done => return done,
            }
        }
        self.open_by_component(path, flags)
    }

    fn open_by_component(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
        let (parents, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        let mut dir: Option<OwnedFd> = None;
        for component in parents.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let at = dir.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            dir = Some(open_child(at, component, DIR_HANDLE)?);
        }
        open_child(dir.as_ref().map_or(self.root.as_fd(), AsFd::as_fd), name, flags)
    }
}

/// Opens the entry `name` of `dir`. Fails if it is a symbolic link.
pub(crate) fn open_child(dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
    debug_assert!(!name.contains(&b'/') && name != b"..");
    openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

pub(crate) fn mtime_of(stat: &Stat) -> Mtime {
    Mtime { s: stat.st_mtime, ns: stat.st_mtime_nsec as u32 }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_reached_through_a_link_with_or_without_openat2() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/f"), "y").unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink("a", at("in")).unwrap();
        symlink("b/f", at("a/f")).unwrap();
        symlink("/proc/self/root", at("a/magic")).unwrap();
        let open = || rustix::fs::open(dir.path(), DIR_HANDLE, Mode::empty()).unwrap();
        for beneath in [Beneath::new(open()), Beneath::without_openat2(open())] {
            let file = |path: &str| beneath.open_file(path.as_bytes(), OFlags::RDONLY);
            assert!(file("a/b/f").is_ok());
            assert!(beneath.open_dir(b"a/b").is_ok() && beneath.open_dir(b"").is_ok());
            for path in ["out/secret", "in/b/f", "in", "out", "a/f", "a/magic/etc/passwd"] {
                let error = file(path).unwrap_err();
                assert!(matches!(error, Errno::LOOP | Errno::NOTDIR), "{path}: {error}");
                assert!(beneath.open_dir(path.as_bytes()).is_err(), "{path}");
            }
            assert_eq!(file("a/none").unwrap_err(), Errno::NOENT);
        }
    }
}
