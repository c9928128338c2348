//! Key agreement, signatures, KEMs and public-key encryption of the suite, by algorithm.
//!
//! The secret is the private key, read from its bytes as a part of the operation, or the ciphertext
//! where its content is the secret. Nonces of signatures are drawn anew in each run, so they are a
//! secret, too.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::OnceLock;

use wraith_suite::agree;
use wraith_suite::encoding::pem;
use wraith_suite::encrypt::{self, DecryptionKey as _, EncryptionKey as _, hpke};
use wraith_suite::kem::{self, hybrid, ml_kem};
use wraith_suite::sign::{self, ecdsa, slh_dsa};
use wraith_suite::{agree::sm2 as exchange, encrypt::rsa as oaep, encrypt::rsa_pkcs1};

use crate::count::secrets::{Draw, ORDER_MAX, Secret};
use crate::count::{Length, Operation, Prepared, prepared, prepared_keys};

const MESSAGE: &[u8; 32] = b"a message of thirty-two bytes...";

/// The largest private keys, one less than the orders (SP 800-186, RFC 5639).
const P224: &str = "ffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3c";
const P256: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550";
const P384: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf\
                    581a0db248b0a77aecec196accc52972";
const P521: &str = "01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\
                    fffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386408";
const BRAINPOOL_256: &str = "a9fb57dba1eea9bc3e660a909d838d718c397aa3b561a6f7901e0e82974856a6";
const BRAINPOOL_384: &str = "8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b31f166e6cac0425a7\
                             cf3ab6af6b7fc3103b883202e9046564";
const BRAINPOOL_512: &str = "aadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca70330870\
                             553e5c414ca92619418661197fac10471db1d381085ddaddb58796829ca90068";
/// n − 2: a key of SM2 is never n − 1 (GB/T 32918.1).
const SM2: &str = "fffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54121";

pub(super) fn all() -> Vec<Operation> {
    let mut all = Vec::new();
    for &algorithm in agree::Algorithm::ALL {
        all.extend(agreements(algorithm));
    }
    for &algorithm in sign::Algorithm::ALL {
        all.extend(signatures(algorithm));
    }
    for &algorithm in kem::Algorithm::ALL {
        all.extend(encapsulations(algorithm));
    }
    for kem in
        [hpke::Kem::P256, hpke::Kem::P384, hpke::Kem::P521, hpke::Kem::X25519, hpke::Kem::X448]
    {
        let name = format!("hpke/{kem:?}/recipient");
        all.push(Operation::new(name, move |draw| recipient(kem, draw)));
    }
    all.extend(sm2());
    all.extend(rsa_decryption());
    all
}

/// Decodes hexadecimal digits.
fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().map(|digit| digit.to_digit(16).expect("a constant") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns private keys, among them the largest one. `is_key` confirms that it is the largest.
fn scalars(draw: &mut Draw, largest: &str, is_key: impl Fn(&[u8]) -> bool) -> Vec<Secret> {
    let largest = bytes_of(largest);
    assert!(largest.len() <= ORDER_MAX && is_key(&largest), "a constant is wrong");
    let mut above = largest.clone();
    *above.last_mut().expect("not empty") += 1;
    assert!(!is_key(&above), "there is a larger key");
    draw.scalars(&largest)
}

fn agreements(algorithm: agree::Algorithm) -> [Operation; 2] {
    use agree::Algorithm::*;
    let keys = move |draw: &mut Draw| -> Vec<Secret> {
        let is_key = |raw: &[u8]| algorithm.private_key(raw).is_ok();
        match algorithm {
            X25519 => draw.bytes(32),
            X448 => draw.bytes(56),
            EcdhP224 => scalars(draw, P224, is_key),
            EcdhP256 => scalars(draw, P256, is_key),
            EcdhP384 => scalars(draw, P384, is_key),
            EcdhP521 => scalars(draw, P521, is_key),
            EcdhBrainpoolP256r1 => scalars(draw, BRAINPOOL_256, is_key),
            EcdhBrainpoolP384r1 => scalars(draw, BRAINPOOL_384, is_key),
            EcdhBrainpoolP512r1 => scalars(draw, BRAINPOOL_512, is_key),
            // Exponents of one length in limbs, which is public.
            _ => {
                let len = algorithm.generate().expect("a key").to_raw().len();
                let mut max = vec![0xff; len];
                max[0] = 1;
                let mut secrets = draw.scalars(&max);
                secrets.iter_mut().for_each(|secret| secret.bytes[0] = 1);
                secrets
            }
        }
    };
    // The larger groups run the same code with other lengths.
    let length = Length::long_if(matches!(
        algorithm,
        Ffdhe4096 | Ffdhe6144 | Ffdhe8192 | Modp4096 | Modp6144 | Modp8192
    ));
    [
        Operation::new(format!("agree/{algorithm}/public"), move |draw| {
            prepared(keys(draw), move |raw| {
                black_box(algorithm.private_key(raw).expect("in range").public_key());
            })
        })
        .of_length(length),
        Operation::new(format!("agree/{algorithm}/agree"), move |draw| {
            let peer = algorithm.generate().expect("a key").public_key();
            prepared(keys(draw), move |raw| {
                let key = algorithm.private_key(raw).expect("in range");
                black_box(key.agree(&peer).expect("a key of a generator"));
            })
        })
        .of_length(length),
    ]
}

fn signatures(algorithm: sign::Algorithm) -> Vec<Operation> {
    use sign::Algorithm::*;
    let key = format!("sign/{algorithm}/key");
    let sign = format!("sign/{algorithm}/sign");
    let of_curve = |curve: ecdsa::Curve, largest: &'static str| {
        let is_key = move |raw: &[u8]| ecdsa::SigningKey::from_scalar(curve, raw).is_ok();
        // A fixed length: DER drops the zeros at the front of the public r and s.
        vec![Operation::new(&*sign, move |draw| {
            prepared(scalars(draw, largest, is_key), move |raw| {
                let key = ecdsa::SigningKey::from_scalar(curve, raw).expect("in range");
                black_box(key.sign_fixed(MESSAGE).expect("AWS-LC has memory"));
            })
        })]
    };
    let of_seed = |len: usize| {
        vec![
            Operation::new(&*key, move |draw| {
                prepared(draw.bytes(len), move |raw| {
                    black_box(algorithm.signing_key(raw).expect("a seed").verifying_key());
                })
            }),
            Operation::new(&*sign, move |draw| {
                prepared(draw.bytes(len), move |raw| {
                    let key = algorithm.signing_key(raw).expect("a seed");
                    black_box(key.sign(MESSAGE).expect("AWS-LC has memory"));
                })
            }),
        ]
    };
    match algorithm {
        EcdsaP224 => of_curve(ecdsa::Curve::P224, P224),
        EcdsaP256 => of_curve(ecdsa::Curve::P256, P256),
        EcdsaP384 => of_curve(ecdsa::Curve::P384, P384),
        EcdsaP521 => of_curve(ecdsa::Curve::P521, P521),
        EcdsaBrainpoolP256r1 => of_curve(ecdsa::Curve::BrainpoolP256r1, BRAINPOOL_256),
        EcdsaBrainpoolP384r1 => of_curve(ecdsa::Curve::BrainpoolP384r1, BRAINPOOL_384),
        EcdsaBrainpoolP512r1 => of_curve(ecdsa::Curve::BrainpoolP512r1, BRAINPOOL_512),
        Ed25519 | MlDsa44 | MlDsa65 | MlDsa87 => of_seed(32),
        Ed448 => of_seed(57),
        Sm2 => vec![Operation::new(&*sign, |draw| {
            let is_key = |raw: &[u8]| sign::sm2::SigningKey::from_raw(raw).is_ok();
            prepared(scalars(draw, SM2, is_key), |raw| {
                let key = sign::sm2::SigningKey::from_raw(raw).expect("in range");
                black_box(key.sign_fixed(MESSAGE));
            })
        })],
        RsaPssSha256 | RsaPssSha384 | RsaPssSha512 | RsaPkcs1Sha256 | RsaPkcs1Sha384
        | RsaPkcs1Sha512 => {
            vec![Operation::new(&*sign, move |_| {
                let key = move |secret: &[u8]| {
                    let key = algorithm.signing_key_pkcs8(rsa_der(secret)).expect("a key");
                    // The first signature sets up the blinding.
                    let _ = key.sign(MESSAGE);
                    key
                };
                prepared_keys(rsa_secrets(), key, |key| {
                    black_box(key.sign(MESSAGE).expect("AWS-LC has memory"));
                })
            })]
        }
        _ => slh_dsa_operations(algorithm),
    }
}

/// SK.seed and SK.prf are the secret, PK.seed is public.
fn slh_dsa_operations(algorithm: sign::Algorithm) -> Vec<Operation> {
    let name = algorithm.name();
    let n = slh_dsa::signature_bytes(algorithm).map(|_| match () {
        () if name.contains("128") => 16,
        () if name.contains("192") => 24,
        () => 32,
    });
    let n = n.expect("SLH-DSA");
    let key = move |secret: &[u8]| {
        let seeds = [secret, &vec![0x5a; n]].concat();
        slh_dsa::SigningKey::from_seeds(algorithm, &seeds).expect("their length")
    };
    // The others run the same code with other heights and widths.
    let length = match name {
        _ if name.ends_with("128f") => Length::Short,
        _ if name.ends_with('f') => Length::Long,
        _ => Length::Endless,
    };
    vec![
        Operation::new(format!("sign/{algorithm}/key"), move |draw| {
            prepared(draw.bytes(2 * n), move |secret| {
                black_box(key(secret));
            })
        })
        .of_length(length),
        Operation::new(format!("sign/{algorithm}/sign"), move |draw| {
            prepared(draw.bytes(2 * n), move |secret| {
                let signature = key(secret).sign_deterministic_with_context(&[], MESSAGE);
                black_box(signature.expect("a short context"));
            })
        })
        .of_length(length),
    ]
}

fn encapsulations(algorithm: kem::Algorithm) -> Vec<Operation> {
    use kem::Algorithm::*;
    let (seed_bytes, kind) = match algorithm {
        MlKem512 => (64, Ok(ml_kem::Set::MlKem512)),
        MlKem768 => (64, Ok(ml_kem::Set::MlKem768)),
        MlKem1024 => (64, Ok(ml_kem::Set::MlKem1024)),
        X25519MlKem768 => (96, Err(hybrid::Hybrid::X25519MlKem768)),
        _ => (32, Err(hybrid::Hybrid::XWing)),
    };
    let decapsulate = Operation::new(format!("kem/{algorithm}/decapsulate"), move |draw| {
        let key = algorithm.decapsulation_key(&draw.random_bytes(seed_bytes)).expect("a seed");
        let public = key.encapsulation_key();
        let right = || public.encapsulate().expect("a key").0;
        let (one, other, mut tampered) = (right(), right(), right());
        tampered[5] ^= 1;
        let random = draw.random_bytes(tampered.len());
        let secrets = vec![
            Secret::new("for this key 1", one),
            Secret::new("for this key 2", other),
            Secret::new("one bit differs", tampered),
            Secret::new("random", random),
        ];
        prepared(secrets, move |ciphertext| {
            black_box(key.decapsulate(ciphertext).expect("its length"));
        })
    });
    let encapsulate = Operation::new(format!("kem/{algorithm}/encapsulate"), move |draw| {
        let seed = draw.random_bytes(seed_bytes);
        match kind {
            Ok(set) => {
                let key = ml_kem::DecapsulationKey::from_raw(set, &seed).expect("a seed").public();
                prepared(draw.bytes(ml_kem::ENCAPSULATION_SEED_BYTES), move |seed| {
                    let seed = seed.try_into().expect("its length");
                    black_box(key.encapsulate_from_seed(seed).expect("a key"));
                })
            }
            Err(kind) => {
                let key = hybrid::DecapsulationKey::from_raw(kind, &seed).expect("a seed").public();
                prepared(draw.bytes(hybrid::ENCAPSULATION_SEED_BYTES), move |seed| {
                    let seed = seed.try_into().expect("its length");
                    black_box(key.encapsulate_from_seed(seed).expect("a key"));
                })
            }
        }
    });
    // z of FIPS 203, from which the secret for a refused ciphertext comes.
    let rejection = Operation::new(format!("kem/{algorithm}/rejection-seed"), move |draw| {
        let first = draw.random_bytes(32);
        let ciphertext = draw.random_bytes(algorithm.ciphertext_bytes());
        prepared(draw.bytes(seed_bytes - 32), move |rest| {
            let seed = [&first, rest].concat();
            let key = algorithm.decapsulation_key(&seed).expect("a seed");
            black_box(key.decapsulate(&ciphertext).expect("its length"));
        })
    });
    let key = Operation::new(format!("kem/{algorithm}/key"), move |draw| {
        prepared(draw.bytes(seed_bytes), move |seed| {
            black_box(algorithm.decapsulation_key(seed).expect("a seed"));
        })
    });
    let mut all = vec![decapsulate, encapsulate, key];
    if seed_bytes > 32 {
        all.push(rejection);
    }
    all
}

/// The private key of HPKE, and one encapsulated key that is for none of them.
fn recipient(kem: hpke::Kem, draw: &mut Draw) -> Option<Prepared> {
    let suite = hpke::Suite { kem, kdf: hpke::Kdf::Sha256, aead: hpke::Aead::Aes256Gcm };
    let other = hpke::PrivateKey::generate(kem).expect("a key").public();
    let (encapsulated, _) = suite.sender(&other, b"info", None, None).expect("a key");
    let is_key = |raw: &[u8]| hpke::PrivateKey::from_raw(kem, raw).is_ok();
    let secrets = match kem {
        hpke::Kem::P256 => scalars(draw, P256, is_key),
        hpke::Kem::P384 => scalars(draw, P384, is_key),
        hpke::Kem::P521 => scalars(draw, P521, is_key),
        _ => draw.bytes(kem.secret_bytes()),
    };
    prepared(secrets, move |raw| {
        let key = hpke::PrivateKey::from_raw(kem, raw).expect("in range");
        black_box(suite.recipient(&encapsulated, &key, b"info", None, None).is_ok());
    })
}

fn sm2() -> [Operation; 3] {
    let is_key = |raw: &[u8]| encrypt::sm2::DecryptionKey::from_raw(raw).is_ok();
    [
        Operation::new("encrypt/SM2/decrypt", move |draw| {
            let other = encrypt::sm2::DecryptionKey::generate().public();
            let ciphertext = other.encrypt(MESSAGE).expect("short enough");
            prepared(scalars(draw, SM2, is_key), move |raw| {
                let key = encrypt::sm2::DecryptionKey::from_raw(raw).expect("in range");
                let _ = black_box(key.decrypt(&ciphertext).is_ok());
            })
        }),
        Operation::new("encrypt/SM2/encrypt", move |draw| {
            let key = encrypt::sm2::DecryptionKey::generate().public();
            prepared(draw.bytes(32), move |message| {
                black_box(key.encrypt(message).expect("short enough"));
            })
        }),
        Operation::new("agree/SM2/exchange", move |draw| {
            let peers = [(); 2].map(|()| exchange::PrivateKey::generate().public_key());
            prepared(scalars(draw, SM2, is_key), move |raw| {
                let key = exchange::PrivateKey::from_raw(raw).expect("in range");
                let started =
                    exchange::Exchange::start(exchange::Role::Initiator, &key, b"identity");
                let mut shared = [0; 32];
                let [peer, ephemeral] = &peers;
                let started = started.expect("a short name");
                black_box(started.finish(peer, b"peer", ephemeral, &mut shared).is_ok());
            })
        }),
    ]
}

/// Private keys of RSA, each with its length before it and zeros after it.
fn rsa_secrets() -> Vec<Secret> {
    let padded = |der: &Vec<u8>| {
        let mut bytes = u16::try_from(der.len()).expect("2048 bits").to_be_bytes().to_vec();
        bytes.extend(der);
        bytes.resize(RSA_DER_MAX, 0);
        bytes
    };
    let named = |(i, der)| Secret::new(format!("key {i}"), padded(der));
    rsa_keys().iter().enumerate().map(named).collect()
}

/// Returns the key of [`rsa_secrets`] in PKCS #8.
fn rsa_der(secret: &[u8]) -> &[u8] {
    let (len, der) = secret.split_first_chunk().expect("a length");
    &der[..usize::from(u16::from_be_bytes(*len))]
}

/// The variable with the folder of RSA keys, which take long to generate under valgrind.
pub const RSA_KEYS: &str = "WRAITH_COUNT_RSA";
const RSA_LABEL: &str = "PRIVATE KEY";
const RSA_KEY_COUNT: usize = 3;
/// More bytes than a key of 2048 bits has in PKCS #8.
const RSA_DER_MAX: usize = 1300;
const RSA_BITS: u32 = 2048;
const RSA_BYTES: usize = RSA_BITS as usize / 8;

/// Returns keys of RSA in PKCS #8: those of the folder, or new ones.
pub fn rsa_keys() -> &'static [Vec<u8>] {
    static KEYS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let folder = std::env::var_os(RSA_KEYS).map(PathBuf::from);
        let key = |number: usize| match &folder {
            Some(folder) => {
                let text = std::fs::read_to_string(folder.join(number.to_string()));
                let text = text.expect("the folder of the variable has the keys");
                pem::decode(RSA_LABEL, &text).expect("PEM").to_vec()
            }
            None => {
                let key = rsa_pkcs1::DecryptionKey::generate(RSA_BITS).expect("a key");
                key.to_pkcs8().to_vec()
            }
        };
        (0..RSA_KEY_COUNT).map(key).collect()
    })
}

/// Writes new keys into a folder, for [`rsa_keys`].
///
/// # Errors
/// If a file cannot be written.
pub fn write_rsa_keys(folder: &std::path::Path) -> std::io::Result<()> {
    rsa_keys().iter().enumerate().try_for_each(|(i, der)| {
        std::fs::write(folder.join(i.to_string()), &*pem::encode(RSA_LABEL, der))
    })
}

/// A number of as many bytes as the modulus, and below it.
fn random_ciphertext(draw: &mut Draw) -> Vec<u8> {
    let mut bytes = draw.random_bytes(RSA_BYTES);
    bytes[0] &= 0x7f;
    bytes
}

fn rsa_decryption() -> [Operation; 4] {
    let raw = |_: &mut Draw| rsa_pkcs1::DecryptionKey::from_pkcs8(&rsa_keys()[0]).expect("a key");
    [
        // The length of the result is visible, so the message is as long as its replacement.
        Operation::new("encrypt/RSA-PKCS1/padding", move |draw| {
            let key = raw(draw);
            // The replacement may be longer than the longest message.
            let (random, len) = loop {
                let random = random_ciphertext(draw);
                let len = key.decrypt(&random).expect("a number in range").len();
                if len <= RSA_BYTES - 11 {
                    break (random, len);
                }
            };
            let message = draw.random_bytes(len);
            let right = || key.public().encrypt(&message).expect("short enough");
            let secrets = vec![
                Secret::new("right padding 1", right()),
                Secret::new("random number", random),
                Secret::new("right padding 2", right()),
            ];
            prepared(secrets, move |ciphertext| {
                black_box(key.decrypt(ciphertext).expect("a number in range"));
            })
        }),
        Operation::new("encrypt/RSA-PKCS1/key", |_| {
            let key = |secret: &[u8]| {
                let key = rsa_pkcs1::DecryptionKey::from_pkcs8(rsa_der(secret)).expect("a key");
                let ciphertext = key.public().encrypt(MESSAGE).expect("short enough");
                let _ = key.decrypt(&ciphertext);
                (key, ciphertext)
            };
            prepared_keys(rsa_secrets(), key, |(key, ciphertext)| {
                black_box(key.decrypt(ciphertext).expect("a number in range"));
            })
        }),
        // Both are refused. The reason must not be visible (Manger).
        Operation::new("encrypt/RSA-OAEP/refused", |draw| {
            let der = &rsa_keys()[0];
            let key = oaep::DecryptionKey::from_pkcs8(oaep::Hash::Sha256, der).expect("a key");
            let labelled = |label: &[u8]| {
                key.public().encrypt_with_label(label, MESSAGE).expect("short enough")
            };
            let secrets = vec![
                Secret::new("another label 1", labelled(b"one")),
                Secret::new("random number 1", random_ciphertext(draw)),
                Secret::new("another label 2", labelled(b"two")),
                Secret::new("random number 2", random_ciphertext(draw)),
            ];
            prepared(secrets, move |ciphertext| {
                let _ = black_box(key.decrypt(ciphertext).is_err());
            })
        }),
        Operation::new("encrypt/RSA-OAEP/message", |draw| {
            let der = &rsa_keys()[0];
            let key = oaep::DecryptionKey::from_pkcs8(oaep::Hash::Sha256, der).expect("a key");
            let mut secrets = draw.bytes(32);
            for Secret { bytes, .. } in &mut secrets {
                *bytes = key.public().encrypt(bytes).expect("short enough");
            }
            prepared(secrets, move |ciphertext| {
                black_box(key.decrypt(ciphertext).expect("for this key"));
            })
        }),
    ]
}
