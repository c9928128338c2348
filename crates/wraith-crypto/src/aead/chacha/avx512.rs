//! ChaCha20-Poly1305 with AVX-512, in pieces of sixteen blocks.
//!
//! Sealing encrypts a piece while it authenticates the previous one. Opening authenticates a piece
//! while it computes the key stream for its decryption. The first piece overlaps with block 0 of
//! the stream and the powers of the one-time key.
#![allow(unsafe_code)]

use std::is_x86_feature_detected;

use zeroize::ZeroizeOnDrop;

use crate::kernels::chacha20::avx512::{Cipher, DOUBLE_ROUNDS, Single, WIDE, apply, half};
use crate::kernels::chacha20::{BLOCK, hchacha20};
use crate::kernels::poly1305::ifma::{GROUP, RAISES, Wide};
use crate::kernels::poly1305::{Poly1305, lengths};

pub(in crate::aead) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("bmi2")
}

/// A key.
///
/// Invariant: it exists only on processors with the features that [`is_available`] checks.
#[derive(ZeroizeOnDrop)]
pub(in crate::aead) struct Key([u8; 32]);

impl Key {
    /// Returns `None` if the processor lacks a feature.
    pub(in crate::aead) fn new(key: &[u8; 32]) -> Option<Self> {
        is_available().then_some(Self(*key))
    }

    /// Encrypts or decrypts. Returns the tag of the ciphertext in either case. The nonce has 12
    /// bytes, or 24 for XChaCha20.
    pub(in crate::aead) fn crypt(
        &self,
        seal: bool,
        nonce: &[u8],
        aad: &[u8],
        text: &mut [u8],
    ) -> [u8; 16] {
        let mut short = [0; 12];
        let Some((long, rest)) = nonce.split_first_chunk::<16>() else {
            short.copy_from_slice(nonce);
            // SAFETY: by the invariant, the processor has the features.
            return unsafe { crypt(seal, &self.0, &short, aad, text) };
        };
        let key = hchacha20(&self.0, long);
        short[4..].copy_from_slice(rest);
        // SAFETY: as above.
        unsafe { crypt(seal, &key, &short, aad, text) }
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512ifma,bmi2")]
fn crypt(seal: bool, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
    let len = text.len();
    match len.div_ceil(BLOCK) {
        0..=3 => short::<1>(seal, key, nonce, aad, text),
        4..=7 => short::<2>(seal, key, nonce, aad, text),
        8..=11 => short::<3>(seal, key, nonce, aad, text),
        _ => long(seal, key, nonce, aad, text),
    }
}

/// Processes a text short enough that N times four blocks cover the one-time key and the whole
/// stream.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512ifma,bmi2")]
fn short<const N: usize>(
    seal: bool,
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    text: &mut [u8],
) -> [u8; 16] {
    let stream = Cipher::new(key, 0, nonce).fours::<N>(|_| ());
    let (first, stream) = stream.as_flattened().split_first().expect("four at least");
    if seal {
        apply(stream, text);
    }
    let mut mac = Poly1305::new(half(*first));
    mac.absorb(aad);
    mac.absorb(text);
    mac.absorb(&lengths(aad.len(), text.len()));
    if !seal {
        apply(stream, text);
    }
    mac.finish()
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512ifma,bmi2")]
fn long(seal: bool, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
    let len = text.len();
    let mut mac = Wide::new(len, lengths(aad.len(), len));
    let mut cipher = Cipher::new(key, 1, nonce);
    let mut first = Single::new(key, nonce);
    // Opening: all groups that start before the end of a piece have to be authenticated before the
    // piece is decrypted. After the last piece there is no limit.
    let until = |end: usize| if end < len { end as isize } else { isize::MAX };

    let stream = cipher.sixteen(|turn| {
        const HALF: usize = DOUBLE_ROUNDS / 2;
        match turn {
            ..HALF => return first.four_rounds(),
            HALF => mac.start(first.half(), aad),
            _ => {}
        }
        match turn - HALF {
            step @ ..RAISES => mac.raise::<3>(step),
            _ if seal => {}
            _ => mac.turn::<3>(text, until(WIDE)),
        }
    });
    if !seal {
        mac.all::<4>(text, until(WIDE));
    }
    apply(&stream, text);
    let mut at = WIDE;
    while at < len {
        // Sealing: the ciphertext so far. Opening: the piece that is decrypted next.
        let until = match seal {
            true => (at - GROUP + 1) as isize,
            false => until(at + WIDE),
        };
        match (len - at).div_ceil(BLOCK) {
            0..=4 => {
                let stream = cipher.fours::<1>(|_| mac.turn::<5>(text, until));
                apply(stream.as_flattened(), &mut text[at..]);
            }
            5..=8 => {
                let stream = cipher.fours::<2>(|_| mac.turn::<6>(text, until));
                apply(stream.as_flattened(), &mut text[at..]);
            }
            _ => {
                let stream = cipher.sixteen(|turn| {
                    if turn % 2 == 0 {
                        mac.turn::<7>(text, until);
                    }
                });
                apply(&stream, &mut text[at..]);
            }
        }
        at += WIDE;
    }
    if seal {
        mac.all::<8>(text, isize::MAX);
    }
    mac.finish()
}
