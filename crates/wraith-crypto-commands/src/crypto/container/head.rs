//! The header: the AEAD, the source of the key, a salt, and the commitment to the key.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | "WRAITHC1" |
//! | 1 | the AEAD |
//! | 1 | the source of the secret: 1 a key, 2 a passphrase, 3 a KEM |
//! | 0, 12 or 1 + n | nothing; Argon2id's memory in KiB, passes and lanes, u32 little-endian each; the KEM and its ciphertext |
//! | 32 | random salt |
//! | 32 | commitment |
//!
//! PRK = HKDF-Extract(SHA-256, salt, secret). For each purpose, HKDF-Expand(PRK, "wraith crypto enc
//! 1 " ‖ purpose ‖ SHA-256(all bytes before the commitment)): "key" gives the AEAD's key, "nonce"
//! the prefix of the nonces, "commitment" 32 bytes.

use wraith_suite::aead::{AeadError, Algorithm};
use wraith_suite::hash::{self, Sha256};
use wraith_suite::kdf::{Argon2Params, KdfError, argon2id, hkdf_expand, hkdf_extract};
use wraith_suite::{equal, kem, rand};
use zeroize::Zeroizing;

use super::super::input::Input;
use super::{Chunks, OpenError, Recipient, SealError, Unlock, prefix_bytes};

const MAGIC: &[u8; 8] = b"WRAITHC1";
const SALT_BYTES: usize = 32;
const COMMITMENT_BYTES: usize = 32;
const SOURCE_SECRET: u8 = 1;
const SOURCE_PASSPHRASE: u8 = 2;
const SOURCE_KEM: u8 = 3;

/// Maximum cost that a header may request: 1 GiB, 16 passes, 16 lanes.
const COST_MAX: Argon2Params = Argon2Params { memory_kib: 1 << 20, passes: 16, lanes: 16 };

/// The AEADs with their identifying bytes.
const AEADS: [(Algorithm, u8); 16] = [
    (Algorithm::Aes256Gcm, 1),
    (Algorithm::ChaCha20Poly1305, 2),
    (Algorithm::XChaCha20Poly1305, 3),
    (Algorithm::Aes128Gcm, 4),
    (Algorithm::Aes192Gcm, 5),
    (Algorithm::Aes256GcmSiv, 6),
    (Algorithm::Aes128GcmSiv, 7),
    (Algorithm::Aegis256, 8),
    (Algorithm::Aegis256X2, 9),
    (Algorithm::Aegis128L, 10),
    (Algorithm::Aegis128X2, 11),
    (Algorithm::Aes128Ccm, 12),
    (Algorithm::Aes192Ccm, 13),
    (Algorithm::Aes256Ccm, 14),
    (Algorithm::Sm4Gcm, 15),
    (Algorithm::Sm4Ccm, 16),
];

/// The KEMs with their identifying bytes.
const KEMS: [(kem::Algorithm, u8); 5] = [
    (kem::Algorithm::XWing, 1),
    (kem::Algorithm::MlKem512, 2),
    (kem::Algorithm::MlKem768, 3),
    (kem::Algorithm::MlKem1024, 4),
    (kem::Algorithm::X25519MlKem768, 5),
];

/// Makes a new header and the cipher state of its chunks.
pub fn make(algorithm: Algorithm, to: &Recipient) -> Result<(Vec<u8>, Chunks), SealError> {
    let salt: [u8; SALT_BYTES] = rand::bytes();
    let mut head = MAGIC.to_vec();
    let (_, byte) = AEADS.iter().find(|(each, _)| *each == algorithm).ok_or(SealError::Failed)?;
    head.push(*byte);
    let secret = match to {
        Recipient::Secret(secret) => {
            head.push(SOURCE_SECRET);
            secret.clone()
        }
        Recipient::Passphrase(passphrase) => {
            head.push(SOURCE_PASSPHRASE);
            let cost = Argon2Params::RECOMMENDED;
            for number in [cost.memory_kib, cost.passes, cost.lanes] {
                head.extend(number.to_le_bytes());
            }
            stretch(cost, passphrase, &salt).map_err(|_| SealError::Failed)?
        }
        Recipient::Kem(key) => {
            let of = key.algorithm();
            let (_, byte) = KEMS.iter().find(|(each, _)| *each == of).ok_or(SealError::Failed)?;
            head.extend([SOURCE_KEM, *byte]);
            let (ciphertext, secret) = key.encapsulate().map_err(|_| SealError::Failed)?;
            head.extend(ciphertext);
            secret
        }
    };
    head.extend(salt);
    let (chunks, commitment) = derive(algorithm, &head, &salt, &secret)?;
    head.extend(commitment);
    Ok((head, chunks))
}

/// Reads a header. Returns the AEAD and the cipher state of the chunks.
pub fn read(input: &mut Input, with: &Unlock) -> Result<(Algorithm, Chunks), OpenError> {
    let mut head = Vec::new();
    if take(input, &mut head, MAGIC.len()).is_err() || head != *MAGIC {
        if head.is_empty() {
            return Err(OpenError::Empty);
        }
        let is_cut = head.len() < MAGIC.len() && MAGIC.starts_with(&head);
        return Err(if is_cut { OpenError::ShortHead } else { OpenError::Foreign });
    }
    let names = take(input, &mut head, 2)?;
    let found = AEADS.iter().find(|(_, byte)| *byte == names[0]);
    let (algorithm, _) = *found.ok_or(OpenError::BadHead)?;
    let source = names[1];
    // The parameters of the secret that stand before the salt.
    let early = match source {
        SOURCE_SECRET => KeySetup::Nothing,
        SOURCE_PASSPHRASE => KeySetup::Cost(cost(&take(input, &mut head, 12)?)?),
        SOURCE_KEM => {
            let byte = take(input, &mut head, 1)?[0];
            let found = KEMS.iter().find(|(_, each)| *each == byte);
            let (kem, _) = *found.ok_or(OpenError::BadHead)?;
            KeySetup::Ciphertext(kem, take(input, &mut head, kem.ciphertext_bytes())?)
        }
        _ => return Err(OpenError::BadHead),
    };
    let salt = take(input, &mut head, SALT_BYTES)?;
    let secret = secret(&early, with, &salt)?;
    let (chunks, expected) = derive(algorithm, &head, &salt, &secret)?;
    let commitment = take(input, &mut head, COMMITMENT_BYTES)?;
    match equal(&expected, &commitment) {
        true => Ok((algorithm, chunks)),
        false => Err(OpenError::WrongSecret),
    }
}

enum KeySetup {
    Nothing,
    Cost(Argon2Params),
    Ciphertext(kem::Algorithm, Vec<u8>),
}

fn secret(early: &KeySetup, with: &Unlock, salt: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    match (early, with) {
        (KeySetup::Nothing, Unlock::Secret(secret)) => Ok(secret.clone()),
        (KeySetup::Nothing, _) => Err(OpenError::OtherSecret {
            with: "with a key in hexadecimal",
            next: "use -k FILE with the key that encrypted it",
        }),
        (KeySetup::Cost(cost), Unlock::Passphrase(passphrase)) => {
            stretch(*cost, passphrase, salt).map_err(|_| OpenError::Failed)
        }
        (KeySetup::Cost(cost), Unlock::Asked(ask)) => {
            stretch(*cost, &ask()?, salt).map_err(|_| OpenError::Failed)
        }
        (KeySetup::Cost(_), _) => Err(OpenError::OtherSecret {
            with: "with a passphrase",
            next: "use -p, or --passphrase-file FILE",
        }),
        (KeySetup::Ciphertext(kem, ciphertext), Unlock::Kem(key)) if key.algorithm() == *kem => {
            key.decapsulate(ciphertext).map_err(|_| OpenError::WrongSecret)
        }
        (KeySetup::Ciphertext(..), _) => {
            let (with, next) = match with {
                Unlock::Kem(_) => {
                    ("for the owner of another private key", "use -k FILE with that private key")
                }
                _ => ("for the owner of a private key", "use -k FILE with that private key"),
            };
            Err(OpenError::OtherSecret { with, next })
        }
    }
}

fn cost(bytes: &[u8]) -> Result<Argon2Params, OpenError> {
    let number = |i: usize| {
        let four = bytes[4 * i..4 * i + 4].try_into().expect("twelve bytes are three numbers");
        u32::from_le_bytes(four)
    };
    let cost = Argon2Params { memory_kib: number(0), passes: number(1), lanes: number(2) };
    let (found, max) = (cost, COST_MAX);
    let is_over = found.memory_kib > max.memory_kib || found.passes > max.passes;
    match is_over || found.lanes > max.lanes {
        true => Err(OpenError::TooCostly),
        false if found.passes == 0 || found.lanes == 0 => Err(OpenError::BadHead),
        false if found.memory_kib < 8 * found.lanes => Err(OpenError::BadHead),
        false => Ok(cost),
    }
}

fn stretch(
    cost: Argon2Params,
    passphrase: &[u8],
    salt: &[u8],
) -> Result<Zeroizing<Vec<u8>>, KdfError> {
    let mut secret = Zeroizing::new(vec![0; 32]);
    argon2id(cost, passphrase, salt, &mut secret)?;
    Ok(secret)
}

/// Derives the cipher state of the chunks and the commitment. Fails if the AEAD is not available.
fn derive(
    algorithm: Algorithm,
    head: &[u8],
    salt: &[u8],
    secret: &[u8],
) -> Result<(Chunks, [u8; COMMITMENT_BYTES]), AeadError> {
    let sha_256 = hash::Algorithm::Sha256;
    let digest = Sha256::digest(head);
    let mut prk = Zeroizing::new([0; 32]);
    hkdf_extract(sha_256, salt, secret, &mut *prk).expect("32 bytes have room for a SHA-256");
    let expand = |purpose: &str, out: &mut [u8]| {
        let info = [b"wraith crypto enc 1 ", purpose.as_bytes(), &digest].concat();
        hkdf_expand(sha_256, &*prk, &info, out).expect("a key is far shorter than 255 digests");
    };
    let mut key = Zeroizing::new(vec![0; algorithm.key_bytes()]);
    expand("key", &mut key);
    let mut prefix = vec![0; prefix_bytes(algorithm)];
    expand("nonce", &mut prefix);
    let mut commitment = [0; COMMITMENT_BYTES];
    expand("commitment", &mut commitment);
    Ok((Chunks::new(algorithm.key(&key)?, &prefix), commitment))
}

/// Reads the next bytes, and also appends them to `head`.
fn take(input: &mut Input, head: &mut Vec<u8>, bytes: usize) -> Result<Vec<u8>, OpenError> {
    let mut taken = vec![0; bytes];
    let filled = input.fill(&mut taken)?;
    taken.truncate(filled);
    head.extend_from_slice(&taken);
    if filled < bytes { Err(OpenError::ShortHead) } else { Ok(taken) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aead_and_kem_has_a_byte_of_its_own() {
        for algorithm in Algorithm::ALL {
            assert!(AEADS.iter().any(|(each, _)| each == algorithm), "{algorithm}");
        }
        for algorithm in kem::Algorithm::ALL {
            assert!(KEMS.iter().any(|(each, _)| each == algorithm), "{algorithm}");
        }
        let bytes: std::collections::BTreeSet<u8> = AEADS.iter().map(|(_, byte)| *byte).collect();
        assert_eq!(bytes.len(), AEADS.len());
    }

    #[test]
    fn costs_beyond_the_limits_are_refused_before_they_are_paid() {
        let of = |numbers: [u32; 3]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            cost(&bytes)
        };
        assert!(of([65536, 3, 4]).is_ok());
        for over in [[u32::MAX, 1, 1], [65536, 17, 1], [65536, 1, 17]] {
            assert!(matches!(of(over), Err(OpenError::TooCostly)), "{over:?}");
        }
        for none in [[65536, 0, 1], [65536, 1, 0], [8, 1, 2]] {
            assert!(matches!(of(none), Err(OpenError::BadHead)), "{none:?}");
        }
    }
}
