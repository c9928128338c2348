//! Masks of header protection, sealing, and tags that do not verify.
//!
//! By design, a valid tag takes another time than a wrong one, since the bytes are then used. The
//! position of a difference must not be visible.

use rand_chacha::ChaCha20Rng;
use wraith_crypto::{AeadKey, Implementation, MaskKey, Suite, TAG_BYTES};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

/// Plan of operations that take nanoseconds.
const SHORT: Plan = Plan { measurements: 500_000, batch: 64 };
const SEAL: Plan = Plan { measurements: 300_000, batch: 2 };
const OPEN: Plan = Plan { measurements: 300_000, batch: 4 };

const FIXED_OR_RANDOM: [&str; 2] = ["one key and text", "random keys, texts"];
const WHERE: [&str; 2] = ["first byte differs", "last byte differs"];

const AES: Suite = Suite::Aes256Gcm;
const CHACHA: Suite = Suite::ChaCha20Poly1305;
const VAES_512: Implementation = Implementation::Vaes512;
const VAES_256: Implementation = Implementation::Vaes256;
const IFMA: Implementation = Implementation::Ifma;
const AWS_LC: Implementation = Implementation::AwsLc;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "mask-sample",
        classes: ["zeros", "random samples"],
        plan: SHORT,
        measure: mask_sample,
    },
    Target {
        name: "mask-key",
        classes: ["zeros", "random keys"],
        plan: Plan { measurements: 500_000, batch: 32 },
        measure: mask_key,
    },
    Target {
        name: "seal-aes-vaes512",
        classes: FIXED_OR_RANDOM,
        plan: SEAL,
        measure: |plan, rng| seal(plan, rng, AES, VAES_512),
    },
    Target {
        name: "seal-aes-vaes256",
        classes: FIXED_OR_RANDOM,
        plan: SEAL,
        measure: |plan, rng| seal(plan, rng, AES, VAES_256),
    },
    Target {
        name: "seal-aes-aws-lc",
        classes: FIXED_OR_RANDOM,
        plan: SEAL,
        measure: |plan, rng| seal(plan, rng, AES, AWS_LC),
    },
    Target {
        name: "seal-chacha-ifma",
        classes: FIXED_OR_RANDOM,
        plan: SEAL,
        measure: |plan, rng| seal(plan, rng, CHACHA, IFMA),
    },
    Target {
        name: "seal-chacha-aws-lc",
        classes: FIXED_OR_RANDOM,
        plan: SEAL,
        measure: |plan, rng| seal(plan, rng, CHACHA, AWS_LC),
    },
    Target {
        name: "tag-aes-vaes512",
        classes: WHERE,
        plan: OPEN,
        measure: |plan, rng| wrong_tag(plan, rng, AES, VAES_512),
    },
    Target {
        name: "tag-aes-vaes256",
        classes: WHERE,
        plan: OPEN,
        measure: |plan, rng| wrong_tag(plan, rng, AES, VAES_256),
    },
    Target {
        name: "tag-aes-aws-lc",
        classes: WHERE,
        plan: OPEN,
        measure: |plan, rng| wrong_tag(plan, rng, AES, AWS_LC),
    },
    Target {
        name: "tag-chacha-ifma",
        classes: WHERE,
        plan: OPEN,
        measure: |plan, rng| wrong_tag(plan, rng, CHACHA, IFMA),
    },
    Target {
        name: "tag-chacha-aws-lc",
        classes: WHERE,
        plan: OPEN,
        measure: |plan, rng| wrong_tag(plan, rng, CHACHA, AWS_LC),
    },
];

fn mask_sample(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let key = MaskKey::new(random(rng));
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = random(rng);
        if class == Class::A { [0; 16] } else { other }
    };
    Some(timed(plan, rng, input, |sample| key.mask(sample)))
}

fn mask_key(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let sample = random(rng);
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = random(rng);
        if class == Class::A { [0; 32] } else { other }
    };
    Some(timed(plan, rng, input, |key| MaskKey::new(*key).mask(&sample)))
}

/// The key is set up anew each time, in the same memory for both classes.
fn seal(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    suite: Suite,
    implementation: Implementation,
) -> Option<Times> {
    const TEXT_BYTES: usize = 1024;
    if !implementation.is_available() {
        return None;
    }
    let one = (random(rng), random(rng));
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = (random(rng), random(rng));
        if class == Class::A { one } else { other }
    };
    Some(timed(plan, rng, input, |(key, text): &([u8; 32], [u8; TEXT_BYTES])| {
        let key = AeadKey::with_implementation(suite, key, implementation)?;
        let mut text = *text;
        let tag = key.seal(Default::default(), &[], &mut text);
        Some((text, tag))
    }))
}

fn wrong_tag(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    suite: Suite,
    implementation: Implementation,
) -> Option<Times> {
    const TEXT_BYTES: usize = 256;
    if !implementation.is_available() {
        return None;
    }
    let key = AeadKey::with_implementation(suite, &random(rng), implementation)?;
    let input = |class, rng: &mut ChaCha20Rng| {
        let mut sealed: [u8; TEXT_BYTES + TAG_BYTES] = random(rng);
        let (text, tag) = sealed.split_at_mut(TEXT_BYTES);
        tag.copy_from_slice(&key.seal(Default::default(), &[], text));
        tag[if class == Class::A { 0 } else { TAG_BYTES - 1 }] ^= 1;
        sealed
    };
    Some(timed(plan, rng, input, |sealed| {
        let mut sealed = *sealed;
        key.open(Default::default(), &[], &mut sealed)
    }))
}
