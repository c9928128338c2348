//! The block cipher SM4 (GB/T 32907-2016): independent blocks, counter mode, and chained blocks.
//!
//! | kernel | needs | cycles per byte (Zen 4): many blocks; chained |
//! |---|---|---|
//! | [`avx512`] | AVX-512 and GFNI | 0.9; 17 |
//! | [`gfni`] | AVX2 and GFNI | 1.8; 21 |
//! | [`portable`] | nothing | 22; 380 |
//!
//! Constant time: no kernel has a table index or a branch that depends on a secret. That includes
//! the key expansion.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing, optimization_barrier};

pub use crate::modes::{Block, add};

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::detect::{Kernel, Purpose, needs};
use crate::modes::BlockCipher;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::self_test::Inputs;

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod avx512;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod chain;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod gfni;
mod portable;
#[cfg(test)]
mod tests;

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) static AVX512: Kernel =
    Kernel::new("SM4", needs::SM4_AVX512, Purpose::Bulk, || self_test(Implementation::Avx512));
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) static GFNI: Kernel =
    Kernel::new("SM4", needs::SM4_GFNI, Purpose::Bulk, || self_test(Implementation::Gfni));

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
fn self_test(kernel: Implementation) -> bool {
    // The example of GB/T 32907, A.1.
    const KEY: Block = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.to_be_bytes();
    const SEALED: Block = 0x681e_df34_d206_965e_86b3_e94f_536e_4246_u128.to_be_bytes();
    let mut inputs = Inputs::new();
    let text: [u8; 65 * 16] = inputs.bytes();
    let key = inputs.bytes();
    let [ours, twin] = [kernel, Implementation::Portable].map(|each| Sm4::expand(&key, each));
    Sm4::expand(&KEY, kernel).encrypted(KEY) == SEALED
        && [1, 4, 7, 9, 17, 65].into_iter().all(|blocks| {
            let run = |sm4: &Sm4| {
                let (masks, mut text) = (text, text);
                let (now, _) = text.as_chunks_mut::<16>();
                let now = &mut now[..blocks];
                let mut iv = key;
                sm4.ecb_encrypt(now);
                sm4.ecb_decrypt(&mut now[..blocks / 2]);
                sm4.count(&mut Counter::last_word([0xff; 16]), now.as_flattened_mut());
                let whole = blocks.min(64);
                sm4.masked::<true>(&mut now[..whole], &masks.as_chunks().0[..whole]);
                if blocks < 5 {
                    for chain in [Chain::Cbc, Chain::Cfb, Chain::Ofb] {
                        sm4.chain(chain, &mut iv, now);
                    }
                    sm4.absorb(&mut iv, now);
                }
                (iv, text)
            };
            run(&ours) == run(&twin)
        })
}

/// The linear part of the map before the inversion in the S-box, from the field of SM4 to that of
/// AES, and its inverse. Matrices are in the format of the GFNI instructions: the row of bit 7 is
/// the lowest byte.
const P: u64 = 0x4c28_7db9_1a22_505d;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
const P_INVERSE: u64 = 0xb3a4_f586_3284_728b;
/// The map after the inversion, combined with the linear layer of the round and `P`: for the part
/// that is not rotated, the part rotated by 8 and 16, and the part rotated by 24.
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
const A: u64 = 0x040d_b891_e9a4_81b7;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
const B: u64 = 0x2c02_0425_1620_40ad;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
const C: u64 = 0x280f_bcb4_ff84_c11a;

/// An implementation of the cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    /// AVX-512 and GFNI.
    Avx512,
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    /// AVX2 and GFNI.
    Gfni,
    /// The twin of the others.
    Portable,
}

impl Implementation {
    /// All kernels, the fastest first.
    pub const ALL: &[Self] = &[
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        Self::Avx512,
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        Self::Gfni,
        Self::Portable,
    ];

    /// Returns whether the kernel may be used.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx512 => AVX512.is_available(),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Gfni => GFNI.is_available(),
            Self::Portable => true,
        }
    }

    /// Returns the fastest kernel that this processor supports.
    pub fn best() -> Self {
        Self::ALL.iter().copied().find(|kernel| kernel.is_available()).unwrap_or(Self::Portable)
    }

    /// Returns the names of the processor features that the kernel uses.
    pub const fn features(self) -> &'static str {
        match self {
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx512 => "AVX-512, GFNI",
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Gfni => "AVX2, GFNI",
            Self::Portable => "portable",
        }
    }
}

/// The chaining mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// The previous ciphertext block is xored before encryption.
    Cbc,
    /// The previous ciphertext block is encrypted and xored.
    Cfb,
    /// The previous key stream block is encrypted and xored.
    Ofb,
}

/// The counter block of counter mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroize)]
pub struct Counter {
    next: u128,
    /// The bits that count; the others do not change.
    mask: u128,
}

impl Counter {
    /// Creates a counter of all 128 bits.
    pub const fn whole(first: Block) -> Self {
        Self { next: u128::from_be_bytes(first), mask: u128::MAX }
    }

    /// Creates a counter of the lowest 32 bits (GCM).
    pub const fn last_word(first: Block) -> Self {
        Self { next: u128::from_be_bytes(first), mask: 0xffff_ffff }
    }

    /// Returns the counter block.
    #[must_use]
    pub const fn block(self) -> Block {
        self.next.to_be_bytes()
    }

    /// Returns the counter `blocks` blocks later.
    #[must_use]
    pub const fn later(self, blocks: u128) -> Self {
        let next = self.next.wrapping_add(blocks) & self.mask | self.next & !self.mask;
        Self { next, mask: self.mask }
    }
}

/// The round keys of one direction, in the form of each kernel. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
struct RoundKeys {
    /// In the form of the standard.
    plain: [u32; 32],
    /// Mapped by [`P`], with the constant before the inversion, and the highest byte first in
    /// memory.
    folded: [u32; 32],
    /// Each byte of `folded`, four times.
    bytes: [[u32; 4]; 32],
}

impl Zeroize for RoundKeys {
    fn zeroize(&mut self) {
        self.plain = [0; 32];
        self.folded = [0; 32];
        self.bytes = [[0; 4]; 32];
        optimization_barrier(self);
    }
}

impl RoundKeys {
    fn new(plain: &[u32; 32], folded: &[u32; 32]) -> Self {
        let bytes = folded.map(|key| key.to_le_bytes().map(|byte| u32::from_le_bytes([byte; 4])));
        Self { plain: *plain, folded: *folded, bytes }
    }
}

/// Converts a round key to the form of [`RoundKeys::folded`]. Maps four bytes at a time: a row of
/// the matrix is the same for all.
fn fold(key: u32) -> u32 {
    let mut folded = 0x3e3e_3e3e;
    for bit in 0..8 {
        // The parity of the bits of each byte that the row selects, in the lowest bit.
        let row = (P >> (8 * (7 - bit)) & 0xff) as u32;
        let mut sum = key.swap_bytes() & (0x0101_0101 * row);
        sum ^= sum >> 4;
        sum ^= sum >> 2;
        sum ^= sum >> 1;
        folded ^= (sum & 0x0101_0101) << bit;
    }
    folded
}

/// A key of SM4. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Sm4 {
    encrypt: RoundKeys,
    decrypt: RoundKeys,
    #[zeroize(skip)]
    kernel: Implementation,
}

impl Sm4 {
    /// Expands a key for the fastest kernel.
    pub fn new(key: &Block) -> Self {
        Self::with(key, Implementation::best())
    }

    /// Expands a key for `kernel`, or for the portable one if this processor does not support it.
    #[must_use]
    pub fn with(key: &Block, kernel: Implementation) -> Self {
        Self::expand(key, if kernel.is_available() { kernel } else { Implementation::Portable })
    }

    /// Expands a key for a kernel whose instructions the processor has.
    fn expand(key: &Block, kernel: Implementation) -> Self {
        let keys = Zeroizing::new(expand(key, kernel));
        let (plain, folded) = &*keys;
        let encrypt = RoundKeys::new(plain, folded);
        let mut decrypt = encrypt.clone();
        decrypt.plain.reverse();
        decrypt.folded.reverse();
        decrypt.bytes.reverse();
        Self { encrypt, decrypt, kernel }
    }

    /// Returns the encrypted block.
    pub fn encrypted(&self, block: Block) -> Block {
        let mut blocks = [block];
        self.ecb_encrypt(&mut blocks);
        blocks[0]
    }

    #[allow(unsafe_code)]
    fn blocks(&self, keys: &RoundKeys, blocks: &mut [Block]) {
        match self.kernel {
            // SAFETY: `with` checked that the processor supports the kernel.
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Implementation::Avx512 => unsafe { avx512::blocks(keys, blocks) },
            // SAFETY: `with` checked that the processor supports the kernel.
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Implementation::Gfni => unsafe { gfni::blocks(keys, blocks) },
            Implementation::Portable => portable::blocks(keys, blocks),
        }
    }

    /// Xors the encrypted counters onto `text` and advances the counter. A partial last block also
    /// advances it by one.
    #[allow(unsafe_code)]
    pub fn count(&self, counter: &mut Counter, text: &mut [u8]) {
        #[allow(unused_mut, reason = "without the kernel")]
        let mut text = text;
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if self.kernel == Implementation::Avx512 {
            while text.len() > 16 * avx512::FEW {
                let (now, later) = text.split_at_mut(text.len().min(16 * avx512::BESIDE));
                // SAFETY: `with` checked that the processor supports the kernel.
                unsafe { avx512::count(&self.encrypt, *counter, now) };
                *counter = counter.later(now.len().div_ceil(16) as u128);
                text = later;
            }
        }
        for piece in text.chunks_mut(16 * 16) {
            let mut stream = [[0; 16]; 16];
            let stream = &mut stream[..piece.len().div_ceil(16)];
            for block in &mut *stream {
                *block = counter.block();
                *counter = counter.later(1);
            }
            self.ecb_encrypt(stream);
            add(piece, stream.as_flattened());
        }
    }

    /// Encrypts `blocks` chained. `iv` is the chaining value before the first block, and becomes
    /// the one after the last.
    #[allow(unsafe_code)]
    pub fn chain(&self, chain: Chain, iv: &mut Block, blocks: &mut [Block]) {
        match self.kernel {
            // SAFETY: `with` checked that the processor supports the kernel.
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Implementation::Avx512 => unsafe { chain::vl::chain(&self.encrypt, chain, iv, blocks) },
            // SAFETY: `with` checked that the processor supports the kernel.
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Implementation::Gfni => unsafe {
                chain::plain::chain(&self.encrypt, chain, iv, blocks)
            },
            _ => {
                for block in blocks {
                    match chain {
                        Chain::Cbc => {
                            add(block, iv);
                            *block = self.encrypted(*block);
                            *iv = *block;
                        }
                        Chain::Cfb => {
                            add(block, &self.encrypted(*iv));
                            *iv = *block;
                        }
                        Chain::Ofb => {
                            *iv = self.encrypted(*iv);
                            add(block, iv);
                        }
                    }
                }
            }
        }
    }

    /// Runs CBC, but keeps only the last block, in `state`.
    #[allow(unsafe_code)]
    pub fn absorb(&self, state: &mut Block, blocks: &[Block]) {
        match self.kernel {
            // SAFETY: `with` checked that the processor supports the kernel.
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Implementation::Avx512 => unsafe { chain::vl::absorb(&self.encrypt, state, blocks) },
            // SAFETY: `with` checked that the processor supports the kernel.
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Implementation::Gfni => unsafe { chain::plain::absorb(&self.encrypt, state, blocks) },
            _ => {
                for block in blocks {
                    add(state, block);
                    *state = self.encrypted(*state);
                }
            }
        }
    }
}

impl BlockCipher for Sm4 {
    fn new(key: &[u8]) -> Option<Self> {
        Some(Self::new(key.try_into().ok()?))
    }

    fn ecb_encrypt(&self, text: &mut [Block]) {
        self.blocks(&self.encrypt, text);
    }

    fn ecb_decrypt(&self, text: &mut [Block]) {
        self.blocks(&self.decrypt, text);
    }

    #[allow(unsafe_code)]
    fn masked<const ENCRYPT: bool>(&self, blocks: &mut [Block], masks: &[Block]) {
        let keys = if ENCRYPT { &self.encrypt } else { &self.decrypt };
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if self.kernel == Implementation::Avx512
            && let (Ok(blocks), Ok(masks)) = ((&mut *blocks).try_into(), masks.try_into())
        {
            // SAFETY: `with` checked that the processor supports the kernel.
            return unsafe { avx512::masked(keys, blocks, masks) };
        }
        add(blocks.as_flattened_mut(), masks.as_flattened());
        self.blocks(keys, blocks);
        add(blocks.as_flattened_mut(), masks.as_flattened());
    }

    fn cbc_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        self.chain(Chain::Cbc, iv, text);
    }

    fn cfb_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        self.chain(Chain::Cfb, iv, text);
    }

    fn ofb(&self, iv: &mut Block, text: &mut [Block]) {
        self.chain(Chain::Ofb, iv, text);
    }

    fn ctr(&self, counter: &mut Block, text: &mut [Block]) {
        let mut next = Counter::whole(*counter);
        self.count(&mut next, text.as_flattened_mut());
        *counter = next.block();
    }

    fn cbc_mac(&self, state: &mut Block, blocks: &[Block]) {
        self.absorb(state, blocks);
    }
}

/// The family key, xored onto the words of a key (GB/T 32907 §7.3).
const FAMILY: [u32; 4] = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];
/// The constants of the key expansion. Byte j of constant i is 7 (4i + j) modulo 256.
const CONSTANTS: [u32; 32] = {
    let mut constants = [0; 32];
    let mut i = 0;
    while i < 128 {
        constants[i / 4] = (constants[i / 4] << 8) | ((7 * i as u32) & 0xff);
        i += 1;
    }
    constants
};

/// Returns the round keys of a key (GB/T 32907 §7.3), in the forms of [`RoundKeys::plain`] and
/// [`RoundKeys::folded`].
#[allow(unsafe_code)]
fn expand(key: &Block, kernel: Implementation) -> ([u32; 32], [u32; 32]) {
    let words: [u32; 4] = std::array::from_fn(|i| {
        let word = [key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]];
        u32::from_be_bytes(word) ^ FAMILY[i]
    });
    match kernel {
        // SAFETY: `Sm4::with` checked that the processor supports the kernel.
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        Implementation::Avx512 | Implementation::Gfni => unsafe {
            let plain = gfni::expand(words);
            (plain, gfni::fold(&plain))
        },
        _ => {
            let plain = portable::expand(words);
            (plain, plain.map(fold))
        }
    }
}
