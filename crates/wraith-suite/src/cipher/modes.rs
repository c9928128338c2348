//! ECB, CBC, CTR, OFB and CFB of any block cipher.
//!
//! For CTR, OFB and CFB, pieces may have any length: the unused rest of a key stream block is kept
//! for the next piece.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::xts::Xts;
use super::{Algorithm, Cipher, CipherError, Mode};
use wraith_kernels::modes::{BLOCK, Block, BlockCipher};

/// Starts a text. `C` has to be the block cipher of `algorithm`.
pub(super) fn start<C: BlockCipher + 'static>(
    algorithm: Algorithm,
    key: &[u8],
    iv: &[u8],
) -> Result<Box<dyn Cipher>, CipherError> {
    let wrong_key = CipherError::KeyLength { algorithm, found: key.len() };
    if key.len() != algorithm.key_bytes() {
        return Err(wrong_key);
    }
    if iv.len() != algorithm.iv_bytes() {
        return Err(CipherError::IvLength { algorithm, found: iv.len() });
    }
    // ECB has no IV.
    let iv = iv.first_chunk().copied().unwrap_or_default();
    Ok(match algorithm.mode() {
        Mode::Xts => Box::new(Xts::<C>::new(algorithm, algorithm != Algorithm::Sm4Xts, key, iv)?),
        _ => Box::new(Text::with(algorithm, C::new(key).ok_or(wrong_key)?, iv)),
    })
}

/// A text in any mode but XTS. Wiped when dropped.
#[derive(Clone)]
pub(super) struct Text<C: BlockCipher> {
    algorithm: Algorithm,
    cipher: C,
    /// CBC and CFB: the last ciphertext block. CTR: the next counter. OFB: the last key stream
    /// block.
    iv: Block,
    /// The key stream of the last, partial block, for CTR and OFB.
    kept: Block,
    /// Number of used bytes of that block; 0 if there is none.
    used: usize,
}

impl<C: BlockCipher> Drop for Text<C> {
    fn drop(&mut self) {
        self.iv.zeroize();
        self.kept.zeroize();
    }
}

impl<C: BlockCipher> ZeroizeOnDrop for Text<C> {}

impl<C: BlockCipher> Text<C> {
    const fn with(algorithm: Algorithm, cipher: C, iv: Block) -> Self {
        Self { algorithm, cipher, iv, kept: [0; BLOCK], used: 0 }
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

    fn ctr(&mut self, text: &mut [u8]) {
        let (rest, blocks, beginning) = self.cut(text);
        self.add_kept(rest);
        self.cipher.ctr(&mut self.iv, blocks);
        if !beginning.is_empty() {
            self.kept = [0; BLOCK];
            self.cipher.ctr(&mut self.iv, std::slice::from_mut(&mut self.kept));
            self.add_kept(beginning);
        }
    }

    fn ofb(&mut self, text: &mut [u8]) {
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
    fn cfb<const DECRYPT: bool>(&mut self, text: &mut [u8]) {
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

impl<C: BlockCipher> Cipher for Text<C> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.algorithm.check_piece(in_out)?;
        match self.algorithm.mode() {
            Mode::Ecb => self.cipher.ecb_encrypt(in_out.as_chunks_mut().0),
            Mode::Cbc => self.cipher.cbc_encrypt(&mut self.iv, in_out.as_chunks_mut().0),
            Mode::Cfb => self.cfb::<false>(in_out),
            Mode::Ofb => self.ofb(in_out),
            Mode::Ctr => self.ctr(in_out),
            Mode::Xts => unreachable!("XTS has its own type"),
        }
        Ok(())
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.algorithm.check_piece(in_out)?;
        match self.algorithm.mode() {
            Mode::Ecb => self.cipher.ecb_decrypt(in_out.as_chunks_mut().0),
            Mode::Cbc => self.cipher.cbc_decrypt(&mut self.iv, in_out.as_chunks_mut().0),
            Mode::Cfb => self.cfb::<true>(in_out),
            Mode::Ofb | Mode::Ctr | Mode::Xts => self.encrypt(in_out)?,
        }
        Ok(())
    }
}
