//! How often one address may ask: a bucket of tokens for each, in a table that does not grow. A full table forgets those
//! whose bucket is full again. If there are none, a newcomer takes the place of who was heard longest ago, who may come again
//! as a newcomer. So whoever has many addresses does not keep all others out; but what all of them together can cause is
//! bounded too, since such changes have a pace and newcomers a small bucket.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Newcomers that may take somebody's place at once, and the time in which one more may.
const CHANGES_AT_ONCE: u32 = 50;
const CHANGE_REFILL: Duration = Duration::from_millis(5);
/// What one that took a place may do at once: all that a meeting needs, with a repetition.
const NEWCOMER_BURST: f64 = 4.0;

/// Whom a limit is for. A household has one IPv4 address, and a whole /64 of IPv6 ones; all neighbours on a link share the
/// network of its own addresses, so there each counts for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// Whom an address belongs to.
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

/// The buckets.
#[derive(Debug)]
pub struct Rates {
    buckets: HashMap<Source, Bucket>,
    limit: Limit,
    /// For newcomers that take a place.
    changes: Option<Bucket>,
}

/// What an address may do.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Requests at once.
    pub burst: u32,
    /// One more in this time.
    pub refill: Duration,
    /// Addresses remembered.
    pub addresses: usize,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    counted: Instant,
}

impl Bucket {
    /// False if there is no token to take.
    fn take(&mut self, limit: Limit, now: Instant) -> bool {
        let tokens = self.tokens_at(now, limit);
        if tokens < 1.0 {
            return false;
        }
        *self = Self { tokens: tokens - 1.0, counted: now };
        true
    }

    fn tokens_at(&self, now: Instant, limit: Limit) -> f64 {
        let elapsed = now.saturating_duration_since(self.counted);
        let tokens = self.tokens + elapsed.as_secs_f64() / limit.refill.as_secs_f64();
        tokens.min(limit.burst.into())
    }
}

impl Rates {
    /// Nobody has asked yet.
    pub fn new(limit: Limit) -> Self {
        Self { buckets: HashMap::new(), limit, changes: None }
    }

    /// Takes one token; false if there is none.
    pub fn allow(&mut self, source: Source, now: Instant) -> bool {
        let limit = self.limit;
        if !self.buckets.contains_key(&source) {
            let Some(new) = self.newcomer(now) else { return false };
            self.buckets.insert(source, new);
        }
        self.buckets.get_mut(&source).is_some_and(|bucket| bucket.take(limit, now))
    }

    /// The bucket of one more, for which there is room now; None if too many came in somebody's place just before.
    fn newcomer(&mut self, now: Instant) -> Option<Bucket> {
        let limit = self.limit;
        if self.buckets.len() >= limit.addresses {
            self.buckets.retain(|_, bucket| bucket.tokens_at(now, limit) < limit.burst.into());
        }
        if self.buckets.len() < limit.addresses {
            return Some(Bucket { tokens: limit.burst.into(), counted: now });
        }
        let pace = Limit { burst: CHANGES_AT_ONCE, refill: CHANGE_REFILL, addresses: 1 };
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

    fn rates() -> Rates {
        Rates::new(Limit { burst: 30, refill: REFILL, addresses: MAX_ADDRESSES })
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
