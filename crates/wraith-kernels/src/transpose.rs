//! Transposition of square matrices of words in vectors.

use core::arch::x86_64::*;

/// Transposes 32-bit words: lane j of vector i becomes lane i of vector j.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose_16(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for i in 0..8 {
        pairs[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    // Each quarter q holds word 4q + k of four rows side by side.
    let mut fours = pairs;
    for i in 0..4 {
        let [a, b, c, d] = [pairs[4 * i], pairs[4 * i + 1], pairs[4 * i + 2], pairs[4 * i + 3]];
        fours[4 * i] = _mm512_unpacklo_epi64(a, c);
        fours[4 * i + 1] = _mm512_unpackhi_epi64(a, c);
        fours[4 * i + 2] = _mm512_unpacklo_epi64(b, d);
        fours[4 * i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    let mut columns = fours;
    for k in 0..4 {
        let quarters = quarters([fours[k], fours[4 + k], fours[8 + k], fours[12 + k]]);
        for (q, column) in quarters.into_iter().enumerate() {
            columns[4 * q + k] = column;
        }
    }
    columns
}

/// Transposes quarters of 128 bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab_even, ab_odd) =
        (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b));
    let (cd_even, cd_odd) =
        (_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xdd>(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(ab_even, cd_even),
        _mm512_shuffle_i64x2::<0x88>(ab_odd, cd_odd),
        _mm512_shuffle_i64x2::<0xdd>(ab_even, cd_even),
        _mm512_shuffle_i64x2::<0xdd>(ab_odd, cd_odd),
    ]
}
