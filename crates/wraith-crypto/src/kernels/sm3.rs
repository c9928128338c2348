//! The compression function of SM3 (GB/T 32905, §5.3).
//!
//! With AVX-512 and BMI2: the message schedules of sixteen blocks at once, one in each lane; then the rounds of one block after the other in
//! general registers. 8.5 cycles per byte on Zen 4. The rounds take 8.1 of them: each waits for the one before for seven cycles, and has
//! 25 operations for four adders. What matters there is the order of additions and of exclusive ors, which the compiler would change: see `keep`.
//! The portable twin takes 13.
#![allow(unsafe_code)]

/// From here on the schedules of sixteen blocks cost less than the portable one of each.
#[cfg(target_arch = "x86_64")]
const FEW: usize = 2;

/// The constant of each round, rotated as the round wants it.
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

/// What computes the blocks of long messages here.
pub(crate) fn backend() -> crate::Backend {
    #[cfg(target_arch = "x86_64")]
    if x86::is_there() {
        return crate::Backend::Own("AVX-512, BMI2".into());
    }
    crate::Backend::Own("portable".into())
}

/// Takes in `blocks`, whole ones of 64 bytes.
pub(crate) fn compress(state: &mut [u32; 8], blocks: &[u8]) {
    debug_assert!(blocks.len().is_multiple_of(64), "whole blocks");
    #[cfg(target_arch = "x86_64")]
    if blocks.len() >= FEW * 64 && x86::is_there() {
        // SAFETY: the processor has what the function needs.
        return unsafe { x86::compress(state, blocks) };
    }
    compress_portable(state, blocks);
}

/// As the standard writes it.
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::asm;
    use core::arch::x86_64::*;

    use super::T;
    use crate::kernels::transpose::transpose_16;

    const LANES: usize = 16;

    /// The words of sixteen blocks that a round takes: W[j], and W[j] ^ W[j + 4].
    #[repr(C, align(64))]
    struct Schedule {
        w: [[u32; LANES]; 64],
        x: [[u32; LANES]; 64],
    }

    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
    }

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
    pub(super) fn compress(state: &mut [u32; 8], blocks: &[u8]) {
        let mut schedule = Schedule { w: [[0; LANES]; 64], x: [[0; LANES]; 64] };
        for group in blocks.as_chunks::<64>().0.chunks(LANES) {
            fill(&mut schedule, group);
            for lane in 0..group.len() {
                rounds(state, &schedule, lane);
            }
        }
    }

    /// The schedules of at most sixteen `blocks`.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn fill(schedule: &mut Schedule, blocks: &[[u8; 64]]) {
        let swap = _mm512_broadcast_i32x4(_mm_set_epi8(
            12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
        ));
        // The last sixteen words: W[j] is in place j % 16.
        let mut w = [_mm512_setzero_si512(); 16];
        for (w, block) in w.iter_mut().zip(blocks) {
            // SAFETY: a block has 64 bytes.
            *w = _mm512_shuffle_epi8(unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }, swap);
        }
        w = transpose_16(w);
        for (row, w) in schedule.w.iter_mut().zip(w) {
            put(row, w);
        }
        for j in 0..12 {
            put(&mut schedule.x[j], _mm512_xor_si512(w[j], w[j + 4]));
        }
        for base in [16, 32, 48] {
            macro_rules! words { ($($i:literal)*) => {$(
                let (w13, w9) = (w[($i + 3) % 16], w[($i + 7) % 16]);
                let (w6, w4, w3) = (w[($i + 10) % 16], w[($i + 12) % 16], w[($i + 13) % 16]);
                w[$i] = next(w[$i], w13, w9, w6, w3);
                put(&mut schedule.w[base + $i], w[$i]);
                put(&mut schedule.x[base + $i - 4], _mm512_xor_si512(w4, w[$i]));
            )*} }
            words!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
        for i in 0..4 {
            w[i] = next(w[i], w[i + 3], w[i + 7], w[i + 10], w[(i + 13) % 16]);
            put(&mut schedule.x[60 + i], _mm512_xor_si512(w[i + 12], w[i]));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn put(row: &mut [u32; LANES], words: __m512i) {
        // SAFETY: a row has 64 bytes, and those of a schedule begin at a multiple of 64.
        unsafe { _mm512_store_si512(row.as_mut_ptr().cast(), words) }
    }

    /// A word of the schedule, of those 16, 13, 9, 6 and 3 before it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn next(w16: __m512i, w13: __m512i, w9: __m512i, w6: __m512i, w3: __m512i) -> __m512i {
        const XOR: i32 = 0x96;
        let x = _mm512_ternarylogic_epi32::<XOR>(w16, w9, _mm512_rol_epi32::<15>(w3));
        let (x15, x23) = (_mm512_rol_epi32::<15>(x), _mm512_rol_epi32::<23>(x));
        let p1 = _mm512_ternarylogic_epi32::<XOR>(x, x15, x23);
        _mm512_ternarylogic_epi32::<XOR>(p1, _mm512_rol_epi32::<7>(w13), w6)
    }

    /// `x`, which is computed before what it is part of: no instruction, but the compiler does not look through it.
    #[inline(always)]
    fn keep(mut x: u32) -> u32 {
        // SAFETY: there is nothing but a comment in it.
        unsafe {
            asm!("/* {0:e} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags))
        };
        x
    }

    #[target_feature(enable = "bmi1,bmi2")]
    fn rounds(state: &mut [u32; 8], schedule: &Schedule, lane: usize) {
        assert!(lane < LANES, "a schedule has sixteen lanes");
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        macro_rules! round {
            ($j:expr, $ff:ident, $gg:ident, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {{
                let a12 = $a.rotate_left(12);
                let ss1 = keep(a12.wrapping_add(T[$j])).wrapping_add($e).rotate_left(7);
                let tt2 = $gg($e, $f, $g, $h.wrapping_add(schedule.w[$j][lane])).wrapping_add(ss1);
                $d = $ff($a, $b, $c, $d.wrapping_add(schedule.x[$j][lane])).wrapping_add(ss1 ^ a12);
                $b = $b.rotate_left(9);
                $f = $f.rotate_left(19);
                $h = keep(tt2 ^ tt2.rotate_left(9)) ^ tt2.rotate_left(17);
            }};
        }
        macro_rules! fours { ($ff:ident, $gg:ident, $($j:literal)*) => {$(
            round!($j, $ff, $gg, a b c d e f g h);
            round!($j + 1, $ff, $gg, d a b c h e f g);
            round!($j + 2, $ff, $gg, c d a b g h e f);
            round!($j + 3, $ff, $gg, b c d a f g h e);
        )*} }
        fours!(xor, xor, 0 4 8 12);
        fours!(majority, choice, 16 20 24 28 32 36 40 44 48 52 56 60);
        for (state, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state ^= new;
        }
    }

    // The functions of a round, added to `sum`. The parts of the last two have no bit in common.

    #[inline(always)]
    const fn xor(x: u32, y: u32, z: u32, sum: u32) -> u32 {
        (x ^ y ^ z).wrapping_add(sum)
    }

    #[inline(always)]
    const fn majority(x: u32, y: u32, z: u32, sum: u32) -> u32 {
        (x & y).wrapping_add(sum).wrapping_add((x ^ y) & z)
    }

    #[inline(always)]
    const fn choice(x: u32, y: u32, z: u32, sum: u32) -> u32 {
        (!x & z).wrapping_add(sum).wrapping_add(x & y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::bytes;

    #[test]
    fn every_number_of_blocks_at_every_alignment_is_as_the_portable_code_has_it() {
        let data = bytes(64 * 70 + 8);
        for blocks in 0..=70 {
            let data = &data[blocks % 8..][..64 * blocks];
            let (mut expected, mut state) = ([blocks as u32; 8], [blocks as u32; 8]);
            compress_portable(&mut expected, data);
            compress(&mut state, data);
            assert_eq!(state, expected, "{blocks} blocks");
            #[cfg(target_arch = "x86_64")]
            if x86::is_there() {
                state = [blocks as u32; 8];
                // SAFETY: the processor has what the function needs.
                unsafe { x86::compress(&mut state, data) };
                assert_eq!(state, expected, "{blocks} blocks");
            }
        }
    }
}
