//! Counts what moves, and turns the counts into a rate and a time left.
//!
//! The engines add to the counters from their own threads; a snapshot is taken a few times a second.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Event;

/// The rate shown is an average that forgets with this time constant: steady to read, yet it follows a change of path.
const RATE_MEMORY: Duration = Duration::from_secs(5);
/// The counters' value for a total nobody knows yet.
const UNKNOWN: u64 = u64::MAX;

/// The counters of one transfer.
#[derive(Debug)]
pub struct Meter {
    bytes: AtomicU64,
    resumed: AtomicU64,
    total: AtomicU64,
    files: AtomicU64,
    current: Mutex<String>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            total: AtomicU64::new(UNKNOWN),
            files: AtomicU64::new(0),
            current: Mutex::new(String::new()),
        }
    }
}

impl Meter {
    /// Bytes that moved just now.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes that need not move because they are there already; they count as progress but not as speed.
    pub fn add_resumed(&self, bytes: u64) {
        self.resumed.fetch_add(bytes, Relaxed);
    }

    /// Everything that has to be there in the end.
    pub fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Relaxed);
    }

    pub fn add_file(&self) {
        self.files.fetch_add(1, Relaxed);
    }

    /// What is being moved now, as people may see it.
    pub fn set_current(&self, name: impl Into<String>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    /// Begins again from nothing, for a transfer that is continued on a new connection.
    pub fn restart(&self) {
        self.bytes.store(0, Relaxed);
        self.resumed.store(0, Relaxed);
        self.files.store(0, Relaxed);
    }

    /// Bytes moved on this connection.
    pub fn moved(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

/// Watches a [`Meter`] and knows its rate.
#[derive(Debug)]
pub struct Rate {
    at: Instant,
    bytes: u64,
    bytes_per_second: Option<f64>,
}

impl Rate {
    pub fn new(now: Instant, meter: &Meter) -> Self {
        Self { at: now, bytes: meter.moved(), bytes_per_second: None }
    }

    /// Takes the counters as they are at `now` into the average.
    pub fn sample(&mut self, now: Instant, meter: &Meter) -> Snapshot {
        let seconds = now.saturating_duration_since(self.at).as_secs_f64();
        let moved = meter.moved();
        if seconds > 0.0 {
            // After a restart the counter is behind what we saw; then nothing has moved since.
            let latest = moved.saturating_sub(self.bytes) as f64 / seconds;
            let weight = 1.0 - (-seconds / RATE_MEMORY.as_secs_f64()).exp();
            let average = self.bytes_per_second.map_or(latest, |old| old + weight * (latest - old));
            (self.at, self.bytes, self.bytes_per_second) = (now, moved, Some(average));
        }
        let total = Some(meter.total.load(Relaxed)).filter(|total| *total != UNKNOWN);
        Snapshot {
            bytes: moved + meter.resumed.load(Relaxed),
            total,
            bytes_per_second: self.bytes_per_second.unwrap_or(0.0) as u64,
            files: meter.files.load(Relaxed),
            current: meter.current.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// How far a transfer is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: u64,
    pub total: Option<u64>,
    pub bytes_per_second: u64,
    pub files: u64,
    pub current: String,
}

impl Snapshot {
    /// Seconds until the end at the present rate; None while the total or the rate is unknown.
    pub fn eta_seconds(&self) -> Option<u64> {
        let left = self.total?.saturating_sub(self.bytes);
        (self.bytes_per_second > 0).then(|| left.div_ceil(self.bytes_per_second))
    }

    pub(super) fn event(&self) -> Event<'_> {
        Event::Progress {
            bytes: self.bytes,
            total: self.total,
            bytes_per_second: self.bytes_per_second,
            eta_seconds: self.eta_seconds(),
            files: self.files,
            file: &self.current,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_flow_shows_its_rate_and_time_left() {
        let (meter, start) = (Meter::default(), Instant::now());
        meter.set_total(10_000);
        let mut rate = Rate::new(start, &meter);
        for second in 1..=4 {
            meter.add_bytes(1000);
            rate.sample(start + Duration::from_secs(second), &meter);
        }
        let shown = rate.sample(start + Duration::from_secs(4), &meter);
        assert_eq!((shown.bytes, shown.bytes_per_second), (4000, 1000));
        assert_eq!(shown.eta_seconds(), Some(6));
    }

    #[test]
    fn what_was_there_already_is_progress_but_not_speed() {
        let (meter, start) = (Meter::default(), Instant::now());
        let mut rate = Rate::new(start, &meter);
        meter.add_resumed(1 << 40);
        meter.add_bytes(500);
        let shown = rate.sample(start + Duration::from_secs(1), &meter);
        assert_eq!((shown.bytes, shown.bytes_per_second), ((1 << 40) + 500, 500));
        assert_eq!(shown.eta_seconds(), None);
    }

    #[test]
    fn a_restart_never_shows_a_huge_rate() {
        let (meter, start) = (Meter::default(), Instant::now());
        let mut rate = Rate::new(start, &meter);
        meter.add_bytes(1000);
        rate.sample(start + Duration::from_secs(1), &meter);
        meter.restart();
        let shown = rate.sample(start + Duration::from_secs(2), &meter);
        assert!(shown.bytes_per_second < 1000);
    }
}
