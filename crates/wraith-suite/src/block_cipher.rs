//! The block ciphers behind one trait. Generic code uses it: CMAC and CBC-MAC
//! ([`mac`](crate::mac)), CCM ([`aead`](crate::aead)), and the modes of [`cipher`](crate::cipher).
//!
//! Each method processes a run of blocks, so that a kernel is called once per run.

use wraith_kernels::aes::Aes;
use wraith_kernels::sm4::{self, Chain, Counter, Sm4};
use zeroize::ZeroizeOnDrop;

use crate::Backend;
use crate::cipher::xts::Tweaks;

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
pub(crate) trait BlockCipher: Send + Sync + Sized + ZeroizeOnDrop {
    /// Expands a key. Returns `None` if it has the wrong length.
    fn new(key: &[u8]) -> Option<Self>;

    /// Encrypts one block.
    fn encrypt_block(&self, block: &mut Block);

    /// Encrypts each block on its own.
    fn ecb_encrypt(&self, text: &mut [Block]);

    /// Reverses [`Self::ecb_encrypt`].
    fn ecb_decrypt(&self, text: &mut [Block]);

    /// Encrypts in CBC. `before` is the ciphertext block before the first one, and on return the
    /// last one.
    fn cbc_encrypt(&self, before: &mut Block, text: &mut [Block]);

    /// Reverses [`Self::cbc_encrypt`].
    fn cbc_decrypt(&self, before: &mut Block, text: &mut [Block]);

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

    /// Encrypts or decrypts in XTS, with one of `tweaks` for each block.
    fn xts<const ENCRYPT: bool>(&self, tweaks: &mut Tweaks, text: &mut [Block]);

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
    fn new(key: &[u8]) -> Option<Self> {
        Self::new(key)
    }

    fn encrypt_block(&self, block: &mut Block) {
        self.encrypt_block(block);
    }

    fn ecb_encrypt(&self, text: &mut [Block]) {
        self.ecb_encrypt(text.as_flattened_mut());
    }

    fn ecb_decrypt(&self, text: &mut [Block]) {
        self.ecb_decrypt(text.as_flattened_mut());
    }

    fn cbc_encrypt(&self, before: &mut Block, text: &mut [Block]) {
        self.cbc_encrypt(before, text.as_flattened_mut());
    }

    fn cbc_decrypt(&self, before: &mut Block, text: &mut [Block]) {
        self.cbc_decrypt(before, text.as_flattened_mut());
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

    fn xts<const ENCRYPT: bool>(&self, tweaks: &mut Tweaks, text: &mut [Block]) {
        match ENCRYPT {
            true => self.xts_encrypt(&mut tweaks.next, text.as_flattened_mut()),
            false => self.xts_decrypt(&mut tweaks.next, text.as_flattened_mut()),
        }
    }

    /// Interleaves both halves: the rounds of the counter fill the time in which the MAC waits.
    fn ccm<const SEAL: bool>(&self, mac: &mut Block, counter: &mut Block, text: &mut [Block]) {
        self.ccm::<SEAL>(mac, counter, text.as_flattened_mut());
    }
}

impl BlockCipher for Sm4 {
    fn new(key: &[u8]) -> Option<Self> {
        Some(Self::new(key.try_into().ok()?))
    }

    fn encrypt_block(&self, block: &mut Block) {
        *block = self.encrypted(*block);
    }

    fn ecb_encrypt(&self, text: &mut [Block]) {
        self.encrypt(text);
    }

    fn ecb_decrypt(&self, text: &mut [Block]) {
        self.decrypt(text);
    }

    fn cbc_encrypt(&self, before: &mut Block, text: &mut [Block]) {
        self.chain(Chain::Cbc, before, text);
    }

    fn cbc_decrypt(&self, before: &mut Block, text: &mut [Block]) {
        let mut masks = [[0; BLOCK]; MANY];
        for blocks in text.chunks_mut(MANY) {
            let masks = &mut masks[..blocks.len()];
            previous(before, blocks, masks);
            self.decrypt(blocks);
            sm4::add(blocks.as_flattened_mut(), masks.as_flattened());
        }
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
            previous(before, blocks, stream);
            self.encrypt(stream);
            sm4::add(blocks.as_flattened_mut(), stream.as_flattened());
        }
    }

    fn xts<const ENCRYPT: bool>(&self, tweaks: &mut Tweaks, text: &mut [Block]) {
        let mut masks = [[0; BLOCK]; MANY];
        for blocks in text.chunks_mut(MANY) {
            let masks = &mut masks[..blocks.len()];
            tweaks.fill(masks);
            match ENCRYPT {
                true => self.encrypt_masked(blocks, masks),
                false => self.decrypt_masked(blocks, masks),
            }
        }
    }
}

/// Writes the block before each of `blocks` to `out`. `before` is the one before the first, and on
/// return the last one.
fn previous(before: &mut Block, blocks: &[Block], out: &mut [Block]) {
    let (last, others) = blocks.split_last().expect("a chunk is not empty");
    out[0] = *before;
    out[1..].copy_from_slice(others);
    *before = *last;
}

/// XORs `b` into `a`.
pub(crate) fn add(a: &mut Block, b: &Block) {
    *a = (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes();
}
