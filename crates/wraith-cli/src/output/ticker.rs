//! Shows progress at the pace of its reader, for as long as it lives.

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
    /// For the final state.
    last: Option<ProgressReader>,
}

impl Ticker {
    /// For what ends when this is dropped: the last state is told then.
    pub fn start(reporter: Arc<Reporter>, progress: ProgressReader) -> Self {
        let last = Some(progress.again());
        let mut ticker = Self::between(reporter, progress);
        ticker.last = last;
        ticker
    }

    /// For what goes on, or tells of its end itself.
    pub fn between(reporter: Arc<Reporter>, mut progress: ProgressReader) -> Self {
        let last = None;
        let Some(pace) = pace(reporter.style) else {
            return Self { task: None, reporter, last };
        };
        let theirs = Arc::clone(&reporter);
        let task = tokio::spawn(async move {
            // What ends within a tick shows no bar.
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

/// Time between two looks; None where progress is not shown.
fn pace(style: Style) -> Option<Duration> {
    match style {
        Style::Terminal { .. } => Some(Duration::from_millis(100)),
        Style::Json => Some(Duration::from_millis(250)),
        // Only some of them become a line, but the rate is of the last seconds.
        Style::Log => Some(Duration::from_millis(500)),
        Style::Quiet => None,
    }
}
