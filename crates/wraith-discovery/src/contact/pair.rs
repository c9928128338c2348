//! A pair of identities: their shared secret and the keys derived from it.

use std::fmt;

use wraith_crypto::{NodeId, SecretIdentity, agree, identity::InvalidNodeId, kdf};
use zeroize::Zeroizing;

use crate::place::ContactTag;

/// This side's identity, a peer, and the secret that both share.
#[derive(Clone)]
pub struct ContactPair {
    own: NodeId,
    peer: NodeId,
    secret: Zeroizing<[u8; 32]>,
}

impl ContactPair {
    /// # Errors
    /// The NodeId is invalid.
    pub fn new(own: &SecretIdentity, peer: NodeId) -> Result<Self, InvalidNodeId> {
        Self::derived("wraith/1 pair", own, peer, &[])
    }

    /// Derives the pair of one transfer, which third parties do not recognise. It is distinct from
    /// the contact pair of the same peers.
    ///
    /// # Errors
    /// The NodeId is invalid.
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

    /// Returns the peer's NodeId.
    pub const fn peer(&self) -> NodeId {
        self.peer
    }

    /// Returns this side's NodeId.
    pub const fn own(&self) -> NodeId {
        self.own
    }

    /// Returns the shared secret, from which other secrets are derived.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Derives the hole-punching secret of caller and listener after the call with this salt.
    pub(crate) fn punch_secret(&self, call: &[u8]) -> Zeroizing<[u8; 32]> {
        let parts = [&self.secret[..], call].concat();
        Zeroizing::new(kdf::derive("wraith/1 punch after call", &Zeroizing::new(parts)))
    }

    /// Derives the key of packets sent by `from`.
    pub(crate) fn packet_key(&self, from: NodeId, salt: &[u8]) -> Zeroizing<[u8; 32]> {
        let parts = [&self.secret[..], from.as_bytes(), salt];
        Zeroizing::new(kdf::derive_parts("wraith/1 pair packet", &parts))
    }

    /// Derives the topic at which `listener` waits for its peer in this hour.
    pub(crate) fn tag(&self, listener: NodeId, hour: u64) -> ContactTag {
        let parts = [&self.secret[..], listener.as_bytes(), &hour.to_be_bytes()];
        kdf::derive_parts("wraith/1 pair number", &parts)
    }
}

impl fmt::Debug for ContactPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContactPair(secret with {})", self.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(n: u8) -> SecretIdentity {
        SecretIdentity::from_seed([n; 32])
    }

    #[test]
    fn only_the_two_contacts_compute_the_same_secrets() {
        let [a, b, c] = [1, 2, 3].map(identity);
        let ab = ContactPair::new(&a, b.node_id()).unwrap();
        let ba = ContactPair::new(&b, a.node_id()).unwrap();
        let cb = ContactPair::new(&c, b.node_id()).unwrap();
        assert_eq!(ab.tag(b.node_id(), 7), ba.tag(b.node_id(), 7));
        assert_eq!(ab.packet_key(a.node_id(), &[1]), ba.packet_key(a.node_id(), &[1]));
        assert_ne!(ab.packet_key(a.node_id(), &[1]), ab.packet_key(b.node_id(), &[1]));
        for other in [ab.tag(a.node_id(), 7), ab.tag(b.node_id(), 8), cb.tag(b.node_id(), 7)] {
            assert_ne!(ab.tag(b.node_id(), 7), other);
        }
    }

    #[test]
    fn a_transfer_is_a_pair_of_its_own() {
        let [a, b] = [1, 2].map(identity);
        let tag = |pair: ContactPair| pair.tag(b.node_id(), 7);
        let of =
            |own, peer, capability| tag(ContactPair::of_transfer(own, peer, capability).unwrap());
        let here = of(&a, b.node_id(), &[1; 16]);
        assert_eq!(here, of(&b, a.node_id(), &[1; 16]));
        assert_ne!(here, of(&a, b.node_id(), &[2; 16]));
        assert_ne!(here, tag(ContactPair::new(&a, b.node_id()).unwrap()));
    }

    #[test]
    fn an_invalid_identity_makes_no_pair() {
        assert!(ContactPair::new(&identity(1), NodeId([0; 32])).is_err());
        assert!(ContactPair::new(&identity(1), NodeId([0xff; 32])).is_err());
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let pair = ContactPair::new(&identity(1), identity(2).node_id()).unwrap();
        assert_eq!(format!("{pair:?}"), format!("ContactPair(secret with {})", pair.peer()));
    }
}
