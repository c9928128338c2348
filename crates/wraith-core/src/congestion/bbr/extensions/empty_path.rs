//! A round trip as short as the shortest measures the empty path.
//!
//! - The draft: only a smaller sample puts off ProbeRTT (§5.3.4.3).
//! - Ours: one that equals the minimum does so too, to a 64th part or within a millisecond.
//! - Why: a flow alone on its path sees the empty path all the time, and ProbeRTT costs it two seconds of each ten where the
//!   round trip is 600 ms. A flow that stands in a queue does not see it.
//! - Grid: the 600 ms cells; not measured alone.

use std::time::Duration;

use super::host_delay::HOST_RTT;

/// A sample within this part of the minimum is the same.
const SAME_DIVISOR: u32 = 64;

/// A sample of `rtt` measures the same empty path as `shortest`.
pub(in super::super) fn is_as_short(rtt: Duration, shortest: Duration) -> bool {
    rtt <= (shortest + shortest / SAME_DIVISOR).max(HOST_RTT)
}

/// The recent minimum `rtt` is still the minimum `shortest`.
pub(in super::super) fn is_still(rtt: Duration, shortest: Duration) -> bool {
    rtt <= shortest + shortest / SAME_DIVISOR
}
