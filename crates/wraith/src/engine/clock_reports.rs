//! Reports of handshakes and calls that got no answer because the clocks of both sides differ (SPEC
//! §3.4).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wraith_crypto::NodeId;

use crate::event::Event;
use crate::event_publisher::EventPublisher;

/// Least interval between two reports about one peer, so that a peer that keeps trying does not
/// fill the screen.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Publishes at most one report per peer and hour. Holds at most one entry per contact.
#[derive(Debug)]
pub(crate) struct ClockReports {
    publisher: Arc<EventPublisher>,
    reported: HashMap<Option<NodeId>, Instant>,
}

impl ClockReports {
    pub fn new(publisher: Arc<EventPublisher>) -> Self {
        Self { publisher, reported: HashMap::new() }
    }

    /// Reports that the clock of `peer` was ahead of this machine's by `seconds`. `None`: the peer
    /// has shown an access key, but not its identity.
    pub fn report(&mut self, peer: Option<NodeId>, seconds: i64) {
        let now = Instant::now();
        self.reported.retain(|_, at| now - *at < INTERVAL);
        if let std::collections::hash_map::Entry::Vacant(entry) = self.reported.entry(peer) {
            entry.insert(now);
            self.publisher.publish(Event::ClocksDiffer { peer, seconds });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::event::Observer;

    #[derive(Debug, Default)]
    struct Reported(Mutex<Vec<(Option<NodeId>, i64)>>);

    impl Observer for Reported {
        fn event(&self, _: Option<u64>, event: &Event) {
            if let Event::ClocksDiffer { peer, seconds } = event {
                self.0.lock().unwrap().push((*peer, *seconds));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_is_reported_once_an_hour() {
        let reported = Arc::new(Reported::default());
        let publisher = EventPublisher::new(Some(Arc::clone(&reported) as _));
        let mut reports = ClockReports::new(Arc::new(publisher));
        let bob = Some(NodeId([1; 32]));
        for _ in 0..3 {
            reports.report(bob, -100);
            reports.report(None, 200);
        }
        assert_eq!(*reported.0.lock().unwrap(), [(bob, -100), (None, 200)]);
        tokio::time::advance(INTERVAL).await;
        reports.report(bob, -101);
        assert_eq!(reported.0.lock().unwrap().len(), 3);
    }
}
