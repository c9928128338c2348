#![deny(missing_docs, unsafe_code)]
#![cfg_attr(
    not(all(feature = "all", feature = "simd", target_arch = "x86_64")),
    allow(dead_code, reason = "other kernels need it")
)]
#![allow(missing_debug_implementations, reason = "raw keys and states; callers wrap them")]
//! The vector and assembly kernels of wraith's cryptography: raw functions over slices, without
//! names, traits or key formats.
//!
//! This is the only crate of wraith with SIMD or assembly. Each kernel:
//!
//! - is a module behind a cargo feature of its name; without the feature `simd`, only the portable
//!   twins are compiled;
//! - has a portable twin, or a well-proven library's code in that place, with which a self-test
//!   compares it before its first use, and the tests and fuzz targets at every length. P-256 has
//!   none: its self-test has a known answer, and AWS-LC is the reference of its tests;
//! - is selected at run time by [`detect`], which can also hide it.
//!
//! Hidden items are for tests and fuzz targets: twins, and the choice of a kernel.
//!
//! Beside the kernels, [`Wiped`] is here, because it also needs `unsafe` code.
//!
//! The heads of the modules state what they compute, and mostly their speed. `docs/ALGORITHMS.md`
//! lists the gain of each kernel over the libraries.

#[cfg(feature = "aes")]
pub mod aes;
#[cfg(feature = "aes-gcm")]
pub mod aes_gcm;
#[cfg(feature = "chacha20-poly1305")]
mod chacha20;
#[cfg(feature = "chacha20-poly1305")]
pub mod chacha20_poly1305;
pub mod detect;
#[cfg(feature = "inverse")]
mod digits;
#[cfg(feature = "aes-gcm")]
pub mod ghash;
#[cfg(feature = "inverse")]
#[doc(hidden)]
pub mod inverse;
#[cfg(feature = "keccak")]
pub mod keccak;
#[cfg(feature = "keccak")]
pub mod keccak_lanes;
#[cfg(feature = "inverse")]
mod limbs;
#[cfg(any(feature = "aes", feature = "sm4"))]
pub mod modes;
#[cfg(all(feature = "p256", target_arch = "x86_64", feature = "simd"))]
pub mod p256;
#[cfg(feature = "chacha20-poly1305")]
#[doc(hidden)]
pub mod poly1305;
#[cfg(feature = "sha512")]
pub mod sha512;
#[cfg(feature = "sm2")]
pub mod sm2;
#[cfg(feature = "sm3")]
pub mod sm3;
#[cfg(feature = "sm4")]
pub mod sm4;

#[cfg(all(any(feature = "p256", feature = "sm2"), target_arch = "x86_64", feature = "simd"))]
mod adx;
#[cfg(all(any(feature = "aes", feature = "aes-gcm"), target_arch = "x86_64", feature = "simd"))]
mod aes_expand;
#[cfg(feature = "aes-gcm")]
mod ghash_portable;
#[cfg(all(feature = "keccak", target_arch = "x86_64", feature = "simd"))]
mod keccak_vectors;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod self_test;
#[cfg(all(feature = "chacha20-poly1305", target_arch = "x86_64", feature = "simd"))]
mod transpose;

mod wiped;

use detect::Kernel;
pub use wiped::Wiped;

/// Returns every kernel of this build. Of those for one algorithm, the fastest comes first.
#[must_use]
pub fn kernels() -> Vec<&'static Kernel> {
    #[allow(unused_mut, reason = "without kernels")]
    let mut all: Vec<&'static Kernel> = Vec::new();
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    {
        #[cfg(feature = "aes-gcm")]
        all.extend([&aes_gcm::GCM_512, &aes_gcm::GCM_256, &aes_gcm::WIDE, &aes_gcm::NARROW]);
        #[cfg(feature = "aes-gcm")]
        all.extend([&aes_gcm::AES_BLOCK]);
        #[cfg(feature = "chacha20-poly1305")]
        all.extend([&chacha20_poly1305::KERNEL]);
        #[cfg(feature = "aes")]
        all.extend([&aes::AES_512, &aes::AES_256, &aes::AES_128]);
        #[cfg(feature = "sha512")]
        all.extend([&sha512::x86::KERNEL]);
        #[cfg(feature = "keccak")]
        all.extend([&keccak_lanes::x86::LANES_512, &keccak_lanes::x86::LANES_256]);
        #[cfg(feature = "sm4")]
        all.extend([&sm4::AVX512, &sm4::GFNI]);
        #[cfg(feature = "sm3")]
        all.extend([&sm3::x86::KERNEL]);
        #[cfg(feature = "sm2")]
        all.extend([&sm2::KERNEL]);
        #[cfg(feature = "p256")]
        all.extend([&p256::KERNEL]);
    }
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reports past the test harness that a kernel was not tested here, for a reason that no
    /// installation could change.
    pub(crate) fn unchecked(why: &str) {
        let thread = std::thread::current();
        let line = format!("unchecked: {}: {why}\n", thread.name().unwrap_or("a test"));
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    }

    /// Lets the tests use the kernels for keys too.
    pub(crate) fn fast() {
        detect::Backends::choose(Some(detect::Backends::Fast));
    }

    /// Returns `len` pseudorandom bytes, the same in each run. They have no pattern that a wrong
    /// kernel could match by chance.
    pub(crate) fn bytes(len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        blake3::Hasher::new().update(b"kernels").finalize_xof().fill(&mut out);
        out
    }

    /// Compares a compression function with its portable twin, for up to `most` blocks of `BLOCK`
    /// bytes at every alignment. `compress` returns false if the kernel cannot run here.
    pub(crate) fn same_at_every_length<Word, const BLOCK: usize>(
        most: u8,
        portable: impl Fn(&mut [Word; 8], &[u8]),
        compress: impl Fn(&mut [Word; 8], &[u8]) -> bool,
    ) where
        Word: From<u8> + Copy + PartialEq + std::fmt::Debug,
    {
        let data = bytes(BLOCK * usize::from(most) + 8);
        for blocks in 0..=most {
            let data = &data[usize::from(blocks % 8)..][..BLOCK * usize::from(blocks)];
            let (mut expected, mut state) = ([blocks.into(); 8], [blocks.into(); 8]);
            portable(&mut expected, data);
            if !compress(&mut state, data) {
                return;
            }
            assert_eq!(state, expected, "{blocks} blocks");
        }
    }

    #[test]
    fn no_kernel_fails_its_self_test() {
        fast();
        for kernel in kernels() {
            let state = kernel.state();
            assert_ne!(
                state,
                detect::KernelState::Failed,
                "{} ({})",
                kernel.name(),
                kernel.features()
            );
            assert_eq!(kernel.is_available(), state == detect::KernelState::Ready);
            if state == detect::KernelState::Unsupported {
                unchecked(&format!("this processor has no {}", kernel.features()));
            }
        }
    }
}
