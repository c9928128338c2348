//! The key exchange of SM2 (GB/T 32918.3). Each side has a static key pair, whose public half the
//! peer has, and generates an ephemeral key pair.
//!
//! The initiator and the responder [start](Exchange::start) and send each other
//! [`Exchange::ephemeral_key`]. Each side then [finishes](Exchange::finish) and has the same key,
//! unless an attacker interfered. The tags of [`Confirmation`], which the standard makes optional,
//! show whether the keys are the same. Without the tags, the first use of the key shows it.

use thiserror::Error;
use zeroize::Zeroizing;

use super::{KeyStream, POINT_BYTES, Public, SCALAR_BYTES, Secret};
use crate::hash::Sm3;
use wraith_kernels::sm2::{self as kernel, Scalar};

/// The role of a side in the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the first message.
    Initiator,
    /// Answers the first message.
    Responder,
}

/// The reason why an exchange has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The bytes are not a private key: 32 bytes, a number from 1 to n − 2.
    #[error("not a private key of SM2")]
    InvalidPrivateKey,
    /// A key of the peer is not a point of the curve, or agrees on the point at infinity.
    #[error("not a public key of SM2")]
    InvalidPublicKey,
    /// The identity is longer than [`IDENTITY_MAX`](super::IDENTITY_MAX) bytes.
    #[error("the identity is longer than 8191 bytes")]
    Identity,
    /// The requested key is longer than 2^30 bytes.
    #[error("a key of {found} bytes is too long: at most {}", KeyStream::MAX)]
    TooLong {
        /// The requested length in bytes.
        found: usize,
    },
}

/// An SM2 key pair for exchanges.
#[derive(Clone, Debug)]
pub struct PrivateKey(Secret);

impl PrivateKey {
    /// Generates a key pair.
    #[must_use]
    pub fn generate() -> Self {
        Self(Secret::generate())
    }

    /// Parses 32 big-endian bytes.
    ///
    /// # Errors
    /// [`ExchangeError::InvalidPrivateKey`].
    pub fn from_raw(raw: &[u8]) -> Result<Self, ExchangeError> {
        Secret::from_bytes(raw).map(Self).ok_or(ExchangeError::InvalidPrivateKey)
    }

    /// Parses a PKCS #8 in DER.
    ///
    /// # Errors
    /// [`ExchangeError::InvalidPrivateKey`].
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, ExchangeError> {
        Secret::from_pkcs8(der).map(Self).ok_or(ExchangeError::InvalidPrivateKey)
    }

    /// Returns the 32 big-endian bytes of the private key.
    #[must_use]
    pub fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.0.to_bytes()
    }

    /// Returns the public half, an uncompressed point.
    #[must_use]
    pub fn public_key(&self) -> [u8; POINT_BYTES] {
        self.0.public.to_bytes()
    }
}

/// One side of a started exchange.
pub struct Exchange {
    role: Role,
    static_key: Secret,
    owner: [u8; 32],
    ephemeral_key: Secret,
}

wraith_crypto::redacted_debug!(Exchange, role);

impl Exchange {
    /// Generates the ephemeral key pair. `identity` is the name of this side, on which both sides
    /// agree.
    ///
    /// # Errors
    /// [`ExchangeError::Identity`].
    pub fn start(role: Role, key: &PrivateKey, identity: &[u8]) -> Result<Self, ExchangeError> {
        Self::start_with(role, key, identity, Secret::generate())
    }

    fn start_with(
        role: Role,
        key: &PrivateKey,
        identity: &[u8],
        ephemeral_key: Secret,
    ) -> Result<Self, ExchangeError> {
        let owner = key.0.public.owner_hash(identity).ok_or(ExchangeError::Identity)?;
        Ok(Self { role, static_key: key.0.clone(), owner, ephemeral_key })
    }

    /// Returns the ephemeral public key, to be sent to the peer.
    #[must_use]
    pub fn ephemeral_key(&self) -> [u8; POINT_BYTES] {
        self.ephemeral_key.public.to_bytes()
    }

    /// Fills `key` with the shared key.
    ///
    /// `peer` is the peer's public key, `peer_identity` its name, and `peer_ephemeral` the
    /// ephemeral key that it sent.
    ///
    /// # Errors
    /// [`ExchangeError::InvalidPublicKey`], [`ExchangeError::Identity`], [`ExchangeError::TooLong`].
    pub fn finish(
        self,
        peer: &[u8],
        peer_identity: &[u8],
        peer_ephemeral: &[u8],
        key: &mut [u8],
    ) -> Result<Confirmation, ExchangeError> {
        if key.len() > KeyStream::MAX {
            return Err(ExchangeError::TooLong { found: key.len() });
        }
        let point = |bytes| Public::from_bytes(bytes).ok_or(ExchangeError::InvalidPublicKey);
        let (peer, peer_ephemeral) = (point(peer)?, point(peer_ephemeral)?);
        let peer_owner = peer.owner_hash(peer_identity).ok_or(ExchangeError::Identity)?;

        let shortened = Zeroizing::new(shorten(&self.ephemeral_key.public));
        let product = Zeroizing::new(shortened.mul(&self.ephemeral_key.scalar));
        let t = Zeroizing::new(self.static_key.scalar.add(&product));
        // t is zero for one ephemeral key in 2^256.
        let shared = (!t.is_zero())
            .then(|| {
                let factor = shorten(&peer_ephemeral);
                kernel::multiply_sum(&t, &peer.point, &factor, &peer_ephemeral.point)
            })
            .flatten();
        let shared = Zeroizing::new(shared.ok_or(ExchangeError::InvalidPublicKey)?);
        let (x, y) = shared.to_coordinates();
        let (x, y) = (Zeroizing::new(x), Zeroizing::new(y));

        let mine = (self.owner, self.ephemeral_key());
        let theirs = (peer_owner, peer_ephemeral.to_bytes());
        let (initiator, responder) = match self.role {
            Role::Initiator => (mine, theirs),
            Role::Responder => (theirs, mine),
        };
        key.fill(0);
        KeyStream::new(&[&x[..], &y[..], &initiator.0, &responder.0]).apply(key);

        let mut hash = Sm3::new();
        hash.update(&x[..]);
        for part in [&initiator.0[..], &responder.0, &initiator.1[1..], &responder.1[1..]] {
            hash.update(part);
        }
        let inner = hash.finish();
        let tag = |number: u8| {
            let mut hash = Sm3::new();
            hash.update(&[number]);
            hash.update(&y[..]);
            hash.update(&inner);
            hash.finish()
        };
        let (sends, expects) = match self.role {
            Role::Initiator => (tag(3), tag(2)),
            Role::Responder => (tag(2), tag(3)),
        };
        Ok(Confirmation { sends, expects })
    }
}

/// Returns x̄: the lower 127 bits of the point's x, with the next bit set.
fn shorten(public: &Public) -> Scalar {
    let (x, _) = public.point.to_coordinates();
    let mut short = [0; SCALAR_BYTES];
    short[SCALAR_BYTES / 2..].copy_from_slice(&x[SCALAR_BYTES / 2..]);
    short[SCALAR_BYTES / 2] |= 0x80;
    Scalar::from_bytes(&short).expect("128 bits are below n")
}

/// The tags by which each side proves to the peer that it has the key.
#[derive(Clone)]
pub struct Confirmation {
    sends: [u8; 32],
    expects: [u8; 32],
}

wraith_crypto::redacted_debug!(Confirmation);

impl Confirmation {
    /// Returns the tag that this side sends: S_A for the initiator, S_B for the responder.
    #[must_use]
    pub const fn tag(&self) -> &[u8; 32] {
        &self.sends
    }

    /// Returns whether the peer's tag is correct.
    #[must_use]
    pub fn verify(&self, tag: &[u8]) -> bool {
        crate::equal(&self.expects, tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sm2::IDENTITY_DEFAULT;

    fn hex(text: &str) -> Vec<u8> {
        data_encoding::HEXUPPER_PERMISSIVE.decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_exchange_of_the_standard_comes_out() {
        // GB/T 32918.5 Annex B.2.
        let keys = [
            "81EB26E941BB5AF16DF116495F90695272AE2CD63D6C4AE1678418BE48230029",
            "785129917D45A9EA5437A59356B82338EAADDA6CEB199088F14AE10DEFA229B5",
        ];
        let ephemeral = [
            "D4DE15474DB74D06491C440D305E012400990F3E390C7E87153C12DB2EA60BB3",
            "7E07124814B309489125EAED101113164EBF0F3458C5BD88335C1F9D596243D6",
        ];
        let [a, b] = keys.map(|key| PrivateKey::from_raw(&hex(key)).unwrap());
        let [ea, eb] = ephemeral.map(|key| Secret::from_bytes(&hex(key)).unwrap());
        let id = IDENTITY_DEFAULT;
        let initiator = Exchange::start_with(Role::Initiator, &a, id, ea).unwrap();
        let responder = Exchange::start_with(Role::Responder, &b, id, eb).unwrap();
        let (ra, rb) = (initiator.ephemeral_key(), responder.ephemeral_key());
        let (mut ka, mut kb) = ([0xff; 16], [0; 16]);
        let ca = initiator.finish(&b.public_key(), id, &rb, &mut ka).unwrap();
        let cb = responder.finish(&a.public_key(), id, &ra, &mut kb).unwrap();
        assert_eq!(ka[..], hex("6C89347354DE2484C60B4AB1FDE4C6E5"));
        assert_eq!(ka, kb);
        let (s1, s2) = (
            "D3A0FE15DEE185CEAE907A6B595CC32A266ED7B3367E9983A896DC32FA20F8EB",
            "18C7894B3816DF16CF07B05C5EC0BEF5D655D58F779CC1B400A4F3884644DB88",
        );
        assert_eq!(cb.tag()[..], hex(s1));
        assert_eq!(ca.tag()[..], hex(s2));
        assert!(ca.verify(cb.tag()) && cb.verify(ca.tag()) && !ca.verify(ca.tag()));
    }

    #[test]
    fn a_peer_with_whom_the_point_is_at_infinity_is_refused() {
        // P = −x̄ · R: the peer's two keys cancel.
        let me = PrivateKey::generate();
        let ephemeral = Secret::generate();
        let minus = Scalar::ONE.sub(&Scalar::ONE).sub(&shorten(&ephemeral.public));
        let peer = Secret::from_scalar(minus.mul(&ephemeral.scalar)).unwrap();
        let exchange = Exchange::start(Role::Initiator, &me, b"me").unwrap();
        let (peer, ephemeral) = (peer.public.to_bytes(), ephemeral.public.to_bytes());
        let refused = exchange.finish(&peer, b"peer", &ephemeral, &mut [0; 16]);
        assert_eq!(refused.err(), Some(ExchangeError::InvalidPublicKey));
    }
}
