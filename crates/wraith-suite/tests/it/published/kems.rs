//! Key encapsulation.

use wraith_suite::{
    hash,
    kem::{self, hybrid, ml_kem},
};

use super::{ensure, hex, message, published, same};

fn set(algorithm: kem::Algorithm) -> Result<ml_kem::Set, String> {
    Ok(match algorithm {
        kem::Algorithm::MlKem512 => ml_kem::Set::MlKem512,
        kem::Algorithm::MlKem768 => ml_kem::Set::MlKem768,
        kem::Algorithm::MlKem1024 => ml_kem::Set::MlKem1024,
        _ => return Err(format!("{algorithm} is not ML-KEM")),
    })
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    hash::digest(hash::Algorithm::Sha256, bytes)
}

/// Encapsulates with the randomness of a vector. Returns ciphertext and secret.
fn encapsulate(name: &str, key: &[u8], seed: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let algorithm: kem::Algorithm = name.parse().map_err(message)?;
    let made = if algorithm == kem::Algorithm::XWing {
        hybrid::EncapsulationKey::from_raw(hybrid::Hybrid::XWing, key)
            .and_then(|key| key.encapsulate_from_seed(seed.try_into().unwrap()))
    } else {
        ml_kem::EncapsulationKey::from_raw(set(algorithm)?, key)
            .and_then(|key| key.encapsulate_from_seed(seed.try_into().unwrap()))
    };
    made.map(|(ciphertext, secret)| (ciphertext, secret.to_vec())).map_err(message)
}

/// Checks one of:
///
/// - `KEM|generate|seed||| SHA-256 of the encapsulation key`,
/// - `KEM|encapsulate|encapsulation key|randomness|SHA-256 of the ciphertext|secret`; `!` and
///   nothing if the key has to be refused,
/// - `KEM|decapsulate|seed|ciphertext||secret`; `!` and nothing if the ciphertext has to be refused.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, operation, key, input, output, secret] = fields else {
        return Err("six fields".into());
    };
    let algorithm: kem::Algorithm = name.parse().map_err(message)?;
    let (key, input, secret) = (hex(key), hex(input), hex(secret));
    match *operation {
        "generate" => {
            let made = algorithm.decapsulation_key(&key).map_err(message)?;
            same("encapsulation key", &digest(&made.encapsulation_key().to_raw()), &secret)
        }
        "encapsulate" => match (*output, encapsulate(name, &key, &input)) {
            ("!", made) => ensure("a bad key is refused", made.is_err()),
            (output, made) => {
                let (ciphertext, made) = made?;
                same("ciphertext", &digest(&ciphertext), &hex(output))?;
                same("secret", &made, &secret)
            }
        },
        "decapsulate" => {
            let made = algorithm.decapsulation_key(&key).map_err(message)?.decapsulate(&input);
            match *output {
                "!" => ensure("a bad ciphertext is refused", made.is_err()),
                _ => same("secret", &made.map_err(message)?, &secret),
            }
        }
        _ => Err("a known operation".into()),
    }
}

/// Checks `KEM|encapsulation key|number of a coefficient|value`. With the value, which is not below
/// the modulus, the key has to be refused.
fn check_modulus(fields: &[&'static str]) -> Result<(), String> {
    let [name, key, number, value] = fields else { return Err("four fields".into()) };
    let algorithm: kem::Algorithm = name.parse().map_err(message)?;
    let mut key = hex(key);
    algorithm.encapsulation_key(&key).map_err(message)?;
    let (number, value): (usize, u32) =
        (number.parse().map_err(message)?, value.parse().map_err(message)?);
    // Two coefficients of 12 bits are three bytes, little-endian.
    let (at, shift) = (number / 2 * 3, number % 2 * 12);
    let both = u32::from_le_bytes([key[at], key[at + 1], key[at + 2], 0]);
    let both = both & !(0xfff << shift) | value << shift;
    key[at..at + 3].copy_from_slice(&both.to_le_bytes()[..3]);
    ensure("a coefficient is refused", algorithm.encapsulation_key(&key).is_err())
}

published! {
    openssl_s_kems_come_out: check("openssl/kems.txt", 492);
    cctv_s_unlucky_samples_of_ml_kem_come_out: check("cctv/ml_kem.txt", 6);
    coefficients_that_are_not_below_the_modulus_are_refused_everywhere:
        check_modulus("cctv/ml_kem_moduli.txt", 2595);
    x_wing_comes_out_as_boringssl_s: check("boringssl/kems.txt", 56);
}
