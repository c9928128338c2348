//! CTR, OFB and CFB of any block cipher, for pieces of any length. The unused rest of a key stream
//! block is kept for the next piece.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::block_cipher::{BLOCK, Block, BlockCipher};

/// State of a text in one of these modes; each mode has its method. Wiped when dropped.
#[derive(Clone)]
pub(super) struct Stream<C: BlockCipher> {
    cipher: C,
    /// CTR: the next counter. OFB: the last key stream block. CFB: the last ciphertext block.
    iv: Block,
    /// The key stream of the last, partial block, for CTR and OFB.
    kept: Block,
    /// Number of used bytes of that block; 0 if there is none.
    used: usize,
}

impl<C: BlockCipher> Drop for Stream<C> {
    fn drop(&mut self) {
        self.iv.zeroize();
        self.kept.zeroize();
    }
}

impl<C: BlockCipher> ZeroizeOnDrop for Stream<C> {}

impl<C: BlockCipher> Stream<C> {
    pub(super) const fn new(cipher: C, iv: Block) -> Self {
        Self { cipher, iv, kept: [0; BLOCK], used: 0 }
    }

    /// Splits a piece into the rest of the current block, whole blocks, and the start of another
    /// block.
    fn cut<'a>(&self, text: &'a mut [u8]) -> (&'a mut [u8], &'a mut [Block], &'a mut [u8]) {
        let begun = if self.used == 0 { 0 } else { BLOCK - self.used };
        let (rest, text) = text.split_at_mut(begun.min(text.len()));
        let (blocks, beginning) = text.as_chunks_mut();
        (rest, blocks, beginning)
    }

    /// XORs `text` with the key stream in `kept`, from `used` on.
    fn add_kept(&mut self, text: &mut [u8]) {
        for (byte, key) in text.iter_mut().zip(&self.kept[self.used..]) {
            *byte ^= key;
        }
        self.used = (self.used + text.len()) % BLOCK;
    }

    pub(super) fn ctr(&mut self, text: &mut [u8]) {
        let (rest, blocks, beginning) = self.cut(text);
        self.add_kept(rest);
        self.cipher.count(&mut self.iv, blocks);
        if !beginning.is_empty() {
            self.kept = [0; BLOCK];
            self.cipher.count(&mut self.iv, std::slice::from_mut(&mut self.kept));
            self.add_kept(beginning);
        }
    }

    pub(super) fn ofb(&mut self, text: &mut [u8]) {
        let (rest, blocks, beginning) = self.cut(text);
        self.add_kept(rest);
        self.cipher.ofb(&mut self.iv, blocks);
        if !beginning.is_empty() {
            self.cipher.encrypt_block(&mut self.iv);
            self.kept = self.iv;
            self.add_kept(beginning);
        }
    }

    /// Computes CFB. During a partial block, `iv` holds the ciphertext so far, followed by the
    /// unused key stream.
    pub(super) fn cfb<const DECRYPT: bool>(&mut self, text: &mut [u8]) {
        let (rest, blocks, beginning) = self.cut(text);
        self.feed_back::<DECRYPT>(rest);
        if DECRYPT {
            self.cipher.cfb_decrypt(&mut self.iv, blocks);
        } else {
            self.cipher.cfb_encrypt(&mut self.iv, blocks);
        }
        if !beginning.is_empty() {
            self.cipher.encrypt_block(&mut self.iv);
            self.feed_back::<DECRYPT>(beginning);
        }
    }

    fn feed_back<const DECRYPT: bool>(&mut self, text: &mut [u8]) {
        for (byte, key) in text.iter_mut().zip(&mut self.iv[self.used..]) {
            let before = *byte;
            *byte ^= *key;
            *key = if DECRYPT { before } else { *byte };
        }
        self.used = (self.used + text.len()) % BLOCK;
    }
}
