//! Bottleneck detection: the processor, the disk, or the network (including the other side).
//!
//! The verdict follows from measurements. Linux reports for each thread how long it ran and how
//! long it waited for a processor. The engine reports how long it was in reads and writes of files.
//! If one thread is never idle, the processor is the bottleneck. If file access takes most of the
//! time, the disk is. Otherwise the network is.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Time span of a verdict: long enough for the kernel's figures to be meaningful.
const WINDOW: Duration = Duration::from_secs(1);
/// A thread that runs, or is ready to run, for more than this share of the time counts as
/// saturated.
const NO_PAUSE: f64 = 0.85;
/// If file access takes more than this share of the time, the disk is the bottleneck.
const MOSTLY: f64 = 0.5;
/// Maximum number of threads examined; a transfer has about ten.
const MAX_THREADS: usize = 64;

/// The resource that limits a transfer.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// The network, including the other side.
    Net,
    /// The disk of this side.
    Disk,
    /// The processor of this side.
    Cpu,
    /// The configured rate limit of this side or, for a sender, of its receiver.
    Rate,
}

impl Bottleneck {
    /// Returns the name for scripts, in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Disk => "disk",
            Self::Cpu => "cpu",
            Self::Rate => "rate",
        }
    }
}

/// Samples the figures of threads and disk, and derives the verdict.
#[derive(Debug)]
pub(super) struct BottleneckDetector {
    at: Instant,
    disk: Duration,
    threads: HashMap<String, Duration>,
    verdict: Option<Bottleneck>,
}

impl BottleneckDetector {
    pub fn new(now: Instant) -> Self {
        Self { at: now, disk: Duration::ZERO, threads: thread_times(), verdict: None }
    }

    /// Returns the verdict for the last complete window; `None` before the first.
    pub fn update(&mut self, now: Instant, disk: Duration) -> Option<Bottleneck> {
        let window = now.saturating_duration_since(self.at);
        if window >= WINDOW {
            let threads = thread_times();
            let grown = threads.iter().map(|(id, now)| {
                now.saturating_sub(self.threads.get(id).copied().unwrap_or_default())
            });
            let busiest = grown.max().unwrap_or_default();
            // A new connection counts from zero.
            let at_disk = disk.saturating_sub(self.disk);
            self.verdict = Some(judge(window, busiest, at_disk));
            (self.at, self.disk, self.threads) = (now, disk, threads);
        }
        self.verdict
    }
}

fn judge(window: Duration, busiest: Duration, at_disk: Duration) -> Bottleneck {
    let share = |of: Duration| of.as_secs_f64() / window.as_secs_f64().max(f64::MIN_POSITIVE);
    if share(busiest) >= NO_PAUSE {
        Bottleneck::Cpu
    } else if share(at_disk) >= MOSTLY {
        Bottleneck::Disk
    } else {
        Bottleneck::Net
    }
}

/// Returns for each thread of this process how long it ran or was ready to run. Empty if the system
/// does not provide it.
fn thread_times() -> HashMap<String, Duration> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return HashMap::new() };
    let of = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        // Nanoseconds on a processor, nanoseconds in the queue for one, and a count.
        let mut figures = text.split_whitespace().map_while(|figure| figure.parse::<u64>().ok());
        let nanos = figures.next()?.saturating_add(figures.next()?);
        Some((task.file_name().to_string_lossy().into_owned(), Duration::from_nanos(nanos)))
    };
    tasks.flatten().take(MAX_THREADS).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(busiest_ms: u64, at_disk_ms: u64) -> Bottleneck {
        let ms = Duration::from_millis;
        judge(ms(1000), ms(busiest_ms), ms(at_disk_ms))
    }

    #[test]
    fn a_saturated_thread_outranks_a_busy_disk() {
        assert_eq!(judged(950, 0), Bottleneck::Cpu);
        assert_eq!(judged(950, 900), Bottleneck::Cpu);
        assert_eq!(judged(300, 900), Bottleneck::Disk);
        assert_eq!(judged(300, 100), Bottleneck::Net);
        assert_eq!(judged(0, 0), Bottleneck::Net);
    }

    #[test]
    fn the_first_verdict_comes_after_one_window() {
        let start = Instant::now();
        let mut watch = BottleneckDetector::new(start);
        assert_eq!(watch.update(start + WINDOW / 2, Duration::ZERO), None);
        let later = start + Duration::from_secs(1000);
        assert_eq!(watch.update(later, Duration::from_secs(900)), Some(Bottleneck::Disk));
        assert_eq!(watch.update(later + WINDOW * 1000, Duration::ZERO), Some(Bottleneck::Net));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_reports_the_time_of_this_thread() {
        let spin = Instant::now();
        while spin.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        assert!(thread_times().values().any(|time| *time > Duration::ZERO));
    }
}
