//! Long-term identities (SPEC §1): one Ed25519 key, used directly for signatures, and through its
//! X25519 image for the Noise handshake.
//!
//! A [`NodeId`] from an untrusted source is just 32 bytes until [`NodeId::noise_public`] or
//! [`NodeId::verify`] accepts it. Both accept only the canonical encoding of a point in the
//! prime-order subgroup, except the neutral element. So the owner of a key cannot create further
//! NodeIds for it with a torsion point or another encoding. (One exception remains: a point and its
//! negative have the same X25519 image, and the secret of one gives the secret of the other.)

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD_NOCASE;
use thiserror::Error;
use wraith_aws_lc::ed25519;
use wraith_aws_lc::hash::Digest;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::Unauthentic;
use crate::subgroup::u_of_prime_order;

/// Length of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 64;

/// Error for a NodeId that no identity can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidNodeId {
    /// The text is not 52 characters of base32.
    #[error("a node id is 52 characters, a to z and 2 to 7")]
    Text,
    /// The bytes are not the canonical encoding of a point in the prime-order subgroup.
    #[error("this NodeId is invalid; check it for typing errors")]
    Point,
}

/// Public key of an identity. Its text form is 52 characters of lower-case base32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 32]);

impl NodeId {
    /// Returns the 32 bytes, an Ed25519 public key.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the Noise static public key of this identity: the birational (Montgomery) image of
    /// the Ed25519 point.
    ///
    /// # Errors
    /// [`InvalidNodeId::Point`] if no identity can have this NodeId.
    pub fn noise_public(&self) -> Result<[u8; 32], InvalidNodeId> {
        u_of_prime_order(&self.0).ok_or(InvalidNodeId::Point)
    }

    /// Verifies this identity's signature over `message` (RFC 8032, without the cofactor). R has to
    /// be canonical and not the neutral point, and s below the order.
    ///
    /// # Errors
    /// [`Unauthentic`] if the signature belongs to another key or message, or is malleable, or if
    /// the NodeId is invalid.
    pub fn verify(
        &self,
        message: &[u8],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> Result<(), Unauthentic> {
        self.noise_public().map_err(|_| Unauthentic)?;
        // The key has prime order, so R has it too, unless it is the neutral point.
        let is_neutral = signature[0] == 1 && signature[1..32] == [0; 31];
        let is_good = !is_neutral && ed25519::verify(&self.0, message, signature);
        is_good.then_some(()).ok_or(Unauthentic)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD_NOCASE.encode(&self.0).to_ascii_lowercase())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

impl FromStr for NodeId {
    type Err = InvalidNodeId;

    /// Parses the text form, in either case, and checks that the NodeId is valid.
    fn from_str(text: &str) -> Result<Self, InvalidNodeId> {
        let bytes = BASE32_NOPAD_NOCASE.decode(text.as_bytes()).map_err(|_| InvalidNodeId::Text)?;
        let id = Self(bytes.try_into().map_err(|_| InvalidNodeId::Text)?);
        id.noise_public()?;
        Ok(id)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for NodeId {
    /// Writes the text form.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for NodeId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An identity with its secret key: the seed, followed by the public key. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct SecretIdentity(Zeroizing<[u8; 64]>);

impl SecretIdentity {
    /// Generates an identity with the [system's randomness](crate::rand::fill). Store its
    /// [seed](Self::seed) to use it again.
    #[must_use]
    pub fn generate() -> Self {
        Self(ed25519::key_pair(&crate::rand::secret()))
    }

    /// Derives the identity from a seed: 32 uniformly random bytes, kept secret.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ed25519::key_pair(&Zeroizing::new(seed)))
    }

    /// Returns the seed. Anyone with the seed can act as this identity.
    #[must_use]
    pub fn seed(&self) -> &[u8; 32] {
        self.0.first_chunk().expect("it is the first half")
    }

    /// Returns the public key.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        NodeId(*self.0.last_chunk().expect("it is the second half"))
    }

    /// Signs `message` (RFC 8032).
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        ed25519::sign(&self.0, message)
    }

    /// Returns the Noise static secret: the clamped first half of SHA-512(seed).
    #[must_use]
    pub fn noise_static(&self) -> Zeroizing<[u8; 32]> {
        let (hash, _) = Digest::Sha512.of(self.seed());
        let hash = Zeroizing::new(hash);
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(&hash[..32]);
        // The clamping of RFC 7748 §5.
        secret[0] &= 0b1111_1000;
        secret[31] = secret[31] & 0b0111_1111 | 0b0100_0000;
        secret
    }
}

impl fmt::Debug for SecretIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretIdentity({})", self.node_id())
    }
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::edwards::CompressedEdwardsY;
    use data_encoding::HEXLOWER;
    use proptest::prelude::*;

    use super::*;
    use crate::agree;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        HEXLOWER.decode(text.as_bytes()).unwrap().try_into().unwrap()
    }

    #[test]
    fn generated_identities_differ_and_come_back_from_their_seeds() {
        let [one, two] = [(); 2].map(|()| SecretIdentity::generate());
        assert_ne!(one.node_id(), two.node_id());
        assert!(one.node_id().noise_public().is_ok());
        let again = SecretIdentity::from_seed(*one.seed());
        assert_eq!(again.node_id(), one.node_id());
        assert_eq!(again.sign(b"message"), one.sign(b"message"));
    }

    #[test]
    fn signatures_match_rfc_8032_section_7_1_tests_1_to_3() {
        let tests = [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155\
                 5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                 085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
                 18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
            ),
        ];
        for (seed, public, message, signature) in tests {
            let identity = SecretIdentity::from_seed(hex(seed));
            let message = HEXLOWER.decode(message.as_bytes()).unwrap();
            assert_eq!(identity.node_id(), NodeId(hex(public)));
            assert_eq!(identity.sign(&message), hex(signature));
            assert_eq!(identity.node_id().verify(&message, &hex(signature)), Ok(()));
        }
    }

    #[test]
    fn the_noise_keys_of_an_identity_belong_together() {
        for byte in 0..20 {
            let identity = SecretIdentity::from_seed([byte; 32]);
            let public = agree::x25519_public(&identity.noise_static());
            assert_eq!(identity.node_id().noise_public(), Ok(public));
        }
    }

    #[test]
    fn small_order_points_are_invalid_node_ids() {
        for point in EIGHT_TORSION {
            let id = NodeId(point.compress().0);
            assert_eq!(id.noise_public(), Err(InvalidNodeId::Point));
            assert_eq!(id.to_string().parse::<NodeId>(), Err(InvalidNodeId::Point));
        }
    }

    #[test]
    fn an_identity_plus_a_torsion_point_is_an_invalid_node_id() {
        let identity = SecretIdentity::from_seed([1; 32]);
        let point = CompressedEdwardsY(identity.node_id().0).decompress().unwrap();
        for torsion in &EIGHT_TORSION[1..] {
            let id = NodeId((point + torsion).compress().0);
            assert_eq!(id.noise_public(), Err(InvalidNodeId::Point));
            assert_eq!(id.verify(b"m", &identity.sign(b"m")), Err(Unauthentic));
        }
    }

    #[test]
    fn non_canonical_encodings_are_invalid_node_ids() {
        // y = p + k for every k that still fits into 255 bits, with either sign. Some are valid
        // points.
        for k in 0..19 {
            for sign in [0, 0x80] {
                let mut bytes = [0xff; 32];
                bytes[0] = 0xed + k;
                bytes[31] = 0x7f | sign;
                assert_eq!(NodeId(bytes).noise_public(), Err(InvalidNodeId::Point));
            }
        }
    }

    #[test]
    fn a_signature_fits_one_message_and_one_identity() {
        let (a, b) = (SecretIdentity::from_seed([1; 32]), SecretIdentity::from_seed([2; 32]));
        let signature = a.sign(b"message");
        assert_eq!(a.node_id().verify(b"message", &signature), Ok(()));
        assert_eq!(a.node_id().verify(b"massage", &signature), Err(Unauthentic));
        assert_eq!(b.node_id().verify(b"message", &signature), Err(Unauthentic));
        for bit in 0..512 {
            let mut changed = signature;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(a.node_id().verify(b"message", &changed), Err(Unauthentic));
        }
    }

    #[test]
    fn the_text_form_is_52_lower_case_characters_and_reads_back_in_either_case() {
        let id = SecretIdentity::from_seed([3; 32]).node_id();
        let text = id.to_string();
        assert_eq!(text.len(), 52);
        assert_eq!(text, text.to_lowercase());
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let identity = SecretIdentity::from_seed([0xab; 32]);
        let text = format!("{identity:?}");
        assert_eq!(text, format!("SecretIdentity({})", identity.node_id()));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_parses_prints_the_same(text in "[a-z2-7]{50,54}|.{0,60}") {
            if let Ok(id) = text.parse::<NodeId>() {
                prop_assert_eq!(id.to_string(), text.to_lowercase());
            }
        }

        #[test]
        fn no_bytes_panic(bytes: [u8; 32], signature in prop::array::uniform32(any::<[u8; 2]>())) {
            let _ = NodeId(bytes).noise_public();
            prop_assert!(NodeId(bytes).verify(b"m", signature.as_flattened().try_into().unwrap()).is_err());
        }
    }
}
