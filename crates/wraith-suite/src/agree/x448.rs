//! X448 (RFC 7748 §5): our own constant-time code over the crate's field. A secret is any 56 bytes,
//! and so is a public key, as with [X25519](super::x25519()).

use zeroize::{Zeroize, Zeroizing};

use crate::goldilocks::Element;

/// Length of a secret, a public key and a shared secret in bytes.
pub const X448_BYTES: usize = 56;

/// (A − 2) / 4 of the curve v² = u³ + A u² + u.
const A24: u32 = 39_081;

/// Computes the public key of `secret`.
#[must_use]
pub fn x448_public(secret: &[u8; X448_BYTES]) -> [u8; X448_BYTES] {
    let mut base = [0; X448_BYTES];
    base[0] = 5;
    ladder(secret, &base)
}

/// Computes the shared secret. Returns `None` if `public` has small order, so that the result would
/// not depend on `secret` (the check for all zeros in RFC 7748 §6.2).
#[must_use]
pub fn x448(
    secret: &[u8; X448_BYTES],
    public: &[u8; X448_BYTES],
) -> Option<Zeroizing<[u8; X448_BYTES]>> {
    let shared = Zeroizing::new(ladder(secret, public));
    (!crate::equal(&*shared, &[0; X448_BYTES])).then_some(shared)
}

/// Computes the u coordinate of `secret`, clamped, times the point at `u`.
fn ladder(secret: &[u8; X448_BYTES], u: &[u8; X448_BYTES]) -> [u8; X448_BYTES] {
    let mut scalar = Zeroizing::new(*secret);
    scalar[0] &= 0xfc;
    scalar[55] |= 0x80;
    let x1 = Element::from_bytes(u);
    let [mut x2, mut z2, mut x3, mut z3] = [Element::ONE, Element::ZERO, x1, Element::ONE];
    let mut swapped = 0;
    for bit in (0..448).rev() {
        let now = u64::from(scalar[bit / 8] >> (bit % 8) & 1).wrapping_neg();
        Element::swap_where(swapped ^ now, &mut x2, &mut x3);
        Element::swap_where(swapped ^ now, &mut z2, &mut z3);
        swapped = now;
        let (sum2, difference2) = (x2.add(&z2), x2.sub(&z2));
        let (sum3, difference3) = (x3.add(&z3), x3.sub(&z3));
        let (aa, bb) = (sum2.square(), difference2.square());
        let (da, cb) = (difference3.mul(&sum2), sum3.mul(&difference2));
        let e = aa.sub(&bb);
        x3 = da.add(&cb).square();
        z3 = x1.mul(&da.sub(&cb).square());
        x2 = aa.mul(&bb);
        z2 = e.mul(&aa.add(&e.times(A24)));
    }
    Element::swap_where(swapped, &mut x2, &mut x3);
    Element::swap_where(swapped, &mut z2, &mut z3);
    let shared = x2.mul(&z2.inverse()).to_bytes();
    for element in [&mut x2, &mut z2, &mut x3, &mut z3] {
        element.zeroize();
    }
    shared
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    fn hex(text: &str) -> [u8; X448_BYTES] {
        HEXLOWER.decode(text.as_bytes()).unwrap().try_into().unwrap()
    }

    #[test]
    fn key_agreement_matches_rfc_7748_section_6_2() {
        let alice = hex(
            "9a8f4925d1519f5775cf46b04b5800d4ee9ee8bae8bc5565d498c28dd9c9baf574a9419744897391006382a6f127ab1d9ac2d8c0a598726b",
        );
        let bob = hex(
            "1c306a7ac2a0e2e0990b294470cba339e6453772b075811d8fad0d1d6927c120bb5ee8972b0d3e21374c9c921b09d1b0366f10b65173992d",
        );
        let alice_public = hex(
            "9b08f7cc31b7e3e67d22d5aea121074a273bd2b83de09c63faa73d2c22c5d9bbc836647241d953d40c5b12da88120d53177f80e532c41fa0",
        );
        let bob_public = hex(
            "3eb7a829b0cd20f5bcfc0b599b6feccf6da4627107bdb0d4f345b43027d8b972fc3e34fb4232a13ca706dcb57aec3dae07bdc1c67bf33609",
        );
        let shared = hex(
            "07fff4181ac6cc95ec1c16a94a0f74d12da232ce40a77552281d282bb60c0b56fd2464c335543936521c24403085d59a449a5037514a879d",
        );
        assert_eq!(x448_public(&alice), alice_public);
        assert_eq!(x448_public(&bob), bob_public);
        assert_eq!(*x448(&alice, &bob_public).unwrap(), shared);
        assert_eq!(*x448(&bob, &alice_public).unwrap(), shared);
    }

    #[test]
    fn a_thousand_rounds_match_rfc_7748_section_5_2() {
        let mut k = [0; X448_BYTES];
        k[0] = 5;
        let mut u = k;
        for round in 1..=1000 {
            let next = *x448(&k, &u).unwrap();
            u = k;
            k = next;
            if round == 1 {
                assert_eq!(
                    k,
                    hex(
                        "3f482c8a9f19b01e6c46ee9711d9dc14fd4bf67af30765c2ae2b846a4d23a8cd0db897086239492caf350b51f833868b9bc2b3bca9cf4113"
                    )
                );
            }
        }
        assert_eq!(
            k,
            hex(
                "aa3b4749d55b9daf1e5b00288826c467274ce3ebbdd5c17b975e09d4af6c67cf10d087202db88286e2b79fceea3ec353ef54faa26e219f38"
            )
        );
    }

    #[test]
    fn small_order_points_are_rejected() {
        let mut p = [0xff; X448_BYTES];
        p[28] = 0xfe;
        let [mut less, mut more] = [p; 2];
        less[0] = 0xfe;
        more[..28].fill(0);
        more[28..].fill(0xff);
        let mut one = [0; X448_BYTES];
        one[0] = 1;
        // 0, 1, p − 1, p and p + 1.
        for public in [[0; X448_BYTES], one, less, p, more] {
            assert!(x448(&[9; X448_BYTES], &public).is_none());
        }
    }
}
