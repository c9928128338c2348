//! The block ciphers behind one trait. Generic code uses it: CMAC and CBC-MAC
//! ([`mac`](crate::mac)), CCM ([`aead`](crate::aead)), and the modes with a key stream
//! ([`cipher`](crate::cipher)).
//!
//! Each method processes a run of blocks, so that a kernel is called once per run.

use wraith_kernels::aes::Aes;
use wraith_kernels::sm4::{self, Chain, Counter, Sm4};
use zeroize::ZeroizeOnDrop;

use crate::Backend;

/// Returns the implementation of the modes of AES on this processor.
pub(crate) fn aes_backend() -> Backend {
    Backend::own_or(Aes::features(), Backend::Library("aes"))
}

/// Length of a block in bytes.
pub(crate) const BLOCK: usize = 16;
pub(crate) type Block = [u8; BLOCK];

/// Blocks per pass of the two-pass CCM, so that the second pass finds them in the L1 cache. For
/// ciphers without a kernel that does both at once.
const PIECE: usize = 256;
/// Maximum number of blocks processed together.
const MANY: usize = 64;

/// An expanded key of a cipher with 16-byte blocks.
pub(crate) trait BlockCipher: Send + Sync + ZeroizeOnDrop {
    /// Encrypts one block.
    fn encrypt_block(&self, block: &mut Block);

    /// Computes CBC over `blocks` and keeps only the last block, in `state`.
    fn absorb(&self, state: &mut Block, blocks: &[Block]);

    /// Computes CTR: XORs the encrypted counters into `text` and advances `counter`. All 128 bits
    /// count, big-endian.
    fn count(&self, counter: &mut Block, text: &mut [Block]);

    /// Computes OFB: XORs into `text` the key stream that follows `last`, and leaves its last block
    /// in `last`.
    fn ofb(&self, last: &mut Block, text: &mut [Block]);

    /// Encrypts in CFB. `before` is the ciphertext block before the first one, and on return the
    /// last one.
    fn cfb_encrypt(&self, before: &mut Block, text: &mut [Block]);

    /// Reverses [`Self::cfb_encrypt`].
    fn cfb_decrypt(&self, before: &mut Block, text: &mut [Block]);

    /// Computes both halves of CCM: [`Self::absorb`] of the plaintext, and [`Self::count`]. The
    /// lower half of the counter must not overflow.
    fn ccm<const SEAL: bool>(&self, mac: &mut Block, counter: &mut Block, text: &mut [Block]) {
        for piece in text.chunks_mut(PIECE) {
            if SEAL {
                self.absorb(mac, piece);
            }
            self.count(counter, piece);
            if !SEAL {
                self.absorb(mac, piece);
            }
        }
    }
}

impl BlockCipher for Aes {
    fn encrypt_block(&self, block: &mut Block) {
        self.encrypt_block(block);
    }

    fn absorb(&self, state: &mut Block, blocks: &[Block]) {
        self.cbc_mac(state, blocks.as_flattened());
    }

    fn count(&self, counter: &mut Block, text: &mut [Block]) {
        self.ctr(counter, text.as_flattened_mut());
    }

    fn ofb(&self, last: &mut Block, text: &mut [Block]) {
        self.ofb(last, text.as_flattened_mut());
    }

    fn cfb_encrypt(&self, before: &mut Block, text: &mut [Block]) {
        self.cfb_encrypt(before, text.as_flattened_mut());
    }

    fn cfb_decrypt(&self, before: &mut Block, text: &mut [Block]) {
        self.cfb_decrypt(before, text.as_flattened_mut());
    }

    /// Interleaves both halves: the rounds of the counter fill the time in which the MAC waits.
    fn ccm<const SEAL: bool>(&self, mac: &mut Block, counter: &mut Block, text: &mut [Block]) {
        self.ccm::<SEAL>(mac, counter, text.as_flattened_mut());
    }
}

impl BlockCipher for Sm4 {
    fn encrypt_block(&self, block: &mut Block) {
        *block = self.encrypted(*block);
    }

    fn absorb(&self, state: &mut Block, blocks: &[Block]) {
        self.absorb(state, blocks);
    }

    fn count(&self, counter: &mut Block, text: &mut [Block]) {
        let mut next = Counter::whole(*counter);
        self.count(&mut next, text.as_flattened_mut());
        *counter = next.block();
    }

    fn ofb(&self, last: &mut Block, text: &mut [Block]) {
        self.chain(Chain::Ofb, last, text);
    }

    fn cfb_encrypt(&self, before: &mut Block, text: &mut [Block]) {
        self.chain(Chain::Cfb, before, text);
    }

    fn cfb_decrypt(&self, before: &mut Block, text: &mut [Block]) {
        let mut stream = [[0; BLOCK]; MANY];
        for blocks in text.chunks_mut(MANY) {
            let stream = &mut stream[..blocks.len()];
            let (last, others) = blocks.split_last().expect("a chunk is not empty");
            stream[0] = *before;
            stream[1..].copy_from_slice(others);
            *before = *last;
            self.encrypt(stream);
            sm4::add(blocks.as_flattened_mut(), stream.as_flattened());
        }
    }
}

/// XORs `b` into `a`.
pub(crate) fn add(a: &mut Block, b: &Block) {
    *a = (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes();
}
