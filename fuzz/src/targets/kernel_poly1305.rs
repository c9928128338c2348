//! Poly1305 with a chosen r and s, and blocks at the edges of the prime. Invariant: the vectors and
//! the portable code return the tag of RFC 8439, computed bit by bit.
//!
//! AWS-LC is no reference here: its `CRYPTO_poly1305` (0.47, SSE2) loses a carry where `t1` becomes
//! 2^26 at the end of `poly1305_combine`. An example is r = 1, s = 0, 32 bytes of zeros, fc, 15 bytes
//! of ff, and 16 bytes of zeros. `kernel_chacha` compares the whole AEAD with AWS-LC.

use wraith_kernels::chacha20_poly1305::poly1305_tag;
use wraith_kernels::poly1305::tag;

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::fastest;

const BLOCK: usize = 16;

/// 2^128, as the number of them and the rest below.
type Sum = (u128, u128);

/// 2^130 - 5.
const P: Sum = (3, u128::MAX - 4);

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let [r, s] = [(); 2].map(|()| half(&mut input));
    let key: [u8; 32] = [r.to_le_bytes(), s.to_le_bytes()].concat().try_into().expect("two halves");
    let (before, blocks) = (input.below(20), input.below(100));
    let [place, before_place] = [(); 2].map(|()| input.place());
    let (piece, cut) = (1 + input.below(700), usize::from(input.byte()) % BLOCK);
    let message = message(&mut input, before + blocks + 1);

    let expected = slow_tag(r, s, &message);
    assert_eq!(tag(&key, &message), expected, "the portable code");
    let (text, last) = message.split_last_chunk().expect("there is a block at least");
    let (before, text) = text.split_at(before * BLOCK);
    let vectors = |before: &[u8], text: &[u8]| {
        let (before, text) = (Buffer::new(before_place, before), Buffer::new(place, text));
        fastest(|| poly1305_tag(&key, &before, &text, *last, piece))
    };
    let Some(found) = vectors(before, text) else { return };
    assert_eq!(found, expected, "the vectors");
    if !text.is_empty() {
        // The last block of the text is padded with zeros.
        let short = &text[..text.len() - cut];
        let mut padded = message.clone();
        padded[before.len() + short.len()..message.len() - BLOCK].fill(0);
        let found = vectors(before, short).expect("there is a kernel");
        assert_eq!(found, slow_tag(r, s, &padded), "the vectors, padded");
    }
    let short = &message[..message.len() - cut];
    assert_eq!(tag(&key, short), slow_tag(r, s, short), "a short last block");
}

/// Returns the tag as RFC 8439 §2.5.1 writes it.
fn slow_tag(r: u128, s: u128, message: &[u8]) -> [u8; BLOCK] {
    let r = r & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
    let (_, low) = message.chunks(BLOCK).fold((0, 0), |sum, chunk| {
        let mut block = [0; BLOCK];
        block[..chunk.len()].copy_from_slice(chunk);
        let low = u128::from_le_bytes(block);
        let sum = match chunk.len() {
            BLOCK => plus(sum, plus((1, 0), (0, low))),
            len => plus(sum, (0, low | 1 << (8 * len))),
        };
        (0..128 - r.leading_zeros()).rev().fold((0, 0), |product, bit| {
            let product = plus(product, product);
            if r >> bit & 1 == 1 { plus(product, sum) } else { product }
        })
    });
    low.wrapping_add(s).to_le_bytes()
}

/// Returns a number for r or s.
fn half(input: &mut Input<'_>) -> u128 {
    match input.byte() % 6 {
        kind @ 0..3 => kind.into(),
        3 => u128::MAX,
        4 => 1 << (input.byte() % 128),
        _ => u128::from_le_bytes(input.content_array()),
    }
}

/// Returns blocks at the edges of the prime and others. With r = 1, some lead the sum of all blocks
/// to an edge.
fn message(input: &mut Input<'_>, blocks: usize) -> Vec<u8> {
    let edges: [Sum; 8] = [
        (0, 0),
        (0, 1),
        (3, u128::MAX - 5),
        (1, 0),
        (1, 1),
        (0, u128::MAX),
        (2, u128::MAX),
        (3, 4),
    ];
    let rest = match input.byte() % 4 {
        0 => vec![0xff; BLOCK * blocks],
        1 => vec![0; BLOCK * blocks],
        _ => input.content(BLOCK * blocks),
    };
    let mut sum = (0, 0);
    let mut message = Vec::with_capacity(rest.len());
    for block in rest.as_chunks::<BLOCK>().0 {
        let whole = u128::from_le_bytes(*block);
        let block = match input.byte() {
            0 => whole,
            1 => u128::MAX,
            2 => 0,
            3 => 1,
            4 => u128::MAX - 4,
            5 => u128::MAX - u128::from(input.byte()),
            6 => u128::from(input.byte()),
            kind => {
                // The block that leads from the sum to the edge, if any does.
                let edge = edges[usize::from(kind % 8)];
                let (high, low) = minus(edge, plus(sum, (1, 0)));
                if high == 0 { low } else { whole }
            }
        };
        sum = plus(sum, plus((1, 0), (0, block)));
        message.extend_from_slice(&block.to_le_bytes());
    }
    message
}

/// Returns the sum of two numbers below 2^130, modulo the prime.
fn plus(a: Sum, b: Sum) -> Sum {
    let (low, over) = a.1.overflowing_add(b.1);
    let mut sum = (a.0 + b.0 + u128::from(over), low);
    while sum >= P {
        let (low, under) = sum.1.overflowing_sub(P.1);
        sum = (sum.0 - P.0 - u128::from(under), low);
    }
    sum
}

/// Returns the difference of two numbers below the prime, modulo the prime.
fn minus(a: Sum, b: Sum) -> Sum {
    let (low, under) = P.1.overflowing_sub(b.1);
    plus(a, (P.0 - b.0 - u128::from(under), low))
}
