#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! Cryptographic algorithms behind types that are hard to misuse, for users of wraith: a transfer
//! does not need this crate. The crate has no I/O and no clock. The caller passes keys and seeds in;
//! a function that draws them from [`rand`] says so in its documentation.
//!
//! Each kind of algorithm is a module. It has an enum `Algorithm` (`Algorithm::ALL` lists them,
//! `FromStr` finds one by name) and traits for keys of any algorithm. Many modules also have a type
//! per algorithm, for programs that choose at compile time. `docs/ALGORITHMS.md` gives
//! recommendations, limits, implementations and the sources of the tests.
//!
//! | module | content |
//! |---|---|
//! | [`aead`] | authenticated encryption: AES-GCM, CCM, GCM-SIV, ChaCha20-Poly1305, AEGIS, SM4; key wrap |
//! | [`cipher`] | unauthenticated modes of AES and SM4 |
//! | [`hash`] | hash functions: SHA-2, SHA-3, SHAKE, SM3, BLAKE2, BLAKE3 |
//! | [`mac`] | message authentication codes: HMAC, CMAC, GMAC, CBC-MAC, SipHash |
//! | [`kdf`] | key derivation from secrets (HKDF, BLAKE3) and from passwords (Argon2id, scrypt, PBKDF2) |
//! | [`sign`] | signatures: RSA, ECDSA, Ed25519, Ed448, SM2, ML-DSA, SLH-DSA |
//! | [`agree`] | key agreement: X25519, X448, ECDH, finite fields, SM2 |
//! | [`kem`] | key encapsulation: ML-KEM, and hybrids of it with X25519 |
//! | [`encrypt`] | public-key encryption: HPKE, RSA, SM2 |
//! | [`bignum`] | big integers: sums, products, powers |
//! | [`rand`] | random bytes, and the generators of SP 800-90A |
//! | [`encoding`] | key formats: DER, PEM, PKCS #8, SubjectPublicKeyInfo |
//!
//! **Backends.** AWS-LC, a few other libraries and kernels of `wraith-kernels` compute the
//! algorithms; `Algorithm::backend()` names the one in use. Without a choice, kernels compute hashes
//! and bulk encryption, also inside other operations. Signatures, key agreement, key encapsulation and public-key encryption use
//! libraries, and portable code where no library here has the algorithm. [`Backends::Fast`] allows
//! all kernels, [`Backends::Conservative`] none.
//!
//! Secrets are wiped when dropped and never printed by `Debug`. Comparisons of secrets and tags are
//! constant time. `docs/CT.md` has measurements of which computations are constant time.

pub mod aead;
pub mod agree;
mod algorithm;
pub mod bignum;
pub mod cipher;
mod ec;
pub mod encoding;
pub mod encrypt;
mod goldilocks;
pub mod hash;
pub mod kdf;
pub mod kem;
pub mod mac;
mod policy;
pub mod rand;
mod rsa;
pub mod sign;
mod sm2;

pub use aead::{AeadKey, Implementation, PacketKey, Suite, TAG_BYTES, Unauthentic};
pub use algorithm::Backend;
pub use wraith_crypto::{
    Backends, Kernel, KernelState, NAME_MAX, Policy, UnknownAlgorithm, Wiped, aes_hardware, equal,
    kernels,
};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    /// Reports past the test harness that a kernel was not tested here, for a reason that no
    /// installation could change.
    pub(crate) fn unchecked(why: &str) {
        let thread = std::thread::current();
        let line = format!("unchecked: {}: {why}\n", thread.name().unwrap_or("a test"));
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    }

    /// Returns `len` pseudorandom bytes, the same in each run. They have no pattern that wrong code
    /// could match by chance.
    pub(crate) fn bytes(len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        blake3::Hasher::new().update(b"kernels").finalize_xof().fill(&mut out);
        out
    }
}
