//! Implementations of the packet suites: our own code on processors with the required features,
//! otherwise AWS-LC.

use std::fmt;

use wraith_kernels::aes_gcm::Width;
use wraith_kernels::chacha20_poly1305;

/// Implementation of a suite. The fastest one that is available is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// Our own, only for AES-256-GCM, with 512-bit vectors: x86-64 with VAES, VPCLMULQDQ and
    /// AVX-512.
    Vaes512,
    /// Our own, only for AES-256-GCM, with 256-bit vectors: x86-64 with VAES and VPCLMULQDQ.
    Vaes256,
    /// Our own, only for ChaCha20-Poly1305: x86-64 with AVX-512 and IFMA.
    Ifma,
    /// AWS-LC: every processor, every suite but SM4-GCM.
    AwsLc,
    /// Our own, only for SM4-GCM: every processor, if the feature `sm4` compiles it.
    /// [`implementation`](super::implementation()) names the processor features in use.
    Sm4,
}

impl Implementation {
    /// Every implementation. Of those for the same suite, the fastest comes first.
    pub const ALL: [Self; 5] = [Self::Vaes512, Self::Vaes256, Self::Ifma, Self::AwsLc, Self::Sm4];

    /// Returns whether this build has the implementation, this processor its features, its self-test
    /// passed, and [`Backends`](crate::Backends) permit it now.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::AwsLc => true,
            Self::Sm4 => cfg!(feature = "sm4"),
            Self::Vaes512 => Width::Bits512.is_available(),
            Self::Vaes256 => Width::Bits256.is_available(),
            Self::Ifma => chacha20_poly1305::features().is_some(),
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let features = match self {
            Self::AwsLc => return f.write_str("AWS-LC"),
            Self::Vaes512 => Width::Bits512.features(),
            Self::Vaes256 => Width::Bits256.features(),
            Self::Ifma => chacha20_poly1305::features().unwrap_or("AVX-512, IFMA"),
            #[cfg(feature = "sm4")]
            Self::Sm4 => wraith_kernels::sm4::Implementation::best().features(),
            #[cfg(not(feature = "sm4"))]
            Self::Sm4 => "not built",
        };
        write!(f, "own ({features})")
    }
}
