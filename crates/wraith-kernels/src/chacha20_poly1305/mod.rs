//! ChaCha20-Poly1305 (RFC 8439, §2.8) and XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha).
//!
//! With AVX-512 and IFMA a text is processed in pieces of sixteen blocks (`avx512.rs`). On Zen 4 it
//! takes about 0.95 cycles per byte for 8 KiB, 1.3 for 1 KiB.

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod avx512;

use zeroize::ZeroizeOnDrop;

use crate::chacha20::{BLOCK, block, hchacha20};
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::detect::{Kernel, Purpose, needs};
use crate::poly1305::{self, Poly1305, halves, lengths};
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::self_test::Inputs;

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) static KERNEL: Kernel =
    Kernel::new("ChaCha20-Poly1305", needs::CHACHA20, Purpose::Bulk, self_test);

/// Seals and opens texts around the borders of one block and of the pieces of each method.
#[allow(unsafe_code)]
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
fn self_test() -> bool {
    const BORDERS: [usize; 16] =
        [0, 1, 63, 64, 65, 191, 193, 255, 256, 448, 704, 705, 1023, 1025, 1090, 2049];
    let mut inputs = Inputs::new();
    let (key, text): ([u8; 32], [u8; 2049]) = (inputs.bytes(), inputs.bytes());
    BORDERS.into_iter().all(|len| {
        let (nonce, aad) = (inputs.bytes(), &text[..len % 41]);
        let (mut sealed, mut expected) = (text, text);
        // SAFETY: the processor has the instructions when a self-test runs.
        let kernel =
            |seal, text: &mut [u8]| unsafe { avx512::crypt(seal, &key, &nonce, aad, text) };
        let tag = kernel(true, &mut sealed[..len]);
        let twin = portable(true, &key, &nonce, aad, &mut expected[..len]);
        let is_sealed = sealed == expected;
        let opened = kernel(false, &mut sealed[..len]);
        is_sealed && [tag, opened] == [twin; 2] && sealed == text
    })
}

crate::detect::features!(KERNEL);

/// Returns the tag of Poly1305 alone by vectors, or `None` without the kernel.
///
/// `before`, `text` and `last` are absorbed in this order. The first two are padded to whole blocks
/// with zeros. The text is absorbed in turns of up to `piece` bytes each, at least one.
#[must_use]
#[allow(unsafe_code, unused_variables, reason = "without the kernel")]
pub fn poly1305_tag(
    key: &[u8; 32],
    before: &[u8],
    text: &[u8],
    last: [u8; poly1305::BLOCK],
    piece: usize,
) -> Option<[u8; poly1305::BLOCK]> {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    if features().is_some() {
        // SAFETY: the kernel is available, so the processor has the instructions.
        return Some(unsafe { poly1305::ifma::tag(key, before, text, last, piece) });
    }
    None
}

/// A key.
///
/// Invariant: it exists only on processors with the kernel's instructions.
#[derive(ZeroizeOnDrop)]
pub struct Key([u8; 32]);

impl Key {
    /// Returns `None` unless the kernel may be used.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Option<Self> {
        features().map(|_| Self(*key))
    }

    /// Encrypts or decrypts. Returns the tag of the ciphertext in either case.
    #[must_use]
    #[inline]
    pub fn crypt(&self, seal: bool, nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        crypt(seal, &self.0, nonce, aad, text)
    }

    /// Does the same for XChaCha20-Poly1305.
    #[must_use]
    pub fn crypt_long(
        &self,
        seal: bool,
        nonce: &[u8; 24],
        aad: &[u8],
        text: &mut [u8],
    ) -> [u8; 16] {
        let (long, rest) = nonce.split_first_chunk().expect("24 bytes hold 16");
        let mut short = [0; 12];
        short[4..].copy_from_slice(rest);
        crypt(seal, &hchacha20(&self.0, long), &short, aad, text)
    }
}

#[inline]
#[allow(unsafe_code)]
fn crypt(seal: bool, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    // SAFETY: a `Key` exists, so the processor has the instructions.
    unsafe {
        avx512::crypt(seal, key, nonce, aad, text)
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
    portable(seal, key, nonce, aad, text)
}

/// Encrypts or decrypts as RFC 8439 §2.8 writes it: the portable twin.
#[doc(hidden)]
pub fn portable(
    seal: bool,
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    text: &mut [u8],
) -> [u8; 16] {
    let first = block(key, 0, nonce);
    let mut mac = Poly1305::new(halves(first.first_chunk().expect("a block has 64 bytes")));
    mac.absorb(aad);
    if !seal {
        mac.absorb(text);
    }
    for (piece, count) in text.chunks_mut(BLOCK).zip(1..) {
        piece.iter_mut().zip(block(key, count, nonce)).for_each(|(byte, key)| *byte ^= key);
    }
    if seal {
        mac.absorb(text);
    }
    mac.absorb(&lengths(aad.len(), text.len()));
    mac.finish()
}
