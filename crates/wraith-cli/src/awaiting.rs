//! What a receiver waits for, said when it waits for long: a sender may look through a large tree before it makes its offer,
//! or never make one, and from here the two look alike.
//!
//! Invariant: it only speaks. The engine is what gives up, after [`OFFER_TIMEOUT`].

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wraith_transfer::limits::OFFER_TIMEOUT;

use crate::output::{Event, Reporter};

/// Most offers come at once; a person begins to wonder after this.
const FIRST: Duration = Duration::from_secs(5);
/// After which it is said again.
const AGAIN: Duration = Duration::from_secs(60);

/// Speaks until it is dropped.
#[derive(Debug)]
pub struct Awaiting {
    _stop: Sender<()>,
}

impl Awaiting {
    /// The sender has said Hello; its offer is next.
    pub fn offer(reporter: &Arc<Reporter>) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let (reporter, deadline) = (Arc::clone(reporter), Instant::now() + OFFER_TIMEOUT);
        let run = move || {
            let mut pause = FIRST;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let left = deadline.saturating_duration_since(Instant::now()).as_secs();
                if left == 0 {
                    return;
                }
                reporter.event(&Event::Awaiting { what: "offer", seconds_left: left });
                reporter.say(format!(
                    "Waiting for the sender to say what it offers; it may be looking through a large folder. \
                     Given up in {left} s, Ctrl-C stops."
                ));
                pause = AGAIN;
            }
        };
        // Without the thread nothing is said, and everything else is the same.
        let _ = thread::Builder::new().name("awaiting".into()).spawn(run);
        Self { _stop: stop }
    }
}
