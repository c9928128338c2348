//! The live counters of a transfer, which a caller polls: a handful of atomics, and a short list of the large files that are
//! being moved, so that a progress bar costs the transfer next to nothing.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use wraith_transport::Addr;

use crate::message::Offer;
use crate::rate::Rate;

/// Large files that are listed at once: as many as a person can follow, and more than are usually open.
const ACTIVE_MAX: usize = 4;

/// Live counters. All of them only grow, except that totals may be corrected while the tree is being walked.
#[derive(Debug, Default)]
pub struct Progress {
    is_started: AtomicBool,
    bytes_moved: AtomicU64,
    bytes_found: AtomicU64,
    bytes_total: AtomicU64,
    files: AtomicU64,
    files_total: AtomicU64,
    disk_nanos: AtomicU64,
    remote: Mutex<Option<Addr>>,
    rate: Mutex<Option<Arc<Rate>>>,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    current: String,
    active: Vec<(u32, ActiveFile)>,
}

/// A file of several chunks that is being moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveFile {
    /// Escaped for a terminal.
    pub name: String,
    /// Bytes of it that are settled.
    pub bytes: u64,
    /// All its bytes.
    pub size: u64,
}

impl Progress {
    /// File bytes settled so far: moved, found to be there already, or part of a file that failed.
    pub fn bytes(&self) -> u64 {
        self.bytes_moved().saturating_add(self.bytes_found.load(Relaxed))
    }

    /// Those of them that were settled by this connection's work, which tells how fast it goes: not those that an earlier one
    /// had brought, or that were there already, and no holes.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_moved.load(Relaxed)
    }

    /// The most that this side lets move, or asks for, in bytes per second; None where it does not.
    pub fn cap(&self) -> Option<u64> {
        lock(&self.rate).as_ref()?.cap()
    }

    /// This is what limits it.
    pub(crate) fn limited_by(&self, rate: &Arc<Rate>) {
        *lock(&self.rate) = Some(Arc::clone(rate));
    }

    /// The offer is known: until then the other figures mean nothing.
    pub fn is_started(&self) -> bool {
        self.is_started.load(Relaxed)
    }

    /// File bytes in the offer.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total.load(Relaxed)
    }

    /// Files settled so far.
    pub fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// Files in the offer.
    pub fn files_total(&self) -> u64 {
        self.files_total.load(Relaxed)
    }

    /// The file that is being moved, escaped for a terminal; empty before the first. Of several small ones, any.
    pub fn current_file(&self) -> String {
        lock(&self.names).current.clone()
    }

    /// The large files that are being moved, the longest known first; at most a few.
    pub fn active_files(&self) -> Vec<ActiveFile> {
        lock(&self.names).active.iter().map(|(_, file)| file.clone()).collect()
    }

    /// Time that threads have spent in reading and writing files, together.
    pub fn disk_time(&self) -> Duration {
        Duration::from_nanos(self.disk_nanos.load(Relaxed))
    }

    /// Where the other side is, once it has said Hello.
    pub fn remote(&self) -> Option<Addr> {
        lock(&self.remote).clone()
    }

    pub(crate) fn connected(&self, remote: Addr) {
        *lock(&self.remote) = Some(remote);
    }

    pub(crate) fn start(&self, offer: &Offer) {
        self.bytes_total.store(offer.bytes, Relaxed);
        self.files_total.store(offer.files, Relaxed);
        self.is_started.store(true, Relaxed);
    }

    pub(crate) fn add_bytes(&self, n: u64) {
        count_bytes(&self.bytes_moved, n);
    }

    /// Bytes that are settled without being moved now.
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

    /// A large file of which `bytes` are settled already is moved from now on.
    pub(crate) fn begin_file(&self, entry: u32, path: &dyn Display, bytes: u64, size: u64) {
        let name = path.to_string();
        let mut names = lock(&self.names);
        names.current.clone_from(&name);
        names.active.retain(|(active, _)| *active != entry);
        if names.active.len() < ACTIVE_MAX {
            names.active.push((entry, ActiveFile { name, bytes, size }));
        }
    }

    /// Bytes of a large file are settled.
    pub(crate) fn add_bytes_of(&self, entry: u32, n: u64) {
        self.add_bytes(n);
        self.show_bytes_of(entry, n);
    }

    /// The same of bytes that needed no moving now: they are there already, or in a hole.
    pub(crate) fn add_found_of(&self, entry: u32, n: u64) {
        self.add_found(n);
        self.show_bytes_of(entry, n);
    }

    /// Bytes of a large file that were looked at, and count elsewhere.
    pub(crate) fn show_bytes_of(&self, entry: u32, n: u64) {
        let mut names = lock(&self.names);
        if let Some((_, file)) = names.active.iter_mut().find(|(active, _)| *active == entry) {
            file.bytes = file.bytes.saturating_add(n).min(file.size);
        }
    }

    /// A large file is settled, one way or another.
    pub(crate) fn end_file(&self, entry: u32) {
        lock(&self.names).active.retain(|(active, _)| *active != entry);
    }

    /// Runs a call that reads or writes files.
    pub(crate) fn at_disk<T>(&self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let output = call();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.disk_nanos.fetch_add(nanos, Relaxed);
        output
    }
}

/// Adds bytes of files. A few sparse files are more together than 64 bits count; then it stays at the most that they do.
pub(crate) fn count_bytes(counter: &AtomicU64, n: u64) {
    let _ = counter.fetch_update(Relaxed, Relaxed, |bytes| Some(bytes.saturating_add(n)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_while_they_are_moved_and_only_a_few() {
        let progress = Progress::default();
        for entry in 0..10 {
            progress.begin_file(entry, &format!("file {entry}"), 10, 100);
        }
        assert_eq!(progress.active_files().len(), ACTIVE_MAX);
        progress.add_bytes_of(1, 50);
        progress.add_bytes_of(1, 50);
        progress.add_bytes_of(9, 5);
        progress.end_file(0);
        let active = progress.active_files();
        assert_eq!(active[0], ActiveFile { name: "file 1".into(), bytes: 100, size: 100 });
        assert_eq!((active.len(), progress.bytes()), (ACTIVE_MAX - 1, 105));
        assert_eq!(progress.current_file(), "file 9");
        progress.add_found_of(1, 100);
        assert_eq!((progress.bytes_moved(), progress.bytes()), (105, 205));
    }
}
