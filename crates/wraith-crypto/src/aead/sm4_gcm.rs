//! SM4-GCM (NIST SP 800-38D, RFC 8998), with nonces of 12 bytes and tags of 16.
//!
//! A text is processed in pieces that fit into the L1 cache. Each piece is encrypted and
//! authenticated before the next.

use std::fmt;

use zeroize::ZeroizeOnDrop;

use super::{Aead, AeadError, Algorithm};
use crate::kernels::ghash::Ghash;
use crate::kernels::sm4::{Block, Counter, Sm4, add};

/// Length of a piece in bytes: whole blocks.
const PIECE: usize = 4096;

/// A key of SM4-GCM. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub struct Sm4Gcm {
    cipher: Sm4,
    hash: Ghash,
}

impl Sm4Gcm {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        let cipher = Sm4::new(key);
        let hash = Ghash::new(&cipher.encrypted([0; 16]));
        Self { cipher, hash }
    }

    /// Encrypts or decrypts. Returns the tag of the ciphertext in either case. The nonce has 12
    /// bytes.
    fn crypt<const SEAL: bool>(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Block {
        let lengths = (aad.len() as u128) << 67 | (text.len() as u128) << 3;
        let mut first = [0; 16];
        first[..12].copy_from_slice(nonce);
        first[15] = 1;
        let mut counter = Counter::last_word(first).later(1);
        let mut hash = self.hash.absorb(0, aad);
        for piece in text.chunks_mut(PIECE) {
            if !SEAL {
                hash = self.hash.absorb(hash, piece);
            }
            self.cipher.count(&mut counter, piece);
            if SEAL {
                hash = self.hash.absorb(hash, piece);
            }
        }
        let mut tag = self.hash.absorb(hash, &lengths.to_be_bytes()).to_be_bytes();
        add(&mut tag, &self.cipher.encrypted(first));
        tag
    }
}

impl Aead for Sm4Gcm {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm4Gcm
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        let tag = Algorithm::Sm4Gcm.check_seal(nonce, in_out.len(), tag)?;
        *tag = self.crypt::<true>(nonce, aad, in_out);
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let tag = Algorithm::Sm4Gcm.check_open(nonce, in_out.len(), tag)?;
        if crate::equal(&self.crypt::<false>(nonce, aad, in_out), tag) {
            return Ok(());
        }
        in_out.fill(0);
        Err(AeadError::Unauthentic)
    }
}

impl fmt::Debug for Sm4Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4Gcm").finish_non_exhaustive()
    }
}
