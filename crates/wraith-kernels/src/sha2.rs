//! The compression functions of SHA-256 and SHA-512 as FIPS 180-4 writes them (§6.2.2, §6.4.2): the
//! portable twins of [`sha512`](crate::sha512) and [`sha2_lanes`](crate::sha2_lanes), and the
//! constants of all.

/// The first 64 bits of the fractional parts of the cube roots of the first eighty primes.
pub(crate) const K_512: [u64; 80] = [
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

/// The constants of SHA-256: the upper halves of the first 64 of SHA-512 (§4.2).
pub(crate) const K_256: [u32; 64] = {
    let (mut constants, mut i) = ([0; 64], 0);
    while i < 64 {
        constants[i] = (K_512[i] >> 32) as u32;
        i += 1;
    }
    constants
};

macro_rules! compress {
    ($(#[$meta:meta])* $name:ident, $word:ty, $bytes:literal, $k:ident,
     $a:literal $b:literal $c:literal, $d:literal $e:literal $f:literal,
     $p:literal $q:literal $r:literal, $s:literal $t:literal $u:literal) => {
        $(#[$meta])*
        pub fn $name(state: &mut [$word; 8], blocks: &[u8]) {
            let turned = |x: $word, [a, b, c]: [u32; 3]| {
                x.rotate_right(a) ^ x.rotate_right(b) ^ x.rotate_right(c)
            };
            let shifted = |x: $word, [a, b, c]: [u32; 3]| {
                x.rotate_right(a) ^ x.rotate_right(b) ^ x >> c
            };
            for block in blocks.as_chunks::<{ 16 * $bytes }>().0 {
                let mut w = [0; $k.len()];
                for (word, bytes) in w.iter_mut().zip(block.as_chunks::<$bytes>().0) {
                    *word = <$word>::from_be_bytes(*bytes);
                }
                for i in 16..w.len() {
                    w[i] = w[i - 16]
                        .wrapping_add(shifted(w[i - 15], [$p, $q, $r]))
                        .wrapping_add(w[i - 7])
                        .wrapping_add(shifted(w[i - 2], [$s, $t, $u]));
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
                for (w, k) in w.iter().zip($k) {
                    let t1 = h
                        .wrapping_add(turned(e, [$d, $e, $f]))
                        .wrapping_add(e & f ^ !e & g)
                        .wrapping_add(k)
                        .wrapping_add(*w);
                    let t2 = turned(a, [$a, $b, $c]).wrapping_add(a & b ^ a & c ^ b & c);
                    (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
                    (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
                }
                for (state, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *state = state.wrapping_add(new);
                }
            }
        }
    };
}

compress!(
    /// Absorbs whole blocks of SHA-256.
    compress_256, u32, 4, K_256, 2 13 22, 6 11 25, 7 18 3, 17 19 10
);
compress!(
    /// Absorbs whole blocks of SHA-512.
    compress_512, u64, 8, K_512, 28 34 39, 14 18 41, 1 8 7, 19 61 6
);
