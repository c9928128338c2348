//! Public-key algorithms of the suite:
//!
//! - those that our code alone computes (X448, Ed448, SLH-DSA), or with and without a kernel (SM2);
//! - those that our code computes with all kernels, and AWS-LC without: P-224, public keys of P-256,
//!   brainpool's curves, finite-field Diffie-Hellman, powers of big integers;
//! - the answers of RSA to invalid ciphertexts.
//!
//! The timed code builds the private key from its bytes. Nonces and blinding come from the system:
//! noise in both classes.

use rand_chacha::ChaCha20Rng;
use wraith_suite::agree::ffdhe::{self, Group};
use wraith_suite::agree::{self, X448_BYTES, ecdh, x448, x448_public};
use wraith_suite::bignum::Uint;
use wraith_suite::encrypt::{self, DecryptionKey as _, EncryptionKey as _, rsa as oaep, rsa_pkcs1};
use wraith_suite::sign::{self, SigningKey as _, ed448, slh_dsa};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

const FEW_ONES_OR_RANDOM: [&str; 2] = ["few ones", "random keys"];
/// Plan of operations that take a tenth of a millisecond.
const PLAN: Plan = Plan { measurements: 30_000, batch: 1 };
/// Plan of operations that take a millisecond or more.
const SLOW: Plan = Plan { measurements: 6_000, batch: 1 };

const RSA_BITS: u32 = 2048;
const RSA_BYTES: usize = 256;
const MESSAGE: &[u8; 32] = b"a key of 32 bytes, as is usual..";

pub(super) const TARGETS: &[Target] = &[
    Target { name: "sm2-sign", classes: FEW_ONES_OR_RANDOM, plan: PLAN, measure: sm2_sign },
    Target { name: "sm2-decrypt", classes: FEW_ONES_OR_RANDOM, plan: PLAN, measure: sm2_decrypt },
    Target {
        name: "x448-secret",
        classes: ["zeros", "random secrets"],
        plan: PLAN,
        measure: x448_secret,
    },
    Target { name: "ed448-sign", classes: FEW_ONES_OR_RANDOM, plan: PLAN, measure: ed448_sign },
    Target {
        name: "ecdh-p224",
        classes: FEW_ONES_OR_RANDOM,
        plan: PLAN,
        measure: |plan, rng| ecdh_agree::<28>(plan, rng, ecdh::Curve::P224),
    },
    Target {
        name: "ecdh-p256-public",
        classes: FEW_ONES_OR_RANDOM,
        plan: PLAN,
        measure: ecdh_p256_public,
    },
    Target {
        name: "ecdh-brainpool-256",
        classes: FEW_ONES_OR_RANDOM,
        plan: SLOW,
        measure: |plan, rng| ecdh_agree::<32>(plan, rng, ecdh::Curve::BrainpoolP256r1),
    },
    Target {
        name: "ecdh-brainpool-384",
        classes: FEW_ONES_OR_RANDOM,
        plan: SLOW,
        measure: |plan, rng| ecdh_agree::<48>(plan, rng, ecdh::Curve::BrainpoolP384r1),
    },
    Target {
        name: "ecdh-brainpool-512",
        classes: FEW_ONES_OR_RANDOM,
        plan: SLOW,
        measure: |plan, rng| ecdh_agree::<64>(plan, rng, ecdh::Curve::BrainpoolP512r1),
    },
    Target {
        name: "ecdsa-brainpool-256",
        classes: FEW_ONES_OR_RANDOM,
        plan: SLOW,
        measure: ecdsa_sign,
    },
    Target { name: "ffdhe-2048", classes: FEW_ONES_OR_RANDOM, plan: SLOW, measure: ffdhe_agree },
    Target {
        name: "bignum-power",
        classes: ["few ones", "random exponents"],
        plan: SLOW,
        measure: power,
    },
    Target {
        name: "rsa-pkcs1-padding",
        classes: ["right ciphertexts", "random numbers"],
        plan: SLOW,
        measure: rsa_pkcs1_padding,
    },
    Target {
        name: "rsa-oaep-padding",
        classes: ["another label", "random numbers"],
        plan: SLOW,
        measure: rsa_oaep_padding,
    },
    Target {
        name: "slh-dsa-sign",
        classes: FEW_ONES_OR_RANDOM,
        plan: Plan { measurements: 1_000, batch: 1 },
        measure: slh_dsa_sign,
    },
];

/// Class A has scalars with two set bits, which a ladder or window that branches on bits would
/// process faster. Class B has random ones. All start with the same two bits, so they are equally
/// long and below the order of every tested group.
fn scalars<const N: usize>(class: Class, rng: &mut ChaCha20Rng) -> [u8; N] {
    let mut random: [u8; N] = random(rng);
    random[0] = 0x20 | random[0] & 0x1f;
    let mut few = [0; N];
    (few[0], few[N - 1]) = (0x20, 1);
    if class == Class::A { few } else { random }
}

fn sm2_sign(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    Some(timed(plan, rng, scalars::<32>, |raw| {
        sign::sm2::SigningKey::from_raw(raw).expect("a number in range").sign_fixed(MESSAGE)
    }))
}

/// The product of a point and the private key, and the steps after it if the ciphertext was made
/// for another key.
fn sm2_decrypt(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let right = encrypt::sm2::DecryptionKey::from_raw(&scalars::<32>(Class::B, rng)).ok()?;
    let ciphertext = right.public().encrypt(MESSAGE).expect("short enough");
    Some(timed(plan, rng, scalars::<32>, |raw| {
        let key = encrypt::sm2::DecryptionKey::from_raw(raw).expect("a number in range");
        key.decrypt(&ciphertext)
    }))
}

fn x448_secret(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let public = x448_public(&random(rng));
    let input = |class, rng: &mut ChaCha20Rng| {
        let other: [u8; X448_BYTES] = random(rng);
        if class == Class::A { [0; X448_BYTES] } else { other }
    };
    Some(timed(plan, rng, input, |secret| x448(secret, &public)))
}

fn ed448_sign(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    Some(timed(plan, rng, scalars::<{ ed448::SEED_BYTES }>, |seed| {
        ed448::SigningKey::from_seed(seed).sign_message(MESSAGE)
    }))
}

fn ecdh_agree<const N: usize>(
    plan: Plan,
    rng: &mut ChaCha20Rng,
    curve: ecdh::Curve,
) -> Option<Times> {
    use agree::PrivateKey as _;
    let peer = ecdh::PrivateKey::generate(curve).ok()?.public_key();
    Some(timed(plan, rng, scalars::<N>, |raw| {
        ecdh::PrivateKey::from_scalar(curve, raw).expect("a number in range").agree(&peer)
    }))
}

fn ecdh_p256_public(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    use agree::PrivateKey as _;
    Some(timed(plan, rng, scalars::<32>, |raw| {
        let key = ecdh::PrivateKey::from_scalar(ecdh::Curve::P256, raw);
        key.expect("a number in range").public_key()
    }))
}

fn ecdsa_sign(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let curve = sign::ecdsa::Curve::BrainpoolP256r1;
    Some(timed(plan, rng, scalars::<32>, |raw| {
        sign::ecdsa::SigningKey::from_scalar(curve, raw).expect("a number in range").sign(MESSAGE)
    }))
}

fn ffdhe_agree(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    use agree::PrivateKey as _;
    const GROUP: Group = Group::Ffdhe2048;
    /// Minimum length of an exponent, rounded down to whole bytes.
    const EXPONENT_BYTES: usize = GROUP.exponent_bits() / 8;
    let peer = ffdhe::PrivateKey::generate(GROUP).ok()?.public_key();
    Some(timed(plan, rng, scalars::<EXPONENT_BYTES>, |raw| {
        ffdhe::PrivateKey::from_raw(GROUP, raw).expect("a number in range").agree(&peer)
    }))
}

/// An exponent of 256 bits, modulo a number of 2048.
fn power(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let modulus = Group::Ffdhe2048.prime();
    let base = Uint::from_be_bytes(&random::<RSA_BYTES>(rng)).ok()?;
    Some(timed(plan, rng, scalars::<32>, |exponent| {
        let exponent = Uint::from_be_bytes(exponent).expect("short enough");
        base.mod_exp(&exponent, modulus)
    }))
}

/// A number of as many bytes as the modulus, and below it.
fn random_ciphertext(rng: &mut ChaCha20Rng) -> [u8; RSA_BYTES] {
    let mut bytes: [u8; RSA_BYTES] = random(rng);
    bytes[0] &= 0x7f;
    bytes
}

/// The time must not reveal whether a padding is valid: an attacker that sees it can decrypt
/// (Bleichenbacher).
fn rsa_pkcs1_padding(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let key = rsa_pkcs1::DecryptionKey::generate(RSA_BITS).ok()?;
    let public = key.public();
    let input = |class, rng: &mut ChaCha20Rng| {
        let right = public.encrypt(MESSAGE).expect("short enough");
        let right: [u8; RSA_BYTES] = right.try_into().expect("as long as the modulus");
        let other = random_ciphertext(rng);
        if class == Class::A { right } else { other }
    };
    Some(timed(plan, rng, input, |ciphertext| key.decrypt(ciphertext).map(|text| text.len())))
}

/// The time must not reveal why a ciphertext is refused either: its first byte, or the hash of the
/// label (Manger).
fn rsa_oaep_padding(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let key = oaep::DecryptionKey::generate(oaep::Hash::Sha256, RSA_BITS).ok()?;
    let public = key.public();
    let input = |class, rng: &mut ChaCha20Rng| {
        let labelled = public.encrypt_with_label(b"another", MESSAGE).expect("short enough");
        let labelled: [u8; RSA_BYTES] = labelled.try_into().expect("as long as the modulus");
        let other = random_ciphertext(rng);
        if class == Class::A { labelled } else { other }
    };
    Some(timed(plan, rng, input, |ciphertext| key.decrypt(ciphertext)))
}

fn slh_dsa_sign(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    Some(timed(plan, rng, scalars::<48>, |seeds| {
        slh_dsa::SigningKey::from_seeds(sign::Algorithm::SlhDsaSha2_128f, seeds)
            .expect("their length")
            .sign(MESSAGE)
    }))
}
