#![deny(missing_docs, unsafe_code)]
//! The cryptographic algorithms wraith is made of, and those that people ask for, behind types that are hard to misuse. No I/O and no
//! clock. Keys and seeds are passed in, or made of [`rand`] where a function says so.
//!
//! Each kind of algorithm is a module with an enum `Algorithm` (all of them: `Algorithm::ALL`; by name: `FromStr`), traits for keys of any
//! of them, and, for many, types where the program knows which one it needs. `docs/ALGORITHMS.md` says which to choose, what its limits are, what
//! computes it and what it is tested against.
//!
//! | module | what |
//! |---|---|
//! | [`aead`] | sealing and opening: AES-GCM, CCM, GCM-SIV, ChaCha20-Poly1305, AEGIS, SM4; the packet key of SPEC §3.5; key wrap |
//! | [`cipher`] | modes that hide and do not authenticate, of AES and SM4 |
//! | [`mask`] | one AES-256 block, for header protection (SPEC §4.3) |
//! | [`hash`] | hash functions: SHA-2, SHA-3, SHAKE, SM3, BLAKE2, BLAKE3 |
//! | [`mac`] | message authentication codes: HMAC, CMAC, GMAC, CBC-MAC, SipHash |
//! | [`kdf`] | keys from secrets (HKDF, BLAKE3) and from passwords (Argon2id, scrypt, PBKDF2) |
//! | [`sign`] | signatures: RSA, ECDSA, Ed25519, Ed448, SM2, ML-DSA, SLH-DSA |
//! | [`agree`] | key agreement: X25519, X448, ECDH, finite fields, SM2 |
//! | [`elligator`] | public keys of X25519 as random bytes |
//! | [`kem`] | key encapsulation: ML-KEM, and hybrids of it with X25519 |
//! | [`encrypt`] | public-key encryption: HPKE, RSA, SM2 |
//! | [`bignum`] | big integers: sums, products, powers |
//! | [`rand`] | random bytes, and the generators of SP 800-90A |
//! | [`encoding`] | keys written down: DER, PEM, PKCS #8, SubjectPublicKeyInfo |
//! | [`identity`] | the Ed25519 identity and its NodeId (SPEC §1) |
//!
//! `unsafe` appears for four reasons, and each module with one of them says `allow(unsafe_code)`: to call instructions of x86-64 after having
//! made sure of them (`x86`, `kernels`), to build a key where it stays (`x86::gcm`), to call what AWS-LC has and aws-lc-rs does not pass on, or not as fast (`aws`, `ec`, `rsa`, and in
//! most of the modules above a file or two), and to wipe memory whose value is gone ([`Wiped`]).
//!
//! Secrets are wiped when dropped and never printed by `Debug`. Comparisons of secrets and tags take constant time. Whether what is computed
//! here does is measured (`docs/CT.md`).

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

/// Whether `a` and `b` are equal, in time that depends on their lengths only.
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
