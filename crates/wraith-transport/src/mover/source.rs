//! The local address to which each peer sends, so that answers leave from that address.
//!
//! With a socket bound to a wildcard, the routing table would choose the source. A peer that used
//! another address of this machine (a second interface, a temporary IPv6 address) would not
//! recognise the answer. The table is small, of fixed size, and keyed with a secret. Unknown
//! senders can evict an entry only by chance. Without an entry, the routing table decides.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// Remembered peers: far more than one endpoint talks to at once.
const SLOTS: usize = 1024;

/// Maps a peer to the local address, for a wildcard socket; empty for any other.
#[derive(Debug)]
pub(crate) struct SourceAddresses {
    slots: Box<[Option<(SocketAddr, IpAddr)>]>,
    hasher: RandomState,
    /// Whether IPv4 sources must be mapped, like destinations: on a dual-stack socket.
    mapped: bool,
}

impl SourceAddresses {
    /// Creates the table of a socket bound to `local`.
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

    /// Records that a batch from `peer` arrived at `local`.
    pub(crate) fn record(&mut self, peer: SocketAddr, local: Option<IpAddr>) {
        let (Some(slot), Some(local)) = (self.slot(peer), local) else { return };
        let local = match local {
            IpAddr::V4(ip) if self.mapped => IpAddr::V6(ip.to_ipv6_mapped()),
            ip => ip,
        };
        self.slots[slot] = Some((peer, local));
    }

    /// Leaves the choice to the routing table until `peer` sends again.
    pub(crate) fn remove(&mut self, peer: SocketAddr) {
        if let Some(slot) = self.slot(peer) {
            self.slots[slot] = None;
        }
    }

    /// Returns the source address for datagrams to `peer`, if it is known.
    pub(crate) fn of(&self, peer: SocketAddr) -> Option<IpAddr> {
        let (known, local) = self.slots[self.slot(peer)?]?;
        (known == peer).then_some(local)
    }
}
