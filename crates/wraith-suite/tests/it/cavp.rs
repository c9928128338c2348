//! NIST's vectors for AES-256-GCM (CAVP, `gcmtestvectors.zip`) with IVs of 96 bits, of all tag
//! lengths.
//!
//! A shorter tag is the beginning of the whole one. Our tags are always whole, so shorter ones are
//! compared after sealing. The plaintext to seal is obtained by sealing the ciphertext, because in
//! counter mode the two are the same operation.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use wraith_suite::TAG_BYTES;

use crate::implementations::{each, gcm_key};

const ENCRYPT: &str = include_str!("../vectors/gcmEncryptExtIV256.rsp");
const DECRYPT: &str = include_str!("../vectors/gcmDecrypt256.rsp");

/// One `Count` of NIST's file. `plain` is `None` if the tag is wrong.
struct Vector {
    count: String,
    key: [u8; 32],
    iv: [u8; 12],
    aad: Vec<u8>,
    plain: Option<Vec<u8>>,
    cipher: Vec<u8>,
    tag: Vec<u8>,
}

impl Vector {
    fn of(paragraph: &str) -> Option<Self> {
        let pairs = paragraph.lines().filter_map(|line| line.split_once(" ="));
        let fields: HashMap<_, _> = pairs.map(|(name, value)| (name, value.trim())).collect();
        let hex = |name| HEXLOWER.decode(fields[name].as_bytes()).unwrap();
        let count = (*fields.get("Count")?).to_owned();
        let failed = paragraph.lines().any(|line| line == "FAIL");
        Some(Self {
            count,
            key: hex("Key").try_into().unwrap(),
            iv: hex("IV").try_into().unwrap(),
            aad: hex("AAD"),
            plain: (!failed).then(|| hex("PT")),
            cipher: hex("CT"),
            tag: hex("Tag"),
        })
    }
}

fn vectors(file: &'static str) -> impl Iterator<Item = Vector> {
    file.split("\n\n").filter_map(Vector::of)
}

#[test]
fn aes_256_gcm_seals_as_nist_says() {
    each("NIST CAVP, AES-256-GCM encryption", |implementation| {
        let sealed = vectors(ENCRYPT).inspect(|vector| {
            let mut text = vector.plain.clone().unwrap();
            let tag = gcm_key(&vector.key, implementation).seal(vector.iv, &vector.aad, &mut text);
            assert_eq!(text, vector.cipher, "{}", vector.count);
            assert_eq!(tag[..vector.tag.len()], vector.tag, "{}", vector.count);
        });
        let count = sealed.count();
        assert_eq!(count, 2625, "the whole file was read");
        count
    });
}

#[test]
fn aes_256_gcm_opens_and_refuses_as_nist_says() {
    each("NIST CAVP, AES-256-GCM decryption", |implementation| {
        let (mut count, mut refused) = (0, 0);
        for vector in vectors(DECRYPT) {
            let key = gcm_key(&vector.key, implementation);
            let mut text = vector.cipher.clone();
            let _ = key.seal(vector.iv, &vector.aad, &mut text);
            let plain = text.clone();
            let tag = key.seal(vector.iv, &vector.aad, &mut text);
            let authentic = tag[..vector.tag.len()] == vector.tag;
            assert_eq!(authentic, vector.plain.is_some(), "{}", vector.count);
            if let Some(expected) = &vector.plain {
                assert_eq!(plain, *expected, "{}", vector.count);
            }
            if vector.tag.len() == TAG_BYTES {
                let mut text = [&vector.cipher[..], &vector.tag].concat();
                let opened = key.open(vector.iv, &vector.aad, &mut text);
                assert_eq!(opened.is_ok(), authentic, "{}", vector.count);
                assert!(!authentic || text[..plain.len()] == plain, "{}", vector.count);
            }
            count += 1;
            refused += usize::from(!authentic);
        }
        assert_eq!((count, refused), (2625, 1317), "the whole file was read");
        count
    });
}
