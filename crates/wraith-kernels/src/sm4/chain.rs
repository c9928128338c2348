//! SM4 with GFNI, one block after another, for the modes that chain blocks.
//!
//! The rounds are those of [`gfni`](super::gfni), on one block. The map P is linear, so the
//! chaining value stays in the form of the state. Only the rounds lie between one block and the
//! next.
//!
//! On Zen 4: 270 cycles per block with [`vl`], where a sum of three and a rotation are one
//! instruction each, and 330 with [`plain`].
#![allow(unsafe_code)]

/// Defines the functions for one block after another with the instructions `$features`. `$turn_*`
/// rotates to the right, and `$sum` xors three vectors.
macro_rules! one_by_one {
    ($features:literal, $turn_8:expr, $turn_16:expr, $turn_24:expr, $sum:expr) => {
        /// Computes the rounds. Input and output have the form of the state.
        ///
        /// The critical path from one `t` to the next is an inversion, a rotation, a sum of three
        /// and a sum of two. All else runs beside it.
        #[target_feature(enable = $features)]
        #[inline]
        fn rounds(keys: &RoundKeys, block: __m128i) -> __m128i {
            let a = _mm_set1_epi64x(A as i64);
            let b = _mm_set1_epi64x(B as i64);
            let c = _mm_set1_epi64x(C as i64);
            let key = |i: usize| _mm_cvtsi32_si128(keys.folded[i] as i32);
            let mut words = [
                block,
                _mm_shuffle_epi32::<1>(block),
                _mm_shuffle_epi32::<2>(block),
                _mm_shuffle_epi32::<3>(block),
            ];
            let mut t = $sum(words[1], words[2], _mm_xor_si128(words[3], key(0)));
            let mut i = 0;
            while i < 32 {
                for w in 0..4 {
                    // The part of the next round's `t` that does not depend on this round. The last
                    // round has no next one.
                    let others =
                        $sum(words[(w + 2) % 4], words[(w + 3) % 4], key((i + w + 1) % 32));
                    let ours = _mm_gf2p8affineinv_epi64_epi8::<0x63>(t, a);
                    let b = _mm_gf2p8affineinv_epi64_epi8::<0>(t, b);
                    let c = _mm_gf2p8affineinv_epi64_epi8::<0>(t, c);
                    let turned = $sum($turn_8(b), $turn_16(b), $turn_24(c));
                    t = _mm_xor_si128(turned, $sum(ours, words[w], others));
                    words[w] = $sum(turned, ours, words[w]);
                }
                i += 4;
            }
            _mm_unpacklo_epi64(
                _mm_unpacklo_epi32(words[3], words[2]),
                _mm_unpacklo_epi32(words[1], words[0]),
            )
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn load(block: &Block) -> __m128i {
            // SAFETY: the reference covers 16 readable bytes.
            let block = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
            _mm_gf2p8affine_epi64_epi8::<0>(block, _mm_set1_epi64x(P as i64))
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn store(block: &mut Block, state: __m128i) {
            let matrix = _mm_set1_epi64x(P_INVERSE as i64);
            let bytes = _mm_gf2p8affine_epi64_epi8::<0>(state, matrix);
            // SAFETY: the reference covers 16 writable bytes.
            unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), bytes) }
        }

        /// Encrypts one block in place.
        #[target_feature(enable = $features)]
        pub(crate) fn one(keys: &RoundKeys, block: &mut Block) {
            let state = rounds(keys, load(block));
            store(block, state);
        }

        /// Encrypts `blocks` in place, chained.
        #[target_feature(enable = $features)]
        pub(crate) fn chain(keys: &RoundKeys, chain: Chain, iv: &mut Block, blocks: &mut [Block]) {
            let mut state = load(iv);
            match chain {
                Chain::Cbc => {
                    for block in blocks {
                        state = rounds(keys, _mm_xor_si128(state, load(block)));
                        store(block, state);
                    }
                }
                Chain::Cfb => {
                    for block in blocks {
                        state = _mm_xor_si128(rounds(keys, state), load(block));
                        store(block, state);
                    }
                }
                Chain::Ofb => {
                    for block in blocks {
                        state = rounds(keys, state);
                        store(block, _mm_xor_si128(state, load(block)));
                    }
                }
            }
            store(iv, state);
        }

        /// Runs CBC, but keeps only the last block, in `state`.
        #[target_feature(enable = $features)]
        pub(crate) fn absorb(keys: &RoundKeys, state: &mut Block, blocks: &[Block]) {
            let mut sum = load(state);
            for block in blocks {
                sum = rounds(keys, _mm_xor_si128(sum, load(block)));
            }
            store(state, sum);
        }
    };
}

/// The functions with AVX2.
pub(super) mod plain {
    use core::arch::x86_64::*;

    use super::super::{A, B, Block, C, Chain, P, P_INVERSE, RoundKeys};

    /// Shuffles that rotate words to the right.
    const TURN_8: [u8; 16] = turn(1);
    const TURN_16: [u8; 16] = turn(2);
    const TURN_24: [u8; 16] = turn(3);

    const fn turn(bytes: u8) -> [u8; 16] {
        let mut from = [0; 16];
        let mut i = 0;
        while i < 16 {
            from[i as usize] = i / 4 * 4 + (i + bytes) % 4;
            i += 1;
        }
        from
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn turned(v: __m128i, from: &[u8; 16]) -> __m128i {
        // SAFETY: the reference covers 16 readable bytes.
        _mm_shuffle_epi8(v, unsafe { _mm_loadu_si128(from.as_ptr().cast()) })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn sum(a: __m128i, b: __m128i, c: __m128i) -> __m128i {
        _mm_xor_si128(a, _mm_xor_si128(b, c))
    }

    one_by_one!(
        "avx2,gfni",
        |v| turned(v, &TURN_8),
        |v| turned(v, &TURN_16),
        |v| turned(v, &TURN_24),
        sum
    );
}

/// The functions with AVX-512VL.
pub(super) mod vl {
    use core::arch::x86_64::*;

    use super::super::{A, B, Block, C, Chain, P, P_INVERSE, RoundKeys};

    #[target_feature(enable = "avx512f,avx512vl")]
    #[inline]
    fn sum(a: __m128i, b: __m128i, c: __m128i) -> __m128i {
        // 0x96 is the truth table of a ^ b ^ c.
        _mm_ternarylogic_epi32::<0x96>(a, b, c)
    }

    one_by_one!(
        "avx512f,avx512vl,avx2,gfni",
        |v| _mm_ror_epi32::<8>(v),
        |v| _mm_ror_epi32::<16>(v),
        |v| _mm_ror_epi32::<24>(v),
        sum
    );
}
