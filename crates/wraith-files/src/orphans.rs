//! Removes journals that no transfer needs any more: a killed process left them in its pool
//! ([`crate::journal_pool`]), or between the end of a file and the removal of its journal.
//!
//! A journal is removed only if it is this user's own, no process holds its lock, and its part does
//! not exist. Without the part, no transfer can continue from it. It must be empty or begin like a
//! journal, so that a file of the user with such a name stays.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, OFlags, flock, statat, unlinkat};
use rustix::io::Errno;

use crate::beneath::{DIR, open_child};
use crate::commit::is_at;
use crate::journal::Journal;
use crate::lock::lock;
use crate::own_file::is_private;
use crate::path::{JOURNAL_SUFFIX, PART_SUFFIX};

/// Maximum number of names read in one folder.
const NAMES_MAX: usize = 100_000;
/// Maximum number of folders that are searched.
const FOLDERS_MAX: usize = 4096;

/// The folders of one target that have been searched, by path.
#[derive(Debug, Default)]
pub(crate) struct SearchedFolders(Mutex<HashSet<Box<[u8]>>>);

impl SearchedFolders {
    /// Removes the orphaned journals of the folder at `path`, once. Errors are ignored: an orphan
    /// costs only its own space.
    pub(crate) fn search(&self, path: &[u8], folder: &OwnedFd) {
        let mut searched = lock(&self.0);
        if searched.contains(path) || searched.len() >= FOLDERS_MAX {
            return;
        }
        searched.insert(path.into());
        drop(searched);
        for journal in journals(folder) {
            remove_orphan(folder, &journal);
        }
    }
}

/// Returns the names of all journals in a folder.
fn journals(folder: &OwnedFd) -> Vec<Vec<u8>> {
    let Ok(items) = open_child(folder.as_fd(), b".", DIR).and_then(Dir::new) else {
        return Vec::new();
    };
    let names = items.flatten().take(NAMES_MAX).map(|item| item.file_name().to_bytes().to_vec());
    names.filter(|name| name.starts_with(b".") && name.ends_with(JOURNAL_SUFFIX)).collect()
}

fn remove_orphan(folder: &OwnedFd, journal: &[u8]) {
    let stem = &journal[..journal.len() - JOURNAL_SUFFIX.len()];
    let part = [stem, PART_SUFFIX].concat();
    let has_no_part =
        || statat(folder, &part, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT);
    if !has_no_part() {
        return;
    }
    // Opening a device can have effects.
    let is_file = statat(folder, journal, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if !is_file {
        return;
    }
    let Ok(fd) = open_child(folder.as_fd(), journal, OFlags::RDWR | OFlags::NONBLOCK) else {
        return;
    };
    // With the lock, no other process makes the part or renames the journal.
    let is_free = is_private(&fd)
        && Journal::begins_like_one(&fd)
        && flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_free && is_at(fd.as_fd(), folder.as_fd(), journal) && has_no_part() {
        let _ = unlinkat(folder, journal, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{Mode, open};

    use super::*;
    use crate::beneath::DIR_HANDLE;

    #[test]
    fn only_journals_without_a_part_and_without_an_owner_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let name = |stem: &str, suffix: &[u8]| {
            dir.path().join(format!(".{stem}{}", std::str::from_utf8(suffix).unwrap()))
        };
        for stem in ["orphan", "with-part", "locked", "shared"] {
            let journal = name(stem, JOURNAL_SUFFIX);
            fs::write(&journal, b"").unwrap();
            fs::set_permissions(journal, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(name("with-part", PART_SUFFIX), b"content").unwrap();
        let shared = fs::Permissions::from_mode(0o666);
        fs::set_permissions(name("shared", JOURNAL_SUFFIX), shared).unwrap();
        fs::write(name("notes", JOURNAL_SUFFIX), b"my own notes").unwrap();
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(name("notes", JOURNAL_SUFFIX), private).unwrap();
        symlink("/etc/hostname", name("link", JOURNAL_SUFFIX)).unwrap();
        let locked = fs::File::open(name("locked", JOURNAL_SUFFIX)).unwrap();
        flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();

        let folder = open(dir.path(), DIR_HANDLE, Mode::empty()).unwrap();
        let searched = SearchedFolders::default();
        searched.search(b"", &folder);
        let is_there = |stem: &str| fs::symlink_metadata(name(stem, JOURNAL_SUFFIX)).is_ok();
        let left = ["orphan", "with-part", "locked", "shared", "link", "notes"].map(is_there);
        assert_eq!(left, [false, true, true, true, true, true]);

        drop(locked);
        searched.search(b"", &folder);
        assert!(is_there("locked"), "a folder is searched once");
        SearchedFolders::default().search(b"", &folder);
        assert!(!is_there("locked"));
    }
}
