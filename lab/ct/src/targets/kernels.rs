//! Ciphers, AEADs, MACs and paddings of the suite that kernels compute: SM4, AES in its modes,
//! ChaCha20-Poly1305, HMAC over SM3 and SHA-512. Without kernels, AWS-LC or portable code does.
//!
//! Keys are set up anew each time, in the same memory for both classes. The suite chooses the
//! kernel for this processor.

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use wraith_suite::cipher::{self, BLOCK_BYTES};
use wraith_suite::{aead, mac};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

/// Plan of operations that take a few microseconds.
const PLAN: Plan = Plan { measurements: 100_000, batch: 1 };
const TEXT_BYTES: usize = 1024;

const FIXED_OR_RANDOM: [&str; 2] = ["one key and text", "random keys, texts"];
const ZEROS_OR_RANDOM: [&str; 2] = ["zeros", "random keys"];

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "seal-sm4-gcm",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: |plan, rng| {
            fixed_or_random(plan, rng, |key: &[u8; 16], text: &[u8; TEXT_BYTES]| {
                sealed(aead::Algorithm::Sm4Gcm, key, text)
            })
        },
    },
    Target {
        name: "seal-chacha-100",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: seal_chacha::<100>,
    },
    Target {
        name: "seal-chacha-400",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: seal_chacha::<400>,
    },
    Target {
        name: "seal-chacha-700",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: seal_chacha::<700>,
    },
    Target {
        name: "seal-chacha-2048",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: seal_chacha::<2048>,
    },
    Target {
        name: "cbc-sm4",
        classes: FIXED_OR_RANDOM,
        plan: Plan { measurements: 60_000, batch: 1 },
        measure: |plan, rng| {
            fixed_or_random(plan, rng, |key: &[u8; 16], text: &[u8; TEXT_BYTES]| {
                encrypted(cipher::Algorithm::Sm4Cbc, key, text)
            })
        },
    },
    Target {
        name: "cbc-aes-256",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: |plan, rng| {
            fixed_or_random(plan, rng, |key: &[u8; 32], text: &[u8; TEXT_BYTES]| {
                encrypted(cipher::Algorithm::Aes256Cbc, key, text)
            })
        },
    },
    Target {
        name: "ctr-aes-256",
        classes: FIXED_OR_RANDOM,
        plan: Plan { measurements: 100_000, batch: 4 },
        measure: |plan, rng| {
            fixed_or_random(plan, rng, |key: &[u8; 32], text: &[u8; TEXT_BYTES]| {
                encrypted(cipher::Algorithm::Aes256Ctr, key, text)
            })
        },
    },
    Target {
        name: "cmac-aes-256",
        classes: FIXED_OR_RANDOM,
        plan: PLAN,
        measure: |plan, rng| {
            fixed_or_random(plan, rng, |key: &[u8; 32], text: &[u8; TEXT_BYTES]| {
                authenticated(mac::Algorithm::CmacAes256, key, text)
            })
        },
    },
    Target {
        name: "hmac-sm3",
        classes: ZEROS_OR_RANDOM,
        plan: PLAN,
        measure: |plan, rng| hmac(plan, rng, mac::Algorithm::HmacSm3),
    },
    Target {
        name: "hmac-sha-512",
        classes: ZEROS_OR_RANDOM,
        plan: PLAN,
        measure: |plan, rng| hmac(plan, rng, mac::Algorithm::HmacSha512),
    },
    Target {
        name: "padding-length",
        classes: ["one byte", "sixteen bytes"],
        plan: Plan { measurements: 300_000, batch: 64 },
        measure: |plan, rng| padding(plan, rng, [Padding::Good(1), Padding::Good(16)]),
    },
    Target {
        name: "padding-where",
        classes: ["first byte differs", "last but one differs"],
        plan: Plan { measurements: 300_000, batch: 64 },
        measure: |plan, rng| padding(plan, rng, [Padding::Wrong(0), Padding::Wrong(14)]),
    },
];

/// Times `operation` on one fixed key and text, and on random ones.
fn fixed_or_random<const N: usize, const T: usize, R>(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    operation: impl Fn(&[u8; N], &[u8; T]) -> R,
) -> Option<Times> {
    let one = (random(rng), random(rng));
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = (random(rng), random(rng));
        if class == Class::A { one } else { other }
    };
    Some(timed(plan, rng, input, |(key, text)| operation(key, text)))
}

/// Seals `T` bytes; the lengths cover each code path.
fn seal_chacha<const T: usize>(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    fixed_or_random(plan, rng, |key: &[u8; 32], text: &[u8; T]| {
        sealed(aead::Algorithm::ChaCha20Poly1305, key, text)
    })
}

fn sealed<const T: usize>(
    algorithm: aead::Algorithm,
    key: &[u8],
    text: &[u8; T],
) -> ([u8; T], [u8; 16]) {
    let key = algorithm.key(key).expect("its length");
    let (mut text, mut tag) = (*text, [0; 16]);
    key.seal_detached(&[0; 12], &[], &mut text, &mut tag).expect("short enough");
    (text, tag)
}

fn encrypted(
    algorithm: cipher::Algorithm,
    key: &[u8],
    text: &[u8; TEXT_BYTES],
) -> [u8; TEXT_BYTES] {
    let mut cipher = algorithm.start(key, &[0; BLOCK_BYTES]).expect("their lengths");
    let mut text = *text;
    cipher.encrypt(&mut text).expect("whole blocks");
    text
}

fn authenticated(algorithm: mac::Algorithm, key: &[u8], text: &[u8]) -> [u8; mac::TAG_MAX] {
    let mut mac = algorithm.start(key, &[]).expect("a key's length");
    mac.update(text);
    let mut tag = [0; mac::TAG_MAX];
    mac.finish_into(&mut tag);
    tag
}

fn hmac(plan: Plan, rng: &mut ChaCha20Rng, algorithm: mac::Algorithm) -> Option<Times> {
    let text: [u8; TEXT_BYTES] = random(rng);
    let input = |class, rng: &mut ChaCha20Rng| {
        let other: [u8; 32] = random(rng);
        if class == Class::A { [0; 32] } else { other }
    };
    Some(timed(plan, rng, input, |key| authenticated(algorithm, key, &text)))
}

/// End of a text.
#[derive(Clone, Copy)]
enum Padding {
    /// This many bytes of valid padding.
    Good(u8),
    /// A whole block of padding, in which this byte is wrong.
    Wrong(usize),
}

/// Both classes are valid, or neither: the result is visible anyway.
fn padding(plan: Plan, rng: &mut ChaCha20Rng, ends: [Padding; 2]) -> Option<Times> {
    const BYTES: usize = 2 * BLOCK_BYTES;
    let input = |class: Class, rng: &mut ChaCha20Rng| {
        let mut text: [u8; BYTES] = random(rng);
        match ends[class as usize] {
            Padding::Good(added) => text[BYTES - usize::from(added)..].fill(added),
            Padding::Wrong(at) => {
                text[BLOCK_BYTES..].fill(BLOCK_BYTES as u8);
                text[BLOCK_BYTES + at] ^= 1 + (rng.next_u32() % 255) as u8;
            }
        }
        text
    };
    Some(timed(plan, rng, input, |text| cipher::unpadded_len(text)))
}
