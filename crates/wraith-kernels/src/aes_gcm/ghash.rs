//! GHASH (NIST SP 800-38D §6.4): the field, and the powers of the hash key for blocks that are
//! reduced together.
//!
//! Blocks are elements of GF(2^128), with the coefficient of x^0 first. Reversed byte by byte, they
//! are integers in which bit *i* is the coefficient of x^(127-i). Carry-less multiplication works
//! on such integers, except that their product is too low by a factor of x. Therefore one factor is
//! kept divided by x: "H^n / x".
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::mem::{self, MaybeUninit};

use zeroize::{Zeroize, ZeroizeOnDrop, optimization_barrier};

use super::short;

pub(super) use super::BLOCK;
/// Number of blocks that are reduced together.
pub(super) const GROUP_BLOCKS: usize = 16;
/// Size of a group in bytes.
pub(super) const GROUP_BYTES: usize = GROUP_BLOCKS * BLOCK;
/// The highest power of H in use: a group and the block of lengths after it are reduced together.
const POWER_MAX: usize = GROUP_BLOCKS + 1;
/// Number of the powers, plus zeros for the loads of a short tail.
const POWERS: usize = POWER_MAX + GROUP_BLOCKS - 1;
/// x^64 · (x^128 mod P) of the GCM polynomial P = x^128 + x^7 + x^2 + x + 1, as a reversed integer:
/// bits 63, 62 and 57.
const REDUCTION: i64 = 0xc200_0000_0000_0000_u64 as i64;

#[cfg(not(all(feature = "wrong-constant", debug_assertions)))]
#[inline]
const fn reduction() -> i64 {
    REDUCTION
}

/// Returns a wrong constant if the variable `WRAITH_WRONG_CONSTANT` is set. The self-test has to
/// find it.
#[cfg(all(feature = "wrong-constant", debug_assertions))]
#[inline]
fn reduction() -> i64 {
    static CONSTANT: std::sync::LazyLock<i64> = std::sync::LazyLock::new(|| {
        let wrong = std::env::var_os("WRAITH_WRONG_CONSTANT").is_some();
        if wrong { REDUCTION ^ 1 << 56 } else { REDUCTION }
    });
    *CONSTANT
}

/// The powers of a hash key. Wiped when dropped.
#[derive(Clone)]
pub(super) struct HashKey {
    /// H^17 / x … H^1 / x, then zeros.
    powers: [__m128i; POWERS],
}

/// Descending powers of H, divided by x, for a run of vectors.
pub(super) struct Powers<'a>(&'a [__m128i; GROUP_BLOCKS]);

impl Zeroize for HashKey {
    fn zeroize(&mut self) {
        // SAFETY: all zeros are a valid vector.
        self.powers = unsafe { mem::zeroed() };
        optimization_barrier(self);
    }
}

impl Drop for HashKey {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for HashKey {}

impl HashKey {
    /// Writes the powers of the hash key, which is passed as a block.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    pub(super) fn fill(place: &mut MaybeUninit<Self>, hash_key: __m128i) {
        let place = place.as_mut_ptr();
        // SAFETY: the place is filled with zeros first, which are valid vectors, so the reference
        // covers a whole key.
        let powers = unsafe {
            place.write_bytes(0, 1);
            &mut (*place).powers
        };
        powers[POWER_MAX - 1] = over_x(hash_key);
        // Each is the product of two powers of about half its exponent, so that few wait for
        // others.
        for n in 2..=POWER_MAX {
            let (half, other) = (n / 2, n.div_ceil(2));
            powers[POWER_MAX - n] = multiply(powers[POWER_MAX - half], powers[POWER_MAX - other]);
        }
    }

    /// Writes the powers, computed four at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
    #[inline]
    pub(super) fn fill_wide(place: &mut MaybeUninit<Self>, hash_key: __m128i) {
        let h1 = over_x(hash_key);
        let h2 = square(h1);
        // Descending: H^2 and H, twice. Later H^4 …
        let two = _mm256_set_m128i(h1, h2);
        let two = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(two), two);
        // A macro, because a function would not be inlined and would pass its vectors through
        // memory.
        macro_rules! times {
            ($powers:expr, $power:expr) => {{
                let power = _mm512_broadcast_i32x4($power);
                // Karatsuba, because the multiplications are the bottleneck.
                let low = _mm512_clmulepi64_epi128::<0x00>($powers, power);
                let high = _mm512_clmulepi64_epi128::<0x11>($powers, power);
                let middle =
                    _mm512_clmulepi64_epi128::<0x00>(halves_added($powers), halves_added(power));
                // 0x96 is the truth table of a ^ b ^ c.
                let middle = _mm512_ternarylogic_epi64::<0x96>(middle, low, high);
                let low = _mm512_xor_si512(low, _mm512_bslli_epi128::<8>(middle));
                let high = _mm512_xor_si512(high, _mm512_bsrli_epi128::<8>(middle));
                reduce_wide(low, high)
            }};
        }
        let to_4 = _mm512_mask_blend_epi64(0xf0, times!(two, h2), two);
        // Squares take less time than products, so they do not wait for the vectors that contain
        // them.
        let h4 = _mm512_castsi512_si128(to_4);
        let h8 = square(h4);
        let to_8 = times!(to_4, h4);
        let (to_12, to_16) = (times!(to_4, h8), times!(to_8, h8));
        let h17 = multiply(_mm512_castsi512_si128(to_16), h1);
        let zero = _mm512_setzero_si512();
        let vectors = [to_16, to_12, to_8, to_4, zero, zero, zero];
        const { assert!(POWER_MAX == 17 && POWERS == 32, "one power before the vectors") };
        let powers = place.as_mut_ptr().cast::<__m128i>();
        // SAFETY: the writes cover the first power, seven times four, and the last three zeros: all
        // within the key.
        unsafe {
            for (i, vector) in vectors.into_iter().enumerate() {
                _mm512_storeu_si512(powers.add(1 + 4 * i).cast(), vector);
            }
            _mm512_storeu_si512(powers.add(POWERS - 4).cast(), zero);
            powers.write(h17);
        }
    }

    /// Returns the hash of the associated data, from which the hash of the text continues.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    pub(super) fn of_associated(&self, aad: &[u8]) -> __m128i {
        self.continued(_mm_setzero_si128(), aad)
    }

    /// Continues `hash` with these bytes, padded with zeros.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    pub(super) fn continued(&self, mut hash: __m128i, aad: &[u8]) -> __m128i {
        let first_power = self.powers[POWER_MAX - 1];
        let (blocks, rest) = aad.as_chunks();
        for blocks in blocks.chunks(GROUP_BLOCKS) {
            hash = self.group(hash, blocks);
        }
        if !rest.is_empty() {
            // SAFETY: the rest is readable and shorter than a block.
            let last = unsafe { short::load(rest.as_ptr(), rest.len()) };
            hash = multiply(_mm_xor_si128(hash, integer(last.to_le_bytes())), first_power);
        }
        hash
    }

    /// Continues `hash` with at most a group of blocks, reduced together.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    fn group(&self, mut hash: __m128i, blocks: &[[u8; BLOCK]]) -> __m128i {
        let zero = _mm_setzero_si128();
        let (mut low, mut middle, mut high) = (zero, zero, zero);
        for (block, power) in blocks.iter().zip(&self.powers[POWER_MAX - blocks.len()..]) {
            let element = _mm_xor_si128(hash, integer(*block));
            hash = zero;
            low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(element, *power));
            high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(element, *power));
            middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x01>(element, *power));
            middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x10>(element, *power));
        }
        reduce(
            _mm_xor_si128(low, _mm_slli_si128::<8>(middle)),
            _mm_xor_si128(high, _mm_srli_si128::<8>(middle)),
        )
    }

    /// Returns the hash of a padded nonce and of its length in bits, as a number.
    #[target_feature(enable = "avx2,pclmulqdq")]
    pub(super) fn of_nonce(&self, nonce: &[u8]) -> u128 {
        let hash = self.of_associated(nonce);
        let lengths = integer((nonce.len() as u128 * 8).to_be_bytes());
        let hash = multiply(_mm_xor_si128(hash, lengths), self.powers[POWER_MAX - 1]);
        u128::from_le_bytes(bytes(hash))
    }

    /// Returns the powers `n`, `n` - 1 … 1, 0, 0 …, as many as a group has blocks.
    #[inline]
    pub(super) fn powers_down_from(&self, n: usize) -> Powers<'_> {
        Powers(self.powers[POWER_MAX - n..].first_chunk().expect("zeros follow the powers"))
    }
}

impl<'a> Powers<'a> {
    /// Returns the powers for vector `i` of `N` blocks.
    #[inline]
    pub(super) fn of_vector<const N: usize>(&self, i: usize) -> &'a [__m128i; N] {
        self.0[i * N..].first_chunk().expect("a group has whole vectors")
    }
}

/// Divides the hash key, a block, by x.
#[target_feature(enable = "avx2")]
#[inline]
fn over_x(hash_key: __m128i) -> __m128i {
    let h = _mm_shuffle_epi8(hash_key, reversal());
    // A division by x shifts every bit up by one. The x^0 that falls out becomes x^127 + x^6 + x +
    // 1.
    let between = _mm_slli_si128::<8>(_mm_srli_epi64::<63>(h));
    let moved = _mm_or_si128(_mm_slli_epi64::<1>(h), between);
    let carry = _mm_srai_epi32::<31>(_mm_shuffle_epi32::<0xff>(h));
    _mm_xor_si128(moved, _mm_and_si128(carry, _mm_set_epi64x(reduction(), 1)))
}

/// Multiplies an element by an element that is divided by x.
#[target_feature(enable = "avx2,pclmulqdq")]
#[inline]
fn multiply(a: __m128i, b_over_x: __m128i) -> __m128i {
    let low = _mm_clmulepi64_si128::<0x00>(a, b_over_x);
    let high = _mm_clmulepi64_si128::<0x11>(a, b_over_x);
    let middle = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x01>(a, b_over_x),
        _mm_clmulepi64_si128::<0x10>(a, b_over_x),
    );
    reduce(
        _mm_xor_si128(low, _mm_slli_si128::<8>(middle)),
        _mm_xor_si128(high, _mm_srli_si128::<8>(middle)),
    )
}

/// Squares an element that is divided by x; so is the result. The two cross products of its halves
/// are equal, so their sum is 0.
#[target_feature(enable = "avx2,pclmulqdq")]
#[inline]
fn square(a_over_x: __m128i) -> __m128i {
    let low = _mm_clmulepi64_si128::<0x00>(a_over_x, a_over_x);
    let high = _mm_clmulepi64_si128::<0x11>(a_over_x, a_over_x);
    reduce(low, high)
}

/// Reduces the 256-bit product `high`:`low` modulo P. Twice, the lowest 64 bits, which represent
/// the highest powers of x, are replaced by their remainder modulo P.
#[target_feature(enable = "avx2,pclmulqdq")]
#[inline]
pub(super) fn reduce(low: __m128i, high: __m128i) -> __m128i {
    let constant = _mm_set_epi64x(0, reduction());
    let swap = |v| _mm_shuffle_epi32::<0b01_00_11_10>(v);
    let once = _mm_xor_si128(swap(low), _mm_clmulepi64_si128::<0x00>(low, constant));
    let twice = _mm_xor_si128(swap(once), _mm_clmulepi64_si128::<0x00>(once, constant));
    _mm_xor_si128(high, twice)
}

/// Returns the sum of the halves of each element, in both halves.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn halves_added(v: __m512i) -> __m512i {
    _mm512_xor_si512(v, _mm512_shuffle_epi32::<0b01_00_11_10>(v))
}

/// Computes [`reduce`] for four products.
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
#[inline]
pub(super) fn reduce_wide(low: __m512i, high: __m512i) -> __m512i {
    let swap = |v| _mm512_shuffle_epi32::<0b01_00_11_10>(v);
    let constant = _mm512_set1_epi64(reduction());
    let once = _mm512_xor_si512(swap(low), _mm512_clmulepi64_epi128::<0x00>(low, constant));
    let twice = _mm512_clmulepi64_epi128::<0x00>(once, constant);
    _mm512_ternarylogic_epi64::<0x96>(high, swap(once), twice)
}

/// Returns a block as a big-endian integer.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn integer(block: [u8; BLOCK]) -> __m128i {
    let block = u128::from_be_bytes(block);
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn bytes(v: __m128i) -> [u8; BLOCK] {
    let low = _mm_cvtsi128_si64(v) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)) as u64;
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// Returns a shuffle that reverses the bytes of a block.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn reversal() -> __m128i {
    _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aes_gcm::Width;
    use crate::tests::{bytes, unchecked};

    #[test]
    fn powers_are_the_same_four_at_a_time() {
        if !Width::Bits512.is_available() {
            return unchecked("no AVX-512");
        }
        let one = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let random = bytes(16 * 100);
        for hash_key in random.as_chunks().0.iter().chain([&[0; BLOCK], &[0xff; BLOCK], &one]) {
            let (mut narrow, mut wide) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            // SAFETY: the check above found the instructions, and both keys are filled.
            unsafe {
                let block = _mm_loadu_si128(hash_key.as_ptr().cast());
                HashKey::fill(&mut narrow, block);
                HashKey::fill_wide(&mut wide, block);
                let (narrow, wide) = (narrow.assume_init(), wide.assume_init());
                for (narrow, wide) in narrow.powers.iter().zip(&wide.powers) {
                    assert_eq!(super::bytes(*narrow), super::bytes(*wide), "{hash_key:x?}");
                }
            }
        }
    }
}
