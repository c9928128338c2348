//! X25519 (RFC 7748). Secrets are any 32 bytes; they are clamped where they are used.

use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroizing;

/// The public key of `secret`.
#[must_use]
pub fn x25519_public(secret: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
}

/// What both sides can compute. `None` if `public` has small order, that is, if the result would not depend on
/// `secret` (RFC 7748 §6.1's check for all zeros).
#[must_use]
pub fn x25519(secret: &[u8; 32], public: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let shared = Zeroizing::new(MontgomeryPoint(*public).mul_clamped(*secret).to_bytes());
    (!crate::equal(&*shared, &[0; 32])).then_some(shared)
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    fn hex(text: &str) -> [u8; 32] {
        HEXLOWER.decode(text.as_bytes()).unwrap().try_into().unwrap()
    }

    #[test]
    fn key_agreement_matches_rfc_7748_section_6_1() {
        let alice = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let bob = hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let alice_public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let bob_public = hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        let shared = hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        assert_eq!(x25519_public(&alice), alice_public);
        assert_eq!(x25519_public(&bob), bob_public);
        assert_eq!(*x25519(&alice, &bob_public).unwrap(), shared);
        assert_eq!(*x25519(&bob, &alice_public).unwrap(), shared);
    }

    #[test]
    fn points_of_small_order_agree_on_nothing() {
        for point in curve25519_dalek::constants::X25519_LOW_ORDER_POINTS {
            assert!(x25519(&[9; 32], &point.to_bytes()).is_none());
        }
    }
}
