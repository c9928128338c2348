//! Periodic progress output.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use wraith::ProgressReader;

use super::{Reporter, Style};

/// Shows progress until it is dropped.
#[derive(Debug)]
pub struct Ticker {
    task: Option<AbortHandle>,
    reporter: Arc<Reporter>,
    /// Source of the final state.
    last: Option<ProgressReader>,
}

impl Ticker {
    /// Starts a ticker for work that ends with it: Drop reports the final state.
    pub fn start(reporter: Arc<Reporter>, progress: ProgressReader) -> Self {
        let last = Some(progress.again());
        let mut ticker = Self::between(reporter, progress);
        ticker.last = last;
        ticker
    }

    /// Starts a ticker for work that continues, or that reports its end itself.
    pub fn between(reporter: Arc<Reporter>, mut progress: ProgressReader) -> Self {
        let last = None;
        let Some(pace) = pace(reporter.style) else {
            return Self { task: None, reporter, last };
        };
        let theirs = Arc::clone(&reporter);
        let task = tokio::spawn(async move {
            // Work that ends within one tick shows no bar.
            let mut ticks = interval_at(Instant::now() + pace, pace);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Some(progress) = progress.read() {
                    theirs.progress(&progress);
                }
            }
        });
        Self { task: Some(task.abort_handle()), reporter, last }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
        if let Some(last) = &mut self.last {
            self.reporter.last_progress(last);
        }
    }
}

/// Returns the interval between two updates; None for styles without progress.
fn pace(style: Style) -> Option<Duration> {
    match style {
        Style::Terminal { .. } => Some(Duration::from_millis(100)),
        Style::Json => Some(Duration::from_millis(250)),
        // Only some updates become a line, but the rate needs the figures of the last seconds.
        Style::Log => Some(Duration::from_millis(500)),
        Style::Quiet => None,
    }
}
