//! The long-term static key of one side, used in any number of handshakes.

use rand_core::CryptoRng;
use wraith_crypto::{NodeId, SecretIdentity, redacted_debug};
use wraith_noise::primitives::KeyPair;
use zeroize::Zeroizing;

/// An X25519 key pair, with the NodeId of its identity if it belongs to one. The secret is wiped
/// when dropped.
#[derive(Clone)]
pub struct StaticKey {
    pub(crate) pair: KeyPair,
    pub(crate) node_id: Option<NodeId>,
}

impl StaticKey {
    /// Makes a plain Noise key, without an identity, from 32 random bytes.
    #[must_use]
    pub fn from_secret(secret: Zeroizing<[u8; 32]>) -> Self {
        Self { pair: KeyPair::of(secret), node_id: None }
    }

    /// Draws a new key without an identity.
    #[must_use]
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *secret);
        Self::from_secret(secret)
    }

    /// Returns the X25519 image of an identity. Handshakes with it also send and prove the NodeId
    /// ([`Handshake::peer`](crate::Handshake::peer)).
    #[must_use]
    pub fn of(identity: &SecretIdentity) -> Self {
        let pair = KeyPair::of(identity.noise_static());
        Self { pair, node_id: Some(identity.node_id()) }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> &[u8; 32] {
        self.pair.public()
    }

    /// Returns the identity of this key, if it has one.
    #[must_use]
    pub const fn node_id(&self) -> Option<NodeId> {
        self.node_id
    }
}

redacted_debug!(StaticKey, node_id);
