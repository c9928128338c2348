//! Compression functions for [`Blocks`](super::blocks::Blocks). AWS-LC computes SHA-1, SHA-224,
//! SHA-256 and MD5; it uses the SHA instructions of x86-64 and ARM. SHA-384, SHA-512 and SM3 have
//! our own kernels.

use wraith_aws_lc::hash as aws;

use super::blocks::Compression;
use wraith_kernels as kernels;

macro_rules! compression {
    ($name:ident, [$word:ty; $words:literal], $block:literal, $length:literal, $start:expr, $compress:expr) => {
        compression!($name, [$word; $words], $block, $length, $start, $compress, false);
    };
    ($name:ident, [$word:ty; $words:literal], $block:literal, $length:literal, $start:expr, $compress:expr, $is_little_endian:literal) => {
        pub(super) enum $name {}

        impl Compression for $name {
            type State = [$word; $words];
            type Block = [u8; $block];
            type Blocks = [u8; 2 * $block];

            const START: Self::State = $start;
            const ZERO: Self::State = [0; $words];
            const EMPTY: Self::Block = [0; $block];
            const EMPTIES: Self::Blocks = [0; 2 * $block];
            const LENGTH_BYTES: usize = $length;
            const IS_LITTLE_ENDIAN: bool = $is_little_endian;

            #[inline]
            fn compress(state: &mut Self::State, blocks: &[u8]) {
                $compress(state, blocks);
            }

            fn write(state: &Self::State, out: &mut [u8]) {
                let bytes =
                    if $is_little_endian { <$word>::to_le_bytes } else { <$word>::to_be_bytes };
                for (out, word) in out.chunks_mut(size_of::<$word>()).zip(state) {
                    out.copy_from_slice(&bytes(*word)[..out.len()]);
                }
            }
        }
    };
}

// FIPS 180-4, §5.3.
compression!(Sha1, [u32; 5], 64, 8, SHA_1, aws::compress_sha_1);
compression!(Sha224, [u32; 8], 64, 8, SHA_224, aws::compress_sha_256);
compression!(Sha256, [u32; 8], 64, 8, SHA_256, aws::compress_sha_256);
compression!(Sha384, [u64; 8], 128, 16, SHA_384, sha_512);
compression!(Sha512, [u64; 8], 128, 16, SHA_512, sha_512);
compression!(Sha512_256, [u64; 8], 128, 16, SHA_512_256, sha_512);
// GB/T 32905, §4.1.
compression!(Sm3, [u32; 8], 64, 8, SM3, kernels::sm3::compress);
// RFC 1321.
compression!(Md5, [u32; 4], 64, 8, MD5, aws::compress_md5, true);

/// Absorbs blocks of SHA-384 and SHA-512.
fn sha_512(state: &mut [u64; 8], blocks: &[u8]) {
    if !kernels::sha512::compress(state, blocks) {
        aws::compress_sha_512(state, blocks);
    }
}

/// Returns the lower half of each word after a shift to the right.
const fn shifted(words: [u64; 8], bits: u32) -> [u32; 8] {
    let (mut halves, mut i) = ([0; 8], 0);
    while i < 8 {
        halves[i] = (words[i] >> bits) as u32;
        i += 1;
    }
    halves
}

const SHA_1: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
const MD5: [u32; 4] = [SHA_1[0], SHA_1[1], SHA_1[2], SHA_1[3]];
const SHA_224: [u32; 8] = shifted(SHA_384, 0);
pub(crate) const SHA_256: [u32; 8] = shifted(SHA_512, 32);
const SHA_384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];
const SHA_512: [u64; 8] = wraith_kernels::sha512::INITIAL;
const SHA_512_256: [u64; 8] = [
    0x2231_2194_fc2b_f72c,
    0x9f55_5fa3_c84c_64c2,
    0x2393_b86b_6f53_b151,
    0x9638_7719_5940_eabd,
    0x9628_3ee2_a88e_ffe3,
    0xbe5e_1e25_5386_3992,
    0x2b01_99fc_2c85_b8aa,
    0x0eb7_2ddc_81c5_2ca2,
];
const SM3: [u32; 8] = [
    0x7380_166f,
    0x4914_b2b9,
    0x1724_42d7,
    0xda8a_0600,
    0xa96f_30bc,
    0x1631_38aa,
    0xe38d_ee4d,
    0xb0fb_0e4e,
];
