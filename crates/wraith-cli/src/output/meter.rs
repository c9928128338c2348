//! Turns the engine's counters into a rate and a time left.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wraith_transfer::{ActiveFile, Progress};

use super::Event;
use super::bottleneck::{Bottleneck, Watch};
use crate::addresses::path_kind;

/// The rate shown is that of so much time: steady to read, yet it follows a change of path.
const WINDOW: Duration = Duration::from_secs(5);
/// A slow path moves a chunk now and then; so many are looked at, however long they took.
const FEWEST_STEPS: usize = 2;
/// After this long without anything the rate is zero.
const SILENCE: Duration = Duration::from_secs(60);
/// A first step within less than this says little about a rate.
const SHORTEST: Duration = Duration::from_millis(500);

/// The counters of a transfer: those of its latest connection, or of all that run at once.
#[derive(Debug, Default)]
pub struct Meter {
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    progress: Vec<Arc<Progress>>,
    /// They are of connections that have ended: shown until another begins.
    is_over: bool,
}

impl Meter {
    /// Shows these counters alone from now on.
    pub fn watch(&self, progress: Arc<Progress>) {
        *self.lock() = Shown { progress: vec![progress], is_over: false };
    }

    /// Shows these counters beside the others.
    pub fn join(&self, progress: Arc<Progress>) {
        let mut shown = self.lock();
        if std::mem::take(&mut shown.is_over) {
            shown.progress.clear();
        }
        shown.progress.push(progress);
    }

    /// Shows these counters no more, unless they are the last: the end of a transfer is shown until another begins.
    pub fn leave(&self, progress: &Arc<Progress>) {
        let mut shown = self.lock();
        if shown.progress.len() > 1 {
            shown.progress.retain(|other| !Arc::ptr_eq(other, progress));
        } else if shown.progress.iter().any(|other| Arc::ptr_eq(other, progress)) {
            shown.is_over = true;
        }
    }

    /// The counters as they are; None before anything was offered on any connection.
    fn read(&self) -> Option<Reading> {
        let shown = self.lock();
        let is_waiting = shown.is_over;
        let mut all = shown.progress.clone();
        drop(shown);
        all.retain(|progress| progress.is_started());
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
            path: last.remote().map(path_kind).filter(|_| !is_waiting),
            bottleneck: None,
            is_waiting,
        };
        let at_disk = all.iter().map(|progress| progress.disk_time()).sum();
        Some(Reading { snapshot, moved: sum(Progress::bytes_moved), at_disk })
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counters at one moment.
struct Reading {
    snapshot: Snapshot,
    /// Bytes that tell how fast it goes.
    moved: u64,
    /// Time spent at the disk.
    at_disk: Duration,
}

/// Knows how fast something grows: over the last seconds, and over no time before it began to.
///
/// Invariant: `points` has the moment that the window begins with, and after it each at which more was there than before.
#[derive(Debug)]
pub struct Rate {
    points: VecDeque<(Instant, u64)>,
    watch: Watch,
}

impl Rate {
    pub fn new(now: Instant) -> Self {
        Self { points: VecDeque::new(), watch: Watch::new(now) }
    }

    /// Takes a count and returns the rate in bytes per second.
    pub fn sample(&mut self, now: Instant, bytes: u64) -> u64 {
        match self.points.back() {
            Some(&(_, before)) if bytes == before => {
                // What is waited for before anything moves is no part of the rate.
                if let [only] = self.points.make_contiguous() {
                    only.0 = now;
                }
            }
            Some(&(_, before)) if bytes > before => self.points.push_back((now, bytes)),
            // The first, or a new connection, which counts from zero.
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

    /// How far the transfer is; None before anything was offered.
    pub fn snapshot(&mut self, now: Instant, meter: &Meter) -> Option<Snapshot> {
        let Reading { mut snapshot, moved, at_disk } = meter.read()?;
        let bottleneck = self.watch.look(now, at_disk);
        if snapshot.is_waiting {
            self.points.clear();
        } else {
            snapshot.bytes_per_second = self.sample(now, moved);
            snapshot.bottleneck = bottleneck;
        }
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
    /// Nobody is connected, so nothing can move.
    pub is_waiting: bool,
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

    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn a_steady_flow_shows_its_rate_and_time_left() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        for second in 0..=40 {
            rate.sample(start + Duration::from_secs(second), second * 1000);
        }
        let bytes_per_second = rate.sample(start + Duration::from_secs(40), 40_000);
        assert_eq!(bytes_per_second, 1000);
        let shown =
            Snapshot { bytes: 4000, total: 10_000, bytes_per_second, ..Snapshot::default() };
        assert_eq!(shown.eta_seconds(), Some(6));
    }

    #[test]
    fn the_rate_is_right_after_the_first_second_however_long_the_question_took() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
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
        let mut rate = Rate::new(start);
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
        let mut rate = Rate::new(start);
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
        let mut rate = Rate::new(start);
        rate.sample(start, 0);
        rate.sample(start + Duration::from_secs(1), 1000);
        assert_eq!(rate.sample(start + Duration::from_secs(2), 0), 0);
    }
}
