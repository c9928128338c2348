//! SM4-GCM (NIST SP 800-38D, RFC 8998), with nonces of 12 bytes and tags of 16.
//!
//! A text is processed in pieces that fit into the L1 cache. Each piece is encrypted and
//! authenticated before the next.

use wraith_kernels::ghash::Ghash;
use wraith_kernels::sm4::{Block, Counter, Sm4, add};
use zeroize::ZeroizeOnDrop;

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

    /// Encrypts `text` in place and returns the tag. `text` is at most 2^36 - 32 bytes.
    #[must_use]
    pub fn seal(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> Block {
        self.crypt::<true>(nonce, aad, text)
    }

    /// Decrypts `text` in place and returns the expected tag. The caller must compare the tags
    /// before it uses the plaintext.
    #[must_use]
    pub fn open(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> Block {
        self.crypt::<false>(nonce, aad, text)
    }

    /// Encrypts or decrypts. Returns the tag of the ciphertext in either case.
    fn crypt<const SEAL: bool>(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> Block {
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

crate::redacted_debug!(Sm4Gcm);
