//! Shows progress at the pace of its reader, from a thread of its own, for as long as it lives.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::meter::Rate;
use super::{Meter, Reporter, Style};

/// A thread that reports a [`Meter`] until it is dropped.
#[derive(Debug)]
pub struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub fn start(reporter: Arc<Reporter>, meter: Arc<Meter>) -> Self {
        let Some(pace) = pace(reporter.style) else { return Self { stop: None, thread: None } };
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            let mut rate = Rate::new(Instant::now());
            let mut show = || {
                if let Some(snapshot) = rate.snapshot(Instant::now(), &meter) {
                    reporter.progress(&snapshot);
                }
            };
            while stopped.recv_timeout(pace) == Err(RecvTimeoutError::Timeout) {
                show();
            }
            // Programs get the final state too; people get it in the closing line.
            if reporter.style == Style::Json {
                show();
            }
        };
        // Without the thread there is no progress to see, but the transfer works.
        let thread = thread::Builder::new().name("progress".into()).spawn(run).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
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
