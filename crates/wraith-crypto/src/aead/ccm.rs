//! AES-CCM (NIST SP 800-38C, RFC 3610): CBC-MAC and counter mode under one key, the two side by side.

use super::{Aead, AeadError, Algorithm};
use crate::kernels::aes::Aes;

const BLOCK: usize = 16;
type Block = [u8; BLOCK];

/// A key of AES-CCM, with nonces of 12 bytes and tags of 16 through [`Aead`], and of other lengths through [`Self::with_lengths`].
/// Wiped when dropped.
pub struct AesCcm {
    key: Aes,
    algorithm: Algorithm,
    nonce_bytes: usize,
    tag_bytes: usize,
}

impl AesCcm {
    /// The key with these 16, 24 or 32 bytes. `None` if there are others.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        Self::with_lengths(key, 12, 16)
    }

    /// The same for nonces of 7 to 13 bytes and tags of 4, 6, … 16. Shorter nonces leave room for longer texts: less than
    /// 2^(8 · (15 - `nonce_bytes`)) bytes. `None` if a length is another.
    #[must_use]
    pub fn with_lengths(key: &[u8], nonce_bytes: usize, tag_bytes: usize) -> Option<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::Aes128Ccm,
            24 => Algorithm::Aes192Ccm,
            _ => Algorithm::Aes256Ccm,
        };
        let fits = (7..=13).contains(&nonce_bytes)
            && (4..=16).contains(&tag_bytes)
            && tag_bytes.is_multiple_of(2);
        let key = Aes::new(key).filter(|_| fits)?;
        Some(Self { key, algorithm, nonce_bytes, tag_bytes })
    }

    fn check(&self, nonce: &[u8], text: usize, tag: usize) -> Result<(), AeadError> {
        let algorithm = self.algorithm;
        if nonce.len() != self.nonce_bytes {
            return Err(AeadError::NonceLength { algorithm, found: nonce.len() });
        }
        if tag != self.tag_bytes {
            return Err(AeadError::TagLength { algorithm, found: tag });
        }
        // A length has 15 bytes together with the nonce.
        let bits = 8 * (15 - self.nonce_bytes) as u32;
        match (text as u64).checked_shr(bits).unwrap_or(0) {
            0 => Ok(()),
            _ => Err(AeadError::TooLong { algorithm }),
        }
    }

    /// Encrypts or decrypts and returns the whole tag.
    fn crypt<const SEAL: bool>(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Block {
        let mut counter = [0; BLOCK];
        counter[0] = 14 - self.nonce_bytes as u8;
        counter[1..=nonce.len()].copy_from_slice(nonce);
        let mut mac = self.begin(&counter, aad, in_out.len());
        let mut tag_mask = counter;
        self.key.encrypt_block(&mut tag_mask);
        counter[BLOCK - 1] = 1;
        let (blocks, end) = in_out.split_at_mut(in_out.len() / BLOCK * BLOCK);
        self.key.ccm::<SEAL>(&mut mac, &mut counter, blocks);
        if !end.is_empty() {
            let mut last = [0; BLOCK];
            last[..end.len()].copy_from_slice(end);
            if SEAL {
                self.key.cbc_mac(&mut mac, &last);
            }
            self.key.ctr(&mut counter, &mut last);
            end.copy_from_slice(&last[..end.len()]);
            if !SEAL {
                last[end.len()..].fill(0);
                self.key.cbc_mac(&mut mac, &last);
            }
        }
        (u128::from_ne_bytes(mac) ^ u128::from_ne_bytes(tag_mask)).to_ne_bytes()
    }

    /// CBC-MAC over the first block and the associated data (SP 800-38C appendix A.2).
    fn begin(&self, counter: &Block, aad: &[u8], text: usize) -> Block {
        let mut first = *counter;
        first[0] |= u8::from(!aad.is_empty()) << 6 | (((self.tag_bytes - 2) / 2) << 3) as u8;
        let length_bytes = 15 - self.nonce_bytes;
        first[BLOCK - length_bytes..]
            .copy_from_slice(&(text as u64).to_be_bytes()[8 - length_bytes..]);
        let mut mac = [0; BLOCK];
        self.key.cbc_mac(&mut mac, &first);
        if aad.is_empty() {
            return mac;
        }
        let mut block = [0; BLOCK];
        let length = (aad.len() as u64).to_be_bytes();
        let prefix = match aad.len() as u64 {
            0..0xff00 => 2,
            0xff00..0x1_0000_0000 => 6,
            _ => 10,
        };
        if prefix == 2 {
            block[..2].copy_from_slice(&length[6..]);
        } else {
            block[..2].copy_from_slice(&[0xff, if prefix == 6 { 0xfe } else { 0xff }]);
            block[2..prefix].copy_from_slice(&length[10 - prefix..]);
        }
        let (head, rest) = aad.split_at(aad.len().min(BLOCK - prefix));
        block[prefix..prefix + head.len()].copy_from_slice(head);
        self.key.cbc_mac(&mut mac, &block);
        let (blocks, end) = rest.split_at(rest.len() / BLOCK * BLOCK);
        self.key.cbc_mac(&mut mac, blocks);
        if !end.is_empty() {
            let mut block = [0; BLOCK];
            block[..end.len()].copy_from_slice(end);
            self.key.cbc_mac(&mut mac, &block);
        }
        mac
    }
}

impl std::fmt::Debug for AesCcm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AesCcm").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Aead for AesCcm {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn tag_bytes(&self) -> usize {
        self.tag_bytes
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        self.check(nonce, in_out.len(), tag.len())?;
        let whole = self.crypt::<true>(nonce, aad, in_out);
        tag.copy_from_slice(&whole[..tag.len()]);
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        self.check(nonce, in_out.len(), tag.len())?;
        let whole = self.crypt::<false>(nonce, aad, in_out);
        if crate::equal(&whole[..tag.len()], tag) {
            return Ok(());
        }
        in_out.fill(0);
        Err(AeadError::Unauthentic)
    }
}
