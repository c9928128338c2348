//! Rows for building blocks: big integers, key wrapping, HPKE.

use std::hint::black_box;

use wraith_suite::Backend;
use wraith_suite::aead::{self, key_wrap};
use wraith_suite::bignum::{self, Uint};
use wraith_suite::encrypt::hpke::{Aead, Kdf, Kem, PrivateKey, Suite};

use super::{Row, Work, repeated};

/// The most common HPKE suite.
const SUITE: Suite = Suite { kem: Kem::X25519, kdf: Kdf::Sha256, aead: Aead::Aes128Gcm };
const INFO: &[u8] = b"wraith speed";
const AAD: &[u8] = b"associated";
const MESSAGE: &[u8] = b"a message as long as those that others measure.";

pub fn rows(rows: &mut Vec<Row>) {
    big_integers(rows);
    wrapped_keys(rows);
    hpke(rows);
}

fn words<T, E: ToString>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Returns a number of this many bits, all of them set except in its last byte, `last`.
fn number(bits: usize, last: u8) -> Result<Uint, String> {
    let mut bytes = vec![0xff; bits / 8];
    if let Some(end) = bytes.last_mut() {
        *end = last;
    }
    words(Uint::from_be_bytes(&bytes))
}

fn big_integers(rows: &mut Vec<Row>) {
    let own = Backend::Own("portable".into());
    for bits in [256, 512, 1024, 2048, 4096] {
        let product = move || -> Result<Work, String> {
            let (a, b) = (number(bits, 0xff)?, number(bits, 0xfe)?);
            repeated(move || black_box(&a).mul(&b))
        };
        let name = format!("big integers {bits} bits multiply");
        let backend = bignum::product_backend(bits);
        rows.push(Row::new(name, None, "a product", &backend, product));
        let sum = move || -> Result<Work, String> {
            let (a, b) = (number(bits, 0xff)?, number(bits, 0xfe)?);
            repeated(move || black_box(&a).add(&b))
        };
        let name = format!("big integers {bits} bits add");
        rows.push(Row::new(name, None, "a sum", &own, sum));
    }
    for bits in [1024, 2048, 4096] {
        let power = move || -> Result<Work, String> {
            let base = words(Uint::from_be_bytes(&vec![0x42; bits / 8]))?;
            let (exponent, modulus) = (number(bits, 0xff)?, number(bits, 0xfd)?);
            repeated(move || black_box(&base).mod_exp(&exponent, &modulus))
        };
        let name = format!("big integers {bits} bits power");
        let scope = "a power modulo an odd number, all as long";
        rows.push(Row::new(name, None, scope, &Backend::AwsLc, power));
    }
}

fn wrapped_keys(rows: &mut Vec<Row>) {
    let scope = "32 bytes with a new key";
    for bytes in [16, 32] {
        let name = format!("AES-{}-KW", 8 * bytes);
        let (key, secret) = (vec![0x42; bytes], [0x55; 32]);
        let wrap = {
            let key = key.clone();
            move || {
                let key = key.clone();
                repeated(move || key_wrap::wrap(black_box(&key), &secret))
            }
        };
        rows.push(Row::new(format!("{name} wrap"), None, scope, &Backend::AwsLc, wrap));
        let unwrap = move || -> Result<Work, String> {
            let (key, wrapped) = (key.clone(), words(key_wrap::wrap(&key, &secret))?);
            repeated(move || key_wrap::unwrap(black_box(&key), &wrapped))
        };
        rows.push(Row::new(format!("{name} unwrap"), None, scope, &Backend::AwsLc, unwrap));
    }
}

fn hpke(rows: &mut Vec<Row>) {
    let backend = format!("AWS-LC; the AEAD: {}", aead::Algorithm::Aes128Gcm.backend());
    let name = "HPKE X25519, HKDF-SHA-256, AES-128-GCM";
    let seal = || -> Result<Work, String> {
        let public = words(PrivateKey::generate(SUITE.kem))?.public();
        repeated(move || {
            let (encapsulated, mut sender) = SUITE.sender(black_box(&public), INFO, None, None)?;
            sender.seal(AAD, MESSAGE).map(|sealed| (encapsulated, sealed))
        })
    };
    let scope = "set up, and 47 bytes sealed";
    rows.push(Row::new(format!("{name} seal"), None, scope, &backend, seal));
    let open = || -> Result<Work, String> {
        let key = words(PrivateKey::generate(SUITE.kem))?;
        let (encapsulated, mut sender) = words(SUITE.sender(&key.public(), INFO, None, None))?;
        let sealed = words(sender.seal(AAD, MESSAGE))?;
        repeated(move || {
            let mut recipient =
                SUITE.recipient(black_box(&encapsulated), &key, INFO, None, None)?;
            recipient.open(AAD, &sealed)
        })
    };
    let scope = "set up, and 47 bytes opened";
    rows.push(Row::new(format!("{name} open"), None, scope, &backend, open));
}
