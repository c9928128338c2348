//! Wake-up time of the hosts as part of the round trip.
//!
//! - The draft: the offload budget keeps both hosts busy with batches (§5.6.4.2).
//! - Ours: the budget also includes the bytes of one millisecond at the estimated bandwidth, or of
//!   ten milliseconds if both ends are on one machine.
//! - Why: on loopback and within a rack, threads that wait for a core make up most of the round
//!   trip. A window of twice the minimum round trip would leave the path idle.
//! - Grid: none, as its hosts answer at once. Loopback and veth pairs, in `docs/PERFORMANCE.md`.

use std::time::Duration;

use crate::congestion::bbr::Bbr;

/// Delay of any host: threads that wait for a core, interrupts and batched sends. A shorter round
/// trip shows nothing about the path.
pub(in super::super) const HOST_RTT: Duration = Duration::from_millis(1);
/// Round trip below which both ends are on one machine: no network is as short, and the only queue
/// is memory.
const SAME_HOST_RTT: Duration = Duration::from_micros(100);
/// Delay between the threads of one busy machine.
const SAME_HOST_DELAY: Duration = Duration::from_millis(10);

impl Bbr {
    /// Returns the bytes that both hosts hold while they wake up.
    pub(in super::super) fn host_budget(&self) -> u64 {
        let same_host = self.min_rtt.get().is_some_and(|rtt| rtt < SAME_HOST_RTT);
        let delay = if same_host { SAME_HOST_DELAY } else { HOST_RTT };
        (self.bw as f64 * delay.as_secs_f64()) as u64
    }
}
