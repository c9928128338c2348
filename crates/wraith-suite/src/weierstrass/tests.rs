//! Compares the curves with AWS-LC, which supports them too.

use wraith_aws_lc::ec::{PrivateKey, PublicKey};

use super::*;
use crate::encoding::signature::to_der;

type Own = fn() -> &'static dyn Curve;

const CURVES: [(Own, crate::ec::Curve); 4] = [
    (p224, crate::ec::Curve::P224),
    (brainpool_p256r1, crate::ec::Curve::BrainpoolP256r1),
    (brainpool_p384r1, crate::ec::Curve::BrainpoolP384r1),
    (brainpool_p512r1, crate::ec::Curve::BrainpoolP512r1),
];

/// Returns the order minus a small number.
fn order_less(curve: &dyn Curve, less: u8) -> Vec<u8> {
    let text = match curve.bytes() {
        28 => "ffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3d",
        32 => "a9fb57dba1eea9bc3e660a909d838d718c397aa3b561a6f7901e0e82974856a7",
        48 => {
            "8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b31f166e6cac0425a7cf3ab6af6b7fc3103b883202e9046565"
        }
        _ => {
            "aadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca70330870553e5c414ca92619418661197fac10471db1d381085ddaddb58796829ca90069"
        }
    };
    let mut bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
    *bytes.last_mut().unwrap() -= less;
    bytes
}

#[test]
fn keys_and_secrets_are_those_of_aws_lc_also_at_the_edges() {
    for (own, theirs) in CURVES {
        let own = own();
        let peer = own.public_key(&vec![0x42; own.bytes()]).unwrap();
        let random = crate::tests::bytes(own.bytes() * 12);
        let small = (1..=40u8).map(|i| [vec![0; own.bytes() - 1], vec![i]].concat());
        let large = (1..=40u8).map(|i| order_less(own, i));
        let random = random.chunks(own.bytes()).map(|chunk| [&[0x7f], &chunk[1..]].concat());
        for scalar in small.chain(large).chain(random) {
            let point = own.public_key(&scalar).unwrap();
            assert_eq!(point, theirs.public_key(&scalar).unwrap(), "{scalar:x?}");
            let secret = own.agree(&scalar, &peer).unwrap();
            let theirs = PrivateKey::from_scalar(theirs, &scalar).unwrap();
            assert_eq!(secret, theirs.agree(&peer).unwrap(), "{scalar:x?}");
        }
    }
}

#[test]
fn each_verifies_what_the_other_signs() {
    for (own, theirs) in CURVES {
        let own = own();
        let (scalar, nonce) = (vec![0x42; own.bytes()], vec![0x17; own.bytes()]);
        let point = own.public_key(&scalar).unwrap();
        for digest in [&[0xab; 64][..own.bytes()], &[0xff; 64], &[0; 20], &[7; 28], &[0x42; 9]] {
            let signature = own.sign(&scalar, &nonce, digest).unwrap();
            assert!(own.verify(&point, digest, &signature));
            let verifier = PublicKey::from_point(theirs, &point).unwrap();
            assert!(verifier.verify_der(digest, &to_der(&signature)));
            let signer = PrivateKey::from_scalar(theirs, &scalar).unwrap();
            let signature = signer.sign(digest).unwrap();
            assert!(own.verify(&point, digest, &signature));
            let other = own.public_key(&nonce).unwrap();
            assert!(!own.verify(&other, digest, &signature));
            for at in 0..signature.len() {
                let mut changed = signature.clone();
                changed[at] ^= 1;
                assert!(!own.verify(&point, digest, &changed));
            }
        }
    }
}

#[test]
fn out_of_range_values_are_refused() {
    for (own, _) in CURVES {
        let own = own();
        let (good, zero) = (vec![0x42; own.bytes()], vec![0; own.bytes()]);
        let point = own.public_key(&good).unwrap();
        for bad in [&zero, &order_less(own, 0), &vec![0xff; own.bytes()], &good[1..].to_vec()] {
            assert!(own.public_key(bad).is_none());
            assert!(own.agree(bad, &point).is_none());
            assert!(own.sign(bad, &good, &[1]).is_none() && own.sign(&good, bad, &[1]).is_none());
            assert!(!own.verify(&point, &[1], &[&bad[..], &good].concat()));
            assert!(!own.verify(&point, &[1], &[&good[..], bad].concat()));
        }
        let mut off = point.clone();
        *off.last_mut().unwrap() ^= 1;
        let mut large = point.clone();
        large[1..=own.bytes()].fill(0xff);
        let infinity = [&[4], &zero[..], &zero].concat();
        for bad in [&off, &large, &infinity, &vec![], &vec![0], &point[1..].to_vec()] {
            assert!(own.agree(&good, bad).is_none());
        }
        assert!(own.agree(&good, &point).is_some());
    }
}

#[test]
fn wide_numbers_are_reduced() {
    for (own, _) in CURVES {
        let own = own();
        let one = [vec![0; own.bytes() - 1], vec![1]].concat();
        let zeros = vec![0; own.bytes()];
        // 2^(8 bytes) + (n − 1) is 2^(8 bytes) − 1 modulo n. That minus n is the complement of n.
        let reduced = own.reduce(&[&one[..], &order_less(own, 1)].concat()).unwrap();
        let complement: Vec<u8> = order_less(own, 0).iter().map(|byte| !byte).collect();
        assert_eq!(reduced[..], complement);
        let reduced = own.reduce(&[&zeros[..], &order_less(own, 0)].concat()).unwrap();
        assert_eq!(reduced[..], zeros);
        assert!(own.reduce(&zeros).is_none());
    }
}

#[test]
fn p_224_computes_modulo_its_prime_also_with_factors_as_large_as_they_may_be() {
    let prime = number("ffffffffffffffffffffffffffffffff000000000000000000000001");
    let (fast, slow) = (P224::new(prime), Field::new(prime));
    let bytes = crate::tests::bytes(28 * 60);
    let edges = [[0; 4], [1, 0, 0, 0], [0, 1 << 63, 0, 0], field::sub(&prime, &[1, 0, 0, 0]).0]
        .into_iter()
        .chain([[0, 0, 0, 1 << 31], [u64::MAX, u64::MAX, u64::MAX, 0xffff_fffe], [1 << 56; 4]])
        .map(|mut limbs| {
            limbs[3] &= 0xffff_ffff;
            limbs
        });
    let numbers: Vec<Limbs<4>> = edges.chain(bytes.chunks_exact(28).map(limbs)).collect();
    for a in &numbers {
        assert_eq!(fast.leave(&fast.enter(a)), *a);
        assert_eq!(fast.leave(&fast.invert(&fast.enter(a))), slow.invert_usual(a));
        for b in &numbers {
            let (fa, fb) = (fast.enter(a), fast.enter(b));
            let (sa, sb) = (Arithmetic::enter(&slow, a), Arithmetic::enter(&slow, b));
            // −3a · 3b and (a − b)², with limbs of both signs.
            let minus = fast.sub(&fast.sub(&fast.sub(&Default::default(), &fa), &fa), &fa);
            let product = fast.mul(&minus, &fast.add(&fast.double(&fb), &fb));
            let minus = Arithmetic::negate(&slow, &Arithmetic::add(&slow, &slow.double(&sa), &sa));
            let three = Arithmetic::add(&slow, &slow.double(&sb), &sb);
            let expected = Arithmetic::mul(&slow, &minus, &three);
            assert_eq!(fast.leave(&product), Arithmetic::leave(&slow, &expected), "{a:x?} {b:x?}");
            let difference = fast.sub(&fa, &fb);
            let three = fast.add(&fast.double(&difference), &difference);
            assert_eq!(fast.leave(&fast.sqr(&three)), fast.leave(&fast.mul(&three, &three)));
            assert_eq!(fast.zero_mask(&difference) != 0, a == b);
        }
    }
}
