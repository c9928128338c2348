//! Meeting somebody whose NodeId is known, without a code (SPEC §12): the **caller** looks for the **listener**.
//!
//! Two identities share a secret that nobody else can compute, the X25519 of their static keys. Everything that is said on
//! the way is sealed under it, and the place at a rendezvous server is named by it and the hour. So a watcher sees no names
//! and cannot tell one pair from another, and a listener answers its contacts and nobody else.
//!
//! What is found here is only where to dial. That the right one answers is shown by the handshake.

mod call;
mod lan;
mod listen;
mod packet;
mod rendezvous;
mod replay;

use std::fmt;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use wraith_crypto::{NodeId, SecretIdentity, agree, identity::InvalidNodeId, kdf};
use zeroize::Zeroizing;

pub use call::{Call, Found, call};
pub use listen::{Happened, Listening, listen};
pub use packet::{Said, open, seal};

/// Contacts that a listener knows at most. Each costs a try to open what comes over the local network.
pub const MAX_CONTACTS: usize = 256;

/// The first port that [`usual_port`] gives: above those of well-known services.
const FIRST_PORT: u16 = 10_240;
/// How many there are: they end below those that systems hand out by themselves (32768 on Linux).
const PORTS: u64 = 22_528;
/// Numbers at a rendezvous server from here on belong to pairs; codes have the others.
pub(crate) const FIRST_NUMBER: u32 = 1 << 31;
/// A number is good for so long, so that nobody learns from it who comes again.
const HOUR_SECONDS: u64 = 3600;
/// Clocks of both sides may differ by this much, as in the handshake (SPEC §3.4).
const CLOCK_SKEW_SECONDS: u64 = 90;

/// The UDP port where this identity listens if it can: whoever knows the NodeId knows it, and nobody else finds it in a list.
pub fn usual_port(node_id: NodeId) -> u16 {
    let hash = kdf::derive("wraith/1 usual port", node_id.as_bytes());
    let number = u64::from_be_bytes(*hash.first_chunk().expect("a key has 32 bytes"));
    FIRST_PORT + (number % PORTS) as u16
}

/// Us and somebody we know, and the secret that both can compute.
#[derive(Clone)]
pub struct Pair {
    own: NodeId,
    peer: NodeId,
    secret: Zeroizing<[u8; 32]>,
}

impl Pair {
    /// # Errors
    /// Nobody can have this NodeId.
    pub fn new(own: &SecretIdentity, peer: NodeId) -> Result<Self, InvalidNodeId> {
        Self::derived("wraith/1 pair", own, peer, &[])
    }

    /// The two sides of one transfer, which nobody else knows of: also who is a contact elsewhere is met apart from it.
    ///
    /// # Errors
    /// Nobody can have this NodeId.
    pub fn of_transfer(
        own: &SecretIdentity,
        peer: NodeId,
        capability: &[u8; 16],
    ) -> Result<Self, InvalidNodeId> {
        Self::derived("wraith/1 transfer pair", own, peer, capability)
    }

    fn derived(
        context: &'static str,
        own: &SecretIdentity,
        peer: NodeId,
        more: &[u8],
    ) -> Result<Self, InvalidNodeId> {
        let shared = agree::x25519(&own.noise_static(), &peer.noise_public()?);
        let shared = shared.ok_or(InvalidNodeId::Point)?;
        let own = own.node_id();
        let (low, high) = if own < peer { (own, peer) } else { (peer, own) };
        let parts = [&shared[..], low.as_bytes(), high.as_bytes(), more];
        Ok(Self { own, peer, secret: Zeroizing::new(kdf::derive_parts(context, &parts)) })
    }

    /// The other one.
    pub const fn peer(&self) -> NodeId {
        self.peer
    }

    /// We.
    pub const fn own(&self) -> NodeId {
        self.own
    }

    /// The key of packets that `from` writes.
    pub(crate) fn packet_key(&self, from: NodeId, salt: &[u8]) -> Zeroizing<[u8; 32]> {
        let parts = [&self.secret[..], from.as_bytes(), salt];
        Zeroizing::new(kdf::derive_parts("wraith/1 pair packet", &parts))
    }

    /// Where `listener` waits for the other one in this hour.
    pub(crate) fn number(&self, listener: NodeId, hour: u64) -> u32 {
        let parts = [&self.secret[..], listener.as_bytes(), &hour.to_be_bytes()];
        let hash = kdf::derive_parts("wraith/1 pair number", &parts);
        FIRST_NUMBER | u32::from_be_bytes(*hash.first_chunk().expect("a key has 32 bytes"))
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pair(secret with {})", self.peer)
    }
}

/// Where a listener can be dialled, the most useful first.
pub type Addresses = Vec<SocketAddr>;

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The hour that a listener waits in.
fn hour() -> u64 {
    unix_seconds() / HOUR_SECONDS
}

/// The hours that a listener may wait in, by its clock: two around the full hour.
fn hours_to_try(unix_seconds: u64) -> Vec<u64> {
    let mut hours: Vec<u64> = [0, CLOCK_SKEW_SECONDS, 2 * CLOCK_SKEW_SECONDS]
        .map(|ahead| (unix_seconds + ahead).saturating_sub(CLOCK_SKEW_SECONDS) / HOUR_SECONDS)
        .to_vec();
    hours.dedup();
    hours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(n: u8) -> SecretIdentity {
        SecretIdentity::from_seed([n; 32])
    }

    #[test]
    fn both_sides_and_nobody_else_compute_the_same() {
        let [a, b, c] = [1, 2, 3].map(identity);
        let ab = Pair::new(&a, b.node_id()).unwrap();
        let ba = Pair::new(&b, a.node_id()).unwrap();
        let cb = Pair::new(&c, b.node_id()).unwrap();
        assert_eq!(ab.number(b.node_id(), 7), ba.number(b.node_id(), 7));
        assert_eq!(ab.packet_key(a.node_id(), &[1]), ba.packet_key(a.node_id(), &[1]));
        assert_ne!(ab.packet_key(a.node_id(), &[1]), ab.packet_key(b.node_id(), &[1]));
        for other in
            [ab.number(a.node_id(), 7), ab.number(b.node_id(), 8), cb.number(b.node_id(), 7)]
        {
            assert_ne!(ab.number(b.node_id(), 7), other);
        }
        assert!(ab.number(b.node_id(), 7) >= FIRST_NUMBER);
    }

    #[test]
    fn a_transfer_is_a_pair_of_its_own() {
        let [a, b] = [1, 2].map(identity);
        let number = |pair: Pair| pair.number(b.node_id(), 7);
        let of = |own, peer, capability| number(Pair::of_transfer(own, peer, capability).unwrap());
        let here = of(&a, b.node_id(), &[1; 16]);
        assert_eq!(here, of(&b, a.node_id(), &[1; 16]));
        assert_ne!(here, of(&a, b.node_id(), &[2; 16]));
        assert_ne!(here, number(Pair::new(&a, b.node_id()).unwrap()));
    }

    #[test]
    fn nobody_is_no_pair() {
        assert!(Pair::new(&identity(1), NodeId([0; 32])).is_err());
        assert!(Pair::new(&identity(1), NodeId([0xff; 32])).is_err());
    }

    #[test]
    fn usual_ports_lie_where_nobody_else_listens_and_differ() {
        let ports: Vec<u16> = (0..100).map(|n| usual_port(identity(n).node_id())).collect();
        assert!(ports.iter().all(|port| (10_240..32_768).contains(port)));
        let distinct: std::collections::HashSet<_> = ports.iter().collect();
        assert!(distinct.len() > 95, "{}", distinct.len());
    }

    #[test]
    fn around_the_full_hour_two_hours_are_tried() {
        assert_eq!(hours_to_try(3600 + 1800), [1]);
        assert_eq!(hours_to_try(3600 + 10), [0, 1]);
        assert_eq!(hours_to_try(7200 - 10), [1, 2]);
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let pair = Pair::new(&identity(1), identity(2).node_id()).unwrap();
        assert_eq!(format!("{pair:?}"), format!("Pair(secret with {})", pair.peer()));
    }
}
