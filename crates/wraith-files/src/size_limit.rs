//! Finds by trial whether the target can hold a file of some size.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, fstatfs, ftruncate, openat, seek, unlinkat};
use rustix::io::Errno;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::hidden_names::replacement_name;
use crate::small_file::create_hidden;
use crate::target::TargetDir;

/// Type numbers (`statfs`) of FAT, exFAT, eCryptfs, HFS, HFS+ and AFFS. They fill a file with zeros to
/// enlarge it, which takes long. Linux knows their limits, so a seek suffices.
const FILLED: [u64; 6] = [0x4d44, 0x2011_bab0, 0xf15f, 0x4244, 0x482b, 0xadff];

impl TargetDir {
    /// Fails if the file system of the target cannot hold a file as large as `entry`. Other errors
    /// are left to the creation of the file. Each size is tried only if it exceeds all sizes before.
    pub fn check_size(&self, entry: &Entry) -> Result<()> {
        let size = entry.size();
        if size <= self.0.size_tried.load(Relaxed) || self.can_hold(size) {
            self.0.size_tried.fetch_max(size, Relaxed);
            return Ok(());
        }
        Err(Error::os(entry.path.as_bytes(), "create a file of this size", Errno::FBIG))
    }

    fn can_hold(&self, size: u64) -> bool {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let root = &self.0.root;
        let name = replacement_name(format!("size-{:x}", std::process::id()).as_bytes());
        let nameless = openat(root, c".", flags, mode);
        let is_hidden = nameless.is_err();
        let Ok(file) = nameless.or_else(|_| create_hidden(root.as_fd(), &name, mode)) else {
            return true;
        };
        let is_filled = fstatfs(root).is_ok_and(|stat| FILLED.contains(&(stat.f_type as u64)));
        let is_held = match seek(&file, SeekFrom::Start(size)) {
            Err(Errno::FBIG | Errno::INVAL) => false,
            _ => is_filled || ftruncate(&file, size) != Err(Errno::FBIG),
        };
        if is_hidden {
            // If the removal fails, the next trial removes it.
            let _ = unlinkat(root, &name, AtFlags::empty());
        }
        is_held
    }
}
