//! Hashes, MACs, AEADs, ciphers, key derivation and generators of the suite.
//!
//! The secret is the key and the text. Nonces and lengths are public, so they are the same for all
//! secrets.

use std::hint::black_box;
use std::num::NonZeroU32;

use wraith_suite::aead::{self, key_wrap};
use wraith_suite::cipher;
use wraith_suite::hash::{self, Sha256};
use wraith_suite::kdf::{self, Argon2Params, ScryptParams};
use wraith_suite::mac;
use wraith_suite::rand::{CtrDrbg, Drbg, HashDrbg, HmacDrbg};

use crate::count::secrets::{Draw, Secret};
use crate::count::{Length, Operation, Prepared, prepared};

/// Lengths of sealed texts. They select different code: a part of a block, and one, four and
/// sixteen blocks at a time.
const TEXT_BYTES: [usize; 4] = [60, 300, 700, 2100];
/// Length of the key of a MAC that takes any.
const KEY_BYTES: usize = 32;

pub(super) fn all() -> Vec<Operation> {
    let mut all = Vec::new();
    for &algorithm in hash::Algorithm::ALL {
        all.push(Operation::new(format!("hash/{algorithm}"), move |draw| {
            prepared(draw.bytes(300), move |data| {
                black_box(hash::digest(algorithm, data));
            })
        }));
    }
    for &algorithm in mac::Algorithm::ALL {
        all.push(Operation::new(format!("mac/{algorithm}"), move |draw| tags(algorithm, draw)));
        all.push(Operation::new(format!("mac/{algorithm}/verify"), move |draw| {
            wrong_tags(algorithm, draw)
        }));
    }
    for &algorithm in aead::Algorithm::ALL {
        all.extend(TEXT_BYTES.map(|len| {
            let name = format!("aead/{algorithm}/seal-{len}");
            Operation::new(name, move |draw| seal(algorithm, len, draw))
                .of_length(Length::long_if(len > 300))
        }));
        all.push(Operation::new(format!("aead/{algorithm}/open"), move |draw| {
            open(algorithm, draw)
        }));
        all.push(Operation::new(format!("aead/{algorithm}/forged"), move |draw| {
            forged(algorithm, draw)
        }));
    }
    for &algorithm in cipher::Algorithm::ALL {
        for is_encryption in [true, false] {
            let function = if is_encryption { "encrypt" } else { "decrypt" };
            let name = format!("cipher/{algorithm}/{function}");
            all.push(Operation::new(name, move |draw| texts(algorithm, is_encryption, draw)));
        }
    }
    all.extend(paddings());
    all.extend(derivations());
    all.extend(generators());
    all
}

fn tags(algorithm: mac::Algorithm, draw: &mut Draw) -> Option<Prepared> {
    let key_bytes = algorithm.key_bytes().unwrap_or(KEY_BYTES);
    let nonce: [u8; 16] = draw.random();
    prepared(draw.bytes(key_bytes + 200), move |secret| {
        let (key, text) = secret.split_at(key_bytes);
        let mut mac = algorithm.start(key, &nonce[..algorithm.nonce_bytes()]).expect("lengths");
        mac.update(text);
        let mut tag = [0; mac::TAG_MAX];
        mac.finish_into(&mut tag);
        black_box(tag);
    })
}

/// The position at which a wrong tag differs is a secret.
fn wrong_tags(algorithm: mac::Algorithm, draw: &mut Draw) -> Option<Prepared> {
    let key = draw.random_bytes(algorithm.key_bytes().unwrap_or(KEY_BYTES));
    let nonce = draw.random_bytes(algorithm.nonce_bytes());
    let start = move || algorithm.start(&key, &nonce).expect("lengths");
    let mut right = vec![0; algorithm.tag_bytes()];
    start().finish_into(&mut right);
    prepared(different(&right), move |tag| {
        let _ = black_box(start().verify(tag));
    })
}

/// Values that differ from `right` in different places.
fn different(right: &[u8]) -> Vec<Secret> {
    let changed = |name: &str, at: &[usize]| {
        let mut value = right.to_vec();
        at.iter().for_each(|&at| value[at] ^= 0x11);
        Secret::new(name, value)
    };
    let last = right.len() - 1;
    vec![
        changed("first byte differs", &[0]),
        changed("last byte differs", &[last]),
        changed("middle byte differs", &[last / 2]),
        Secret::new("all bytes differ", right.iter().map(|byte| !byte).collect::<Vec<_>>()),
    ]
}

fn nonce(algorithm: aead::Algorithm, draw: &mut Draw) -> Vec<u8> {
    draw.random_bytes(algorithm.nonce_bytes())
}

fn seal(algorithm: aead::Algorithm, len: usize, draw: &mut Draw) -> Option<Prepared> {
    let nonce = nonce(algorithm, draw);
    prepared(draw.bytes(algorithm.key_bytes() + len), move |secret| {
        let (key, text) = secret.split_at(algorithm.key_bytes());
        let key = algorithm.key(key).expect("its length");
        black_box(key.seal(&nonce, b"public", text).expect("short enough"));
    })
}

fn open(algorithm: aead::Algorithm, draw: &mut Draw) -> Option<Prepared> {
    let nonce = nonce(algorithm, draw);
    let key_bytes = algorithm.key_bytes();
    let mut secrets = draw.bytes(key_bytes + 300);
    for Secret { bytes, .. } in &mut secrets {
        let (key, text) = bytes.split_at(key_bytes);
        let sealed = algorithm.key(key).expect("its length").seal(&nonce, b"public", text);
        let sealed = sealed.expect("short enough");
        bytes.truncate(key_bytes);
        bytes.extend(sealed);
    }
    prepared(secrets, move |secret| {
        let (key, sealed) = secret.split_at(key_bytes);
        let key = algorithm.key(key).expect("its length");
        black_box(key.open(&nonce, b"public", sealed).expect("authentic"));
    })
}

/// None is authentic. Where the tag differs is a secret, and so is the key.
fn forged(algorithm: aead::Algorithm, draw: &mut Draw) -> Option<Prepared> {
    let nonce = nonce(algorithm, draw);
    let key = algorithm.key(&draw.random_bytes(algorithm.key_bytes())).expect("its length");
    let sealed = key.seal(&nonce, b"public", &draw.random::<300>()).expect("short enough");
    let (text, tag) = sealed.split_at(sealed.len() - algorithm.tag_bytes());
    let mut secrets = different(tag);
    secrets.iter_mut().for_each(|secret| secret.bytes = [text, &secret.bytes].concat());
    prepared(secrets, move |sealed| {
        let _ = black_box(key.open(&nonce, b"public", sealed).is_err());
    })
}

fn texts(algorithm: cipher::Algorithm, is_encryption: bool, draw: &mut Draw) -> Option<Prepared> {
    let iv = draw.random_bytes(algorithm.iv_bytes());
    let key_bytes = algorithm.key_bytes();
    // XTS refuses two equal keys, which zeros and ones would be.
    let mut secrets = draw.bytes(key_bytes + 320);
    secrets.retain(|secret| algorithm.start(&secret.bytes[..key_bytes], &iv).is_ok());
    prepared(secrets, move |secret| {
        let (key, text) = secret.split_at(key_bytes);
        let mut cipher = algorithm.start(key, &iv).expect("their lengths");
        let mut text = text.to_vec();
        let done = match is_encryption {
            true => cipher.encrypt(&mut text),
            false => cipher.decrypt(&mut text),
        };
        done.expect("whole blocks");
        black_box(text);
    })
}

/// The result is visible: valid paddings are compared with each other, and invalid ones.
fn paddings() -> [Operation; 2] {
    const BYTES: usize = 2 * cipher::BLOCK_BYTES;
    let removed = |text: &[u8]| {
        let _ = black_box(cipher::unpadded_len(black_box(text)));
    };
    let valid = Operation::new("cipher/padding/valid", move |draw| {
        let secrets = [1u8, 16, 7, 15].map(|added| {
            let mut text = draw.random::<BYTES>();
            text[BYTES - usize::from(added)..].fill(added);
            Secret::new(format!("{added} bytes"), text)
        });
        prepared(secrets.into(), removed)
    });
    let invalid = Operation::new("cipher/padding/invalid", move |draw| {
        let wrong_at = [16usize, 30, 23].map(|at| {
            let mut text = draw.random::<BYTES>();
            text[BYTES - 16..].fill(16);
            text[at] ^= 0x11;
            Secret::new(format!("byte {at} differs"), text)
        });
        let lengths = [0u8, 17, 255].map(|length| {
            let mut text = draw.random::<BYTES>();
            text[BYTES - 1] = length;
            Secret::new(format!("a length of {length}"), text)
        });
        prepared([wrong_at, lengths].concat(), removed)
    });
    [valid, invalid]
}

fn derivations() -> Vec<Operation> {
    const SALT: &[u8; 16] = b"a salt of public";
    let mut all = Vec::new();
    for &algorithm in hash::Algorithm::ALL {
        let has_hmac = kdf::hkdf(algorithm, SALT, b"secret", b"info", &mut [0; 32]).is_ok();
        if !has_hmac {
            continue;
        }
        all.push(Operation::new(format!("kdf/HKDF-{algorithm}"), move |draw| {
            prepared(draw.bytes(48), move |secret| {
                let mut key = [0; 48];
                kdf::hkdf(algorithm, SALT, secret, b"info", &mut key).expect("a length");
                black_box(key);
            })
        }));
        all.push(Operation::new(format!("kdf/PBKDF2-{algorithm}"), move |draw| {
            prepared(draw.bytes(20), move |password| {
                let (mut key, rounds) = ([0; 32], NonZeroU32::new(3).expect("not zero"));
                kdf::pbkdf2(algorithm, password, SALT, rounds, &mut key).expect("a length");
                black_box(key);
            })
        }));
    }
    all.push(Operation::new("kdf/Argon2id", |draw| {
        prepared(draw.bytes(20), |password| {
            let mut key = [0; 32];
            let params = Argon2Params { memory_kib: 32, passes: 2, lanes: 1 };
            kdf::argon2id(params, password, SALT, &mut key).expect("a length");
            black_box(key);
        })
    }));
    all.push(Operation::new("kdf/scrypt", |draw| {
        prepared(draw.bytes(20), |password| {
            let mut key = [0; 32];
            let params = ScryptParams { log_n: 4, r: 1, p: 1 };
            kdf::scrypt(params, password, SALT, &mut key).expect("a length");
            black_box(key);
        })
    }));
    all.push(Operation::new("kdf/BLAKE3", |draw| {
        prepared(draw.bytes(64), |secret| {
            black_box(kdf::derive("wraith count 2026", secret));
        })
    }));
    for key_bytes in [16, 32] {
        all.push(Operation::new(format!("key-wrap/{key_bytes}"), move |draw| {
            prepared(draw.bytes(key_bytes + 32), move |secret| {
                let (key, secret) = secret.split_at(key_bytes);
                let wrapped = key_wrap::wrap(key, secret).expect("lengths");
                black_box(key_wrap::unwrap(key, &wrapped).expect("authentic"));
            })
        }));
    }
    all
}

fn generators() -> Vec<Operation> {
    fn drawn(mut drbg: impl Drbg) {
        let mut out = [0; 100];
        drbg.generate(&mut out, &[]).expect("a permitted length");
        drbg.generate(&mut out, &[]).expect("a permitted length");
        black_box(out);
    }
    vec![
        Operation::new("rand/HMAC-DRBG", |draw| {
            prepared(draw.bytes(32), |seed| {
                drawn(HmacDrbg::<Sha256>::new(seed, b"nonce", &[]).expect("a length"));
            })
        }),
        Operation::new("rand/Hash-DRBG", |draw| {
            prepared(draw.bytes(32), |seed| {
                drawn(HashDrbg::<Sha256>::new(seed, b"nonce", &[]).expect("a length"));
            })
        }),
        Operation::new("rand/CTR-DRBG", |draw| {
            prepared(draw.bytes(48), |seed| {
                let seed = seed.try_into().expect("its length");
                drawn(CtrDrbg::new(seed, &[]).expect("a length"));
            })
        }),
    ]
}
