//! What hosts take to wake up belongs to the round trip.
//!
//! - The draft: the offload budget is what keeps both hosts busy with batches (§5.6.4.2).
//! - Ours: it includes a millisecond at the bandwidth, and ten where both ends are on one machine.
//! - Why: on loopback and in a rack threads that wait for a core are most of the round trip. A window of twice the shortest one
//!   would idle.
//! - Grid: none, as its hosts answer at once. Loopback and veth pairs, in `docs/PERFORMANCE.md`.

use std::time::Duration;

use crate::congestion::bbr::Bbr;

/// What threads that wait for a core, interrupts and batched sends delay on any host. A shorter round trip says nothing about
/// the path.
pub(in super::super) const HOST_RTT: Duration = Duration::from_millis(1);
/// Below this round trip both ends are on one machine: no network is as short, and there is no queue but memory.
const SAME_HOST_RTT: Duration = Duration::from_micros(100);
/// What threads of one busy machine wait for each other.
const SAME_HOST_DELAY: Duration = Duration::from_millis(10);

impl Bbr {
    /// Bytes that both hosts hold while they wake up.
    pub(in super::super) fn host_budget(&self) -> u64 {
        let same_host = self.min_rtt.get().is_some_and(|rtt| rtt < SAME_HOST_RTT);
        let delay = if same_host { SAME_HOST_DELAY } else { HOST_RTT };
        (self.bw as f64 * delay.as_secs_f64()) as u64
    }
}
