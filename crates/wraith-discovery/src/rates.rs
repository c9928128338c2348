//! A rate limiter per address: a token bucket for each, in a bounded table.
//!
//! A full table forgets addresses with full buckets. If no bucket is full, a new address replaces
//! the one that was inactive longest, which may later return as a new address. An attacker with
//! many addresses therefore cannot lock others out. The attacker's total effect is bounded as well,
//! because replacements are rate-limited and new addresses have a small bucket.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Burst of replacements, and the interval of further ones.
const CHANGES_AT_ONCE: u32 = 50;
const CHANGE_REFILL: Duration = Duration::from_millis(5);
/// Burst of a new address that replaced another one: enough for a meeting with one repetition.
const NEWCOMER_BURST: f64 = 4.0;

/// The unit of a limit. A household has one IPv4 address, or an IPv6 /64. Link-local IPv6 addresses
/// of a network share one prefix, so each such address has its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// Returns the unit that an address belongs to.
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self(ip.into()),
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Self(ip.into()),
            IpAddr::V6(ip) => {
                let network = ip.to_bits() >> 64 << 64;
                Self(Ipv6Addr::from_bits(network).into())
            }
        }
    }
}

/// Token buckets per source.
#[derive(Debug)]
pub struct RateLimiter {
    buckets: HashMap<Source, Bucket>,
    limit: RateLimit,
    /// Rate limit of replacements.
    changes: Option<Bucket>,
}

/// Limit per address.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// Most requests in a burst.
    pub burst: u32,
    /// Interval of further requests.
    pub refill: Duration,
    /// Most addresses remembered.
    pub addresses: usize,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    counted: Instant,
}

impl Bucket {
    /// Takes a token. Returns false if no token is left.
    fn take(&mut self, limit: RateLimit, now: Instant) -> bool {
        let tokens = self.tokens_at(now, limit);
        if tokens < 1.0 {
            return false;
        }
        *self = Self { tokens: tokens - 1.0, counted: now };
        true
    }

    fn tokens_at(&self, now: Instant, limit: RateLimit) -> f64 {
        let elapsed = now.saturating_duration_since(self.counted);
        let tokens = self.tokens + elapsed.as_secs_f64() / limit.refill.as_secs_f64();
        tokens.min(limit.burst.into())
    }
}

impl RateLimiter {
    /// Creates an empty table.
    pub fn new(limit: RateLimit) -> Self {
        Self { buckets: HashMap::new(), limit, changes: None }
    }

    /// Takes one token of `source`. Returns false if no token is left.
    pub fn allow(&mut self, source: Source, now: Instant) -> bool {
        let limit = self.limit;
        if !self.buckets.contains_key(&source) {
            let Some(new) = self.newcomer(now) else { return false };
            self.buckets.insert(source, new);
        }
        self.buckets.get_mut(&source).is_some_and(|bucket| bucket.take(limit, now))
    }

    /// Returns a token that [`Self::allow`] took.
    pub fn refund(&mut self, source: Source) {
        if let Some(bucket) = self.buckets.get_mut(&source) {
            bucket.tokens = (bucket.tokens + 1.0).min(self.limit.burst.into());
        }
    }

    /// Makes a bucket for a new source. `None` if replacements are rate-limited.
    fn newcomer(&mut self, now: Instant) -> Option<Bucket> {
        let limit = self.limit;
        if self.buckets.len() >= limit.addresses {
            self.buckets.retain(|_, bucket| bucket.tokens_at(now, limit) < limit.burst.into());
        }
        if self.buckets.len() < limit.addresses {
            return Some(Bucket { tokens: limit.burst.into(), counted: now });
        }
        let pace = RateLimit { burst: CHANGES_AT_ONCE, refill: CHANGE_REFILL, addresses: 1 };
        let full = Bucket { tokens: pace.burst.into(), counted: now };
        if !self.changes.get_or_insert(full).take(pace, now) {
            return None;
        }
        let (oldest, _) = self.buckets.iter().min_by_key(|(_, bucket)| bucket.counted)?;
        let oldest = *oldest;
        self.buckets.remove(&oldest);
        Some(Bucket { tokens: f64::from(limit.burst).min(NEWCOMER_BURST), counted: now })
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFILL: Duration = Duration::from_secs(2);
    const MAX_ADDRESSES: usize = 1000;

    fn rates() -> RateLimiter {
        RateLimiter::new(RateLimit { burst: 30, refill: REFILL, addresses: MAX_ADDRESSES })
    }

    fn source(text: &str) -> Source {
        Source::of(text.parse().unwrap())
    }

    #[test]
    fn a_burst_is_allowed_and_then_one_every_two_seconds() {
        let (mut rates, now) = (rates(), Instant::now());
        let someone = source("192.0.2.1");
        assert_eq!((0..100).filter(|_| rates.allow(someone, now)).count(), 30);
        assert!(rates.allow(source("192.0.2.2"), now), "others are not concerned");
        let later = now + 10 * REFILL;
        assert_eq!((0..100).filter(|_| rates.allow(someone, later)).count(), 10);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together_and_mapped_ones_as_ipv4() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
    }

    #[test]
    fn neighbours_on_a_link_count_apart() {
        assert_ne!(source("fe80::1"), source("fe80::2"));
        assert_eq!(source("fe80::1"), source("fe80::1"));
    }

    fn nth(n: u32) -> Source {
        Source(IpAddr::from(n.to_be_bytes()))
    }

    #[test]
    fn the_table_does_not_grow_and_newcomers_in_a_full_one_have_a_pace() {
        let (mut rates, now) = (rates(), Instant::now());
        let allowed = (0..2000).filter(|n| rates.allow(nth(*n), now)).count();
        let at_once = MAX_ADDRESSES + CHANGES_AT_ONCE as usize;
        assert_eq!((allowed, rates.len()), (at_once, MAX_ADDRESSES));
        assert!(rates.allow(nth(30_000), now + 30 * REFILL), "full buckets are forgotten");
        assert_eq!(rates.len(), 1);
    }

    #[test]
    fn a_table_full_of_others_keeps_no_newcomer_out() {
        let (mut rates, start) = (rates(), Instant::now());
        (0..MAX_ADDRESSES as u32).for_each(|n| assert!(rates.allow(nth(n), start)));
        let (newcomer, mut heard) = (source("192.0.2.1"), 0);
        for beat in 1..10 {
            let now = start + beat * Duration::from_millis(100);
            (0..2 * MAX_ADDRESSES as u32).step_by(100).for_each(|n| _ = rates.allow(nth(n), now));
            heard += u32::from(rates.allow(newcomer, now));
        }
        assert_eq!(heard, NEWCOMER_BURST as u32);
        assert_eq!(rates.len(), MAX_ADDRESSES);
    }
}
