//! Code that leaks, with the kinds of leaks that real programs had. A run that does not find all of
//! them proves nothing.

use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use wraith_crypto::agree::x25519_public;
use wraith_crypto::ml_kem_768::{DecapsulationKey, encapsulate};
use wraith_crypto::{MaskKey, equal, kdf};

use crate::measure::{Class, Plan, Times, timed};
use crate::targets::{Target, random};

/// Every control, as [`Target`]s that must fail.
pub const CONTROLS: &[Target] = &[
    Target {
        name: "leak-compare",
        classes: ["first byte differs", "last byte differs"],
        plan: Plan { measurements: 200_000, batch: 16 },
        measure: compare,
    },
    Target {
        name: "leak-exponent",
        classes: ["few ones", "random exponents"],
        plan: Plan { measurements: 200_000, batch: 4 },
        measure: exponent,
    },
    Target {
        name: "leak-inverse",
        classes: ["one", "random numbers"],
        plan: Plan { measurements: 200_000, batch: 1 },
        measure: inverse,
    },
    Target {
        name: "leak-table",
        classes: ["one input", "random inputs"],
        plan: Plan { measurements: 200_000, batch: 1 },
        measure: table,
    },
    Target {
        name: "leak-kem",
        classes: ["right ciphertexts", "with a changed bit"],
        plan: Plan { measurements: 100_000, batch: 1 },
        measure: kem,
    },
    Target {
        name: "leak-slight",
        classes: ["even secrets", "odd secrets"],
        plan: Plan { measurements: 200_000, batch: 1 },
        measure: slight,
    },
];

/// A comparison that stops at the first difference, as `memcmp` may.
fn compare(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let input = |class, rng: &mut ChaCha20Rng| {
        let right: [u8; 32] = random(rng);
        let mut said = right;
        said[if class == Class::A { 0 } else { 31 }] ^= 1;
        (right, said)
    };
    Some(timed(plan, rng, input, |(right, said)| {
        right.iter().zip(said).all(|(a, b)| black_box(*a) == *b)
    }))
}

/// 2^61 − 1.
pub(crate) const PRIME: u64 = (1 << 61) - 1;

/// Square and multiply, with a multiplication for each set bit: textbook RSA.
fn exponent(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let base = rng.next_u64() % PRIME;
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = rng.next_u64();
        if class == Class::A { 1 << 63 | 1 } else { other }
    };
    Some(timed(plan, rng, input, |exponent: &u64| power(base, *exponent)))
}

/// Returns `base` to the power of `exponent` modulo [`PRIME`].
pub(crate) fn power(base: u64, exponent: u64) -> u64 {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64;
    let mut power = 1;
    for bit in (0..64).rev() {
        power = times(power, power);
        if exponent >> bit & 1 == 1 {
            power = times(power, black_box(base));
        }
    }
    power
}

/// A modular inverse by Euclid's algorithm: the number of steps depends on the input. An
/// Elligator2 in variable time would divide this way.
fn inverse(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = 1 + rng.next_u64() % (PRIME - 1);
        if class == Class::A { 1 } else { other }
    };
    Some(timed(plan, rng, input, |number| euclid(*number)))
}

/// The inverse modulo [`PRIME`].
pub(crate) fn euclid(number: u64) -> u64 {
    let (mut a, mut b) = (i128::from(PRIME), i128::from(number));
    let (mut x, mut y) = (0, 1);
    while b != 0 {
        (a, b, x, y) = (b, a % b, y, x - a / b * y);
    }
    x.rem_euclid(i128::from(PRIME)) as u64
}

/// A table lookup by a secret index, in which each index depends on the previous value. The table
/// is larger than the first-level cache. (The tables of AES from the 1990s fit into it; their leak
/// is visible only to an attacker that flushes the cache.)
fn table(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    const ROW_BYTES: usize = 16 << 10;
    let mut table = vec![0; 256 * ROW_BYTES];
    rng.fill_bytes(&mut table);
    let one: [u8; 16] = random(rng);
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = random(rng);
        if class == Class::A { one } else { other }
    };
    Some(timed(plan, rng, input, |secret: &[u8; 16]| {
        let step = |state: u8, (at, byte): (usize, &u8)| {
            table[usize::from(state ^ byte) * ROW_BYTES + at * 64]
        };
        secret.iter().enumerate().fold(0, step)
    }))
}

/// A KEM with explicit rejection, which derives a key only from accepted ciphertexts.
fn kem(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let key = DecapsulationKey::from_seed(&random(rng));
    let public = key.encapsulation_key();
    let input = |class, rng: &mut ChaCha20Rng| {
        let (mut ciphertext, secret) = encapsulate(&public, &random(rng)).expect("a key");
        ciphertext[7] ^= u8::from(class == Class::B);
        (ciphertext, *secret)
    };
    Some(timed(plan, rng, input, |(ciphertext, right)| {
        let secret = key.decapsulate(ciphertext);
        equal(&*secret, right).then(|| kdf::hash(ciphertext))
    }))
}

/// X25519 with one percent more work for odd secrets: a small leak that is still found.
fn slight(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    const BLOCKS: usize = 5;
    let mask = MaskKey::new(random(rng));
    let input = |class, rng: &mut ChaCha20Rng| {
        let mut secret: [u8; 32] = random(rng);
        secret[0] = secret[0] & !1 | u8::from(class == Class::B);
        secret
    };
    Some(timed(plan, rng, input, |secret| {
        let public = x25519_public(secret);
        let block = [0; 16];
        let more = if secret[0] & 1 == 1 { BLOCKS } else { 0 };
        (public, (0..more).fold(block, |block, _| mask.mask(&block)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn euclid_inverts() {
        for number in [1, 2, 3, 1 << 60, PRIME - 1] {
            let product = u128::from(number) * u128::from(euclid(number));
            assert_eq!(product % u128::from(PRIME), 1);
        }
    }
}
