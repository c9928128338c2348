//! Which of our addresses a peer talks to, so that answers leave from it.
//!
//! A socket bound to a wildcard would let the routing table choose the source, and a peer that asked another address
//! of this machine (a second interface, a temporary IPv6 address) would not recognise the answer. The table is small,
//! fixed, and keyed with a secret: strangers can push an entry out only by luck, and then the routing table decides.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// Peers remembered: far more than one endpoint talks to at once.
const SLOTS: usize = 1024;

/// Peer → our address, for a wildcard socket; empty for any other.
#[derive(Debug)]
pub(crate) struct SourceAddresses {
    slots: Box<[Option<(SocketAddr, IpAddr)>]>,
    hasher: RandomState,
    /// A dual-stack socket wants IPv4 sources mapped, like destinations.
    mapped: bool,
}

impl SourceAddresses {
    /// For a socket bound to `local`.
    pub(crate) fn new(local: IpAddr) -> Self {
        let slots = if local.is_unspecified() { SLOTS } else { 0 };
        Self {
            slots: vec![None; slots].into_boxed_slice(),
            hasher: RandomState::new(),
            mapped: local.is_ipv6(),
        }
    }

    fn slot(&self, peer: SocketAddr) -> Option<usize> {
        let len = self.slots.len() as u64;
        (len > 0).then(|| (self.hasher.hash_one(peer) % len) as usize)
    }

    /// A batch of datagrams from `peer` came to `local`.
    pub(crate) fn learn(&mut self, peer: SocketAddr, local: Option<IpAddr>) {
        let (Some(slot), Some(local)) = (self.slot(peer), local) else { return };
        let local = match local {
            IpAddr::V4(ip) if self.mapped => IpAddr::V6(ip.to_ipv6_mapped()),
            ip => ip,
        };
        self.slots[slot] = Some((peer, local));
    }

    /// Lets the routing table decide for `peer` until it is heard again.
    pub(crate) fn forget(&mut self, peer: SocketAddr) {
        if let Some(slot) = self.slot(peer) {
            self.slots[slot] = None;
        }
    }

    /// The source of datagrams to `peer`, if it is known.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        let (known, local) = self.slots[self.slot(peer)?]?;
        (known == peer).then_some(local)
    }
}
