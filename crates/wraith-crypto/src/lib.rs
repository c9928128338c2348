#![deny(missing_docs, unsafe_code)]
//! Cryptographic algorithms behind types that are hard to misuse: those that wraith itself uses,
//! and further ones for its users. The crate has no I/O and no clock. The caller passes keys and
//! seeds in; a function that draws them from [`rand`] says so in its documentation.
//!
//! Each kind of algorithm is a module. It has an enum `Algorithm` (`Algorithm::ALL` lists them,
//! `FromStr` finds one by name) and traits for keys of any algorithm. Many modules also have a type
//! per algorithm, for programs that choose at compile time. `docs/ALGORITHMS.md` gives
//! recommendations, limits, implementations and the sources of the tests.
//!
//! | module | content |
//! |---|---|
//! | [`aead`] | authenticated encryption: AES-GCM, CCM, GCM-SIV, ChaCha20-Poly1305, AEGIS, SM4; the packet key of SPEC §3.5; key wrap |
//! | [`cipher`] | unauthenticated modes of AES and SM4 |
//! | [`mask`] | one AES-256 block, for header protection (SPEC §4.3) |
//! | [`hash`] | hash functions: SHA-2, SHA-3, SHAKE, SM3, BLAKE2, BLAKE3 |
//! | [`mac`] | message authentication codes: HMAC, CMAC, GMAC, CBC-MAC, SipHash |
//! | [`kdf`] | key derivation from secrets (HKDF, BLAKE3) and from passwords (Argon2id, scrypt, PBKDF2) |
//! | [`sign`] | signatures: RSA, ECDSA, Ed25519, Ed448, SM2, ML-DSA, SLH-DSA |
//! | [`agree`] | key agreement: X25519, X448, ECDH, finite fields, SM2 |
//! | [`elligator`] | X25519 public keys that look like random bytes |
//! | [`kem`] | key encapsulation: ML-KEM, and hybrids of it with X25519 |
//! | [`encrypt`] | public-key encryption: HPKE, RSA, SM2 |
//! | [`bignum`] | big integers: sums, products, powers |
//! | [`rand`] | random bytes, and the generators of SP 800-90A |
//! | [`encoding`] | key formats: DER, PEM, PKCS #8, SubjectPublicKeyInfo |
//! | [`identity`] | the Ed25519 identity and its NodeId (SPEC §1) |
//!
//! There are four reasons for `unsafe`. Each module with `unsafe` code says `allow(unsafe_code)`.
//!
//! - Instructions of x86-64, called after a check that the processor has them (`x86`, `kernels`).
//! - A key built in place (`x86::gcm`).
//! - Functions of AWS-LC that aws-lc-rs does not expose, or only in a slower form (`aws`, `ec`,
//!   `rsa`, and one or two files in most of the modules above).
//! - Wiping the memory of a dropped value ([`Wiped`]).
//!
//! Secrets are wiped when dropped and never printed by `Debug`. Comparisons of secrets and tags are
//! constant time. `docs/CT.md` has measurements of which computations in this crate are constant
//! time.

pub mod aead;
pub mod agree;
mod algorithm;
mod aws;
pub mod bignum;
mod block_cipher;
pub mod cipher;
mod ec;
pub mod elligator;
pub mod encoding;
pub mod encrypt;
mod field;
mod goldilocks;
pub mod hash;
pub mod identity;
pub mod kdf;
pub mod kem;
mod kernels;
pub mod mac;
pub mod mask;
mod policy;
pub mod rand;
mod rsa;
pub mod sign;
mod sm2;
mod subgroup;
mod wiped;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use aead::{
    AeadKey, Implementation, PacketKey, Suite, TAG_BYTES, Unauthentic, aes_hardware, implementation,
};
pub use algorithm::{Backend, NAME_MAX, UnknownAlgorithm};
pub use identity::{InvalidNodeId, NodeId, SecretIdentity};
pub use mask::MaskKey;
pub use policy::Policy;
pub use wiped::Wiped;

/// Returns whether `a` and `b` are equal. The time depends only on their lengths.
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
