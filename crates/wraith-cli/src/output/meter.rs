//! Turns the engine's counters into a rate and a time left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wraith_transfer::{ActiveFile, Progress};

use super::Event;
use super::bottleneck::{Bottleneck, Watch};
use crate::addresses::path_kind;

/// The rate shown is an average that forgets with this time constant: steady to read, yet it follows a change of path.
const RATE_MEMORY: Duration = Duration::from_secs(5);

/// The counters of a transfer: those of its latest connection, or of all that run at once.
#[derive(Debug, Default)]
pub struct Meter {
    progress: Mutex<Vec<Arc<Progress>>>,
}

impl Meter {
    /// Shows these counters alone from now on.
    pub fn watch(&self, progress: Arc<Progress>) {
        *self.lock() = vec![progress];
    }

    /// Shows these counters beside the others.
    pub fn join(&self, progress: Arc<Progress>) {
        self.lock().push(progress);
    }

    /// Shows these counters no more, unless they are the last: the end of a transfer is shown until another begins.
    pub fn leave(&self, progress: &Arc<Progress>) {
        let mut all = self.lock();
        if all.len() > 1 {
            all.retain(|other| !Arc::ptr_eq(other, progress));
        }
    }

    /// The counters as they are, and the time at the disk; None before there is a connection.
    fn read(&self) -> Option<(Snapshot, Duration)> {
        let all = self.lock().clone();
        let sum = |figure: fn(&Progress) -> u64| {
            all.iter().fold(0, |sum: u64, progress| sum.saturating_add(figure(progress)))
        };
        let last = all.last()?;
        let snapshot = Snapshot {
            bytes: sum(Progress::bytes),
            total: sum(Progress::bytes_total),
            files: sum(Progress::files),
            total_files: sum(Progress::files_total),
            bytes_per_second: 0,
            current: last.current_file(),
            active: all.iter().flat_map(|progress| progress.active_files()).collect(),
            path: last.remote().map(path_kind),
            bottleneck: None,
        };
        Some((snapshot, all.iter().map(|progress| progress.disk_time()).sum()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Progress>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Knows how fast something grows.
#[derive(Debug)]
pub struct Rate {
    at: Instant,
    bytes: u64,
    bytes_per_second: Option<f64>,
    watch: Watch,
}

impl Rate {
    pub fn new(now: Instant) -> Self {
        Self { at: now, bytes: 0, bytes_per_second: None, watch: Watch::new(now) }
    }

    /// Takes a count into the average and returns that, in bytes per second.
    pub fn sample(&mut self, now: Instant, bytes: u64) -> u64 {
        let seconds = now.saturating_duration_since(self.at).as_secs_f64();
        if seconds > 0.0 {
            // A new connection counts from zero; then nothing is known to have moved since.
            let latest = bytes.saturating_sub(self.bytes) as f64 / seconds;
            let weight = 1.0 - (-seconds / RATE_MEMORY.as_secs_f64()).exp();
            let average = self.bytes_per_second.map_or(latest, |old| old + weight * (latest - old));
            (self.at, self.bytes, self.bytes_per_second) = (now, bytes, Some(average));
        }
        self.bytes_per_second.unwrap_or(0.0) as u64
    }

    /// How far the transfer is; None before there is a connection.
    pub fn snapshot(&mut self, now: Instant, meter: &Meter) -> Option<Snapshot> {
        let (mut snapshot, at_disk) = meter.read()?;
        snapshot.bytes_per_second = self.sample(now, snapshot.bytes);
        snapshot.bottleneck = self.watch.look(now, at_disk);
        Some(snapshot)
    }
}

/// How far a transfer is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: u64,
    pub total: u64,
    pub files: u64,
    pub total_files: u64,
    pub bytes_per_second: u64,
    pub current: String,
    /// The large files that are being moved.
    pub active: Vec<ActiveFile>,
    /// What kind of path leads to the other side.
    pub path: Option<&'static str>,
    /// What it waits for most; None until that is known.
    pub bottleneck: Option<Bottleneck>,
}

impl Snapshot {
    /// Seconds until the end at the present rate; None while nothing moves, and for a stream without a known end.
    pub fn eta_seconds(&self) -> Option<u64> {
        let left = self.total.checked_sub(self.bytes)?;
        (self.bytes_per_second > 0).then(|| left.div_ceil(self.bytes_per_second))
    }

    pub(super) fn event(&self) -> Event<'_> {
        Event::Progress {
            bytes: self.bytes,
            total: self.total,
            bytes_per_second: self.bytes_per_second,
            eta_seconds: self.eta_seconds(),
            files: self.files,
            total_files: self.total_files,
            file: &self.current,
            path: self.path,
            bottleneck: self.bottleneck.map(Bottleneck::name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_flow_shows_its_rate_and_time_left() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        for second in 1..=4 {
            rate.sample(start + Duration::from_secs(second), second * 1000);
        }
        let bytes_per_second = rate.sample(start + Duration::from_secs(4), 4000);
        assert_eq!(bytes_per_second, 1000);
        let shown =
            Snapshot { bytes: 4000, total: 10_000, bytes_per_second, ..Snapshot::default() };
        assert_eq!(shown.eta_seconds(), Some(6));
    }

    #[test]
    fn a_new_connection_never_shows_a_huge_rate() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        rate.sample(start + Duration::from_secs(1), 1000);
        assert!(rate.sample(start + Duration::from_secs(2), 0) < 1000);
    }
}
