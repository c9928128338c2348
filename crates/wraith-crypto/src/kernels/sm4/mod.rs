//! The block cipher SM4 (GB/T 32907-2016): many blocks beside each other, counters, and one block after the other.
//!
//! | kernel | needs | cycles per byte (Zen 4), many blocks; one by one |
//! |---|---|---|
//! | [`avx512`] | AVX-512 and GFNI | 0.9; 17 |
//! | [`gfni`] | AVX2 and GFNI | 1.8; 21 |
//! | [`aesni`] | AES-NI and AVX | 8; 60 |
//! | [`portable`] | nothing | 22; 380 |
//!
//! None has a table that a secret indexes, or a branch on one; that holds for the expansion of keys too.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing, optimization_barrier};

#[cfg(target_arch = "x86_64")]
mod aesni;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod chain;
#[cfg(target_arch = "x86_64")]
mod gfni;
mod portable;
#[cfg(test)]
mod tests;

/// A block.
pub(crate) type Block = [u8; 16];

/// The map before the inversion in the S-box, linear part, from the field of SM4 to that of AES; and back. Matrices are written as the instructions
/// of GFNI take them: the row of bit 7 is the lowest byte.
const P: u64 = 0x4c28_7db9_1a22_505d;
#[cfg(target_arch = "x86_64")]
const P_INVERSE: u64 = 0xb3a4_f586_3284_728b;
/// The map after the inversion with the linear layer of the round and `P`, for what is not rotated; rotated by 8 and 16; and by 24.
#[cfg(target_arch = "x86_64")]
const A: u64 = 0x040d_b891_e9a4_81b7;
#[cfg(target_arch = "x86_64")]
const B: u64 = 0x2c02_0425_1620_40ad;
#[cfg(target_arch = "x86_64")]
const C: u64 = 0x280f_bcb4_ff84_c11a;

/// The linear map `matrix` of a byte.
#[cfg(target_arch = "x86_64")]
const fn affine(matrix: u64, x: u8) -> u8 {
    let mut out = 0;
    let mut bit = 0;
    while bit < 8 {
        let row = (matrix >> (8 * (7 - bit))) as u8;
        out |= ((row & x).count_ones() as u8 & 1) << bit;
        bit += 1;
    }
    out
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Gfni,
    #[cfg(target_arch = "x86_64")]
    AesNi,
    Portable,
}

impl Kernel {
    /// Every one, the fastest first.
    pub(crate) const ALL: &[Self] = &[
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "x86_64")]
        Self::Gfni,
        #[cfg(target_arch = "x86_64")]
        Self::AesNi,
        Self::Portable,
    ];

    /// Whether this processor has the instructions.
    pub(crate) fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::is_here(),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni => gfni::is_here(),
            #[cfg(target_arch = "x86_64")]
            Self::AesNi => aesni::is_here(),
            Self::Portable => true,
        }
    }

    /// The fastest that is here.
    pub(crate) fn best() -> Self {
        Self::ALL.iter().copied().find(|kernel| kernel.is_here()).unwrap_or(Self::Portable)
    }

    /// What it uses.
    pub(crate) const fn features(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512, GFNI",
            #[cfg(target_arch = "x86_64")]
            Self::Gfni => "AVX2, GFNI",
            #[cfg(target_arch = "x86_64")]
            Self::AesNi => "AES-NI",
            Self::Portable => "portable",
        }
    }
}

/// How blocks follow from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// The block before is added before encryption.
    Cbc,
    /// The block before is encrypted and added.
    Cfb,
    /// What was added to the block before is encrypted and added.
    Ofb,
}

/// The counter block of counter mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroize)]
pub(crate) struct Counter {
    next: u128,
    /// Bits that count: the others stay as they are.
    mask: u128,
}

impl Counter {
    /// All 128 bits count.
    pub(crate) const fn whole(first: Block) -> Self {
        Self { next: u128::from_be_bytes(first), mask: u128::MAX }
    }

    /// The lowest 32 bits count (GCM).
    pub(crate) const fn last_word(first: Block) -> Self {
        Self { next: u128::from_be_bytes(first), mask: 0xffff_ffff }
    }

    pub(crate) const fn block(self) -> Block {
        self.next.to_be_bytes()
    }

    pub(crate) const fn later(self, blocks: u128) -> Self {
        let next = self.next.wrapping_add(blocks) & self.mask | self.next & !self.mask;
        Self { next, mask: self.mask }
    }
}

/// The round keys of one direction, in each form that a kernel wants. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
struct RoundKeys {
    /// As the standard has them.
    plain: [u32; 32],
    /// As [`P`] makes them, with the constant before the inversion, the highest byte first in memory.
    folded: [u32; 32],
    /// Each byte of those four times.
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

/// A round key as [`RoundKeys::folded`] has it. Four maps of a byte at a time: a row of the matrix is the same for all.
fn fold(key: u32) -> u32 {
    let mut folded = 0x3e3e_3e3e;
    for bit in 0..8 {
        // The sum of the bits of each byte that the row picks, in the lowest bit.
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
pub(crate) struct Sm4 {
    encrypt: RoundKeys,
    decrypt: RoundKeys,
    #[zeroize(skip)]
    kernel: Kernel,
}

impl Sm4 {
    /// Expands a key, for the fastest kernel.
    pub(crate) fn new(key: &Block) -> Self {
        Self::with(key, Kernel::best())
    }

    /// Expands a key for a kernel, or the portable one if that is not here.
    pub(crate) fn with(key: &Block, kernel: Kernel) -> Self {
        let kernel = if kernel.is_here() { kernel } else { Kernel::Portable };
        let keys = Zeroizing::new(expand(key, kernel));
        let (plain, folded) = &*keys;
        let encrypt = RoundKeys::new(plain, folded);
        let mut decrypt = encrypt.clone();
        decrypt.plain.reverse();
        decrypt.folded.reverse();
        decrypt.bytes.reverse();
        Self { encrypt, decrypt, kernel }
    }

    /// Encrypts each block by itself.
    pub(crate) fn encrypt(&self, blocks: &mut [Block]) {
        self.blocks(&self.encrypt, blocks);
    }

    /// Decrypts each block by itself.
    pub(crate) fn decrypt(&self, blocks: &mut [Block]) {
        self.blocks(&self.decrypt, blocks);
    }

    /// Encrypts each block by itself, with its mask added before and after.
    pub(crate) fn encrypt_masked(&self, blocks: &mut [Block], masks: &[Block]) {
        self.masked(&self.encrypt, blocks, masks);
    }

    /// Decrypts each block by itself, with its mask added before and after.
    pub(crate) fn decrypt_masked(&self, blocks: &mut [Block], masks: &[Block]) {
        self.masked(&self.decrypt, blocks, masks);
    }

    #[allow(unsafe_code)]
    fn masked(&self, keys: &RoundKeys, blocks: &mut [Block], masks: &[Block]) {
        #[cfg(target_arch = "x86_64")]
        if self.kernel == Kernel::Avx512
            && let (Ok(blocks), Ok(masks)) = ((&mut *blocks).try_into(), masks.try_into())
        {
            // SAFETY: `with` made sure of the kernel's instructions.
            return unsafe { avx512::masked(keys, blocks, masks) };
        }
        add(blocks.as_flattened_mut(), masks.as_flattened());
        self.blocks(keys, blocks);
        add(blocks.as_flattened_mut(), masks.as_flattened());
    }

    /// A block, encrypted.
    pub(crate) fn encrypted(&self, block: Block) -> Block {
        let mut blocks = [block];
        self.encrypt(&mut blocks);
        blocks[0]
    }

    #[allow(unsafe_code)]
    fn blocks(&self, keys: &RoundKeys, blocks: &mut [Block]) {
        match self.kernel {
            // SAFETY: `with` made sure of the kernel's instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::blocks(keys, blocks) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni => unsafe { gfni::blocks(keys, blocks) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::AesNi => unsafe { aesni::blocks(keys, blocks) },
            Kernel::Portable => portable::blocks(keys, blocks),
        }
    }

    /// Adds the encrypted counters to `text`, and counts on: by one for the last block if that is not whole.
    #[allow(unsafe_code)]
    pub(crate) fn count(&self, counter: &mut Counter, text: &mut [u8]) {
        let mut text = text;
        #[cfg(target_arch = "x86_64")]
        if self.kernel == Kernel::Avx512 {
            while text.len() > 16 * avx512::FEW {
                let (now, later) = text.split_at_mut(text.len().min(16 * avx512::BESIDE));
                // SAFETY: `with` made sure of the kernel's instructions.
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
            self.encrypt(stream);
            add(piece, stream.as_flattened());
        }
    }

    /// Encrypts `blocks` one after the other; `iv` is what the first one follows, and becomes what the next one will.
    #[allow(unsafe_code)]
    pub(crate) fn chain(&self, chain: Chain, iv: &mut Block, blocks: &mut [Block]) {
        match self.kernel {
            // SAFETY: `with` made sure of the kernel's instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { chain::vl::chain(&self.encrypt, chain, iv, blocks) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni => unsafe { chain::plain::chain(&self.encrypt, chain, iv, blocks) },
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

    /// CBC of which only the last block is kept, in `state`.
    #[allow(unsafe_code)]
    pub(crate) fn absorb(&self, state: &mut Block, blocks: &[Block]) {
        match self.kernel {
            // SAFETY: `with` made sure of the kernel's instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { chain::vl::absorb(&self.encrypt, state, blocks) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni => unsafe { chain::plain::absorb(&self.encrypt, state, blocks) },
            _ => {
                for block in blocks {
                    add(state, block);
                    *state = self.encrypted(*state);
                }
            }
        }
    }
}

/// Adds the first bytes of `b` to `a`, as many as there are of the shorter.
pub(crate) fn add(a: &mut [u8], b: &[u8]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a ^= b;
    }
}

/// What the words of a key begin with (GB/T 32907 §7.3).
const FAMILY: [u32; 4] = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];
/// What is added in each round of the expansion of a key. Byte j of constant i is 7 (4i + j) modulo 256.
const CONSTANTS: [u32; 32] = {
    let mut constants = [0; 32];
    let mut i = 0;
    while i < 128 {
        constants[i / 4] = (constants[i / 4] << 8) | ((7 * i as u32) & 0xff);
        i += 1;
    }
    constants
};

/// The round keys of a key (GB/T 32907 §7.3), as [`RoundKeys::plain`] and [`RoundKeys::folded`] have them.
#[allow(unsafe_code)]
fn expand(key: &Block, kernel: Kernel) -> ([u32; 32], [u32; 32]) {
    let words: [u32; 4] = std::array::from_fn(|i| {
        let word = [key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]];
        u32::from_be_bytes(word) ^ FAMILY[i]
    });
    match kernel {
        // SAFETY: `Sm4::with` made sure of the kernel's instructions.
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 | Kernel::Gfni => unsafe {
            let plain = gfni::expand(words);
            (plain, gfni::fold(&plain))
        },
        _ => {
            let plain = portable::expand(words);
            (plain, plain.map(fold))
        }
    }
}
