//! Journals of finished files, kept to be used again.
//!
//! A tree of many files would otherwise create and remove one journal each, and ext4 does not reuse an inode for a while after
//! it was freed: every creation then searches through all that were freed in the last minutes, quadratically. Renaming an
//! empty journal to its next name avoids that, and is faster in any case.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, RenameFlags, ftruncate, renameat_with, unlinkat};

use crate::place::is_at;

/// Journals kept: as many as files are likely to be received at once.
const SPARES_MAX: usize = 8;

/// Empty, locked journals under the names they had last.
#[derive(Debug, Default)]
pub(crate) struct SpareJournals(Mutex<Vec<Spare>>);

#[derive(Debug)]
struct Spare {
    fd: OwnedFd,
    dir: Arc<OwnedFd>,
    name: Vec<u8>,
}

impl SpareJournals {
    /// Takes a journal that is not needed any more.
    pub(crate) fn retire(&self, fd: OwnedFd, dir: Arc<OwnedFd>, name: Vec<u8>) {
        let spare = Spare { fd, dir, name };
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < SPARES_MAX && ftruncate(&spare.fd, 0).is_ok() {
            spares.push(spare);
        } else {
            spare.remove();
        }
    }

    /// A spare, renamed to `name` in `dir`. `None` if there is none that can be.
    pub(crate) fn take(&self, dir: &OwnedFd, name: &[u8]) -> Option<OwnedFd> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        let is_ours = is_at(spare.fd.as_fd(), spare.dir.as_fd(), &spare.name);
        let flags = RenameFlags::NOREPLACE;
        if is_ours && renameat_with(&spare.dir, &spare.name, dir, name, flags).is_ok() {
            return Some(spare.fd);
        }
        spare.remove();
        None
    }

    /// Removes them all.
    pub(crate) fn clear(&self) {
        let spares = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        spares.iter().for_each(Spare::remove);
    }
}

impl Spare {
    fn remove(&self) {
        if is_at(self.fd.as_fd(), self.dir.as_fd(), &self.name) {
            // An empty hidden file that stays behind harms nobody and is removed by the next receiver of that name.
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

impl Drop for SpareJournals {
    fn drop(&mut self) {
        self.clear();
    }
}
