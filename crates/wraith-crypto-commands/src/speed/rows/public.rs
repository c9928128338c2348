//! Rows for key pairs: signatures, key agreements, KEMs, public-key encryption.

use std::hint::black_box;

use wraith_suite::agree::sm2;
use wraith_suite::sign::SigningKey;
use wraith_suite::sign::rsa::{self, Scheme};
use wraith_suite::{agree, encrypt, kem, sign};

use super::{Row, Work, repeated};

/// A message as long as a digest. It isolates the cost of a signature from hashing, and most texts
/// encrypted to a public key have this length.
const MESSAGE: [u8; 32] = [0x42; 32];
/// RSA key lengths in bits.
const RSA_BITS: [u32; 3] = [2048, 3072, 4096];

pub fn rows(rows: &mut Vec<Row>) {
    for &algorithm in sign::Algorithm::ALL {
        if !algorithm.name().starts_with("RSA") {
            signatures(algorithm, rows);
        }
    }
    for bits in RSA_BITS {
        rsa(bits, rows);
    }
    for &algorithm in agree::Algorithm::ALL {
        agreements(algorithm, rows);
    }
    sm2_exchange(rows);
    for &algorithm in kem::Algorithm::ALL {
        kems(algorithm, rows);
    }
    for &algorithm in encrypt::Algorithm::ALL {
        if !algorithm.name().starts_with("RSA") {
            let key = move || algorithm.generate().map_err(words);
            encryption(format!("{algorithm}"), algorithm, key, rows);
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn words(error: impl ToString) -> String {
    error.to_string()
}

fn signatures(algorithm: sign::Algorithm, rows: &mut Vec<Row>) {
    let (backend, keys) = (algorithm.backend(), algorithm.key_pair_backend());
    let generate = move || repeated(move || algorithm.generate());
    rows.push(Row::new(format!("{algorithm} keygen"), None, "a key pair", &keys, generate));
    let key = move || algorithm.generate().map_err(words);
    signing(&format!("{algorithm}"), &backend, key, rows);
}

fn signing(
    name: &str,
    backend: &wraith_suite::Backend,
    key: impl Fn() -> Result<Box<dyn SigningKey>, String> + Copy + 'static,
    rows: &mut Vec<Row>,
) {
    let sign = move || -> Result<Work, String> {
        let key = key()?;
        repeated(move || key.sign(black_box(&MESSAGE)))
    };
    let scope = "32 bytes, hashed and signed";
    rows.push(Row::new(format!("{name} sign"), None, scope, backend, sign));
    let verify = move || -> Result<Work, String> {
        let key = key()?;
        let signature = key.sign(&MESSAGE).map_err(words)?;
        let key = key.verifying_key();
        repeated(move || key.verify(black_box(&MESSAGE), &signature))
    };
    let scope = "32 bytes, hashed and verified";
    rows.push(Row::new(format!("{name} verify"), None, scope, backend, verify));
}

fn rsa(bits: u32, rows: &mut Vec<Row>) {
    let backend = sign::Algorithm::RsaPssSha256.backend();
    let key = move |scheme| rsa::SigningKey::generate(scheme, bits).map_err(words);
    if bits == RSA_BITS[0] {
        let generate = move || repeated(move || rsa::SigningKey::generate(Scheme::PssSha256, bits));
        let name = format!("RSA-{bits}-PSS-SHA-256 keygen");
        let keys = sign::Algorithm::RsaPssSha256.key_pair_backend();
        rows.push(Row::new(name, None, "a key pair", &keys, generate));
    }
    for (scheme, name) in [(Scheme::PssSha256, "PSS"), (Scheme::Pkcs1Sha256, "PKCS1")] {
        let boxed = move || key(scheme).map(|key| Box::new(key) as Box<dyn SigningKey>);
        signing(&format!("RSA-{bits}-{name}-SHA-256"), &backend, boxed, rows);
    }
    let algorithm = encrypt::Algorithm::RsaOaepSha256;
    let decryption = move || {
        let pkcs8 = key(Scheme::PssSha256)?.to_pkcs8();
        algorithm.decryption_key_pkcs8(&pkcs8).map_err(words)
    };
    encryption(format!("RSA-{bits}-OAEP-SHA-256"), algorithm, decryption, rows);
}

fn encryption(
    name: String,
    algorithm: encrypt::Algorithm,
    key: impl Fn() -> Result<Box<dyn encrypt::DecryptionKey>, String> + Copy + 'static,
    rows: &mut Vec<Row>,
) {
    let backend = algorithm.backend();
    let seal = move || -> Result<Work, String> {
        let key = key()?.encryption_key();
        repeated(move || key.encrypt(black_box(&MESSAGE)))
    };
    rows.push(Row::new(format!("{name} encrypt"), None, "32 bytes", &backend, seal));
    let open = move || -> Result<Work, String> {
        let key = key()?;
        let ciphertext = key.encryption_key().encrypt(&MESSAGE).map_err(words)?;
        repeated(move || key.decrypt(black_box(&ciphertext)))
    };
    rows.push(Row::new(format!("{name} decrypt"), None, "32 bytes", &backend, open));
}

fn agreements(algorithm: agree::Algorithm, rows: &mut Vec<Row>) {
    let (backend, keys) = (algorithm.backend(), algorithm.key_pair_backend());
    let generate = move || {
        repeated(move || algorithm.generate().map(|key| (black_box(key.public_key()), key)))
    };
    rows.push(Row::new(format!("{algorithm} keygen"), None, "a key pair", &keys, generate));
    let derive = move || -> Result<Work, String> {
        let key = algorithm.generate().map_err(words)?;
        let peer = algorithm.generate().map_err(words)?.public_key();
        repeated(move || key.agree(black_box(&peer)))
    };
    let scope = "a public key read, and the secret with it";
    rows.push(Row::new(format!("{algorithm} derive"), None, scope, &backend, derive));
}

fn sm2_exchange(rows: &mut Vec<Row>) {
    let exchange = || -> Result<Work, String> {
        let (mine, peer) = (sm2::PrivateKey::generate(), sm2::PrivateKey::generate().public_key());
        let ephemeral = sm2::PrivateKey::generate().public_key();
        let mut key = [0; 64];
        repeated(move || {
            let id = sm2::IDENTITY_DEFAULT;
            let started = sm2::Exchange::start(sm2::Role::Initiator, black_box(&mine), id)?;
            started.finish(&peer, id, &ephemeral, &mut key)
        })
    };
    let scope = "an ephemeral key made, and 64 bytes agreed on";
    let backend = sign::Algorithm::Sm2.backend();
    rows.push(Row::new("SM2 exchange".to_owned(), None, scope, &backend, exchange));
}

fn kems(algorithm: kem::Algorithm, rows: &mut Vec<Row>) {
    let backend = algorithm.backend();
    let generate =
        move || repeated(move || algorithm.generate().map(|key| (key.encapsulation_key(), key)));
    rows.push(Row::new(format!("{algorithm} keygen"), None, "a key pair", &backend, generate));
    let encapsulate = move || -> Result<Work, String> {
        let key = algorithm.generate().map_err(words)?.encapsulation_key();
        repeated(move || black_box(&key).encapsulate())
    };
    let scope = "a secret and its ciphertext";
    rows.push(Row::new(format!("{algorithm} encaps"), None, scope, &backend, encapsulate));
    let decapsulate = move || -> Result<Work, String> {
        let key = algorithm.generate().map_err(words)?;
        let (ciphertext, _) = key.encapsulation_key().encapsulate().map_err(words)?;
        repeated(move || key.decapsulate(black_box(&ciphertext)))
    };
    rows.push(Row::new(format!("{algorithm} decaps"), None, "a secret", &backend, decapsulate));
}
