//! ChaCha20-Poly1305 with AVX-512, in pieces of sixteen blocks.
//!
//! Sealing encrypts a piece while it authenticates the previous one. Opening authenticates a piece
//! while it computes the key stream for its decryption. The first piece overlaps with block 0 of
//! the stream and the powers of the one-time key.
#![allow(unsafe_code)]

use crate::chacha20::BLOCK;
use crate::chacha20::avx512::{Cipher, DOUBLE_ROUNDS, Single, WIDE, apply, half};
use crate::poly1305::ifma::{GROUP, RAISES, Wide};
use crate::poly1305::{Poly1305, lengths};

/// Encrypts or decrypts. Returns the tag of the ciphertext in either case.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512ifma,bmi2")]
pub(super) fn crypt(
    seal: bool,
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    text: &mut [u8],
) -> [u8; 16] {
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
