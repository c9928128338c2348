//! X25519 and ML-KEM-768.
//!
//! Two operations are not targets, as they depend only on public data. The prime-order check
//! applies only to public keys, and KEM key generation draws again by a public part of the seed.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use wraith_crypto::agree::{x25519, x25519_public};
use wraith_crypto::ml_kem_768::{CIPHERTEXT_BYTES, DecapsulationKey, encapsulate};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

const LONG: Plan = Plan { measurements: 200_000, batch: 1 };

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "x25519-secret",
        classes: ["zeros", "random secrets"],
        plan: LONG,
        measure: agree,
    },
    Target {
        name: "x25519-public-of",
        classes: ["zeros", "random secrets"],
        plan: LONG,
        measure: public_of,
    },
    Target {
        name: "kem-tampered",
        classes: ["right ciphertexts", "with a changed bit"],
        plan: LONG,
        measure: |plan, rng| {
            decapsulate(plan, rng, |class, right, rng| {
                let bit = rng.next_u32() as usize % (8 * CIPHERTEXT_BYTES);
                right[bit / 8] ^= u8::from(class == Class::B) << (bit % 8);
            })
        },
    },
    Target {
        name: "kem-random",
        classes: ["right ciphertexts", "random bytes"],
        plan: LONG,
        measure: |plan, rng| {
            decapsulate(plan, rng, |class, right, rng| {
                let other = random(rng);
                if class == Class::B {
                    *right = other;
                }
            })
        },
    },
    Target {
        name: "kem-secret",
        classes: ["one ciphertext", "others, right too"],
        plan: LONG,
        measure: |plan, rng| {
            let mut one = None;
            decapsulate(plan, rng, move |class, right, _| {
                let one = *one.get_or_insert(*right);
                if class == Class::A {
                    *right = one;
                }
            })
        },
    },
    Target {
        name: "kem-encapsulate",
        classes: ["zeros", "random seeds"],
        plan: LONG,
        measure: encapsulated,
    },
];

fn secret(class: Class, rng: &mut ChaCha20Rng) -> [u8; 32] {
    let other = random(rng);
    if class == Class::A { [0; 32] } else { other }
}

fn agree(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let public = x25519_public(&random(rng));
    Some(timed(plan, rng, secret, |secret| x25519(secret, &public)))
}

fn public_of(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    Some(timed(plan, rng, secret, x25519_public))
}

fn encapsulated(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let key = DecapsulationKey::from_seed(&random(rng)).encapsulation_key();
    Some(timed(plan, rng, secret, |seed| encapsulate(&key, seed)))
}

/// Decapsulates valid ciphertexts, which `change` modifies according to the class.
fn decapsulate(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    mut change: impl FnMut(Class, &mut [u8; CIPHERTEXT_BYTES], &mut ChaCha20Rng),
) -> Option<Times> {
    let key = DecapsulationKey::from_seed(&random(rng));
    let public = key.encapsulation_key();
    let input = |class, rng: &mut ChaCha20Rng| {
        let (mut ciphertext, _) = encapsulate(&public, &random(rng)).expect("a key from a seed");
        change(class, &mut ciphertext, rng);
        ciphertext
    };
    Some(timed(plan, rng, input, |ciphertext| key.decapsulate(ciphertext)))
}
