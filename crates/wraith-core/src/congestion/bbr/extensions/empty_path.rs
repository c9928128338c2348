//! Detection of an empty path by a round trip equal to the minimum.
//!
//! - The draft: only a smaller sample postpones ProbeRTT (§5.3.4.3).
//! - Ours: a sample equal to the minimum, to a 64th part or within a millisecond, postpones it too.
//! - Why: a flow without competitors measures the empty path all the time. With a round trip of 600
//!   ms, ProbeRTT would cost it two of every ten seconds. A flow with a standing queue does not
//!   measure the empty path, so its ProbeRTT is not postponed.
//! - Grid: the 600 ms cells; not measured separately.

use std::time::Duration;

use super::host_delay::HOST_RTT;

/// Divisor: a sample within this fraction of the minimum is treated as equal.
const SAME_DIVISOR: u32 = 64;

/// Returns true if a sample of `rtt` measures the same empty path as `shortest`.
pub(in super::super) fn is_as_short(rtt: Duration, shortest: Duration) -> bool {
    rtt <= (shortest + shortest / SAME_DIVISOR).max(HOST_RTT)
}

/// Returns true if the recent minimum `rtt` still equals the minimum `shortest`.
pub(in super::super) fn is_still(rtt: Duration, shortest: Duration) -> bool {
    rtt <= shortest + shortest / SAME_DIVISOR
}
