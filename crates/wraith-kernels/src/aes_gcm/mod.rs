//! AES-GCM and GMAC for packets and longer texts, and single blocks of AES, with x86-64
//! instructions:
//!
//! - single AES blocks ([`RoundKeys`]);
//! - AES-GCM with keys of every size ([`GcmKey`]), and GMAC ([`Ghash`]), with vectors of 256 or 512
//!   bits.
//!
//! The portable twin is in `portable.rs`. Callers without these kernels use a library.

#[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
mod absent;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod absorb;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod aes;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod gcm;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod ghash;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod gmac;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod key;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod portable;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod short;
#[cfg(all(test, target_arch = "x86_64", feature = "simd"))]
mod tests;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod text;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod vaes256;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod vaes512;

#[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
pub use absent::{GcmKey, Ghash, RoundKeys};
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) use absorb::{GhashKey, NARROW, WIDE};
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) use aes::AES_BLOCK;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub use aes::RoundKeys;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub use gmac::Ghash;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub use key::GcmKey;

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::detect::{Kernel, Purpose, needs};
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::self_test::Inputs;

/// Block size in bytes.
const BLOCK: usize = 16;

/// The vector width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// VAES and VPCLMULQDQ without AVX-512.
    Bits256,
    /// VAES and VPCLMULQDQ with AVX-512.
    Bits512,
}

impl Width {
    /// Returns the widest vectors that may be used.
    #[must_use]
    #[inline]
    pub fn best() -> Option<Self> {
        [Self::Bits512, Self::Bits256].into_iter().find(|width| width.is_available())
    }

    /// Returns the processor features in use.
    #[must_use]
    pub const fn features(self) -> &'static str {
        match self {
            Self::Bits256 => "VAES, VPCLMULQDQ",
            Self::Bits512 => "AVX-512, VAES, VPCLMULQDQ",
        }
    }

    /// Returns whether the kernel of this width may be used.
    #[must_use]
    #[inline]
    pub fn is_available(self) -> bool {
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        match self {
            Self::Bits256 => GCM_256.is_available(),
            Self::Bits512 => GCM_512.is_available(),
        }
        #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
        false
    }
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) static GCM_256: Kernel =
    Kernel::new("AES-GCM", needs::GCM_256, Purpose::Bulk, || self_test(Width::Bits256));
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) static GCM_512: Kernel =
    Kernel::new("AES-GCM", needs::GCM_512, Purpose::Bulk, || self_test(Width::Bits512));

/// Seals and opens texts around the borders of one block, one group and two, and authenticates them
/// as associated data and by GMAC.
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
fn self_test(width: Width) -> bool {
    const BORDERS: [usize; 14] = [0, 1, 15, 16, 17, 31, 33, 127, 129, 255, 256, 257, 511, 513];
    // Test case 13 of the GCM submission: a key, a nonce and a text of zeros.
    const KNOWN: [u8; BLOCK] = 0x530f_8afb_c745_36b9_a963_b4f1_c4cb_738b_u128.to_be_bytes();
    let zero = <GcmKey>::expand(&[0; 32], width);
    if zero.is_none_or(|key| key.seal(&[0; 12], &[], &mut []) != KNOWN) {
        return false;
    }
    let mut inputs = Inputs::new();
    let (key, text): ([u8; 32], [u8; 513]) = (inputs.bytes(), inputs.bytes());
    let Some(kernel) = <GcmKey>::expand(&key, width) else { return false };
    BORDERS.into_iter().all(|len| {
        let (nonce, aad) = (inputs.bytes(), &text[..len % 47]);
        let (mut sealed, mut expected, mut gathered) = (text, text, [0; 513]);
        let tag = kernel.seal(&nonce, aad, &mut sealed[..len]);
        let twin = portable::seal(&key, &nonce, aad, &mut expected[..len]);
        let (filled, source) = text[..len].split_at(len % 19);
        gathered[..filled.len()].copy_from_slice(filled);
        let again = kernel.seal_from(&nonce, aad, &mut gathered[..len], filled.len(), source);
        let is_sealed = sealed == expected && gathered[..len] == expected[..len];
        let opened = kernel.open(&nonce, aad, &mut sealed[..len]);
        let is_authenticated = !matches!(len, 17 | 257 | 513) || {
            let mut gmac = Ghash::new(&nonce);
            gmac.update(&kernel, &text[..len]);
            let twin = portable::seal(&key, &nonce, &text[..len], &mut []);
            [kernel.seal(&nonce, &text[..len], &mut []), gmac.finish(&kernel)] == [twin; 2]
        };
        is_sealed && is_authenticated && [tag, again, opened] == [twin; 3] && sealed == text
    })
}
