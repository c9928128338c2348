//! How many connections a datagram from an unknown address may be tried on (SPEC §4.4).
//!
//! A trial is one AES block under the connection's own key, about 20 ns, and 60 where its keys have left the cache.
//! Invariant: a flood of random datagrams costs no more than [`PER_SECOND`] trials, and takes nothing from datagrams that
//! come from where their connection was heard before, which need none.

use std::time::Duration;

use crate::token_bucket::TokenBucket;

/// Trials a second: 0.5 % to 1.6 % of a core. It finds a peer that has moved among ten connections at its first packet while
/// 26,000 random datagrams a second arrive, and at one of its first eight, on average, while 200,000 do.
const PER_SECOND: u64 = 1 << 18;
/// Trials saved up: whoever moves while nobody floods is found at once, also where there are many connections.
const BURST: Duration = Duration::from_millis(125);
/// Connections heard from the address of a datagram on which it is tried without being counted: more than real peers
/// have behind one address and port. A datagram from there costs no more than one from elsewhere that passes a gate.
pub(crate) const FREE_TRIALS: usize = 32;

/// The budget. A datagram takes what all connections cost or nothing: a few trials would always be those of the same ones.
pub(crate) const fn trials() -> TokenBucket {
    TokenBucket::new(PER_SECOND, BURST)
}
