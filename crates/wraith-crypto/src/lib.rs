#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The cryptography that a transfer needs: packets, handshakes, identities and codes. All other
//! algorithms are in `wraith-suite`. The crate has no I/O and no clock.
//!
//! | module | content | computed by |
//! |---|---|---|
//! | [`aead`] | the packet suites AES-256-GCM, ChaCha20-Poly1305 and, with the feature `sm4`, SM4-GCM, and the packet key of SPEC §3.5 | kernels, AWS-LC |
//! | [`mask`] | one AES-256 block, for header protection (SPEC §4.3) | a kernel, the crate `aes` |
//! | [`identity`] | the Ed25519 identity and its NodeId (SPEC §1) | AWS-LC; the check of the subgroup is ours, on fiat-crypto |
//! | [`agree`] | X25519 | AWS-LC |
//! | [`elligator`] | X25519 public keys that look like random bytes | ours, on fiat-crypto |
//! | [`ml_kem_768`] | the key encapsulation ML-KEM-768 | AWS-LC |
//! | [`hash`] | SHA-256 | AWS-LC |
//! | [`kdf`] | key derivation from secrets (BLAKE3) and from passwords (Argon2id) | the crates `blake3`, `argon2` |
//! | [`rand`] | random bytes | AWS-LC |
//! | [`policy`] | named sets of permitted algorithms | |
//!
//! **Backends.** "Kernels" are the vector code of `wraith-kernels`. [`Backends::Conservative`]
//! excludes all of them; without a choice they compute packets only. A kernel is used only after it
//! has passed its self-test.
//!
//! Secrets are wiped when dropped and never printed by `Debug`. Comparisons of secrets and tags are
//! constant time. `docs/CT.md` has measurements of which computations are constant time.

pub mod aead;
pub mod agree;
pub mod elligator;
mod field;
mod from_variants;
pub mod hash;
pub mod identity;
pub mod kdf;
pub mod mask;
pub mod ml_kem_768;
pub mod names;
pub mod policy;
pub mod rand;
mod redacted;
mod subgroup;
mod wire_enum;

pub use aead::{
    AeadKey, Implementation, PacketKey, Suite, TAG_BYTES, Unauthentic, aes_hardware, implementation,
};
pub use identity::{InvalidNodeId, NodeId, SecretIdentity};
pub use mask::MaskKey;
pub use names::{NAME_MAX, UnknownAlgorithm};
pub use policy::{Policy, PolicyNotBuilt};
pub use wraith_aws_lc::equal;
pub use wraith_kernels::detect::{Backends, Kernel, KernelState, Purpose, UnknownBackends};
pub use wraith_kernels::{Wiped, kernels};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
