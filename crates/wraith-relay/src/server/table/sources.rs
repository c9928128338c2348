//! Resource accounting per address (an IPv4 address or an IPv6 /64).
//!
//! Invariant: every way to an address is checked here: a new session, a resumption from another
//! address, and a UDP binding at another address than that of TLS. The counters of an address equal
//! the sums over its clients. A rate outlives the clients of its address until it is paid, so that a
//! new connection does not renew it.

use std::collections::HashMap;
use std::time::Instant;

use wraith_discovery::rates::Source;

use crate::frame::Refusal;
use crate::server::options::Limits;
use crate::server::rate::Bucket;

/// Resource usage per address.
#[derive(Debug, Default)]
pub struct Sources(HashMap<Source, SourceUse>);

#[derive(Debug)]
struct SourceUse {
    /// Clients with TLS or UDP from this address.
    clients: usize,
    /// Pairs that these clients dialled.
    pairs: usize,
    bucket: Bucket,
}

impl Sources {
    /// Admits a client with `pairs` dialled pairs.
    pub fn enter(
        &mut self,
        now: Instant,
        limits: &Limits,
        source: Source,
        pairs: usize,
    ) -> Result<(), Refusal> {
        let used = self.0.get(&source).map_or((0, 0), |used| (used.clients, used.pairs));
        if used.0 >= limits.clients_per_address
            || (pairs > 0 && used.1 + pairs > limits.pairs_per_address)
        {
            return Err(Refusal::Full);
        }
        let new = || SourceUse { clients: 0, pairs: 0, bucket: Bucket::new(now) };
        let used = self.0.entry(source).or_insert_with(new);
        used.clients += 1;
        used.pairs += pairs;
        Ok(())
    }

    /// Releases what [`Self::enter`] took.
    pub fn leave(&mut self, source: Source, pairs: usize) {
        if let Some(used) = self.0.get_mut(&source) {
            used.clients -= 1;
            used.pairs -= pairs;
        }
    }

    /// Admits one more dialled pair.
    pub fn add_pair(&mut self, limits: &Limits, source: Source) -> Result<(), Refusal> {
        let used = self.0.get_mut(&source).ok_or(Refusal::Full)?;
        if used.pairs >= limits.pairs_per_address {
            return Err(Refusal::Full);
        }
        used.pairs += 1;
        Ok(())
    }

    /// Releases a dialled pair.
    pub fn remove_pair(&mut self, source: Source) {
        if let Some(used) = self.0.get_mut(&source) {
            used.pairs -= 1;
        }
    }

    /// Takes bytes of the rate of an address.
    pub fn take_bytes(
        &mut self,
        now: Instant,
        rate: Option<u64>,
        source: Source,
        bytes: usize,
    ) -> bool {
        rate.is_none()
            || self.0.get_mut(&source).is_some_and(|used| used.bucket.take(rate, now, bytes))
    }

    /// Forgets the addresses without clients whose rate is paid.
    pub fn forget_unused(&mut self, now: Instant) {
        self.0.retain(|_, used| used.clients > 0 || !used.bucket.is_full(now));
    }
}
