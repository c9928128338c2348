//! HPKE with the vectors of RFC 9180, and of draft-ietf-hpke-pq where the key derivation is HKDF.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use wraith_suite::encrypt::hpke::{Aead, HpkeError, Kdf, Kem, PrivateKey, Psk, PublicKey, Suite};

const KEMS: [Kem; 9] = [
    Kem::P256,
    Kem::P384,
    Kem::P521,
    Kem::X25519,
    Kem::X448,
    Kem::MlKem512,
    Kem::MlKem768,
    Kem::MlKem1024,
    Kem::XWing,
];
const KDFS: [Kdf; 3] = [Kdf::Sha256, Kdf::Sha384, Kdf::Sha512];
const AEADS: [Aead; 4] =
    [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305, Aead::ExportOnly];

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

fn check(part: &str) {
    let lines: Vec<_> = part.lines().map(|line| line.split_once(" = ").unwrap()).collect();
    let fields: HashMap<_, _> = lines.iter().copied().collect();
    let number = |name: &str| fields[name].parse::<u16>().unwrap();
    let suite = Suite {
        kem: KEMS.into_iter().find(|kem| kem.id() == number("kem_id")).unwrap(),
        kdf: KDFS.into_iter().find(|kdf| kdf.id() == number("kdf_id")).unwrap(),
        aead: AEADS.into_iter().find(|aead| aead.id() == number("aead_id")).unwrap(),
    };
    let key = PrivateKey::from_raw(suite.kem, &hex(fields["skRm"])).unwrap();
    assert_eq!(key.public().to_raw(), hex(fields["pkRm"]));
    if let Some(ikm) = fields.get("ikmR") {
        assert_eq!(PrivateKey::derive(suite.kem, &hex(ikm)).unwrap().to_raw(), key.to_raw());
    }
    let identity = fields.get("skSm").map(|s| PrivateKey::from_raw(suite.kem, &hex(s)).unwrap());
    let public_identity = identity.as_ref().map(PrivateKey::public);
    let [psk_key, psk_id] = ["psk", "psk_id"].map(|name| fields.get(name).map(|s| hex(s)));
    let psk = psk_key.as_ref().zip(psk_id.as_ref()).map(|(key, id)| Psk { key, id });
    let info = hex(fields["info"]);
    let public = PublicKey::from_raw(suite.kem, &hex(fields["pkRm"])).unwrap();
    let (encapsulated, mut sender) = suite
        .sender_from_seed(&hex(fields["ikmE"]), &public, &info, psk, identity.as_ref())
        .unwrap();
    assert_eq!(encapsulated, hex(fields["enc"]));
    let mut recipient =
        suite.recipient(&encapsulated, &key, &info, psk, public_identity.as_ref()).unwrap();
    for (kind, values) in lines {
        let values: Vec<_> = values.split(' ').collect();
        match (kind, &values[..]) {
            ("message", [aad, text, sealed]) => {
                assert_eq!(sender.seal(&hex(aad), &hex(text)).unwrap(), hex(sealed));
                assert_eq!(recipient.open(&hex(aad), &hex(sealed)).unwrap(), hex(text));
            }
            ("export", [context, expected]) => {
                let context = if *context == "-" { vec![] } else { hex(context) };
                let mut secrets = [[0; 32]; 2];
                sender.export(&context, &mut secrets[0]).unwrap();
                recipient.export(&context, &mut secrets[1]).unwrap();
                assert_eq!([&secrets[0][..], &secrets[1]], [&hex(expected)[..]; 2]);
            }
            _ => {}
        }
    }
}

#[test]
fn every_mode_matches_the_vectors_of_rfc_9180() {
    let text = include_str!("../vectors/hpke.txt");
    let parts = text.split("\n\n").skip(1).filter(|part| !part.trim().is_empty());
    assert_eq!(parts.inspect(|part| check(part)).count(), 36);
}

#[test]
fn keys_of_p_384_are_derived_as_in_draft_ietf_hpke_pq() {
    let seed = "65fca3ea3b6db29a62bff28ec53c08710fab10b3798e59b678d3224296d5883f039123471784ce57b0d85a17cd521196";
    let key = PrivateKey::derive(Kem::P384, &hex(seed)).unwrap();
    let secret = "679172205e04663f40fda1018cd46c18ebaa876ede6998ba86b051614ca4d5e4bfbea34b720617a4b958cc80f6305244";
    assert_eq!(key.to_raw()[..], hex(secret));
    let public = "04a5f53da8564364255bc36850df793672782a5c9e4a7fb5fb2e2146eb12e4d8477ab1f326a361dfd1e41212109510e813380547c68c0964c1908f16f67b902a061be27b2f8b43f1fab1bf0dbf89f5167ce80aca2c210b8fc0f040699db9ee1229";
    assert_eq!(key.public().to_raw(), hex(public));
}

#[test]
fn every_kem_opens_messages_in_order_only() {
    for kem in KEMS {
        let suite = Suite { kem, kdf: Kdf::Sha384, aead: Aead::Aes256Gcm };
        let key = PrivateKey::generate(kem).unwrap();
        let (encapsulated, mut sender) = suite.sender(&key.public(), b"info", None, None).unwrap();
        let [first, second] = [0, 1].map(|_| sender.seal(b"aad", b"text").unwrap());
        assert_ne!(first, second);
        let recipient = |encapsulated: &[u8], key: &PrivateKey, info: &[u8]| {
            suite.recipient(encapsulated, key, info, None, None)
        };
        let mut opening = recipient(&encapsulated, &key, b"info").unwrap();
        assert_eq!(opening.open(b"aad", &second), Err(HpkeError::Unopened), "out of order");
        assert_eq!(opening.open(b"abd", &first), Err(HpkeError::Unopened));
        assert_eq!(opening.open(b"aad", &first[..15]), Err(HpkeError::Unopened));
        assert_eq!(opening.open(b"aad", &first).unwrap(), b"text");
        assert_eq!(opening.open(b"aad", &first), Err(HpkeError::Unopened), "again");
        assert_eq!(opening.open(b"aad", &second).unwrap(), b"text");
        let mut other = recipient(&encapsulated, &key, b"inf0").unwrap();
        assert_eq!(other.open(b"aad", &first), Err(HpkeError::Unopened));
        let wrong = PrivateKey::generate(kem).unwrap();
        let opened = recipient(&encapsulated, &wrong, b"info");
        assert!(opened.and_then(|mut side| side.open(b"aad", &first)).is_err());
        assert!(recipient(&encapsulated[1..], &key, b"info").is_err());
        assert!(recipient(&[&encapsulated[..], &[0]].concat(), &key, b"info").is_err());
        assert!(PrivateKey::from_raw(kem, &key.to_raw()[1..]).is_err());
        assert!(PublicKey::from_raw(kem, &key.public().to_raw()[1..]).is_err());
    }
}

#[test]
fn hpke_authenticates_the_sender_where_the_kem_supports_it() {
    for kem in KEMS {
        let suite = Suite { kem, kdf: Kdf::Sha256, aead: Aead::ChaCha20Poly1305 };
        let [key, me, other] = [0, 1, 2].map(|_| PrivateKey::generate(kem).unwrap());
        let made = suite.sender(&key.public(), b"", None, Some(&me));
        if matches!(kem, Kem::MlKem512 | Kem::MlKem768 | Kem::MlKem1024 | Kem::XWing) {
            assert_eq!(made.err(), Some(HpkeError::CannotAuthenticate { kem }));
            continue;
        }
        let (encapsulated, mut sender) = made.unwrap();
        let sealed = sender.seal(b"", b"text").unwrap();
        for (identity, is_right) in [(Some(&me), true), (Some(&other), false), (None, false)] {
            let identity = identity.map(PrivateKey::public);
            let mut side =
                suite.recipient(&encapsulated, &key, b"", None, identity.as_ref()).unwrap();
            assert_eq!(side.open(b"", &sealed).is_ok(), is_right, "{kem:?}");
        }
    }
}

#[test]
fn a_pre_shared_key_is_needed_and_has_a_name_and_a_length() {
    let suite = Suite { kem: Kem::X25519, kdf: Kdf::Sha512, aead: Aead::Aes128Gcm };
    let key = PrivateKey::generate(suite.kem).unwrap();
    let psk = Psk { key: &[7; 32], id: b"name" };
    let (encapsulated, mut sender) = suite.sender(&key.public(), b"", Some(psk), None).unwrap();
    let sealed = sender.seal(b"", b"text").unwrap();
    let open =
        |psk| suite.recipient(&encapsulated, &key, b"", psk, None).unwrap().open(b"", &sealed);
    assert_eq!(open(Some(psk)).unwrap(), b"text");
    assert!(open(None).is_err());
    assert!(open(Some(Psk { id: b"nama", ..psk })).is_err());
    assert!(open(Some(Psk { key: &[8; 32], ..psk })).is_err());
    for wrong in [Psk { key: &[7; 31], ..psk }, Psk { id: b"", ..psk }] {
        let made = suite.sender(&key.public(), b"", Some(wrong), None);
        assert_eq!(made.err(), Some(HpkeError::InvalidPsk));
    }
}

#[test]
fn keys_of_small_order_or_of_another_kem_are_refused() {
    for (kem, len) in [(Kem::X25519, 32), (Kem::X448, 56)] {
        let suite = Suite { kem, kdf: Kdf::Sha256, aead: Aead::Aes128Gcm };
        let key = PrivateKey::generate(kem).unwrap();
        let made = suite.recipient(&vec![0; len], &key, b"", None, None);
        assert_eq!(made.err(), Some(HpkeError::InvalidEncapsulation { kem }));
        let zero = PublicKey::from_raw(kem, &vec![0; len]).unwrap();
        let made = suite.sender(&zero, b"", None, None);
        assert_eq!(made.err(), Some(HpkeError::InvalidKey { kem }));
    }
    let suite = Suite { kem: Kem::P256, kdf: Kdf::Sha256, aead: Aead::Aes128Gcm };
    let other = PrivateKey::generate(Kem::XWing).unwrap();
    assert!(suite.sender(&other.public(), b"", None, None).is_err());
    assert!(suite.recipient(&[4; 65], &other, b"", None, None).is_err());
}

#[test]
fn a_suite_that_only_exports_seals_nothing_and_exports_have_a_limit() {
    let suite = Suite { kem: Kem::P256, kdf: Kdf::Sha256, aead: Aead::ExportOnly };
    let key = PrivateKey::generate(suite.kem).unwrap();
    let (_, mut sender) = suite.sender(&key.public(), b"", None, None).unwrap();
    assert_eq!(sender.seal(b"", b"text"), Err(HpkeError::CannotSeal));
    sender.export(b"", &mut vec![0; 255 * 32]).unwrap();
    let found = 255 * 32 + 1;
    assert_eq!(sender.export(b"", &mut vec![0; found]), Err(HpkeError::ExportLength { found }));
    let found = 70_000;
    assert_eq!(sender.export(b"", &mut vec![0; found]), Err(HpkeError::ExportLength { found }));
}

#[test]
fn a_sender_needs_all_of_its_randomness() {
    for kem in [Kem::X25519, Kem::P256] {
        let suite = Suite { kem, kdf: Kdf::Sha256, aead: Aead::Aes128Gcm };
        let key = PrivateKey::generate(kem).unwrap().public();
        let seed = vec![7; kem.seed_bytes()];
        assert!(suite.sender_from_seed(&seed, &key, b"", None, None).is_ok());
        assert!(suite.sender_from_seed(&seed[1..], &key, b"", None, None).is_err());
        assert!(suite.sender_from_seed(&[], &key, b"", None, None).is_err());
    }
}
