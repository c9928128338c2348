//! Rate limit for the questions to the user about offers of strangers. A new NodeId (a key pair)
//! costs a stranger nothing, so the limit applies per address and per time, not per NodeId.
//!
//! Invariant: contacts are never subject to this limit, so strangers cannot use it up for contacts.
//! The stored state is bounded.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use wraith_discovery::rates::{RateLimit, RateLimiter, Source};

/// Limit per address (per /64 for IPv6). A sender that corrects a mistaken offer needs two
/// questions; no serious sender needs more than one per minute.
const OF_ONE: RateLimit = RateLimit { burst: 3, refill: Duration::from_secs(60), addresses: 64 };
/// Limit for all addresses together. Ten questions fit on a screen that is read after an hour, and
/// three per minute are as many as a person can read.
const OF_ALL: RateLimit = RateLimit { burst: 10, refill: Duration::from_secs(20), addresses: 1 };
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The limit (see the module docs).
#[derive(Debug)]
pub(super) struct QuestionLimit {
    of_one: RateLimiter,
    of_all: RateLimiter,
}

impl Default for QuestionLimit {
    fn default() -> Self {
        Self { of_one: RateLimiter::new(OF_ONE), of_all: RateLimiter::new(OF_ALL) }
    }
}

impl QuestionLimit {
    /// Returns whether a stranger from this address may ask one more question. Peers without an IP
    /// address share one budget.
    pub fn allow(&mut self, from: Option<IpAddr>, now: Instant) -> bool {
        // An address beyond its own limit takes nothing from the common budget.
        self.of_one.allow(Source::of(from.unwrap_or(NOWHERE)), now)
            && self.of_all.allow(Source::of(NOWHERE), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_ask_three_times_then_once_a_minute_and_an_ipv6_network_counts_as_one() {
        for ip in ["192.0.2.1", "2001:db8::"] {
            let (mut limit, now) = (QuestionLimit::default(), Instant::now());
            let from = |n: u16| match ip.parse().unwrap() {
                IpAddr::V4(ip) => IpAddr::V4(ip),
                IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() | u128::from(n)).into()),
            };
            let asked = (0..100).filter(|n| limit.allow(Some(from(*n)), now)).count();
            assert_eq!(asked, 3, "{ip}");
            assert!(!limit.allow(Some(from(1)), now + Duration::from_secs(59)));
            assert!(limit.allow(Some(from(1)), now + Duration::from_secs(61)));
            assert!(limit.allow(Some("198.51.100.7".parse().unwrap()), now), "another one may");
        }
    }

    #[test]
    fn all_addresses_together_may_ask_ten_times_then_three_times_a_minute() {
        let (mut limit, now) = (QuestionLimit::default(), Instant::now());
        let from = |n: u32| Some(IpAddr::V4((0x0a00_0000 + n).into()));
        assert_eq!((0..1000).filter(|n| limit.allow(from(*n), now)).count(), 10);
        let later = now + Duration::from_secs(61);
        assert_eq!((2000..3000).filter(|n| limit.allow(from(*n), later)).count(), 3);
    }

    #[test]
    fn an_address_over_its_limit_does_not_use_up_the_common_limit() {
        let (mut limit, now) = (QuestionLimit::default(), Instant::now());
        for _ in 0..1000 {
            limit.allow(None, now);
        }
        let others = (1..=7).map(|n| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))));
        assert_eq!(others.filter(|from| limit.allow(*from, now)).count(), 7);
    }
}
