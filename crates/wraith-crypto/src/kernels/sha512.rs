//! The compression function of SHA-384 and SHA-512 (FIPS 180-4, §6.4.2).
//!
//! With AVX-512 and BMI2: the message schedules of eight blocks at once, one in each lane, round constants added; then the rounds of one
//! block after the other in general registers. 4.85 cycles per byte on Zen 4, whose four adders set the limit at 3.5; AWS-LC takes 6.0 there.
//! Less than [`FEW`] blocks do not pay for a schedule of eight, and other processors have none: those are AWS-LC's, which is the twin, too.
#![allow(unsafe_code)]

use aws_lc_sys as aws;

/// From here on the schedules of eight blocks cost less than AWS-LC's of each.
#[cfg(target_arch = "x86_64")]
const FEW: usize = 3;

/// What computes the blocks of long messages here.
pub(crate) fn backend() -> crate::Backend {
    #[cfg(target_arch = "x86_64")]
    if x86::is_there() {
        return crate::Backend::Own("AVX-512, BMI2".into());
    }
    crate::Backend::AwsLc
}

/// Takes in `blocks`, whole ones of 128 bytes.
pub(crate) fn compress(state: &mut [u64; 8], blocks: &[u8]) {
    debug_assert!(blocks.len().is_multiple_of(128), "whole blocks");
    #[cfg(target_arch = "x86_64")]
    if blocks.len() >= FEW * 128 && x86::is_there() {
        // SAFETY: the processor has what the function needs.
        return unsafe { x86::compress(state, blocks) };
    }
    compress_aws(state, blocks);
}

fn compress_aws(state: &mut [u64; 8], blocks: &[u8]) {
    let mut context = aws::SHA512_CTX { h: *state, Nl: 0, Nh: 0, p: [0; 128], num: 0, md_len: 64 };
    // SAFETY: the context is one that has nothing pending, and `blocks` may be read for its length.
    unsafe { aws::SHA512_Update(&mut context, blocks.as_ptr().cast(), blocks.len()) };
    *state = context.h;
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use core::arch::x86_64::*;

    use crate::kernels::transpose::transpose_8;

    const LANES: usize = 8;

    /// The first 64 bits of the fractions of the cube roots of the first eighty primes.
    pub(in crate::kernels) const K: [u64; 80] = [
        0x428a_2f98_d728_ae22,
        0x7137_4491_23ef_65cd,
        0xb5c0_fbcf_ec4d_3b2f,
        0xe9b5_dba5_8189_dbbc,
        0x3956_c25b_f348_b538,
        0x59f1_11f1_b605_d019,
        0x923f_82a4_af19_4f9b,
        0xab1c_5ed5_da6d_8118,
        0xd807_aa98_a303_0242,
        0x1283_5b01_4570_6fbe,
        0x2431_85be_4ee4_b28c,
        0x550c_7dc3_d5ff_b4e2,
        0x72be_5d74_f27b_896f,
        0x80de_b1fe_3b16_96b1,
        0x9bdc_06a7_25c7_1235,
        0xc19b_f174_cf69_2694,
        0xe49b_69c1_9ef1_4ad2,
        0xefbe_4786_384f_25e3,
        0x0fc1_9dc6_8b8c_d5b5,
        0x240c_a1cc_77ac_9c65,
        0x2de9_2c6f_592b_0275,
        0x4a74_84aa_6ea6_e483,
        0x5cb0_a9dc_bd41_fbd4,
        0x76f9_88da_8311_53b5,
        0x983e_5152_ee66_dfab,
        0xa831_c66d_2db4_3210,
        0xb003_27c8_98fb_213f,
        0xbf59_7fc7_beef_0ee4,
        0xc6e0_0bf3_3da8_8fc2,
        0xd5a7_9147_930a_a725,
        0x06ca_6351_e003_826f,
        0x1429_2967_0a0e_6e70,
        0x27b7_0a85_46d2_2ffc,
        0x2e1b_2138_5c26_c926,
        0x4d2c_6dfc_5ac4_2aed,
        0x5338_0d13_9d95_b3df,
        0x650a_7354_8baf_63de,
        0x766a_0abb_3c77_b2a8,
        0x81c2_c92e_47ed_aee6,
        0x9272_2c85_1482_353b,
        0xa2bf_e8a1_4cf1_0364,
        0xa81a_664b_bc42_3001,
        0xc24b_8b70_d0f8_9791,
        0xc76c_51a3_0654_be30,
        0xd192_e819_d6ef_5218,
        0xd699_0624_5565_a910,
        0xf40e_3585_5771_202a,
        0x106a_a070_32bb_d1b8,
        0x19a4_c116_b8d2_d0c8,
        0x1e37_6c08_5141_ab53,
        0x2748_774c_df8e_eb99,
        0x34b0_bcb5_e19b_48a8,
        0x391c_0cb3_c5c9_5a63,
        0x4ed8_aa4a_e341_8acb,
        0x5b9c_ca4f_7763_e373,
        0x682e_6ff3_d6b2_b8a3,
        0x748f_82ee_5def_b2fc,
        0x78a5_636f_4317_2f60,
        0x84c8_7814_a1f0_ab72,
        0x8cc7_0208_1a64_39ec,
        0x90be_fffa_2363_1e28,
        0xa450_6ceb_de82_bde9,
        0xbef9_a3f7_b2c6_7915,
        0xc671_78f2_e372_532b,
        0xca27_3ece_ea26_619c,
        0xd186_b8c7_21c0_c207,
        0xeada_7dd6_cde0_eb1e,
        0xf57d_4f7f_ee6e_d178,
        0x06f0_67aa_7217_6fba,
        0x0a63_7dc5_a2c8_98a6,
        0x113f_9804_bef9_0dae,
        0x1b71_0b35_131c_471b,
        0x28db_77f5_2304_7d84,
        0x32ca_ab7b_40c7_2493,
        0x3c9e_be0a_15c9_bebc,
        0x431d_67c4_9c10_0d4c,
        0x4cc5_d4be_cb3e_42b6,
        0x597f_299c_fc65_7e2a,
        0x5fcb_6fab_3ad6_faec,
        0x6c44_198c_4a47_5817,
    ];

    /// W[j] + K[j] of eight blocks.
    #[repr(C, align(64))]
    struct Schedule([[u64; LANES]; 80]);

    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
    }

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
    pub(super) fn compress(state: &mut [u64; 8], blocks: &[u8]) {
        let mut schedule = Schedule([[0; LANES]; 80]);
        for group in blocks.as_chunks::<128>().0.chunks(LANES) {
            fill(&mut schedule, group);
            for lane in 0..group.len() {
                rounds(state, &schedule, lane);
            }
        }
    }

    /// The schedules of at most eight `blocks`.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn fill(schedule: &mut Schedule, blocks: &[[u8; 128]]) {
        let swap = _mm512_broadcast_i32x4(_mm_set_epi8(
            8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7,
        ));
        let mut w = [_mm512_setzero_si512(); 16];
        for (half, w) in w.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            for (w, block) in w.iter_mut().zip(blocks) {
                let words = block[64 * half..].as_ptr();
                // SAFETY: 64 bytes of the block lie from here on.
                *w = _mm512_shuffle_epi8(unsafe { _mm512_loadu_si512(words.cast()) }, swap);
            }
            *w = transpose_8(*w);
        }
        let mut put = |j: usize, w| {
            let sum = _mm512_add_epi64(w, _mm512_set1_epi64(K[j].cast_signed()));
            // SAFETY: a row has 64 bytes and begins at a multiple of 64.
            unsafe { _mm512_store_si512(schedule.0[j].as_mut_ptr().cast(), sum) }
        };
        for (j, w) in w.into_iter().enumerate() {
            put(j, w);
        }
        for base in [16, 32, 48, 64] {
            macro_rules! words { ($($i:literal)*) => {$(
                w[$i] = next(w[$i], w[($i + 1) % 16], w[($i + 9) % 16], w[($i + 14) % 16]);
                put(base + $i, w[$i]);
            )*} }
            words!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
    }

    /// A word of the schedule, of those 16, 15, 7 and 2 before it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn next(w16: __m512i, w15: __m512i, w7: __m512i, w2: __m512i) -> __m512i {
        let (a, b) = (_mm512_ror_epi64::<1>(w15), _mm512_ror_epi64::<8>(w15));
        let sigma0 = _mm512_ternarylogic_epi64::<0x96>(a, b, _mm512_srli_epi64::<7>(w15));
        let (a, b) = (_mm512_ror_epi64::<19>(w2), _mm512_ror_epi64::<61>(w2));
        let sigma1 = _mm512_ternarylogic_epi64::<0x96>(a, b, _mm512_srli_epi64::<6>(w2));
        _mm512_add_epi64(_mm512_add_epi64(w16, sigma0), _mm512_add_epi64(w7, sigma1))
    }

    #[target_feature(enable = "bmi1,bmi2")]
    fn rounds(state: &mut [u64; 8], schedule: &Schedule, lane: usize) {
        assert!(lane < LANES, "a schedule has eight lanes");
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        // maj(a, b, c) = b ^ ((a ^ b) & (b ^ c)), and b ^ c was a ^ b a round ago.
        let mut bc = b ^ c;
        macro_rules! round {
            ($j:expr, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {{
                let sigma1 = $e.rotate_right(14) ^ $e.rotate_right(18) ^ $e.rotate_right(41);
                // The two halves of ch() have no bit in common.
                let ch = ($f & $e)
                    .wrapping_add(!$e & $g)
                    .wrapping_add($h.wrapping_add(schedule.0[$j][lane]));
                let t1 = ch.wrapping_add(sigma1);
                let ab = $a ^ $b;
                let sigma0 = $a.rotate_right(28) ^ $a.rotate_right(34) ^ $a.rotate_right(39);
                $d = $d.wrapping_add(t1);
                $h = t1.wrapping_add(sigma0).wrapping_add($b ^ (ab & bc));
                bc = ab;
            }};
        }
        macro_rules! eights { ($($j:literal)*) => {$(
            round!($j, a b c d e f g h);
            round!($j + 1, h a b c d e f g);
            round!($j + 2, g h a b c d e f);
            round!($j + 3, f g h a b c d e);
            round!($j + 4, e f g h a b c d);
            round!($j + 5, d e f g h a b c);
            round!($j + 6, c d e f g h a b);
            round!($j + 7, b c d e f g h a);
        )*} }
        eights!(0 8 16 24 32 40 48 56 64 72);
        let _ = bc;
        for (state, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state = state.wrapping_add(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::bytes;

    #[test]
    fn every_number_of_blocks_at_every_alignment_is_as_aws_lc_has_it() {
        let data = bytes(128 * 40 + 8);
        for blocks in 0..=40 {
            let data = &data[blocks % 8..][..128 * blocks];
            let (mut expected, mut state) = ([blocks as u64; 8], [blocks as u64; 8]);
            compress_aws(&mut expected, data);
            compress(&mut state, data);
            assert_eq!(state, expected, "{blocks} blocks");
            #[cfg(target_arch = "x86_64")]
            if x86::is_there() {
                state = [blocks as u64; 8];
                // SAFETY: the processor has what the function needs.
                unsafe { x86::compress(&mut state, data) };
                assert_eq!(state, expected, "{blocks} blocks");
            }
        }
    }
}
