//! XTS (IEEE 1619, NIST SP 800-38E, GB/T 17964-2021) of any block cipher.
//!
//! XTS has two variants: the Chinese standard numbers the bits of a tweak from the other end than
//! IEEE 1619, so the variants differ from the second block on.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{Algorithm, Cipher, CipherError};
use crate::block_cipher::{BLOCK, Block, BlockCipher};

/// XTS over consecutive data units. Wiped when dropped.
#[derive(Clone)]
pub(super) struct Xts<C: BlockCipher> {
    algorithm: Algorithm,
    cipher: C,
    tweak_cipher: C,
    /// Number of the next data unit.
    unit: u128,
    ieee: bool,
}

impl<C: BlockCipher> Drop for Xts<C> {
    fn drop(&mut self) {
        self.unit.zeroize();
    }
}

impl<C: BlockCipher> ZeroizeOnDrop for Xts<C> {}

impl<C: BlockCipher> Xts<C> {
    /// Starts the variant of GB/T 17964 for SM4, and that of IEEE 1619 for AES. `keys` is the text
    /// key followed by the tweak key.
    pub(super) fn new(algorithm: Algorithm, keys: &[u8], unit: Block) -> Result<Self, CipherError> {
        let (key, tweak_key) = keys.split_at(keys.len() / 2);
        if crate::equal(key, tweak_key) {
            return Err(CipherError::EqualHalves);
        }
        let wrong_key = CipherError::KeyLength { algorithm, found: keys.len() };
        let (cipher, tweak_cipher) = C::new(key).zip(C::new(tweak_key)).ok_or(wrong_key)?;
        let unit = u128::from_le_bytes(unit);
        Ok(Self { algorithm, cipher, tweak_cipher, unit, ieee: algorithm != Algorithm::Sm4Xts })
    }

    /// Changes to the variant of IEEE 1619.
    pub(super) fn use_ieee(&mut self) {
        self.ieee = true;
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
        if ENCRYPT {
            other.advance()
        } else {
            tweaks.advance()
        }
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

/// The tweaks of one data unit. Each is x times the tweak before.
#[derive(Clone, Copy, Zeroize)]
pub(crate) struct Tweaks {
    /// The tweak of the next block.
    pub(crate) next: Block,
    /// Whether the coefficient of x^0 is the lowest bit of the first byte, as in IEEE 1619, or the
    /// highest bit, as in GB/T 17964.
    ieee: bool,
}

impl Tweaks {
    fn advance(&mut self) {
        self.fill(&mut [[0; BLOCK]]);
    }

    /// Writes the next tweaks to `tweaks`.
    pub(crate) fn fill(&mut self, tweaks: &mut [Block]) {
        if self.ieee {
            let mut next = u128::from_le_bytes(self.next);
            for tweak in tweaks {
                *tweak = next.to_le_bytes();
                next = next << 1 ^ (0_u128.wrapping_sub(next >> 127) & 0x87);
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
