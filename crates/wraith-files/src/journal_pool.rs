//! Journals of finished files, kept for reuse. A journal records which chunks of an unfinished file
//! are verified.
//!
//! Without the pool, a tree of many files would create and remove one journal each. ext4 does not
//! reuse an inode for a while after it was freed. During that time, every creation searches through
//! all inodes freed in the last minutes, which takes quadratic time in total. Renaming an empty
//! journal to its next name avoids the search and is always faster.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, RenameFlags, ftruncate, renameat_with, unlinkat};

use crate::commit::is_at;

/// Maximum number of pooled journals: about as many as files received at once.
const POOLED_JOURNALS_MAX: usize = 8;

/// Empty, locked journals under their last names.
#[derive(Debug, Default)]
pub(crate) struct JournalPool(Mutex<Vec<PooledJournal>>);

#[derive(Debug)]
struct PooledJournal {
    fd: OwnedFd,
    dir: Arc<OwnedFd>,
    name: Vec<u8>,
}

impl JournalPool {
    /// Takes a journal that is no longer needed.
    pub(crate) fn retire(&self, fd: OwnedFd, dir: Arc<OwnedFd>, name: Vec<u8>) {
        let pooled = PooledJournal { fd, dir, name };
        let mut journal_pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if journal_pool.len() < POOLED_JOURNALS_MAX && ftruncate(&pooled.fd, 0).is_ok() {
            journal_pool.push(pooled);
        } else {
            pooled.remove();
        }
    }

    /// Renames a pooled journal to `name` in `dir` and returns it. `None` if the pool is empty or
    /// the rename fails.
    pub(crate) fn take(&self, dir: &OwnedFd, name: &[u8]) -> Option<OwnedFd> {
        let pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        let is_ours = is_at(pooled.fd.as_fd(), pooled.dir.as_fd(), &pooled.name);
        let flags = RenameFlags::NOREPLACE;
        if !is_ours || renameat_with(&pooled.dir, &pooled.name, dir, name, flags).is_err() {
            pooled.remove();
            return None;
        }
        if is_at(pooled.fd.as_fd(), dir.as_fd(), name) {
            return Some(pooled.fd);
        }
        // The inode follows from the path, so the journal would not be recognised and removed later.
        // If the removal fails, the next receiver of that name removes it.
        let _ = unlinkat(dir, name, AtFlags::empty());
        None
    }

    /// Removes all pooled journals.
    pub(crate) fn clear(&self) {
        let journal_pool =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        journal_pool.iter().for_each(PooledJournal::remove);
    }
}

impl PooledJournal {
    fn remove(&self) {
        if is_at(self.fd.as_fd(), self.dir.as_fd(), &self.name) {
            // An empty hidden file that stays behind is harmless; the next receiver of that name
            // removes it.
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

impl Drop for JournalPool {
    fn drop(&mut self) {
        self.clear();
    }
}
