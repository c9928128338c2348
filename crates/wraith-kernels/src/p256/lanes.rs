//! Sums of eight points at a time with AVX-512 IFMA. A vector holds one limb of 52 bits of eight
//! numbers; the Montgomery radix is 2^260.
//!
//! A number is settled if its limbs are not negative and below 2^52, and the number is at most
//! slightly above 2p. Factors and products are settled. Sums and differences are not settled before
//! [`settle`]. On Zen 4 eight products take about 100 cycles.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpeq_epi64_mask,
    _mm512_load_si512, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_mask_mov_epi64, _mm512_mask_sub_epi64, _mm512_mask_xor_epi64, _mm512_permutex_epi64,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_slli_epi64,
    _mm512_srai_epi64, _mm512_srl_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_testn_epi64_mask,
};

use super::super::limbs::{Limbs, subtract_once};
use super::field::{Fe, P};

/// Number of lanes of a vector.
pub(super) const LANES: usize = 8;
/// Bits of a window, windows of each lane, and points in the table of a window.
pub(super) const BITS: usize = 5;
pub(super) const ROUNDS: usize = 7;
pub(super) const POINTS: usize = 1 << (BITS - 1);
/// Number of limbs of a number.
const SIZE: usize = 5;
const MASK: u64 = (1 << 52) - 1;

/// One table entry of each lane: x before y.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Entry([[u64; LANES]; 2 * SIZE]);

/// For lane l and round r, the odd multiples of 2^(5 (7l + r)) · G.
pub(super) type Table = [[Entry; POINTS]; ROUNDS];

impl Entry {
    pub(super) const EMPTY: Self = Self([[0; LANES]; 2 * SIZE]);

    /// Stores a point in a lane.
    pub(super) fn set(&mut self, lane: usize, x: &Fe, y: &Fe) {
        for (limbs, number) in self.0.chunks_exact_mut(SIZE).zip([x, y]) {
            // Multiplies by 16: from the radix 2^256 to the radix 2^260.
            let [a, b, c, d] = (0..4).fold(*number, |number, _| number.add(&number)).0;
            let parts = [a, a >> 52 | b << 12, b >> 40 | c << 24, c >> 28 | d << 36, d >> 16];
            for (limb, part) in limbs.iter_mut().zip(parts) {
                limb[lane] = part & MASK;
            }
        }
    }
}

/// Eight numbers.
type Numbers = [__m512i; SIZE];

/// Eight points in Jacobian coordinates, settled.
#[derive(Clone, Copy)]
struct Points {
    x: Numbers,
    y: Numbers,
    z: Numbers,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn all(number: u64) -> __m512i {
    _mm512_set1_epi64(number as i64)
}

/// Propagates carries: moves the bits above 52 of each limb into the next one.
#[inline]
#[target_feature(enable = "avx512f")]
fn carry([a, b, c, d, e]: Numbers) -> Numbers {
    let mask = all(MASK);
    let b = _mm512_add_epi64(b, _mm512_srai_epi64::<52>(a));
    let c = _mm512_add_epi64(c, _mm512_srai_epi64::<52>(b));
    let d = _mm512_add_epi64(d, _mm512_srai_epi64::<52>(c));
    let e = _mm512_add_epi64(e, _mm512_srai_epi64::<52>(d));
    let low = |limb| _mm512_and_si512(limb, mask);
    [low(a), low(b), low(c), low(d), e]
}

/// Normalizes a number between −16p and 16p. Subtracts q · p, where q + 1 is the number divided by
/// 2^256, rounded down.
#[inline]
#[target_feature(enable = "avx512f")]
fn normalize([a, b, c, d, e]: Numbers) -> Numbers {
    let q = _mm512_sub_epi64(_mm512_srai_epi64::<48>(e), all(1));
    // p is 2^256 − 2^224 + 2^192 + 2^96 − 1.
    let a = _mm512_add_epi64(a, q);
    let b = _mm512_sub_epi64(b, _mm512_slli_epi64::<44>(q));
    let d = _mm512_sub_epi64(d, _mm512_slli_epi64::<36>(q));
    let e = _mm512_sub_epi64(e, _mm512_slli_epi64::<48>(q));
    let e = _mm512_add_epi64(e, _mm512_slli_epi64::<16>(q));
    carry([a, b, c, d, e])
}

/// Applies an instruction to each pair of limbs.
macro_rules! limbwise {
    ($instruction:ident, $a:ident, $b:ident) => {{
        let ([a0, a1, a2, a3, a4], [b0, b1, b2, b3, b4]) = (*$a, *$b);
        [
            $instruction(a0, b0),
            $instruction(a1, b1),
            $instruction(a2, b2),
            $instruction(a3, b3),
            $instruction(a4, b4),
        ]
    }};
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(a: &Numbers, b: &Numbers) -> Numbers {
    limbwise!(_mm512_add_epi64, a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sub(a: &Numbers, b: &Numbers) -> Numbers {
    limbwise!(_mm512_sub_epi64, a, b)
}

/// Divides a number of ten limbs by 2^260, modulo p.
///
/// Each of five steps clears the lowest limb m by adding m · p, which is −m, m · 2^96 and higher
/// terms.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce(mut c: [__m512i; 2 * SIZE]) -> Numbers {
    let (mask, p1, p3, p4) = (all(MASK), all(1 << 44), all(1 << 36), all(0xffff_ffff_0000));
    for i in 0..SIZE {
        let m = _mm512_and_si512(c[i], mask);
        c[i + 1] = _mm512_add_epi64(c[i + 1], _mm512_srli_epi64::<52>(c[i]));
        c[i + 1] = _mm512_madd52lo_epu64(c[i + 1], m, p1);
        c[i + 2] = _mm512_madd52hi_epu64(c[i + 2], m, p1);
        c[i + 3] = _mm512_madd52lo_epu64(c[i + 3], m, p3);
        c[i + 4] = _mm512_madd52hi_epu64(c[i + 4], m, p3);
        c[i + 4] = _mm512_madd52lo_epu64(c[i + 4], m, p4);
        c[i + 5] = _mm512_madd52hi_epu64(c[i + 5], m, p4);
    }
    let [.., c5, c6, c7, c8, c9] = c;
    carry([c5, c6, c7, c8, c9])
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn mul(a: &Numbers, b: &Numbers) -> Numbers {
    let mut c = [_mm512_setzero_si512(); 2 * SIZE];
    for i in 0..SIZE {
        for j in 0..SIZE {
            c[i + j] = _mm512_madd52lo_epu64(c[i + j], a[i], b[j]);
            c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a[i], b[j]);
        }
    }
    reduce(c)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn sqr(a: &Numbers) -> Numbers {
    let mut c = [_mm512_setzero_si512(); 2 * SIZE];
    for i in 0..SIZE {
        for j in i + 1..SIZE {
            c[i + j] = _mm512_madd52lo_epu64(c[i + j], a[i], a[j]);
            c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a[i], a[j]);
        }
    }
    for limb in &mut c {
        *limb = _mm512_add_epi64(*limb, *limb);
    }
    for i in 0..SIZE {
        c[2 * i] = _mm512_madd52lo_epu64(c[2 * i], a[i], a[i]);
        c[2 * i + 1] = _mm512_madd52hi_epu64(c[2 * i + 1], a[i], a[i]);
    }
    reduce(c)
}

/// Selects one point of a table in each lane, and reads all points. The five bits of the window
/// select the odd multiple (see [`super::base`]).
#[inline]
#[target_feature(enable = "avx512f")]
fn take(table: &[Entry; POINTS], window: __m512i) -> (Numbers, Numbers) {
    let negative = _mm512_testn_epi64_mask(window, all(POINTS as u64));
    let last = all(POINTS as u64 - 1);
    let wanted = _mm512_mask_xor_epi64(window, negative, window, last);
    let wanted = _mm512_and_si512(wanted, last);
    let mut chosen = [_mm512_setzero_si512(); 2 * SIZE];
    for (entry, number) in table.iter().zip(0..) {
        let mask = _mm512_cmpeq_epi64_mask(wanted, all(number));
        for (chosen, limb) in chosen.iter_mut().zip(&entry.0) {
            // SAFETY: eight limbs are 64 bytes, and an entry is aligned to 64 bytes.
            let limb = unsafe { _mm512_load_si512(limb.as_ptr().cast()) };
            *chosen = _mm512_mask_mov_epi64(*chosen, mask, limb);
        }
    }
    let [x0, x1, x2, x3, x4, y0, y1, y2, y3, y4] = chosen;
    // p − y in the negative lanes.
    let p = [all(MASK), all((1 << 44) - 1), all(0), all(1 << 36), all(0xffff_ffff_0000)];
    let y = [
        _mm512_mask_sub_epi64(y0, negative, p[0], y0),
        _mm512_mask_sub_epi64(y1, negative, p[1], y1),
        _mm512_mask_sub_epi64(y2, negative, p[2], y2),
        _mm512_mask_sub_epi64(y3, negative, p[3], y3),
        _mm512_mask_sub_epi64(y4, negative, p[4], y4),
    ];
    ([x0, x1, x2, x3, x4], carry(y))
}

/// Adds points of a table: 8 multiplications and 3 squares.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_affine(a: &Points, x: &Numbers, y: &Numbers) -> Points {
    let z_square = sqr(&a.z);
    let zy = mul(&a.z, y);
    let h = normalize(sub(&mul(x, &z_square), &a.x));
    let r = normalize(sub(&mul(&z_square, &zy), &a.y));
    let h_square = sqr(&h);
    let r_square = sqr(&r);
    let h_cube = mul(&h_square, &h);
    let v = mul(&a.x, &h_square);
    let z = mul(&h, &a.z);
    let y_part = mul(&a.y, &h_cube);
    let x = normalize(sub(&sub(&r_square, &h_cube), &add(&v, &v)));
    let y = normalize(sub(&mul(&r, &normalize(sub(&v, &x))), &y_part));
    Points { x, y, z }
}

/// Swaps the lowest `BY` lanes with the next `BY`, and likewise the lanes above them.
#[inline]
#[target_feature(enable = "avx512f")]
fn swap<const BY: usize>(numbers: &Numbers) -> Numbers {
    const {
        assert!(BY == 2 || BY == 4);
    }
    let [a, b, c, d, e] = *numbers;
    let swap = |limb| match BY {
        2 => _mm512_permutex_epi64::<0b01_00_11_10>(limb),
        _ => _mm512_shuffle_i64x2::<0b01_00_11_10>(limb, limb),
    };
    [swap(a), swap(b), swap(c), swap(d), swap(e)]
}

/// Joins the lower lanes of `low` and the upper lanes of `high`.
#[inline]
#[target_feature(enable = "avx512f")]
fn join<const BY: usize>(low: &Numbers, high: &Numbers) -> Numbers {
    let upper = if BY == 2 { 0b1100_1100 } else { 0b1111_0000 };
    let [a0, a1, a2, a3, a4] = *low;
    let [b0, b1, b2, b3, b4] = *high;
    let join = |a, b| _mm512_mask_mov_epi64(a, upper, b);
    [join(a0, b0), join(a1, b1), join(a2, b2), join(a3, b3), join(a4, b4)]
}

/// Adds the lowest `BY` lanes and the next `BY`, which hold different points. The sums are in the
/// lowest `BY` lanes.
///
/// Both halves of the lanes share the work: 7 multiplications and 2 squares instead of 12 and 4.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_halves<const BY: usize>(points: &Points) -> Points {
    let Points { x, y, z } = points;
    let other_z = swap::<BY>(z);
    let other_square = swap::<BY>(&sqr(z));
    let zy = mul(y, &other_z);
    let u = mul(x, &other_square);
    let s = mul(&zy, &other_square);
    let zz = mul(z, &other_z);
    let (other_u, other_s) = (swap::<BY>(&u), swap::<BY>(&s));
    // In the upper lanes both are negated.
    let h = normalize(sub(&other_u, &u));
    let r = normalize(sub(&other_s, &s));
    // From here on the comments list lower lanes | upper lanes: h² | r².
    let squares = sqr(&join::<BY>(&h, &r));
    let other_squares = swap::<BY>(&squares);
    let h_square = join::<BY>(&squares, &other_squares);
    // h³ | v, and v | h³.
    let cubes = mul(&join::<BY>(&h, &other_u), &h_square);
    let other_cubes = swap::<BY>(&cubes);
    // z | y · h³.
    let z = mul(&join::<BY>(&h, &other_s), &join::<BY>(&zz, &other_cubes));
    let x = normalize(sub(&sub(&other_squares, &cubes), &add(&other_cubes, &other_cubes)));
    let y = normalize(sub(&mul(&r, &normalize(sub(&other_cubes, &x))), &swap::<BY>(&z)));
    Points { x, y, z }
}

/// Returns the numbers of the first two lanes, times 2^256 and below p.
#[target_feature(enable = "avx512f,avx512ifma")]
fn leave(numbers: &Numbers) -> [Fe; 2] {
    // 2^256 modulo p. A product with it is not much above p at most, and so below 2^256.
    let factor = [all(1), all(0xf_f000_0000_0000), all(MASK), all(0xf_ffef_ffff_ffff), all(0xffff)];
    let product = mul(numbers, &factor);
    let mut limbs = [[0u64; LANES]; SIZE];
    for (limb, vector) in limbs.iter_mut().zip(product) {
        // SAFETY: eight limbs are 64 bytes.
        unsafe { _mm512_storeu_si512(limb.as_mut_ptr().cast(), vector) };
    }
    [0, 1].map(|lane| {
        let [a, b, c, d, e] = limbs.map(|limb| limb[lane]);
        let number: Limbs = [a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16];
        Fe(subtract_once(&number, false, &P))
    })
}

/// Returns the sums of the points of a scalar's windows, separately for the even and the odd lanes:
/// X, Y and Z of each.
///
/// `chunks` holds the seven windows of each lane, the lowest first. No two points that are added
/// are equal or each other's inverse. Without their common power of two, their multiples of G have
/// an odd sum and an odd difference, below n.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply(table: &Table, chunks: &[u64; LANES]) -> [[Fe; 2]; 3] {
    // SAFETY: eight chunks are 64 bytes.
    let chunks = unsafe { _mm512_loadu_si512(chunks.as_ptr().cast()) };
    let bits = all((1 << BITS) - 1);
    // 2^260 modulo p.
    let one = [all(16), all(0xf_0000_0000_0000), all(MASK), all(0xf_feff_ffff_ffff), all(0xf_ffff)];
    let (x, y) = take(&table[0], _mm512_and_si512(chunks, bits));
    let mut sum = Points { x, y, z: one };
    for (round, table) in table.iter().enumerate().skip(1) {
        let shift = _mm_cvtsi32_si128((round * BITS) as i32);
        let window = _mm512_and_si512(_mm512_srl_epi64(chunks, shift), bits);
        let (x, y) = take(table, window);
        sum = add_affine(&sum, &x, &y);
    }
    sum = add_halves::<2>(&add_halves::<4>(&sum));
    [leave(&sum.x), leave(&sum.y), leave(&sum.z)]
}
