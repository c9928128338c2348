//! Keys of every signature algorithm written down and read again, and what is not a key refused.

use wraith_crypto::encoding::{pem, pkcs8::PrivateKeyInfo, spki::SubjectPublicKeyInfo};
use wraith_crypto::sign::{Algorithm, SignError};

/// Every algorithm whose keys are made in no time.
fn algorithms() -> impl Iterator<Item = Algorithm> {
    let all = Algorithm::ALL.iter().copied();
    all.filter(|a| !a.name().starts_with("RSA") && !a.name().starts_with("SLH"))
}

#[test]
fn keys_come_back_from_every_spelling() {
    for algorithm in algorithms() {
        let key = algorithm.generate().unwrap();
        let public = key.verifying_key();
        let signature = key.sign(b"text").unwrap();
        public.verify(b"text", &signature).unwrap();
        assert_eq!(public.verify(b"texs", &signature), Err(SignError::Unauthentic));
        let pkcs8 = key.to_pkcs8();
        let text = pem::encode(PrivateKeyInfo::PEM_LABEL, &pkcs8);
        let pkcs8 = pem::decode(PrivateKeyInfo::PEM_LABEL, &text).unwrap();
        for again in [algorithm.signing_key(&key.to_raw()), algorithm.signing_key_pkcs8(&pkcs8)] {
            let again = again.unwrap();
            assert_eq!(again.to_pkcs8(), pkcs8, "{algorithm}");
            assert_eq!(again.verifying_key().to_spki(), public.to_spki(), "{algorithm}");
            public.verify(b"text", &again.sign(b"text").unwrap()).unwrap();
        }
        let spki = public.to_spki();
        for again in
            [algorithm.verifying_key(&public.to_raw()), algorithm.verifying_key_spki(&spki)]
        {
            let again = again.unwrap();
            assert_eq!((again.to_spki(), again.to_raw()), (spki.clone(), public.to_raw()));
            again.verify(b"text", &signature).unwrap();
        }
    }
}

#[test]
fn a_key_of_one_algorithm_is_none_of_another() {
    let keys: Vec<_> = algorithms().map(|a| a.generate().unwrap()).collect();
    for key in &keys {
        let (pkcs8, spki) = (key.to_pkcs8(), key.verifying_key().to_spki());
        for other in Algorithm::ALL.iter().filter(|&&other| other != key.algorithm()) {
            assert!(other.signing_key_pkcs8(&pkcs8).is_err(), "{} {other}", key.algorithm());
            assert!(other.verifying_key_spki(&spki).is_err(), "{} {other}", key.algorithm());
        }
    }
}

#[test]
fn what_is_cut_or_continued_is_no_key() {
    for algorithm in algorithms() {
        let key = algorithm.generate().unwrap();
        let (pkcs8, spki) = (key.to_pkcs8(), key.verifying_key().to_spki());
        let (raw, public) = (key.to_raw(), key.verifying_key().to_raw());
        let more = |bytes: &[u8]| [bytes, &[0]].concat();
        assert!(algorithm.signing_key_pkcs8(&more(&pkcs8)).is_err(), "{algorithm}");
        assert!(algorithm.verifying_key_spki(&more(&spki)).is_err(), "{algorithm}");
        assert!(algorithm.signing_key(&more(&raw)).is_err(), "{algorithm}");
        assert!(algorithm.verifying_key(&more(&public)).is_err(), "{algorithm}");
        for len in (0..pkcs8.len()).step_by(pkcs8.len() / 40 + 1) {
            assert!(algorithm.signing_key_pkcs8(&pkcs8[..len]).is_err(), "{algorithm} {len}");
        }
        for len in (0..spki.len()).step_by(spki.len() / 40 + 1) {
            assert!(algorithm.verifying_key_spki(&spki[..len]).is_err(), "{algorithm} {len}");
        }
        assert!(algorithm.signing_key(&raw[1..]).is_err(), "{algorithm}");
        assert!(algorithm.verifying_key(&public[1..]).is_err(), "{algorithm}");
    }
}

#[test]
fn a_public_half_that_is_anothers_is_refused() {
    for algorithm in algorithms() {
        let [key, other] = [0, 1].map(|_| algorithm.generate().unwrap());
        let (der, public) = (key.to_pkcs8(), other.verifying_key().to_raw());
        let mut info = PrivateKeyInfo::from_der(&der).unwrap();
        info.public_key = Some(&public);
        assert!(algorithm.signing_key_pkcs8(&info.to_der()).is_err(), "{algorithm}");
        let public = key.verifying_key().to_raw();
        info.public_key = Some(&public);
        assert!(algorithm.signing_key_pkcs8(&info.to_der()).is_ok(), "{algorithm}");
    }
}

#[test]
fn rsa_keys_come_back_and_are_rsas_only() {
    let key = Algorithm::RsaPssSha256.generate().unwrap();
    let (pkcs8, spki) = (key.to_pkcs8(), key.verifying_key().to_spki());
    assert_eq!(Algorithm::RsaPkcs1Sha512.signing_key_pkcs8(&pkcs8).unwrap().to_pkcs8(), pkcs8);
    assert_eq!(Algorithm::RsaPssSha256.signing_key(&key.to_raw()).unwrap().to_pkcs8(), pkcs8);
    assert_eq!(Algorithm::RsaPssSha384.verifying_key_spki(&spki).unwrap().to_spki(), spki);
    assert!(Algorithm::EcdsaP256.signing_key_pkcs8(&pkcs8).is_err());
    assert!(Algorithm::Ed25519.verifying_key_spki(&spki).is_err());
    let info = SubjectPublicKeyInfo::from_der(&spki).unwrap();
    let without_null = SubjectPublicKeyInfo {
        algorithm: wraith_crypto::encoding::spki::AlgorithmIdentifier::new(info.algorithm.oid),
        key: info.key,
    };
    assert!(Algorithm::RsaPssSha256.verifying_key_spki(&without_null.to_der()).is_err());
}
