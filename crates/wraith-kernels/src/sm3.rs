//! The compression function of SM3 (GB/T 32905, §5.3).
//!
//! With AVX-512 and BMI2, vectors compute the message schedule of the next block, three words at a
//! time. This is interleaved with the rounds of the current block in general registers.
//!
//! It takes 7.7 cycles per byte on Zen 4. Each round waits seven cycles for the previous one,
//! because the choice and its additions are a chain of four. A round has 25 operations for four
//! adders. The rounds without the schedule take 7.0 cycles per byte, the portable reference 13.
#![allow(unsafe_code)]

/// The constant of each round, already rotated.
const T: [u32; 64] = {
    let mut t = [0; 64];
    let mut j = 0;
    while j < 64 {
        let constant: u32 = if j < 16 { 0x79cc_4519 } else { 0x7a87_9d8a };
        t[j] = constant.rotate_left(j as u32 % 32);
        j += 1;
    }
    t
};

crate::detect::features!(x86::KERNEL);

/// Absorbs `blocks`, whole blocks of 64 bytes.
pub fn compress(state: &mut [u32; 8], blocks: &[u8]) {
    debug_assert!(blocks.len().is_multiple_of(64), "whole blocks");
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    if x86::KERNEL.is_available() {
        // SAFETY: the kernel is available, so the processor has the instructions.
        return unsafe { x86::compress(state, blocks) };
    }
    compress_portable(state, blocks);
}

/// Compresses blocks as the standard writes it.
fn compress_portable(state: &mut [u32; 8], blocks: &[u8]) {
    for block in blocks.as_chunks::<64>().0 {
        let mut w = [0; 68];
        for (w, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
            *w = u32::from_be_bytes(*bytes);
        }
        for j in 16..68 {
            let x = w[j - 16] ^ w[j - 9] ^ w[j - 3].rotate_left(15);
            let p1 = x ^ x.rotate_left(15) ^ x.rotate_left(23);
            w[j] = p1 ^ w[j - 13].rotate_left(7) ^ w[j - 6];
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        for j in 0..64 {
            let a12 = a.rotate_left(12);
            let ss1 = a12.wrapping_add(e).wrapping_add(T[j]).rotate_left(7);
            let (ff, gg) = match j {
                0..16 => (a ^ b ^ c, e ^ f ^ g),
                _ => ((a & b) | (a & c) | (b & c), (e & f) | (!e & g)),
            };
            let x = w[j] ^ w[j + 4];
            let tt1 = ff.wrapping_add(d).wrapping_add(ss1 ^ a12).wrapping_add(x);
            let tt2 = gg.wrapping_add(h).wrapping_add(ss1).wrapping_add(w[j]);
            (d, c, b, a) = (c, b.rotate_left(9), a, tt1);
            (h, g, f, e) =
                (g, f.rotate_left(19), e, tt2 ^ tt2.rotate_left(9) ^ tt2.rotate_left(17));
        }
        for (state, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state ^= new;
        }
    }
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) mod x86 {
    use core::arch::asm;
    use core::arch::x86_64::*;
    use core::mem::MaybeUninit;

    use super::T;
    use crate::detect::{Kernel, Purpose, needs};
    use crate::self_test::compresses_as;

    /// Number of groups of three words after the sixteen of a block, as many as 64 rounds need.
    const GROUPS: usize = 18;
    /// Number of words allocated. Groups are written four words wide.
    const WORDS: usize = 16 + 3 * GROUPS + 2;
    const XOR: i32 = 0x96;

    /// The words of a block that a round reads: W[j], and W[j] ^ W[j + 4].
    #[repr(C, align(64))]
    struct Schedule {
        w: [MaybeUninit<u32>; WORDS],
        x: [MaybeUninit<u32>; WORDS],
    }

    /// Offset in bytes from W[j] to W[j] ^ W[j + 4].
    const X: usize = 4 * WORDS;

    /// The last eighteen words of a schedule under construction, three to a vector. The last lane
    /// of each vector is unused.
    struct Words {
        /// The words W[j - 18..], …, W[j - 3..].
        three: [__m128i; 6],
        /// The same, shifted by one word: W[j - 19..], …, W[j - 4..].
        before: [__m128i; 6],
    }

    pub(crate) static KERNEL: Kernel =
        Kernel::new("SM3", needs::AVX512_BMI2, Purpose::Bulk, self_test);

    fn self_test() -> bool {
        compresses_as::<u32, 64>(super::compress_portable, |state, blocks| {
            // SAFETY: the processor has the instructions when a self-test runs.
            unsafe { compress(state, blocks) }
        })
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
    pub(super) fn compress(state: &mut [u32; 8], blocks: &[u8]) {
        let Some((first, rest)) = blocks.as_chunks::<64>().0.split_first() else { return };
        let mut schedules = MaybeUninit::<[Schedule; 2]>::uninit();
        // SAFETY: a schedule may be uninitialized as a whole.
        let [now, then] = unsafe { schedules.assume_init_mut() };
        let (mut now, mut then) = (now, then);
        let mut words = start(now, first);
        for group in 0..GROUPS {
            extend(now, &mut words, group);
        }
        for block in rest {
            let mut words = start(then, block);
            rounds(state, now, |group| extend(then, &mut words, group));
            for group in 16..GROUPS {
                extend(then, &mut words, group);
            }
            (now, then) = (then, now);
        }
        rounds(state, now, |_| ());
    }

    /// Writes the first sixteen words, and W[j] ^ W[j + 4] of the first twelve.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn start(schedule: &mut Schedule, block: &[u8; 64]) -> Words {
        let swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
        let words = |at: usize| {
            let words: &[u8; 16] = block[4 * at..].first_chunk().expect("four words follow");
            // SAFETY: they are 16 bytes.
            _mm_shuffle_epi8(unsafe { _mm_loadu_si128(words.as_ptr().cast()) }, swap)
        };
        let fours = [words(0), words(4), words(8), words(12)];
        for (i, four) in fours.into_iter().enumerate() {
            put(&mut schedule.w, 4 * i, four);
        }
        for i in 0..3 {
            put(&mut schedule.x, 4 * i, _mm_xor_si128(fours[i], fours[i + 1]));
        }
        // No later word depends on W[-2] or earlier ones.
        let zero = _mm_shuffle_epi32::<0>(fours[0]);
        let last = _mm_shuffle_epi32::<0b11_11_10_01>(fours[3]);
        Words {
            three: [zero, words(1), words(4), words(7), words(10), last],
            before: [zero, fours[0], words(3), words(6), words(9), fours[3]],
        }
    }

    /// Computes three words, from `16 + 3 · group` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn extend(schedule: &mut Schedule, words: &mut Words, group: usize) {
        let [_, three_15, three_12, w9, w6, w3] = words.three;
        let [_, w16, w13, before_10, before_7, w4] = words.before;
        let x = _mm_ternarylogic_epi32::<XOR>(w16, w9, _mm_rol_epi32::<15>(w3));
        let (x15, x23) = (_mm_rol_epi32::<15>(x), _mm_rol_epi32::<23>(x));
        let p1 = _mm_ternarylogic_epi32::<XOR>(x, x15, x23);
        let new = _mm_xor_si128(p1, _mm_xor_si128(_mm_rol_epi32::<7>(w13), w6));
        put(&mut schedule.w, 16 + 3 * group, new);
        put(&mut schedule.x, 12 + 3 * group, _mm_xor_si128(w4, new));
        let before = _mm_permutex2var_epi32(w3, _mm_setr_epi32(2, 4, 5, 6), new);
        words.three = [three_15, three_12, w9, w6, w3, new];
        words.before = [w16, w13, before_10, before_7, w4, before];
    }

    /// Writes four words, starting at `at`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn put(row: &mut [MaybeUninit<u32>; WORDS], at: usize, words: __m128i) {
        let place: &mut [MaybeUninit<u32>; 4] =
            row[at..].first_chunk_mut().expect("groups end before the row does");
        // SAFETY: the place has 16 bytes.
        unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), words) }
    }

    /// Computes all rounds of one block. Calls `meanwhile` before every four of them; its
    /// instructions fill the gaps.
    ///
    /// The order of the instructions decides the speed; the compiler's own order takes a tenth more
    /// time. The majority is `(b & c) + ((b ^ c) & a)`. Its terms have no bit in common, and only
    /// the last step waits for `a`.
    #[inline]
    #[target_feature(enable = "bmi1,bmi2")]
    fn rounds(state: &mut [u32; 8], schedule: &Schedule, mut meanwhile: impl FnMut(usize)) {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        macro_rules! round {
            ($j:expr, [$($functions:literal)*], $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
                // SAFETY: it reads two words of the schedule, which are initialized, and writes
                // only registers. It is not marked pure, because the compiler would then gather all
                // interleaved code in one place.
                unsafe {
                    asm!(
                        "rorx {ss2:e}, {a:e}, 20",
                        "lea {ss1:e}, [{ss2:r} + {e:r} + {t}]",
                        "rorx {ss1:e}, {ss1:e}, 25",
                        "xor {ss2:e}, {ss1:e}",
                        "add {d:e}, [{schedule} + {x}]",
                        "add {h:e}, [{schedule} + {w}]",
                        $($functions,)*
                        "add {d:e}, {ss2:e}",
                        "add {h:e}, {ss1:e}",
                        "rorx {p:e}, {h:e}, 23",
                        "rorx {q:e}, {h:e}, 15",
                        "xor {h:e}, {p:e}",
                        "xor {h:e}, {q:e}",
                        "rorx {f:e}, {f:e}, 13",
                        "rorx {b:e}, {b:e}, 23",
                        a = in(reg) $a, b = inout(reg) $b, c = in(reg) $c, d = inout(reg) $d,
                        e = in(reg) $e, f = inout(reg) $f, g = in(reg) $g, h = inout(reg) $h,
                        ss1 = out(reg) _, ss2 = out(reg) _, p = out(reg) _, q = out(reg) _,
                        schedule = in(reg) schedule,
                        t = const T[$j].cast_signed(), w = const 4 * $j, x = const X + 4 * $j,
                        options(nostack)
                    )
                }
            };
        }
        macro_rules! fours { ($functions:tt, $($j:literal)*) => {$(
            meanwhile($j / 4);
            round!($j, $functions, a b c d e f g h);
            round!($j + 1, $functions, d a b c h e f g);
            round!($j + 2, $functions, c d a b g h e f);
            round!($j + 3, $functions, b c d a f g h e);
        )*} }
        fours!([
            "mov {p:e}, {b:e}"
            "xor {p:e}, {c:e}"
            "xor {p:e}, {a:e}"
            "add {d:e}, {p:e}"
            "mov {q:e}, {f:e}"
            "xor {q:e}, {g:e}"
            "xor {q:e}, {e:e}"
            "add {h:e}, {q:e}"
        ], 0 4 8 12);
        fours!([
            "mov {p:e}, {b:e}"
            "and {p:e}, {c:e}"
            "add {d:e}, {p:e}"
            "mov {p:e}, {b:e}"
            "xor {p:e}, {c:e}"
            "and {p:e}, {a:e}"
            "add {d:e}, {p:e}"
            "andn {p:e}, {e:e}, {g:e}"
            "add {h:e}, {p:e}"
            "mov {q:e}, {f:e}"
            "and {q:e}, {e:e}"
            "add {h:e}, {q:e}"
        ], 16 20 24 28 32 36 40 44 48 52 56 60);
        for (state, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state ^= new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::same_at_every_length;

    #[test]
    fn every_number_of_blocks_at_every_alignment_is_as_the_portable_code_has_it() {
        same_at_every_length::<u32, 64>(70, compress_portable, |state, data| {
            compress(state, data);
            true
        });
    }
}
