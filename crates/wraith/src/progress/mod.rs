//! Progress of a transfer: reads the counters of its connections on demand, and converts them to
//! sizes, percentages and rates for people.
//!
//! Invariant: reading the progress does not slow the transfer. This module has no timer: the caller
//! chooses the interval. The rate is correct for any interval up to one second.

mod bottleneck;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wraith_transfer::{ActiveFile, Checked, Progress as Counters};

use crate::route::{PathKind, path_kind};
pub use bottleneck::Bottleneck;
use bottleneck::BottleneckDetector;

/// Averaging window of the displayed rate: steady to read, yet it follows a change of path.
const WINDOW: Duration = Duration::from_secs(5);
/// Minimum number of steps in the average, however long they took: a slow path moves a chunk only
/// now and then.
const FEWEST_STEPS: usize = 2;
/// After this much silence, the rate is zero.
const SILENCE: Duration = Duration::from_secs(60);
/// A first step shorter than this is too short for a rate.
const SHORTEST: Duration = Duration::from_millis(500);

/// The counters of a transfer: those of its latest connection, or of all concurrent connections.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    shown: Mutex<MeterState>,
}

#[derive(Debug, Default)]
struct MeterState {
    progress: Vec<Arc<Counters>>,
    /// True if the connections have ended. Their counters are shown until another connection
    /// begins.
    is_over: bool,
}

impl Meter {
    /// Shows only these counters from now on.
    pub fn replace(&self, progress: Arc<Counters>) {
        *self.lock() = MeterState { progress: vec![progress], is_over: false };
    }

    /// Shows these counters in addition to the others.
    pub fn add(&self, progress: Arc<Counters>) {
        let mut shown = self.lock();
        if std::mem::take(&mut shown.is_over) {
            shown.progress.clear();
        }
        shown.progress.push(progress);
    }

    /// Removes these counters, unless they are the last: the final figures stay until another
    /// connection begins.
    pub fn remove(&self, progress: &Arc<Counters>) {
        let mut shown = self.lock();
        if shown.progress.len() > 1 {
            shown.progress.retain(|other| !Arc::ptr_eq(other, progress));
        } else if shown.progress.iter().any(|other| Arc::ptr_eq(other, progress)) {
            shown.is_over = true;
        }
    }

    /// Reads the current counters; `None` if no connection has an offer yet.
    fn read(&self) -> Option<Reading> {
        let shown = self.lock();
        let is_waiting = shown.is_over;
        let mut all = shown.progress.clone();
        drop(shown);
        all.retain(|progress| progress.is_started());
        let sum = |figure: fn(&Counters) -> u64| {
            all.iter().fold(0, |sum: u64, progress| sum.saturating_add(figure(progress)))
        };
        let last = all.last()?;
        let snapshot = Progress {
            bytes: sum(Counters::bytes),
            bytes_total: sum(Counters::bytes_total),
            files: sum(Counters::files),
            files_total: sum(Counters::files_total),
            bytes_per_second: 0,
            current_file: last.current_file(),
            active: all.iter().flat_map(|progress| progress.active_files()).collect(),
            path: last.remote().map(|remote| path_kind(&remote)).filter(|_| !is_waiting),
            checked: all.iter().filter_map(|progress| progress.checked()).reduce(|a, b| Checked {
                bytes: a.bytes.saturating_add(b.bytes),
                bytes_total: a.bytes_total.saturating_add(b.bytes_total),
            }),
            bottleneck: None,
            is_waiting,
        };
        let at_disk = all.iter().map(|progress| progress.disk_time()).sum();
        // If one connection has no cap, there is no common cap.
        let cap = all.iter().try_fold(0, |sum: u64, one| Some(sum.saturating_add(one.cap()?)));
        Some(Reading { snapshot, moved: sum(Counters::bytes_moved), at_disk, cap })
    }

    fn lock(&self) -> MutexGuard<'_, MeterState> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters at one moment.
struct Reading {
    snapshot: Progress,
    /// Bytes moved; the rate is derived from them.
    moved: u64,
    /// Time spent in disk access.
    at_disk: Duration,
    /// Rate limit in bytes per second; `None` if there is none.
    cap: Option<u64>,
}

impl Reading {
    /// Returns true if the rate is close to the cap. The cap also covers the overhead of packets,
    /// so a rate of content from 80 % of the cap is close.
    fn is_at_cap(&self) -> bool {
        let is_near = |cap: u64| self.snapshot.bytes_per_second >= cap / 10 * 8;
        self.cap.is_some_and(is_near)
    }
}

/// Computes a growth rate over the last seconds. The time before the first growth does not count.
///
/// Invariant: `points` starts with the begin of the window; each later point is a moment at which
/// the count had grown.
#[derive(Debug)]
struct RateEstimator {
    points: VecDeque<(Instant, u64)>,
    detector: BottleneckDetector,
}

impl RateEstimator {
    fn new(now: Instant) -> Self {
        Self { points: VecDeque::new(), detector: BottleneckDetector::new(now) }
    }

    /// Adds a sample and returns the rate in bytes per second.
    fn sample(&mut self, now: Instant, bytes: u64) -> u64 {
        match self.points.back() {
            Some(&(_, before)) if bytes == before => {
                // The wait before the first byte is not part of the rate.
                if let [only] = self.points.make_contiguous() {
                    only.0 = now;
                }
            }
            Some(&(_, before)) if bytes > before => self.points.push_back((now, bytes)),
            // The first sample, or a new connection, which counts from zero.
            _ => self.points = VecDeque::from([(now, bytes)]),
        }
        let age = |at: Instant| now.saturating_duration_since(at);
        while self.points.len() > FEWEST_STEPS + 1 && age(self.points[1].0) >= WINDOW {
            self.points.pop_front();
        }
        let (&(begun, least), &(at, most)) = match (self.points.front(), self.points.back()) {
            (Some(first), Some(last)) => (first, last),
            _ => return 0,
        };
        if age(at) >= SILENCE {
            self.points = VecDeque::from([(now, bytes)]);
            return 0;
        }
        ((most - least) as f64 / age(begun).max(SHORTEST).as_secs_f64()) as u64
    }

    /// Returns the current progress; `None` before the first offer.
    fn update(&mut self, now: Instant, meter: &Meter) -> Option<Progress> {
        let mut reading = meter.read()?;
        let bottleneck = self.detector.update(now, reading.at_disk);
        if reading.snapshot.is_waiting {
            self.points.clear();
        } else {
            reading.snapshot.bytes_per_second = self.sample(now, reading.moved);
            let waits_for = |why| if reading.is_at_cap() { Bottleneck::Rate } else { why };
            reading.snapshot.bottleneck = bottleneck.map(waits_for);
            if reading.snapshot.is_checking() {
                reading.snapshot.bottleneck = Some(Bottleneck::Disk);
            }
        }
        Some(reading.snapshot)
    }
}

/// Progress of a transfer at one moment.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes settled: transferred, already present, or of failed files.
    pub bytes: u64,
    /// Bytes of all files in the offer.
    pub bytes_total: u64,
    /// Number of settled files.
    pub files: u64,
    /// Number of files in the offer.
    pub files_total: u64,
    /// Bytes transferred per second, averaged over the last five seconds.
    pub bytes_per_second: u64,
    /// The file in transfer, escaped for a terminal; any one of several small files.
    pub current_file: String,
    /// The large files in transfer; at most a few.
    pub active: Vec<ActiveFile>,
    /// Kind of path to the other side; `None` while no peer is connected.
    pub path: Option<PathKind>,
    /// Content on this machine's disk that is read and hashed before the rest is requested; `None`
    /// while nothing is checked.
    pub checked: Option<Checked>,
    /// The bottleneck; `None` during the first second and while no peer is connected.
    pub bottleneck: Option<Bottleneck>,
    /// True while no peer is connected, so nothing can move.
    pub is_waiting: bool,
}

impl Progress {
    /// Returns true while this side only checks what it has, and no data moves.
    pub fn is_checking(&self) -> bool {
        self.checked.is_some() && self.bytes_per_second == 0
    }

    /// Returns the seconds until the end at the present rate. `None` while nothing moves, and for a
    /// stream of unknown length.
    pub fn eta_seconds(&self) -> Option<u64> {
        let left = self.bytes_total.checked_sub(self.bytes)?;
        (self.bytes_per_second > 0).then(|| left.div_ceil(self.bytes_per_second))
    }
}

/// Reads the progress of a transfer repeatedly.
#[derive(Debug)]
pub struct ProgressReader {
    meter: Arc<Meter>,
    rate: RateEstimator,
}

impl ProgressReader {
    pub(crate) fn new(meter: Arc<Meter>) -> Self {
        Self { meter, rate: RateEstimator::new(Instant::now()) }
    }

    /// Returns another reader for the same transfer. Its rate starts anew.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.meter))
    }

    /// Returns the current figures; `None` before the first offer.
    pub fn read(&mut self) -> Option<Progress> {
        self.rate.update(Instant::now(), &self.meter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn a_steady_flow_shows_its_rate_and_time_left() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        for second in 0..=40 {
            rate.sample(start + Duration::from_secs(second), second * 1000);
        }
        let bytes_per_second = rate.sample(start + Duration::from_secs(40), 40_000);
        assert_eq!(bytes_per_second, 1000);
        let shown =
            Progress { bytes: 4000, bytes_total: 10_000, bytes_per_second, ..Progress::default() };
        assert_eq!(shown.eta_seconds(), Some(6));
    }

    #[test]
    fn the_rate_is_right_after_the_first_second_however_long_the_question_took() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        (0..600).for_each(|tick| assert_eq!(rate.sample(start + TICK * tick, 0), 0));
        let moving = start + TICK * 600;
        for tick in 1..=100u32 {
            let shown = rate.sample(moving + TICK * tick, u64::from(tick) * 2_000_000);
            if tick >= 10 {
                assert!((18_000_000..22_200_000).contains(&shown), "{tick}: {shown}");
            }
        }
        assert!(rate.points.len() < 60, "the window has a bound");
    }

    #[test]
    fn another_speed_is_shown_after_the_window_and_silence_becomes_zero() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        let mut bytes = 0;
        for tick in 0..200 {
            bytes += if tick < 100 { 2_000_000 } else { 100_000 };
            rate.sample(start + TICK * tick, bytes);
        }
        let slow = rate.sample(start + TICK * 200, bytes);
        assert!((900_000..1_100_000).contains(&slow), "{slow}");
        assert!(rate.sample(start + TICK * 400, bytes) < slow / 20);
        assert_eq!(rate.sample(start + TICK * 200 + SILENCE, bytes), 0);
    }

    #[test]
    fn a_path_that_moves_a_chunk_in_half_a_minute_has_a_steady_rate() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        for tick in 0..3000u32 {
            let shown = rate.sample(start + TICK * tick, u64::from(tick / 260) * 260_000);
            if tick > 600 {
                assert!((6_000..=20_000).contains(&shown), "{tick}: {shown}");
            }
        }
    }

    #[test]
    fn a_new_connection_never_shows_a_huge_rate() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        rate.sample(start, 0);
        rate.sample(start + Duration::from_secs(1), 1000);
        assert_eq!(rate.sample(start + Duration::from_secs(2), 0), 0);
    }
}
