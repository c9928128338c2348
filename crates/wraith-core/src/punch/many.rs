//! Many ports at once, where one side's NAT draws another port for each destination and the other's lets in only whom it has sent to
//! (SPEC §14.5): the one asks from many sockets, the other asks many ports, and some pair is likely to be the same.
//!
//! Invariant: what goes to addresses that have proved nothing is bounded here, beside [`Unproved`](super::unproved::Unproved):
//! [`MANY_MAX`] packets of an attempt, and one attempt begins in [`PAUSE`].

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::time::Duration;

use rand_core::Rng;

use crate::{PathAddr, Time};

/// Sockets on the one side, and ports asked by the other. Of the 64,512 that a NAT draws from, 256 of each meet in 1 − (1 − 256 ⁄ 64,512)^256
/// = 64 % of attempts.
pub const MANY_MAX: usize = 256;
/// Ports that NATs draw from (RFC 6056 §3.2): the others are the system's.
const PORTS: RangeInclusive<u16> = 1024..=u16::MAX;
/// Between two questions of an attempt: a home router makes that many mappings a second.
pub(super) const SPACING: Duration = Duration::from_millis(2);
/// Between the beginnings of two attempts of an endpoint.
pub(super) const PAUSE: Duration = Duration::from_secs(8);

/// What one side of such an attempt does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Many {
    /// Asks from many sockets: each of these addresses is the peer's one, by another socket. The first [`MANY_MAX`] count.
    Sockets(Vec<PathAddr>),
    /// Asks [`MANY_MAX`] ports of this address of the peer's, drawn at random.
    Ports(Ipv4Addr),
}

impl Many {
    pub(super) fn targets(&self, rng: &mut impl Rng) -> Vec<PathAddr> {
        match self {
            Self::Sockets(addresses) => addresses.iter().take(MANY_MAX).copied().collect(),
            Self::Ports(ip) => {
                let mut ports = HashSet::new();
                while ports.len() < MANY_MAX {
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

/// When an attempt may begin.
#[derive(Debug, Default)]
pub(super) struct Pacer(Option<Time>);

impl Pacer {
    /// Whether one may begin now; then it has.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        let may = self.0.is_none_or(|last| now - last >= PAUSE);
        if may {
            self.0 = Some(now);
        }
        may
    }
}
