//! SM4 as an AEAD: GCM (NIST SP 800-38D) and CCM (SP 800-38C) with the parameters of RFC 8998, nonces of 12 bytes and tags of 16.
//!
//! Both go through a text in pieces that stay in the first cache, encrypting a piece and authenticating it before the next.

use std::fmt;

use zeroize::ZeroizeOnDrop;

use super::{Aead, AeadError, Algorithm};
use crate::kernels::ghash::Ghash;
use crate::kernels::sm4::{Block, Counter, Sm4, add};

/// Bytes of a piece: whole blocks.
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

    /// The tag, of the ciphertext in any case.
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
        let nonce = checked(Algorithm::Sm4Gcm, nonce, in_out, tag)?;
        tag.copy_from_slice(&self.crypt::<true>(nonce, aad, in_out));
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let nonce = checked(Algorithm::Sm4Gcm, nonce, in_out, tag)?;
        let expected = self.crypt::<false>(nonce, aad, in_out);
        verdict(&expected, tag, in_out)
    }
}

/// A key of SM4-CCM. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub struct Sm4Ccm(Sm4);

impl Sm4Ccm {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Sm4::new(key))
    }

    /// The tag, of the plaintext in any case.
    fn crypt<const SEAL: bool>(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> Block {
        // SP 800-38C, appendix A: three bytes are left for lengths and counters.
        const LENGTH_BYTES: u8 = 3;
        const TAG_BYTES: u8 = 16;
        let mut counters = [0; 16];
        counters[0] = LENGTH_BYTES - 1;
        counters[1..13].copy_from_slice(nonce);
        let mut mac = counters;
        mac[0] |= ((TAG_BYTES - 2) / 2) << 3 | u8::from(!aad.is_empty()) << 6;
        mac[13..].copy_from_slice(&(text.len() as u32).to_be_bytes()[1..]);
        mac = self.0.encrypted(mac);
        self.absorb_associated(&mut mac, aad);
        let mut counter = Counter::whole(counters).later(1);
        for piece in text.chunks_mut(PIECE) {
            if SEAL {
                absorb(&self.0, &mut mac, piece);
            }
            self.0.count(&mut counter, piece);
            if !SEAL {
                absorb(&self.0, &mut mac, piece);
            }
        }
        add(&mut mac, &self.0.encrypted(counters));
        mac
    }

    /// The associated data, with its length before it (SP 800-38C §A.2.2) and zeros behind it.
    fn absorb_associated(&self, mac: &mut Block, aad: &[u8]) {
        let mut first = [0; 16];
        let len = aad.len() as u64;
        let prefix = match len {
            0 => return,
            1..0xff00 => {
                first[..2].copy_from_slice(&(len as u16).to_be_bytes());
                2
            }
            0xff00..=0xffff_ffff => {
                first[..2].copy_from_slice(&[0xff, 0xfe]);
                first[2..6].copy_from_slice(&(len as u32).to_be_bytes());
                6
            }
            _ => {
                first[..2].copy_from_slice(&[0xff, 0xff]);
                first[2..10].copy_from_slice(&len.to_be_bytes());
                10
            }
        };
        let (head, rest) = aad.split_at(aad.len().min(16 - prefix));
        first[prefix..prefix + head.len()].copy_from_slice(head);
        self.0.absorb(mac, &[first]);
        absorb(&self.0, mac, rest);
    }
}

/// The blocks of `text`, with zeros behind it if it does not end with one.
fn absorb(cipher: &Sm4, mac: &mut Block, text: &[u8]) {
    let (blocks, rest) = text.as_chunks();
    cipher.absorb(mac, blocks);
    if !rest.is_empty() {
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        cipher.absorb(mac, &[last]);
    }
}

impl Aead for Sm4Ccm {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm4Ccm
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        let nonce = checked(Algorithm::Sm4Ccm, nonce, in_out, tag)?;
        tag.copy_from_slice(&self.crypt::<true>(nonce, aad, in_out));
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let nonce = checked(Algorithm::Sm4Ccm, nonce, in_out, tag)?;
        let expected = self.crypt::<false>(nonce, aad, in_out);
        verdict(&expected, tag, in_out)
    }
}

fn checked<'a>(
    algorithm: Algorithm,
    nonce: &'a [u8],
    text: &[u8],
    tag: &[u8],
) -> Result<&'a [u8; 12], AeadError> {
    algorithm.check(nonce, text.len(), tag.len())?;
    nonce.first_chunk().ok_or(AeadError::NonceLength { algorithm, found: nonce.len() })
}

/// Whether the tag is right; nothing is left of the text if not.
fn verdict(expected: &Block, tag: &[u8], text: &mut [u8]) -> Result<(), AeadError> {
    if crate::equal(expected, tag) {
        return Ok(());
    }
    text.fill(0);
    Err(AeadError::Unauthentic)
}

impl fmt::Debug for Sm4Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4Gcm").finish_non_exhaustive()
    }
}

impl fmt::Debug for Sm4Ccm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sm4Ccm").finish_non_exhaustive()
    }
}
