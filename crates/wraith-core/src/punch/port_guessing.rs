//! Port guessing (SPEC §14.5), for two NATs that defeat plain punching. One side's NAT uses a
//! different outside port for each destination. The other side's NAT admits only datagrams from
//! addresses and ports that its host has sent to. The first side probes from many sockets, the
//! second side probes many ports, and some pair is likely to match.
//!
//! Invariant: besides [`UnprovenBudget`](super::unproven_budget::UnprovenBudget), this module
//! bounds the packets to unproven addresses: [`PORT_GUESSES_MAX`] per attempt, and one attempt per
//! [`PAUSE`].

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::time::Duration;

use rand_core::Rng;

use crate::{PathAddr, Time};

/// Number of sockets of the first side, and of ports probed by the second. A NAT draws from 64,512
/// ports, so 256 of each meet in 1 − (1 − 256 ⁄ 64,512)^256 = 64 % of attempts.
pub const PORT_GUESSES_MAX: usize = 256;
/// Ports that NATs draw from (RFC 6056 §3.2). The others are system ports.
const PORTS: RangeInclusive<u16> = 1024..=u16::MAX;
/// Interval between two probes of an attempt. A home router creates mappings at this rate.
pub(super) const SPACING: Duration = Duration::from_millis(2);
/// Minimum interval between the starts of two attempts of an endpoint.
pub(super) const PAUSE: Duration = Duration::from_secs(8);

/// The role of one side in such an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortGuessing {
    /// Probes from many sockets. Each address is the peer's single address, reached through another
    /// socket. The first [`PORT_GUESSES_MAX`] are used.
    Sockets(Vec<PathAddr>),
    /// Probes [`PORT_GUESSES_MAX`] random ports of this address of the peer.
    Ports(Ipv4Addr),
}

impl PortGuessing {
    pub(super) fn targets(&self, rng: &mut impl Rng) -> Vec<PathAddr> {
        match self {
            Self::Sockets(addresses) => addresses.iter().take(PORT_GUESSES_MAX).copied().collect(),
            Self::Ports(ip) => {
                let mut ports = HashSet::new();
                while ports.len() < PORT_GUESSES_MAX {
                    let port = rng.next_u32() as u16;
                    if PORTS.contains(&port) {
                        ports.insert(port);
                    }
                }
                let at = |port| SocketAddr::from(SocketAddrV4::new(*ip, port)).into();
                ports.into_iter().map(at).collect()
            }
        }
    }
}

/// Limits the rate of attempts.
#[derive(Debug, Default)]
pub(super) struct AttemptLimiter(Option<Time>);

impl AttemptLimiter {
    /// Returns true, and counts an attempt, if one may begin now.
    pub(super) fn start(&mut self, now: Time) -> bool {
        let may = self.0.is_none_or(|last| now - last >= PAUSE);
        if may {
            self.0 = Some(now);
        }
        may
    }
}
