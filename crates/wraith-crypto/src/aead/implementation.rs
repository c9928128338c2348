//! What computes a suite: code of ours for the processors that have what it takes, else AWS-LC.

use std::fmt;

use super::{AeadKey, Suite};
#[cfg(target_arch = "x86_64")]
use crate::x86::Width;

/// Whether this processor computes AES and GHASH in hardware; without that ChaCha20-Poly1305 is faster.
#[must_use]
pub fn aes_hardware() -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        // On AArch64 "aes" includes the polynomial multiplication that GHASH needs.
        std::arch::is_aarch64_feature_detected!("aes")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    {
        false
    }
}

/// What computes a suite. The fastest that this processor can is taken unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// Ours, with 512-bit vectors: x86-64 with VAES, VPCLMULQDQ and AVX-512; AES-256-GCM only.
    Vaes512,
    /// Ours, with 256-bit vectors: x86-64 with VAES and VPCLMULQDQ; AES-256-GCM only.
    Vaes256,
    /// Ours: x86-64 with AVX-512 and its IFMA; ChaCha20-Poly1305 only.
    Ifma,
    /// AWS-LC: every processor, every suite but SM4-GCM.
    AwsLc,
    /// Ours: every processor, SM4-GCM only. What it uses of a processor its [backend](super::Algorithm::backend) says.
    Sm4,
}

impl Implementation {
    /// Every one; of those that do the same suite the fastest first.
    pub const ALL: [Self; 5] = [Self::Vaes512, Self::Vaes256, Self::Ifma, Self::AwsLc, Self::Sm4];

    /// Whether this processor has what it takes.
    #[must_use]
    pub fn is_here(self) -> bool {
        match self {
            Self::AwsLc | Self::Sm4 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512 => Width::Bits512.is_here(),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes256 => Width::Bits256.is_here(),
            #[cfg(target_arch = "x86_64")]
            Self::Ifma => super::chacha::own_is_here(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Vaes512 | Self::Vaes256 | Self::Ifma => false,
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vaes512 => "own, 512-bit VAES",
            Self::Vaes256 => "own, 256-bit VAES",
            Self::Ifma => "own, AVX-512 IFMA",
            Self::AwsLc => "AWS-LC",
            Self::Sm4 => "own",
        })
    }
}

/// What computes a suite on this processor, in words for people.
#[must_use]
pub fn implementation(suite: Suite) -> String {
    let implementation = AeadKey::new(suite, &[0; 32]).implementation();
    match (implementation, suite) {
        (Implementation::AwsLc, Suite::Aes256Gcm) if aes_hardware() => {
            format!("{implementation}, AES instructions")
        }
        (Implementation::AwsLc, Suite::Aes256Gcm) => {
            format!("{implementation}, no AES instructions")
        }
        (Implementation::Sm4, _) => suite.algorithm().backend().to_string(),
        _ => implementation.to_string(),
    }
}
