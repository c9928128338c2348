//! The block ciphers behind one trait, for what is built of any of them alike: CMAC and CBC-MAC ([`mac`](crate::mac)), CCM
//! ([`aead`](crate::aead)), and the modes that make a key stream ([`cipher`](crate::cipher)).
//!
//! Its methods take runs of blocks, so that a kernel is called once for a run.

use zeroize::ZeroizeOnDrop;

use crate::kernels::aes::Aes;
use crate::kernels::sm4::{self, Chain, Counter, Sm4};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;
pub(crate) type Block = [u8; BLOCK];

/// Blocks that stay in the first cache: they are gone through twice where a cipher has no kernel that does both at once.
const PIECE: usize = 256;
/// Blocks that are worked on together, at most.
const MANY: usize = 64;

/// A key of a cipher with blocks of 16 bytes.
pub(crate) trait BlockCipher: Send + Sync + ZeroizeOnDrop {
    /// Encrypts one block.
    fn encrypt_block(&self, block: &mut Block);

    /// CBC of which only the last block is kept, in `state`.
    fn absorb(&self, state: &mut Block, blocks: &[Block]);

    /// Adds the encrypted counters to `text`, and counts on: all 128 bits, the first byte the highest.
    fn count(&self, counter: &mut Block, text: &mut [Block]);

    /// Adds the key stream of OFB behind `last`, which becomes its last block.
    fn ofb(&self, last: &mut Block, text: &mut [Block]);

    /// CFB, `before` being the block of ciphertext before the first, and then the last.
    fn cfb_encrypt(&self, before: &mut Block, text: &mut [Block]);

    /// The opposite of [`Self::cfb_encrypt`].
    fn cfb_decrypt(&self, before: &mut Block, text: &mut [Block]);

    /// The two halves of CCM: [`Self::absorb`] of the plaintext, and [`Self::count`]. The lower half of the counter must not overflow.
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

// Both ways in which it holds a key wipe it.
impl ZeroizeOnDrop for Aes {}

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

    /// One beside the other: the rounds of a counter take place while the MAC waits.
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

/// Adds `b` to `a`.
pub(crate) fn add(a: &mut Block, b: &Block) {
    *a = (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes();
}
