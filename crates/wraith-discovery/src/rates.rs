//! How often one address may ask: a bucket of tokens for each, in a table that does not grow. A full table forgets those
//! whose bucket is full again, and refuses newcomers if there are none.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Whom a limit is for. A household has one IPv4 address, and a whole /64 of IPv6 ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self(ip.into()),
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
    fn tokens_at(&self, now: Instant, limit: Limit) -> f64 {
        let elapsed = now.saturating_duration_since(self.counted);
        let tokens = self.tokens + elapsed.as_secs_f64() / limit.refill.as_secs_f64();
        tokens.min(limit.burst.into())
    }
}

impl Rates {
    pub fn new(limit: Limit) -> Self {
        Self { buckets: HashMap::new(), limit }
    }

    /// Takes one token; false if there is none.
    pub fn allow(&mut self, source: Source, now: Instant) -> bool {
        let limit = self.limit;
        if !self.buckets.contains_key(&source) && self.buckets.len() >= limit.addresses {
            self.buckets.retain(|_, bucket| bucket.tokens_at(now, limit) < limit.burst.into());
            if self.buckets.len() >= limit.addresses {
                return false;
            }
        }
        let new = Bucket { tokens: limit.burst.into(), counted: now };
        let bucket = self.buckets.entry(source).or_insert(new);
        let tokens = bucket.tokens_at(now, limit);
        if tokens < 1.0 {
            return false;
        }
        *bucket = Bucket { tokens: tokens - 1.0, counted: now };
        true
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
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
    fn the_table_does_not_grow() {
        let (mut rates, now) = (rates(), Instant::now());
        let nth = |n: u32| Source(IpAddr::from(n.to_be_bytes()));
        let allowed = (0..2000).filter(|n| rates.allow(nth(*n), now)).count();
        assert_eq!((allowed, rates.len()), (MAX_ADDRESSES, MAX_ADDRESSES));
        assert!(rates.allow(nth(30_000), now + 2 * REFILL), "full buckets are forgotten");
        assert_eq!(rates.len(), 1);
    }
}
