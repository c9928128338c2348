//! XTS (IEEE 1619, NIST SP 800-38E, GB/T 17964-2021) of any block cipher.
//!
//! XTS has two variants: the Chinese standard numbers the bits of a tweak from the other end than
//! IEEE 1619, so the variants differ from the second block on.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Algorithm, Cipher, CipherError};
use wraith_kernels::modes::{Block, BlockCipher, Tweaks};

/// XTS over consecutive data units. Wiped when dropped.
#[derive(Clone)]
pub(super) struct Xts<C: BlockCipher> {
    algorithm: Algorithm,
    cipher: C,
    tweak_cipher: C,
    /// Number of the next data unit.
    unit: u128,
    /// The variant of IEEE 1619, or that of GB/T 17964.
    ieee: bool,
}

impl<C: BlockCipher> Drop for Xts<C> {
    fn drop(&mut self) {
        self.unit.zeroize();
    }
}

impl<C: BlockCipher> ZeroizeOnDrop for Xts<C> {}

impl<C: BlockCipher> Xts<C> {
    /// Starts a text. `keys` is the text key followed by the tweak key.
    pub(super) fn new(
        algorithm: Algorithm,
        ieee: bool,
        keys: &[u8],
        unit: Block,
    ) -> Result<Self, CipherError> {
        let (key, tweak_key) = keys.split_at(keys.len() / 2);
        if crate::equal(key, tweak_key) {
            return Err(CipherError::EqualHalves);
        }
        let wrong_key = CipherError::KeyLength { algorithm, found: keys.len() };
        let (cipher, tweak_cipher) = C::new(key).zip(C::new(tweak_key)).ok_or(wrong_key)?;
        Ok(Self { algorithm, cipher, tweak_cipher, unit: u128::from_le_bytes(unit), ieee })
    }

    fn crypt<const ENCRYPT: bool>(&mut self, text: &mut [u8]) -> Result<(), CipherError> {
        self.algorithm.check_piece(text)?;
        let mut next = self.unit.to_le_bytes();
        self.unit = self.unit.wrapping_add(1);
        self.tweak_cipher.encrypt_block(&mut next);
        let mut tweaks = Zeroizing::new(Tweaks { next, ieee: self.ieee });
        let (blocks, rest) = text.as_chunks_mut();
        if rest.is_empty() {
            self.cipher.xts::<ENCRYPT>(&mut tweaks, blocks);
            return Ok(());
        }
        let (last, others) = blocks.split_last_mut().expect("16 bytes and more");
        self.cipher.xts::<ENCRYPT>(&mut tweaks, others);
        // Ciphertext stealing (IEEE 1619 §5.3.2). For decryption, the last two tweaks are swapped.
        let mut other = Zeroizing::new(*tweaks);
        let skipping = if ENCRYPT { &mut other } else { &mut tweaks };
        skipping.fill(&mut [[0; 16]]);
        self.cipher.xts::<ENCRYPT>(&mut tweaks, std::slice::from_mut(last));
        rest.swap_with_slice(&mut last[..rest.len()]);
        self.cipher.xts::<ENCRYPT>(&mut other, std::slice::from_mut(last));
        Ok(())
    }
}

impl<C: BlockCipher> Cipher for Xts<C> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.crypt::<true>(in_out)
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.crypt::<false>(in_out)
    }
}
