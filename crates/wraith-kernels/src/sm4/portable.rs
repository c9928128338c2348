//! SM4 in portable code: bit-sliced, sixteen blocks at a time.
//!
//! A plane holds one bit of each of 64 bytes. Byte *k* of a word (the lowest first) of block *b* is
//! at place 16*k* + *b*. The S-box is an inversion between two affine maps. It is computed in
//! GF((2^4)^2), y^2 + y + x^3 + 1 over x^4 + x + 1, as three products and a small inversion.
//!
//! No table and no branch: the time depends only on the number of blocks. It takes about 22 cycles
//! per byte for 16 blocks or more; one block takes as long as 16.

use super::{Block, CONSTANTS, RoundKeys};

/// The bits of one word of each block, the lowest of each byte first.
type Planes = [u64; 8];

/// Number of blocks side by side.
const BESIDE: usize = 16;

/// Encrypts `blocks` in place.
pub(super) fn blocks(keys: &RoundKeys, blocks: &mut [Block]) {
    let (whole, rest) = blocks.as_chunks_mut();
    for blocks in whole {
        sixteen(keys, blocks);
    }
    if !rest.is_empty() {
        let mut padded = [[0; 16]; BESIDE];
        padded[..rest.len()].copy_from_slice(rest);
        sixteen(keys, &mut padded);
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

fn sixteen(keys: &RoundKeys, blocks: &mut [Block; BESIDE]) {
    let mut state: [Planes; 4] = std::array::from_fn(|word| load(blocks, word));
    for four in keys.plain.as_chunks::<4>().0 {
        for (i, key) in four.iter().enumerate() {
            let key = spread(*key);
            let mut t = state[(i + 1) % 4];
            for (bit, plane) in t.iter_mut().enumerate() {
                *plane ^= state[(i + 2) % 4][bit] ^ state[(i + 3) % 4][bit] ^ key[bit];
            }
            let t = linear(&substitute(&t));
            for (plane, t) in state[i].iter_mut().zip(t) {
                *plane ^= t;
            }
        }
    }
    for (word, planes) in state.iter().rev().enumerate() {
        store(blocks, word, planes);
    }
}

/// Expands four words to the round keys.
pub(super) fn expand(mut words: [u32; 4]) -> [u32; 32] {
    CONSTANTS.map(|constant| {
        let [a, b, c, d] = words;
        let t = substitute_word(b ^ c ^ d ^ constant);
        let word = a ^ t ^ t.rotate_left(13) ^ t.rotate_left(23);
        words = [b, c, d, word];
        word
    })
}

/// Applies the S-box to every byte of a word.
fn substitute_word(word: u32) -> u32 {
    let planes = substitute(&spread(word));
    let mut out = 0;
    for (bit, plane) in planes.iter().enumerate() {
        for k in 0..4 {
            out |= ((plane >> (16 * k)) as u32 & 1) << (8 * k + bit);
        }
    }
    out
}

/// Returns the planes of a word that is the same for every block.
fn spread(word: u32) -> Planes {
    std::array::from_fn(|bit| {
        let mut plane = 0;
        for k in 0..4 {
            let mask = 0_u64.wrapping_sub(u64::from(word >> (8 * k + bit)) & 1);
            plane |= (mask & 0xffff) << (16 * k);
        }
        plane
    })
}

/// Transposes an 8 × 8 matrix of bits: bit *c* of byte *r* and bit *r* of byte *c* are swapped.
fn transpose(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let t = (x ^ (x >> shift)) & mask;
        x ^= t ^ (t << shift);
    }
    x
}

fn load(blocks: &[Block; BESIDE], word: usize) -> Planes {
    let mut planes = [0; 8];
    for k in 0..4 {
        for half in 0..2 {
            let bytes = std::array::from_fn(|b| blocks[8 * half + b][4 * word + 3 - k]);
            let bits = transpose(u64::from_le_bytes(bytes)).to_le_bytes();
            for (plane, bits) in planes.iter_mut().zip(bits) {
                *plane |= u64::from(bits) << (16 * k + 8 * half);
            }
        }
    }
    planes
}

fn store(blocks: &mut [Block; BESIDE], word: usize, planes: &Planes) {
    for k in 0..4 {
        for half in 0..2 {
            let bits = planes.map(|plane| (plane >> (16 * k + 8 * half)) as u8);
            let bytes = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            for (b, byte) in bytes.into_iter().enumerate() {
                blocks[8 * half + b][4 * word + 3 - k] = byte;
            }
        }
    }
}

/// Returns x ^ x<<<2 ^ x<<<10 ^ x<<<18 ^ x<<<24 of each word.
fn linear(x: &Planes) -> Planes {
    // x ^ x<<<8 ^ x<<<16, to be rotated by two more.
    let inner = x.map(|plane| plane ^ plane.rotate_left(16) ^ plane.rotate_left(32));
    std::array::from_fn(|bit| {
        let twice = match bit {
            0 | 1 => inner[bit + 6].rotate_left(16),
            _ => inner[bit - 2],
        };
        x[bit] ^ x[bit].rotate_left(48) ^ twice
    })
}

/// Applies an affine map. Each bit of the result is the sum of the bits that a row of `MATRIX`
/// selects, and of a bit of `CONSTANT`.
///
/// The row of bit 7 is the lowest byte of `MATRIX`, as in the GFNI instructions.
#[inline(always)]
fn affine<const MATRIX: u64, const CONSTANT: u8>(x: &Planes) -> Planes {
    std::array::from_fn(|bit| {
        let row = MATRIX >> (8 * (7 - bit));
        let mut sum = if CONSTANT >> bit & 1 == 1 { u64::MAX } else { 0 };
        for (j, plane) in x.iter().enumerate() {
            if row >> j & 1 == 1 {
                sum ^= plane;
            }
        }
        sum
    })
}

fn substitute(x: &Planes) -> Planes {
    // The maps into the tower field and back include the inner and the outer affine map of the
    // S-box.
    let [l0, l1, l2, l3, h0, h1, h2, h3] = affine::<0xf072_d618_9340_c47f, 0xaf>(x);
    let (low, high) = ([l0, l1, l2, l3], [h0, h1, h2, h3]);
    let sum = add(low, high);
    let norm = add(times_nine(square(high)), multiply(low, sum));
    let inverse = invert(norm);
    let [l0, l1, l2, l3] = multiply(sum, inverse);
    let [h0, h1, h2, h3] = multiply(high, inverse);
    affine::<0x3365_14b5_8a2a_0729, 0xd3>(&[l0, l1, l2, l3, h0, h1, h2, h3])
}

/// Elements of GF(2^4), x^4 + x + 1.
type Small = [u64; 4];

#[inline(always)]
fn add(a: Small, b: Small) -> Small {
    [a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3]]
}

#[inline(always)]
fn multiply(a: Small, b: Small) -> Small {
    let c4 = (a[1] & b[3]) ^ (a[2] & b[2]) ^ (a[3] & b[1]);
    let c5 = (a[2] & b[3]) ^ (a[3] & b[2]);
    let c6 = a[3] & b[3];
    [
        (a[0] & b[0]) ^ c4,
        (a[0] & b[1]) ^ (a[1] & b[0]) ^ c4 ^ c5,
        (a[0] & b[2]) ^ (a[1] & b[1]) ^ (a[2] & b[0]) ^ c5 ^ c6,
        (a[0] & b[3]) ^ (a[1] & b[2]) ^ (a[2] & b[1]) ^ (a[3] & b[0]) ^ c6,
    ]
}

#[inline(always)]
fn square([a0, a1, a2, a3]: Small) -> Small {
    [a0 ^ a2, a2, a1 ^ a3, a3]
}

/// Multiplies by x^3 + 1.
#[inline(always)]
fn times_nine([a0, a1, a2, a3]: Small) -> Small {
    [a0 ^ a1, a2, a3, a0]
}

/// Returns a^14, the inverse. Zero stays zero.
#[inline(always)]
fn invert(a: Small) -> Small {
    let a2 = square(a);
    let a4 = square(a2);
    multiply(multiply(a2, a4), square(a4))
}
