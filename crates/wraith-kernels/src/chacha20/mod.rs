//! ChaCha20 (RFC 8439, §2.3 and §2.4) and HChaCha20 (draft-irtf-cfrg-xchacha, §2.2).
//!
//! This file computes the block as the standard writes it, for HChaCha20 and as the reference of
//! [`avx512`] in tests: about 6 cycles per byte.

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) mod avx512;
#[cfg(all(test, target_arch = "x86_64", feature = "simd"))]
mod tests;

use zeroize::Zeroizing;

/// Block size in bytes.
pub(crate) const BLOCK: usize = 64;

/// The constants "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Returns the input words of a block: the constants, the key, then the counter and the nonce.
fn input(key: &[u8; 32], last: &[u8; 16]) -> [u32; 16] {
    let mut words = [0; 16];
    words[..4].copy_from_slice(&CONSTANTS);
    let bytes = key.as_chunks::<4>().0.iter().chain(last.as_chunks::<4>().0);
    for (word, bytes) in words[4..].iter_mut().zip(bytes) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// Returns the input words of a block of a ChaCha20 stream.
fn start(key: &[u8; 32], counter: u32, nonce: &[u8; 12]) -> [u32; 16] {
    let mut last = [0; 16];
    last[..4].copy_from_slice(&counter.to_le_bytes());
    last[4..].copy_from_slice(nonce);
    input(key, &last)
}

#[inline]
fn quarter(x: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (up, down) in [(16, 12), (8, 7)] {
        x[a] = x[a].wrapping_add(x[b]);
        x[d] = (x[d] ^ x[a]).rotate_left(up);
        x[c] = x[c].wrapping_add(x[d]);
        x[b] = (x[b] ^ x[c]).rotate_left(down);
    }
}

/// Computes twenty rounds, without the final addition.
#[inline]
fn rounds(x: &mut [u32; 16]) {
    for _ in 0..10 {
        for i in 0..4 {
            quarter(x, [i, 4 + i, 8 + i, 12 + i]);
        }
        for i in 0..4 {
            quarter(x, [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4]);
        }
    }
}

/// Derives a subkey from a key and the first 16 bytes of a long nonce.
pub(crate) fn hchacha20(key: &[u8; 32], nonce: &[u8; 16]) -> Zeroizing<[u8; 32]> {
    let mut words = Zeroizing::new(input(key, nonce));
    // Behind a pointer the words would go through memory in every step.
    let mut turned = *words;
    rounds(&mut turned);
    *words = turned;
    let mut out = Zeroizing::new([0; 32]);
    for (out, word) in
        out.as_chunks_mut::<4>().0.iter_mut().zip(words[..4].iter().chain(&words[12..]))
    {
        *out = word.to_le_bytes();
    }
    out
}

/// Returns a block as RFC 8439, §2.3 writes it.
pub(crate) fn block(key: &[u8; 32], counter: u32, nonce: &[u8; 12]) -> [u8; BLOCK] {
    let start = start(key, counter, nonce);
    let mut words = start;
    rounds(&mut words);
    let mut out = [0; BLOCK];
    for (i, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *out = words[i].wrapping_add(start[i]).to_le_bytes();
    }
    out
}
