//! X25519 (RFC 7748), computed by AWS-LC.
//!
//! A secret is any 32 bytes, and is clamped on use. A public key is any 32 bytes, too. The top bit
//! is ignored; values that are not below p, points on the twist and points with a torsion component
//! are accepted like any other.

pub use wraith_aws_lc::x25519::{agree as x25519, public_key as x25519_public};

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::X25519_LOW_ORDER_POINTS;
    use curve25519_dalek::montgomery::MontgomeryPoint;
    use data_encoding::HEXLOWER;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

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
    fn small_order_points_are_rejected() {
        for point in X25519_LOW_ORDER_POINTS {
            let mut public = point.to_bytes();
            assert!(x25519(&[9; 32], &public).is_none());
            public[31] |= 0x80;
            assert!(x25519(&[9; 32], &public).is_none(), "the top bit is ignored");
        }
    }

    #[test]
    fn a_second_implementation_agrees() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for round in 0..500 {
            let [mut secret, mut public] = [[0; 32]; 2];
            rng.fill_bytes(&mut secret);
            rng.fill_bytes(&mut public);
            if round % 5 == 0 {
                // Values around p − 19 and above, with and without the top bit.
                public[1..31].fill(0xff);
                public[0] |= 0xda;
                public[31] |= 0x7f;
            }
            let expected = MontgomeryPoint::mul_base_clamped(secret);
            assert_eq!(x25519_public(&secret), expected.to_bytes());
            let expected = MontgomeryPoint(public).mul_clamped(secret);
            assert_eq!(*x25519(&secret, &public).unwrap(), expected.to_bytes());
        }
    }
}
