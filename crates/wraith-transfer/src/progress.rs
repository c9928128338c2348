//! Live counters of a transfer, polled by the caller. They consist of a few atomics and a short
//! list of active large files, so a progress bar costs the transfer next to nothing.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use wraith_transport::{Addr, PathHandle};

use crate::message::Offer;
use crate::rate::Rate;

/// Maximum number of large files listed at once: as many as a person can follow, and more than are
/// usually open.
const ACTIVE_MAX: usize = 4;

/// Live counters. All of them only grow, except that totals may be corrected while the tree is
/// being walked.
#[derive(Debug, Default)]
pub struct Progress {
    is_started: AtomicBool,
    bytes_moved: AtomicU64,
    bytes_found: AtomicU64,
    bytes_total: AtomicU64,
    files: AtomicU64,
    files_total: AtomicU64,
    disk_nanos: AtomicU64,
    checks: Mutex<Checks>,
    path: Mutex<Option<PathHandle>>,
    rate: Mutex<Option<Arc<Rate>>>,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    current: String,
    active: Vec<(u32, ActiveFile)>,
}

/// The files on this side's disk that are being read before anything of them is requested.
#[derive(Debug, Default)]
struct Checks {
    running: u32,
    checked: Checked,
}

/// Content on this side's disk that is read and hashed before the rest is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Bytes read so far.
    pub bytes: u64,
    /// Bytes of all files that were or are being read.
    pub bytes_total: u64,
}

/// One file that is being read. Its end counts it as read.
#[derive(Debug)]
pub(crate) struct Check<'a> {
    progress: &'a Progress,
    left: u64,
}

impl Check<'_> {
    /// Adds bytes that were read.
    pub(crate) fn add(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        lock(&self.progress.checks).checked.bytes += bytes;
    }
}

impl Drop for Check<'_> {
    fn drop(&mut self) {
        let mut checks = lock(&self.progress.checks);
        checks.running -= 1;
        checks.checked.bytes += self.left;
    }
}

/// A file of several chunks that is being transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveFile {
    /// Name, escaped for a terminal.
    pub name: String,
    /// Settled bytes.
    pub bytes: u64,
    /// Total bytes.
    pub size: u64,
}

impl Progress {
    /// Returns the file bytes resolved so far: transferred, already present, or part of a file that
    /// failed.
    pub fn bytes(&self) -> u64 {
        self.bytes_moved().saturating_add(self.bytes_found.load(Relaxed))
    }

    /// Returns the bytes resolved by this connection's transfers, a measure of its speed. Excludes
    /// holes and bytes that were already there or came over an earlier connection.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_moved.load(Relaxed)
    }

    /// Returns this side's rate limit, or the limit that this side requests, in bytes per second.
    /// `None` without a limit.
    pub fn cap(&self) -> Option<u64> {
        lock(&self.rate).as_ref()?.cap()
    }

    /// Sets the rate limit to report.
    pub(crate) fn limited_by(&self, rate: &Arc<Rate>) {
        *lock(&self.rate) = Some(Arc::clone(rate));
    }

    /// Returns true once the offer is known; before that, the other counters are meaningless.
    pub fn is_started(&self) -> bool {
        self.is_started.load(Relaxed)
    }

    /// Returns the file bytes in the offer.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total.load(Relaxed)
    }

    /// Returns the number of files resolved so far.
    pub fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// Returns the number of files in the offer.
    pub fn files_total(&self) -> u64 {
        self.files_total.load(Relaxed)
    }

    /// Returns the name of the current file, escaped for a terminal; empty before the first. If
    /// several small files are in progress, any of them.
    pub fn current_file(&self) -> String {
        lock(&self.names).current.clone()
    }

    /// Returns the large files being transferred, oldest first; at most a few.
    pub fn active_files(&self) -> Vec<ActiveFile> {
        lock(&self.names).active.iter().map(|(_, file)| file.clone()).collect()
    }

    /// Returns the total time that threads have spent on reading and writing files.
    pub fn disk_time(&self) -> Duration {
        Duration::from_nanos(self.disk_nanos.load(Relaxed))
    }

    /// Returns the progress of the checks of content on this side's disk; `None` while none runs.
    pub fn checked(&self) -> Option<Checked> {
        let checks = lock(&self.checks);
        (checks.running > 0).then_some(checks.checked)
    }

    /// Begins to read `bytes` of a file on this side's disk.
    pub(crate) fn begin_check(&self, bytes: u64) -> Check<'_> {
        let mut checks = lock(&self.checks);
        checks.running += 1;
        checks.checked.bytes_total = checks.checked.bytes_total.saturating_add(bytes);
        Check { progress: self, left: bytes }
    }

    /// Returns the current address of the peer, once it has sent Hello.
    pub fn remote(&self) -> Option<Addr> {
        lock(&self.path).as_ref().map(PathHandle::remote)
    }

    pub(crate) fn connected(&self, path: PathHandle) {
        *lock(&self.path) = Some(path);
    }

    pub(crate) fn start(&self, offer: &Offer) {
        self.bytes_total.store(offer.bytes, Relaxed);
        self.files_total.store(offer.files, Relaxed);
        self.is_started.store(true, Relaxed);
    }

    pub(crate) fn add_bytes(&self, n: u64) {
        count_bytes(&self.bytes_moved, n);
    }

    /// Adds bytes that are resolved without being transferred now.
    pub(crate) fn add_found(&self, n: u64) {
        count_bytes(&self.bytes_found, n);
    }

    pub(crate) fn add_files(&self, n: u64) {
        self.files.fetch_add(n, Relaxed);
    }

    pub(crate) fn set_current(&self, path: &dyn Display) {
        let mut names = lock(&self.names);
        names.current.clear();
        write!(names.current, "{path}").expect("writing to a String cannot fail");
    }

    /// Adds a large file to the list, with `bytes` of it already resolved.
    pub(crate) fn begin_file(&self, entry: u32, path: &dyn Display, bytes: u64, size: u64) {
        let name = path.to_string();
        let mut names = lock(&self.names);
        names.current.clone_from(&name);
        names.active.retain(|(active, _)| *active != entry);
        if names.active.len() < ACTIVE_MAX {
            names.active.push((entry, ActiveFile { name, bytes, size }));
        }
    }

    /// Adds inspected bytes of a large file that are counted elsewhere.
    pub(crate) fn show_bytes_of(&self, entry: u32, n: u64) {
        let mut names = lock(&self.names);
        if let Some((_, file)) = names.active.iter_mut().find(|(active, _)| *active == entry) {
            file.bytes = file.bytes.saturating_add(n).min(file.size);
        }
    }

    /// Removes a resolved large file from the list.
    pub(crate) fn end_file(&self, entry: u32) {
        lock(&self.names).active.retain(|(active, _)| *active != entry);
    }

    /// Runs a call that reads or writes files, and counts its time.
    pub(crate) fn at_disk<T>(&self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let output = call();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.disk_nanos.fetch_add(nanos, Relaxed);
        output
    }
}

/// The bytes of one file in the progress. Once the file is resolved, with any result, all its
/// bytes are counted.
#[derive(Debug)]
pub(crate) struct FileProgress {
    entry: u32,
    counted: AtomicU64,
}

impl FileProgress {
    pub(crate) fn new(entry: u32) -> Self {
        Self { entry, counted: AtomicU64::new(0) }
    }

    /// Adds resolved bytes of the file.
    pub(crate) fn add_bytes(&self, progress: &Progress, n: u64) {
        count_bytes(&self.counted, n);
        progress.add_bytes(n);
        progress.show_bytes_of(self.entry, n);
    }

    /// Adds bytes that need no transfer now: already present, or in a hole.
    pub(crate) fn add_found(&self, progress: &Progress, n: u64) {
        count_bytes(&self.counted, n);
        progress.add_found(n);
        progress.show_bytes_of(self.entry, n);
    }

    /// Counts the rest of the resolved file of `size` bytes, and removes it from the list.
    pub(crate) fn finish(&self, progress: &Progress, size: u64) {
        progress.add_found(size.saturating_sub(self.counted.load(Relaxed)));
        progress.end_file(self.entry);
    }
}

/// Adds bytes of files, saturating: a few sparse files together can exceed 64 bits.
pub(crate) fn count_bytes(counter: &AtomicU64, n: u64) {
    let _ = counter.fetch_update(Relaxed, Relaxed, |bytes| Some(bytes.saturating_add(n)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_add_up_while_one_of_them_runs() {
        let progress = Progress::default();
        assert_eq!(progress.checked(), None);
        let mut first = progress.begin_check(100);
        first.add(40);
        let mut second = progress.begin_check(10);
        second.add(20);
        assert_eq!(progress.checked(), Some(Checked { bytes: 50, bytes_total: 110 }));
        drop(first);
        assert_eq!(progress.checked(), Some(Checked { bytes: 110, bytes_total: 110 }));
        drop(second);
        assert_eq!(progress.checked(), None);
    }

    #[test]
    fn files_are_listed_while_they_are_moved_and_only_a_few() {
        let progress = Progress::default();
        for entry in 0..10 {
            progress.begin_file(entry, &format!("file {entry}"), 10, 100);
        }
        assert_eq!(progress.active_files().len(), ACTIVE_MAX);
        let (first, last) = (FileProgress::new(1), FileProgress::new(9));
        first.add_bytes(&progress, 50);
        first.add_bytes(&progress, 50);
        last.add_bytes(&progress, 5);
        progress.end_file(0);
        let active = progress.active_files();
        assert_eq!(active[0], ActiveFile { name: "file 1".into(), bytes: 100, size: 100 });
        assert_eq!((active.len(), progress.bytes()), (ACTIVE_MAX - 1, 105));
        assert_eq!(progress.current_file(), "file 9");
        first.add_found(&progress, 100);
        assert_eq!((progress.bytes_moved(), progress.bytes()), (105, 205));
        last.finish(&progress, 100);
        assert_eq!((progress.bytes_moved(), progress.bytes()), (105, 300));
    }
}
