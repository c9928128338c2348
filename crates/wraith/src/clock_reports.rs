//! Reports of handshakes and calls that got no answer because the clocks of both sides differ (SPEC
//! §3.4).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use wraith_crypto::NodeId;

use crate::event::Event;
use crate::event_publisher::EventPublisher;

/// Least interval between two reports about one peer, so that a peer that keeps trying does not
/// fill the screen.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Publishes at most one report per peer and hour. Holds at most one entry per contact. Clones are
/// handles of the same reports.
#[derive(Clone, Debug)]
pub(crate) struct ClockReports {
    publisher: Weak<EventPublisher>,
    reported: Arc<Mutex<HashMap<Option<NodeId>, Instant>>>,
}

impl ClockReports {
    /// Creates reports for this publisher, as long as it lives.
    pub fn new(publisher: &Arc<EventPublisher>) -> Self {
        Self { publisher: Arc::downgrade(publisher), reported: Arc::default() }
    }

    /// Reports that the clock of `peer` was ahead of this machine's by `seconds`. `None`: the peer
    /// has shown an access key, but not its identity.
    pub fn report(&self, peer: Option<NodeId>, seconds: i64) {
        let now = Instant::now();
        let is_new = {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.retain(|_, at| now - *at < INTERVAL);
            let entry = reported.entry(peer);
            let is_new = matches!(entry, Entry::Vacant(_));
            entry.or_insert(now);
            is_new
        };
        if let Some(publisher) = self.publisher.upgrade().filter(|_| is_new) {
            publisher.publish_beside(None, Event::ClocksDiffer { peer, seconds });
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
        let publisher = Arc::new(EventPublisher::new(Some(Arc::clone(&reported) as _)));
        let reports = ClockReports::new(&publisher);
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
