//! Keys of every signature algorithm and every KEM, written and read again, and non-keys refused.

use data_encoding::BASE64;
use wraith_suite::encoding::{pem, pkcs8::PrivateKeyInfo, spki::SubjectPublicKeyInfo};
use wraith_suite::kem::{self, KemError};
use wraith_suite::sign::{Algorithm, SignError};

/// Returns every algorithm with fast key generation.
fn algorithms() -> impl Iterator<Item = Algorithm> {
    let all = Algorithm::ALL.iter().copied();
    all.filter(|a| !a.name().starts_with("RSA") && !a.name().starts_with("SLH"))
}

#[test]
fn keys_survive_a_round_trip_through_every_encoding() {
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
fn truncated_or_extended_encodings_are_refused() {
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
        algorithm: wraith_suite::encoding::spki::AlgorithmIdentifier::new(info.algorithm.oid),
        key: info.key,
    };
    assert!(Algorithm::RsaPssSha256.verifying_key_spki(&without_null.to_der()).is_err());
}

#[test]
fn an_expanded_key_of_ml_dsa_is_read_beside_its_seed_only() {
    let lines = include_str!("../vectors/ml_dsa_keys.txt").lines();
    let files = lines.map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, kind, der] => (name, kind, BASE64.decode(der.as_bytes()).unwrap()),
        _ => panic!("{line}"),
    });
    let (mut private, mut both, mut refused) = (Vec::new(), 0, 0);
    for (name, kind, der) in files {
        let algorithm: Algorithm = name.parse().unwrap();
        let read = algorithm.signing_key_pkcs8(&der);
        match kind {
            "private" => {
                let key = read.unwrap();
                assert!(key.to_raw().iter().copied().eq(0..32), "the seed they take");
                assert_eq!(key.to_pkcs8()[..], der);
                private = der;
            }
            "both" => {
                assert_eq!(read.unwrap().to_pkcs8()[..], private, "{name}");
                let mut info = PrivateKeyInfo::from_der(&der).unwrap();
                let mut changed = info.private_key.to_vec();
                *changed.last_mut().unwrap() ^= 1;
                info.private_key = &changed;
                assert!(algorithm.signing_key_pkcs8(&info.to_der()).is_err(), "{name}");
                both += 1;
            }
            _ => {
                let invalid = SignError::InvalidKey { algorithm };
                assert_eq!(read.map(|key| key.algorithm()).err(), Some(invalid), "{kind}");
                refused += 1;
            }
        }
    }
    assert_eq!((both, refused), (3, 2));
}

/// Returns the key files of the standards: algorithm, kind, DER.
fn kem_files() -> impl Iterator<Item = (kem::Algorithm, &'static str, Vec<u8>)> {
    let lines = include_str!("../vectors/kem_keys.txt").lines();
    lines.map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, kind, der] => (name.parse().unwrap(), kind, BASE64.decode(der.as_bytes()).unwrap()),
        _ => panic!("{line}"),
    })
}

fn kem_file(algorithm: kem::Algorithm, kind: &str) -> Vec<u8> {
    kem_files().find(|file| (file.0, file.1) == (algorithm, kind)).unwrap().2
}

/// Returns the KEMs with a key format.
fn kems() -> impl Iterator<Item = kem::Algorithm> {
    let all = kem::Algorithm::ALL.iter().copied();
    all.filter(|&algorithm| algorithm != kem::Algorithm::X25519MlKem768)
}

#[test]
fn the_kem_keys_of_rfc_9935_and_of_the_draft_of_x_wing_are_read_and_written() {
    for algorithm in kems() {
        let (private, public) = (kem_file(algorithm, "private"), kem_file(algorithm, "public"));
        let key = algorithm.decapsulation_key_pkcs8(&private).unwrap();
        assert!(key.to_raw().iter().copied().eq(0..key.to_raw().len() as u8), "the seed they take");
        assert_eq!(key.to_pkcs8().unwrap()[..], private, "{algorithm}");
        assert_eq!(key.encapsulation_key().to_spki().unwrap(), public, "{algorithm}");
        let again = algorithm.encapsulation_key_spki(&public).unwrap();
        let (ciphertext, secret) = again.encapsulate().unwrap();
        assert_eq!(key.decapsulate(&ciphertext).unwrap(), secret);
    }
}

#[test]
fn an_expanded_key_is_read_beside_its_seed_only() {
    let (mut both, mut refused) = (0, 0);
    for (algorithm, kind, der) in kem_files() {
        let read = algorithm.decapsulation_key_pkcs8(&der).map(|key| key.to_pkcs8().unwrap());
        match kind {
            "both" => {
                assert_eq!(read.unwrap()[..], kem_file(algorithm, "private"));
                both += 1;
            }
            "expanded" | "inconsistent" => {
                assert_eq!(read, Err(KemError::InvalidKey { algorithm }), "{kind} {refused}");
                refused += 1;
            }
            _ => {}
        }
    }
    assert_eq!((both, refused), (3, 5));
}

#[test]
fn keys_of_every_kem_come_back_and_are_of_no_other() {
    for algorithm in kems() {
        let key = algorithm.generate().unwrap();
        let public = key.encapsulation_key();
        let (pkcs8, spki) = (key.to_pkcs8().unwrap(), public.to_spki().unwrap());
        for &other in kem::Algorithm::ALL {
            let [private, public] = [
                other.decapsulation_key_pkcs8(&pkcs8).map(|key| key.to_raw().to_vec()),
                other.encapsulation_key_spki(&spki).map(|key| key.to_raw()),
            ];
            if other == algorithm {
                assert_eq!(private.unwrap(), key.to_raw()[..]);
                assert_eq!(public.unwrap(), key.encapsulation_key().to_raw());
            } else {
                let invalid = KemError::InvalidKey { algorithm: other };
                assert_eq!((private, public), (Err(invalid), Err(invalid)), "{algorithm} {other}");
            }
        }
    }
}

#[test]
fn malformed_or_mismatched_kem_keys_are_refused() {
    for algorithm in kems() {
        let [key, other] = [0, 1].map(|_| algorithm.generate().unwrap());
        let spki = key.encapsulation_key().to_spki().unwrap();
        let pkcs8 = key.to_pkcs8().unwrap();
        let more = |bytes: &[u8]| [bytes, &[0]].concat();
        assert!(algorithm.decapsulation_key_pkcs8(&more(&pkcs8)).is_err());
        assert!(algorithm.encapsulation_key_spki(&more(&spki)).is_err());
        for len in 0..pkcs8.len() {
            assert!(algorithm.decapsulation_key_pkcs8(&pkcs8[..len]).is_err(), "{algorithm} {len}");
        }
        for len in (0..spki.len()).step_by(31) {
            assert!(algorithm.encapsulation_key_spki(&spki[..len]).is_err(), "{algorithm} {len}");
        }
        let info = PrivateKeyInfo::from_der(&pkcs8).unwrap();
        for inside in [&info.private_key[1..], &more(info.private_key)] {
            let changed = PrivateKeyInfo { private_key: inside, ..info };
            assert!(algorithm.decapsulation_key_pkcs8(&changed.to_der()).is_err(), "{algorithm}");
        }
        let [own, others] = [&key, &other].map(|key| key.encapsulation_key().to_raw());
        let with = |public| PrivateKeyInfo { public_key: Some(public), ..info }.to_der();
        assert!(algorithm.decapsulation_key_pkcs8(&with(&own)).is_ok(), "{algorithm}");
        assert!(algorithm.decapsulation_key_pkcs8(&with(&others)).is_err(), "{algorithm}");
    }
}

#[test]
fn the_hybrid_of_tls_has_no_key_files() {
    let key = kem::Algorithm::X25519MlKem768.generate().unwrap();
    assert_eq!((key.to_pkcs8(), key.encapsulation_key().to_spki()), (None, None));
}
