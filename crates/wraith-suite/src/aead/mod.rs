//! Authenticated encryption (AEAD) by name ([`Algorithm`]) and by type. The transport seals its
//! packets with [`PacketKey`] instead.
//!
//! Invariant, which callers must keep: no nonce is used for two seals under one key.

mod aegis;
mod algorithm;
mod aws_lc;
mod by_name;
mod ccm;
mod chacha;
mod gcm;
mod key;
pub mod key_wrap;
mod sm4_gcm;

pub use algorithm::{AeadError, Algorithm};
pub use ccm::{AesCcm, Ccm, Sm4Ccm};
pub use gcm::AesGcm;
pub use key::Aead;
pub use wraith_crypto::aead::sm4_gcm::Sm4Gcm;
pub use wraith_crypto::aead::{
    AeadKey, Implementation, NONCE_BYTES, PacketKey, Suite, TAG_BYTES, Unauthentic, aes_hardware,
    implementation,
};
