//! Token files: hidden files by which a transfer recognises its own folders on file systems without
//! creation times.
//!
//! The caller chooses names that no peer can use ([`RelPath`]) and contents that nobody else can
//! compute.
//!
//! [`RelPath`]: crate::RelPath

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fstat, fsync, futimens, openat, unlinkat};
use rustix::io::Errno;

use crate::beneath::{mtime_of, open_child};
use crate::error::{Context, Result};
use crate::path::RelPath;
use crate::read::read_at;
use crate::target::TargetDir;
use crate::write::{timestamps, write_all_at};

impl TargetDir {
    /// Writes the token file `name` into the folder at `path` and flushes it to disk. Leaves no file
    /// after an error.
    pub fn write_token(&self, path: &RelPath, name: &str, token: &[u8]) -> Result<()> {
        let dir = self.0.dirs.get(path.as_bytes()).context(path.as_bytes(), "open it")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&dir, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        let file = file.context(path.as_bytes(), "create a token in it")?;
        let written = write_all_at(file.as_fd(), &[token], 0).and_then(|()| fsync(&file));
        if written.is_err() {
            let _ = unlinkat(&dir, name, AtFlags::empty());
        }
        written.context(path.as_bytes(), "write a token in it")
    }

    /// Returns true if the folder at `path` has the token file `name` with exactly this content.
    pub fn has_token(&self, path: &RelPath, name: &str, token: &[u8]) -> bool {
        let Ok(dir) = self.0.dirs.beneath().open_dir(path.as_bytes()) else { return false };
        // Another user may have put a pipe there.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let Ok(file) = open_child(dir.as_fd(), name.as_bytes(), flags) else { return false };
        let mut there = vec![0; token.len() + 1];
        read_at(file.as_fd(), &mut there, 0).is_ok_and(|len| there[..len] == *token)
    }

    /// Removes the token file `name` from the folder at `path`, which keeps its mode and time.
    pub fn remove_token(&self, path: &RelPath, name: &str) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = self.0.dirs.beneath().open_file(path.as_bytes(), flags);
        let dir = dir.context(path.as_bytes(), "open it")?;
        let stat = fstat(&dir).context(path.as_bytes(), "inspect it")?;
        let removed = match unlinkat(&dir, name, AtFlags::empty()) {
            Err(Errno::ACCESS) => {
                let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
                fchmod(&dir, mode | Mode::RWXU).and_then(|()| {
                    let removed = unlinkat(&dir, name, AtFlags::empty());
                    fchmod(&dir, mode).and(removed)
                })
            }
            done => done,
        };
        removed.context(path.as_bytes(), "remove a token in it")?;
        futimens(&dir, &timestamps(mtime_of(&stat))).context(path.as_bytes(), "set its time")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    const NAME: &str = ".wraith-00-folder.state";

    fn path(path: &str) -> RelPath {
        RelPath::parse(path.as_bytes()).unwrap()
    }

    #[test]
    fn a_token_counts_only_whole_and_leaves_no_trace_on_its_folder() {
        assert!(RelPath::parse(NAME.as_bytes()).is_err(), "a peer cannot name it");
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("a").join(name);
        fs::create_dir(at("")).unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        assert!(!target.has_token(&path("a"), NAME, b"token"));
        target.write_token(&path("a"), NAME, b"token").unwrap();
        assert!(target.has_token(&path("a"), NAME, b"token"));
        for other in [&b"toke"[..], b"token1", b"tokem", b""] {
            assert!(!target.has_token(&path("a"), NAME, other));
        }
        assert!(target.write_token(&path("a"), NAME, b"other").is_err(), "it is never replaced");
        assert!(target.has_token(&path("a"), NAME, b"token"));
        assert_eq!(fs::metadata(at(NAME)).unwrap().mode() & 0o777, 0o600);

        fs::set_permissions(at(""), Permissions::from_mode(0o555)).unwrap();
        let folder = fs::File::open(at("")).unwrap();
        futimens(&folder, &timestamps(crate::Mtime { s: 1_500_000_000, ns: 7 })).unwrap();
        target.remove_token(&path("a"), NAME).unwrap();
        assert!(!at(NAME).exists());
        let after = fs::metadata(at("")).unwrap();
        assert_eq!(
            (after.mode() & 0o7777, after.mtime(), after.mtime_nsec()),
            (0o555, 1_500_000_000, 7)
        );
    }

    #[test]
    fn no_token_is_read_through_a_link_or_from_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["a", "pipe", "linked"] {
            fs::create_dir(at(folder)).unwrap();
        }
        let target = TargetDir::open(dir.path()).unwrap();
        target.write_token(&path("a"), NAME, b"token").unwrap();
        symlink("a", at("to a")).unwrap();
        symlink(at("a").join(NAME), at("linked").join(NAME)).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        let pipe = at("pipe").join(NAME);
        rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for folder in ["to a", "linked", "pipe", "none", "a/none"] {
            assert!(!target.has_token(&path(folder), NAME, b"token"), "{folder}");
        }
        assert!(target.write_token(&path("linked"), NAME, b"other").is_err());
        assert!(target.has_token(&path("a"), NAME, b"token"), "nothing is written through a link");
    }
}
