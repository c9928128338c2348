//! The interface of block ciphers with blocks of 16 bytes, and the block modes over any of them:
//! the portable twins of kernels that compute a whole mode.
//!
//! Each method processes a run of blocks, so that a kernel is called once per run. It leaves in the
//! IV, counter or tweak the value that the next run continues with.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of a block in bytes.
pub const BLOCK: usize = 16;
/// A block.
pub type Block = [u8; BLOCK];

/// Maximum number of blocks passed to a cipher at once.
const BATCH: usize = 64;
/// Blocks per pass of the two-pass CCM, so that the second pass finds them in the L1 cache.
const PIECE: usize = 256;

/// An expanded key of a block cipher.
pub trait BlockCipher: Send + Sync + Sized + ZeroizeOnDrop {
    /// Expands a key. Returns `None` if it has the wrong length.
    fn new(key: &[u8]) -> Option<Self>;

    /// Encrypts each block on its own.
    fn ecb_encrypt(&self, text: &mut [Block]);

    /// Decrypts each block on its own.
    fn ecb_decrypt(&self, text: &mut [Block]);

    /// Encrypts one block.
    fn encrypt_block(&self, block: &mut Block) {
        self.ecb_encrypt(std::slice::from_mut(block));
    }

    /// Encrypts or decrypts each block on its own, with its mask xored before and after.
    fn masked<const ENCRYPT: bool>(&self, text: &mut [Block], masks: &[Block]) {
        add(text.as_flattened_mut(), masks.as_flattened());
        if ENCRYPT {
            self.ecb_encrypt(text)
        } else {
            self.ecb_decrypt(text)
        }
        add(text.as_flattened_mut(), masks.as_flattened());
    }

    /// Encrypts in CBC mode.
    fn cbc_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        for block in text {
            add(block, iv);
            self.encrypt_block(block);
            *iv = *block;
        }
    }

    /// Decrypts in CBC mode.
    fn cbc_decrypt(&self, iv: &mut Block, text: &mut [Block]) {
        with_previous(iv, text, |blocks, _| self.ecb_decrypt(blocks));
    }

    /// Encrypts in CFB mode, with feedback of whole blocks.
    fn cfb_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        for block in text {
            self.encrypt_block(iv);
            add(block, iv);
            *iv = *block;
        }
    }

    /// Decrypts in CFB mode.
    fn cfb_decrypt(&self, iv: &mut Block, text: &mut [Block]) {
        with_previous(iv, text, |_, stream| self.ecb_encrypt(stream));
    }

    /// Encrypts or decrypts in OFB mode.
    fn ofb(&self, iv: &mut Block, text: &mut [Block]) {
        for block in text {
            self.encrypt_block(iv);
            add(block, iv);
        }
    }

    /// Encrypts or decrypts in counter mode. The counter is the whole block, in big-endian order.
    fn ctr(&self, counter: &mut Block, text: &mut [Block]) {
        let mut stream = [[0; BLOCK]; BATCH];
        let mut next = u128::from_be_bytes(*counter);
        for blocks in text.chunks_mut(BATCH) {
            let stream = &mut stream[..blocks.len()];
            for block in &mut *stream {
                *block = next.to_be_bytes();
                next = next.wrapping_add(1);
            }
            self.ecb_encrypt(stream);
            add(blocks.as_flattened_mut(), stream.as_flattened());
        }
        *counter = next.to_be_bytes();
    }

    /// Encrypts or decrypts in XTS mode, with one of `tweaks` for each block.
    fn xts<const ENCRYPT: bool>(&self, tweaks: &mut Tweaks, text: &mut [Block]) {
        let mut masks = [[0; BLOCK]; BATCH];
        for blocks in text.chunks_mut(BATCH) {
            let masks = &mut masks[..blocks.len()];
            tweaks.fill(masks);
            self.masked::<ENCRYPT>(blocks, masks);
        }
    }

    /// Updates `state` to the last block of a CBC encryption of `blocks`. Writes no ciphertext.
    fn cbc_mac(&self, state: &mut Block, blocks: &[Block]) {
        for block in blocks {
            add(state, block);
            self.encrypt_block(state);
        }
    }

    /// Computes both halves of CCM: [`Self::cbc_mac`] of the plaintext, and [`Self::ctr`]. The
    /// lower half of the counter must not overflow.
    fn ccm<const SEAL: bool>(&self, mac: &mut Block, counter: &mut Block, text: &mut [Block]) {
        for piece in text.chunks_mut(PIECE) {
            if SEAL {
                self.cbc_mac(mac, piece);
            }
            self.ctr(counter, piece);
            if !SEAL {
                self.cbc_mac(mac, piece);
            }
        }
    }
}

/// Xors onto each block of `text` the one before it, after `apply` has changed the blocks or those
/// before them. `before` is the one before the first, and on return the last one.
#[inline]
fn with_previous(
    before: &mut Block,
    text: &mut [Block],
    apply: impl Fn(&mut [Block], &mut [Block]),
) {
    let mut room = [[0; BLOCK]; BATCH];
    for blocks in text.chunks_mut(BATCH) {
        let previous = &mut room[..blocks.len()];
        let (last, others) = blocks.split_last().expect("a chunk is not empty");
        previous[0] = *before;
        previous[1..].copy_from_slice(others);
        *before = *last;
        apply(blocks, previous);
        add(blocks.as_flattened_mut(), previous.as_flattened());
    }
}

/// Xors the bytes of `b` onto `a`, up to the end of the shorter one.
#[inline]
pub fn add(a: &mut [u8], b: &[u8]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a ^= b;
    }
}

/// The tweaks of one data unit of XTS. Each is x times the tweak before.
#[derive(Clone, Copy, Zeroize)]
pub struct Tweaks {
    /// The tweak of the next block.
    pub next: Block,
    /// Whether the coefficient of x^0 is the lowest bit of the first byte, as in IEEE 1619, or the
    /// highest bit, as in GB/T 17964. Kernels of AES compute IEEE 1619 alone.
    pub ieee: bool,
}

impl Tweaks {
    /// Writes the next tweaks to `tweaks`.
    pub fn fill(&mut self, tweaks: &mut [Block]) {
        if self.ieee {
            let mut next = u128::from_le_bytes(self.next);
            for tweak in tweaks {
                *tweak = next.to_le_bytes();
                next = times_x(next);
            }
            self.next = next.to_le_bytes();
        } else {
            let mut next = u128::from_be_bytes(self.next);
            for tweak in tweaks {
                *tweak = next.to_be_bytes();
                next = next >> 1 ^ (0_u128.wrapping_sub(next & 1) & 0xe1 << 120);
            }
            self.next = next.to_be_bytes();
        }
    }
}

/// Multiplies a tweak by x in the field of XTS (IEEE 1619 §5.2).
#[inline]
pub(crate) const fn times_x(tweak: u128) -> u128 {
    tweak << 1 ^ (0_u128.wrapping_sub(tweak >> 127) & 0x87)
}
