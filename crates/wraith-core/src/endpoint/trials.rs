//! Budget of connection-ID trials for datagrams from unknown addresses (SPEC §4.4).
//!
//! A trial is one AES block under the connection's own key: about 20 ns, or 60 ns if the
//! connection's keys are not in the processor's cache. Invariant: a flood of random datagrams costs
//! at most [`PER_SECOND`] trials per second. The budget does not affect datagrams from known
//! addresses, because these need no trial.

use std::time::Duration;

use crate::token_bucket::TokenBucket;

/// Trials per second: 0.5 % to 1.6 % of a core. With ten connections, a migrated peer is found at
/// its first packet during 26,000 random datagrams per second. During 200,000 per second, it is
/// found among its first eight packets, on average.
const PER_SECOND: u64 = 1 << 18;
/// Burst of trials: without a flood, a migrating peer is found at once, even among many
/// connections.
const BURST: Duration = Duration::from_millis(125);
/// Connections known at one address that are tried for free: more than real peers share one address
/// and port. A datagram from such an address costs no more than a datagram from elsewhere that
/// passes mac1.
pub(crate) const FREE_TRIALS: usize = 32;

/// Returns the budget. A datagram uses one trial for every connection, or no trial at all: a
/// partial search would always try the same connections.
pub(crate) const fn trials() -> TokenBucket {
    TokenBucket::new(PER_SECOND, BURST)
}
