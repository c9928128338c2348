//! Packet budget for unproven addresses (SPEC §14.3).
//!
//! The peer's list of candidate addresses is unverified, so its addresses may belong to third
//! parties. Invariant: in one period, these limits hold for all connections and punches of the
//! endpoint together:
//!
//! - an address gets at most [`PER_ADDRESS`] packets;
//! - all addresses of one source (likely one host or one line) get at most [`PER_SOURCE`];
//! - all addresses together get at most [`IN_ALL`].

use std::collections::HashMap;
use std::time::Duration;

use crate::source::Source;
use crate::{PathAddr, Time};

/// Length of a period. A person may try again a little later, but not a hundred times.
const PERIOD: Duration = Duration::from_secs(120);
/// Packets per address: those of one punch (eight), and answers to packets from it while it is
/// unproven.
const PER_ADDRESS: u32 = 12;
/// Packets per IPv4 address or IPv6 /64: several candidates, and predicted ports.
const PER_SOURCE: u32 = 64;
/// Packets in total: sixteen candidates of a dozen peers.
const IN_ALL: u32 = 1536;

#[derive(Debug, Default)]
pub(crate) struct UnprovenBudget {
    since: Time,
    in_all: u32,
    addresses: HashMap<PathAddr, u32>,
    sources: HashMap<Source, u32>,
}

impl UnprovenBudget {
    /// Returns true, and counts a packet, if one may go to `to` now. The tables hold at most
    /// [`IN_ALL`] entries.
    pub(crate) fn take(&mut self, now: Time, to: impl Into<PathAddr>) -> bool {
        let to = to.into();
        if now - self.since >= PERIOD {
            *self = Self { since: now, ..Self::default() };
        }
        let source = Source::of(to);
        let sent = |count: Option<&u32>| count.copied().unwrap_or(0);
        let allowed = self.in_all < IN_ALL
            && sent(self.addresses.get(&to)) < PER_ADDRESS
            && sent(self.sources.get(&source)) < PER_SOURCE;
        if allowed {
            self.in_all += 1;
            *self.addresses.entry(to).or_default() += 1;
            *self.sources.entry(source).or_default() += 1;
        }
        allowed
    }

    /// Refunds the packets to `address`: a peer with the secret receives there, so they were
    /// wanted.
    pub(crate) fn on_proved(&mut self, address: impl Into<PathAddr>) {
        let address = address.into();
        let Some(count) = self.addresses.remove(&address) else { return };
        self.in_all -= count;
        if let Some(all) = self.sources.get_mut(&Source::of(address)) {
            *all -= count;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    fn taken(
        unproved: &mut UnprovenBudget,
        now: Time,
        to: impl Iterator<Item = SocketAddr>,
    ) -> u32 {
        to.map(|to| u32::from(unproved.take(now, to))).sum()
    }

    #[test]
    fn an_address_a_line_and_all_of_them_get_a_few_each_in_a_period() {
        let mut unproved = UnprovenBudget::default();
        let one = std::iter::repeat_n(address(1, 1), 1000);
        assert_eq!(taken(&mut unproved, at(0), one), PER_ADDRESS);
        let ports = (1..1000).map(|port| address(2, port));
        assert_eq!(taken(&mut unproved, at(1), ports), PER_SOURCE);
        let hosts = (0..100_000u32).map(|n| SocketAddr::from((n.to_be_bytes(), 1)));
        assert_eq!(taken(&mut unproved, at(119), hosts), IN_ALL - PER_ADDRESS - PER_SOURCE);
        assert!(unproved.take(at(120), address(1, 1)));
    }

    #[test]
    fn packets_to_proven_addresses_are_refunded() {
        let mut unproved = UnprovenBudget::default();
        for _ in 0..100 {
            assert_eq!(taken(&mut unproved, at(0), std::iter::repeat_n(address(1, 1), 9)), 9);
            unproved.on_proved(address(1, 1));
        }
        assert_eq!((unproved.in_all, unproved.sources[&Source::of(address(1, 1).into())]), (0, 0));
    }
}
