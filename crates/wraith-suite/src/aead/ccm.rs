//! CCM (NIST SP 800-38C, RFC 3610) with AES and with SM4 (RFC 8998): CBC-MAC and counter mode under
//! one key.

use zeroize::ZeroizeOnDrop;

use super::Algorithm;
use super::algorithm::Lengths;
use super::key::{Tag, UncheckedAead};
use wraith_kernels::aes::Aes;
use wraith_kernels::modes::{BLOCK, Block, BlockCipher, add};
use wraith_kernels::sm4::Sm4;

/// A key of AES-CCM. Nonces have 12 bytes and tags 16, or other lengths after
/// [`AesCcm::with_lengths`]. Wiped when dropped.
pub type AesCcm = Ccm<Aes>;

impl AesCcm {
    /// Creates a key from 16, 24 or 32 bytes. Returns `None` for another length.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        Self::with_lengths(key, 12, 16)
    }

    /// Creates a key for nonces of 7 to 13 bytes and tags of 4, 6, … 16. Shorter nonces allow
    /// longer texts: less than 2^(8 · (15 - `nonce_bytes`)) bytes. Returns `None` for another
    /// length.
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
        let cipher = Aes::new(key).filter(|_| fits)?;
        Some(Self { cipher, lengths: lengths(algorithm, nonce_bytes, tag_bytes) })
    }
}

/// A key of SM4-CCM, with nonces of 12 bytes and tags of 16. Wiped when dropped.
pub type Sm4Ccm = Ccm<Sm4>;

impl Sm4Ccm {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self { cipher: Sm4::new(key), lengths: lengths(Algorithm::Sm4Ccm, 12, 16) }
    }
}

/// A key of either cipher. Wiped when dropped, as the cipher is.
///
/// Invariant: `lengths` are valid for CCM.
pub struct Ccm<C> {
    cipher: C,
    lengths: Lengths,
}

/// Returns the lengths of a key with nonces of 7 to 13 bytes. The nonce and the encoded text length
/// share 15 bytes.
const fn lengths(algorithm: Algorithm, nonce_bytes: usize, tag_bytes: usize) -> Lengths {
    let text_max = u64::MAX >> (8 * (nonce_bytes - 7));
    Lengths { algorithm, nonce_bytes, tag_bytes, text_max }
}

impl<C: BlockCipher> UncheckedAead for Ccm<C> {
    fn lengths(&self) -> Lengths {
        self.lengths
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        Some(self.crypt::<true>(nonce, aad, text))
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        let whole = self.crypt::<false>(nonce, aad, text);
        crate::equal(&whole[..tag.len()], tag).then_some(())
    }
}

impl<C: BlockCipher> ZeroizeOnDrop for Ccm<C> {}

wraith_crypto::redacted_debug!([C] |it: Ccm<C>| algorithm: it.lengths.algorithm);

impl<C: BlockCipher> Ccm<C> {
    /// Encrypts or decrypts, and returns the untruncated tag.
    fn crypt<const SEAL: bool>(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Block {
        let mut counter = [0; BLOCK];
        counter[0] = 14 - self.lengths.nonce_bytes as u8;
        counter[1..=nonce.len()].copy_from_slice(nonce);
        let mut mac = self.start_mac(&counter, aad, in_out.len());
        let mut tag_mask = counter;
        self.cipher.encrypt_block(&mut tag_mask);
        counter[BLOCK - 1] = 1;
        let (blocks, end) = in_out.as_chunks_mut();
        self.cipher.ccm::<SEAL>(&mut mac, &mut counter, blocks);
        if !end.is_empty() {
            let mut last = [[0; BLOCK]];
            last[0][..end.len()].copy_from_slice(end);
            if SEAL {
                self.cipher.cbc_mac(&mut mac, &last);
            }
            self.cipher.ctr(&mut counter, &mut last);
            end.copy_from_slice(&last[0][..end.len()]);
            if !SEAL {
                last[0][end.len()..].fill(0);
                self.cipher.cbc_mac(&mut mac, &last);
            }
        }
        add(&mut mac, &tag_mask);
        mac
    }

    /// Starts the CBC-MAC with the first block and the associated data (SP 800-38C appendix A.2).
    fn start_mac(&self, counter: &Block, aad: &[u8], text: usize) -> Block {
        let mut first = *counter;
        first[0] |=
            u8::from(!aad.is_empty()) << 6 | (((self.lengths.tag_bytes - 2) / 2) << 3) as u8;
        let length_bytes = 15 - self.lengths.nonce_bytes;
        first[BLOCK - length_bytes..]
            .copy_from_slice(&(text as u64).to_be_bytes()[8 - length_bytes..]);
        let mut mac = [0; BLOCK];
        self.cipher.cbc_mac(&mut mac, &[first]);
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
        self.cipher.cbc_mac(&mut mac, &[block]);
        let (blocks, end) = rest.as_chunks();
        self.cipher.cbc_mac(&mut mac, blocks);
        if !end.is_empty() {
            let mut block = [0; BLOCK];
            block[..end.len()].copy_from_slice(end);
            self.cipher.cbc_mac(&mut mac, &[block]);
        }
        mac
    }
}
