//! Unauthenticated modes of block ciphers (NIST SP 800-38A and 38E, GB/T 17964). An attacker that
//! modifies a ciphertext also modifies the plaintext. Use an [`aead`](crate::aead) unless a format
//! demands one of these modes.
//!
//! A [`Cipher`] keeps its position, so a text can be passed in pieces. ECB and CBC accept only
//! whole blocks ([`pad`] fills the last one), the other modes any length. XTS accepts one whole
//! data unit at a time, of 16 bytes or more; each unit advances the unit number.
//!
//! | mode | forbidden |
//! |---|---|
//! | ECB | more than one block of anything but random data |
//! | CBC, CFB | a predictable IV |
//! | CTR, OFB | the same IV twice under one key |
//! | XTS | any use but the sectors of a disk |
//!
//! All modes: at most 2^48 blocks under one key. Beyond that, collisions of 16-byte blocks become
//! likely.

mod modes;
mod xts;

use std::hint::black_box;

use thiserror::Error;

use crate::Backend;
use crate::algorithm::algorithms;
use wraith_kernels::aes::Aes;
use wraith_kernels::sm4::{Implementation, Sm4};

/// Length of a block in bytes, for every cipher in this module.
pub const BLOCK_BYTES: usize = 16;

/// Maximum length of an XTS data unit in bytes: 2^20 blocks (SP 800-38E §4).
const UNIT_MAX: usize = BLOCK_BYTES << 20;

/// Encryption or decryption of one text, under one key and IV. Use an instance for one direction
/// only.
pub trait Cipher: Send {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Encrypts the next piece in place.
    ///
    /// # Errors
    /// [`CipherError::Partial`] if the mode does not take this length. Nothing has changed then.
    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError>;

    /// Decrypts the next piece in place.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError>;
}

/// Reason why nothing was encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CipherError {
    /// The key has the wrong length.
    #[error("a key of {algorithm} has {} bytes, not {found}", algorithm.key_bytes())]
    KeyLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length of the key in bytes.
        found: usize,
    },
    /// The IV has the wrong length.
    #[error("an IV of {algorithm} has {} bytes, not {found}", algorithm.iv_bytes())]
    IvLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length of the IV in bytes.
        found: usize,
    },
    /// The two halves of an XTS key are equal (FIPS 140-3 IG C.I).
    #[error("the two halves of the key are the same")]
    EqualHalves,
    /// The text does not consist of whole blocks, or an XTS data unit is too short or too long.
    #[error("{algorithm} does not take a text of {found} bytes: it takes {}", algorithm.takes())]
    Partial {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length of the text in bytes.
        found: usize,
    },
    /// The decrypted text does not end with valid padding ([`pad`]): the key is wrong, or the text
    /// was modified.
    #[error("invalid padding: wrong key, or damaged")]
    Padding,
}

algorithms! {
    /// A block cipher with its mode.
    "cipher";
    "NIST SP 800-38A" {
        Aes128Ecb = "AES-128-ECB", Aes192Ecb = "AES-192-ECB", Aes256Ecb = "AES-256-ECB",
        Aes128Cbc = "AES-128-CBC", Aes192Cbc = "AES-192-CBC", Aes256Cbc = "AES-256-CBC",
        Aes128Ctr = "AES-128-CTR", Aes192Ctr = "AES-192-CTR", Aes256Ctr = "AES-256-CTR",
        Aes128Cfb = "AES-128-CFB", Aes192Cfb = "AES-192-CFB", Aes256Cfb = "AES-256-CFB",
        Aes128Ofb = "AES-128-OFB", Aes192Ofb = "AES-192-OFB", Aes256Ofb = "AES-256-OFB",
    }
    "NIST SP 800-38E" {
        Aes128Xts = "AES-128-XTS", Aes256Xts = "AES-256-XTS",
    }
    "GB/T 17964" {
        Sm4Ecb = "SM4-ECB", Sm4Cbc = "SM4-CBC", Sm4Ctr = "SM4-CTR", Sm4Cfb = "SM4-CFB",
        Sm4Ofb = "SM4-OFB", Sm4Xts = "SM4-XTS",
    }
}

/// A mode of any block cipher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ecb,
    Cbc,
    Ctr,
    Cfb,
    Ofb,
    Xts,
}

impl Algorithm {
    /// Returns the length of a key in bytes. XTS has two keys, one after the other.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        use Algorithm::*;
        match self {
            Aes128Ecb | Aes128Cbc | Aes128Ctr | Aes128Cfb | Aes128Ofb => 16,
            Sm4Ecb | Sm4Cbc | Sm4Ctr | Sm4Cfb | Sm4Ofb => 16,
            Aes192Ecb | Aes192Cbc | Aes192Ctr | Aes192Cfb | Aes192Ofb => 24,
            Aes256Ecb | Aes256Cbc | Aes256Ctr | Aes256Cfb | Aes256Ofb | Aes128Xts | Sm4Xts => 32,
            Aes256Xts => 64,
        }
    }

    /// Returns the length of the IV in bytes. For CTR it is the first counter block. For XTS it is
    /// the number of the first data unit, little-endian. ECB has no IV.
    #[must_use]
    pub const fn iv_bytes(self) -> usize {
        if matches!(self.mode(), Mode::Ecb) { 0 } else { BLOCK_BYTES }
    }

    const fn mode(self) -> Mode {
        use Algorithm::*;
        match self {
            Aes128Ecb | Aes192Ecb | Aes256Ecb | Sm4Ecb => Mode::Ecb,
            Aes128Cbc | Aes192Cbc | Aes256Cbc | Sm4Cbc => Mode::Cbc,
            Aes128Ctr | Aes192Ctr | Aes256Ctr | Sm4Ctr => Mode::Ctr,
            Aes128Cfb | Aes192Cfb | Aes256Cfb | Sm4Cfb => Mode::Cfb,
            Aes128Ofb | Aes192Ofb | Aes256Ofb | Sm4Ofb => Mode::Ofb,
            Aes128Xts | Aes256Xts | Sm4Xts => Mode::Xts,
        }
    }

    const fn is_sm4(self) -> bool {
        use Algorithm::*;
        matches!(self, Sm4Ecb | Sm4Cbc | Sm4Ctr | Sm4Cfb | Sm4Ofb | Sm4Xts)
    }

    /// Returns whether a text must consist of whole blocks.
    #[must_use]
    pub const fn wants_whole_blocks(self) -> bool {
        matches!(self.mode(), Mode::Ecb | Mode::Cbc)
    }

    /// Checks the length of a piece.
    fn check_piece(self, text: &[u8]) -> Result<(), CipherError> {
        let found = text.len();
        let fits = match self.mode() {
            Mode::Ecb | Mode::Cbc => found.is_multiple_of(BLOCK_BYTES),
            Mode::Ctr | Mode::Cfb | Mode::Ofb => true,
            Mode::Xts => (BLOCK_BYTES..=UNIT_MAX).contains(&found),
        };
        if fits { Ok(()) } else { Err(CipherError::Partial { algorithm: self, found }) }
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        if self.is_sm4() { sm4_backend() } else { aes_backend() }
    }

    /// Starts a text under `key`, with `iv`.
    ///
    /// # Errors
    /// [`CipherError`] if a length is wrong, or if the halves of an XTS key are equal.
    pub fn start(self, key: &[u8], iv: &[u8]) -> Result<Box<dyn Cipher>, CipherError> {
        match self.is_sm4() {
            true => modes::start::<Sm4>(self, key, iv),
            false => modes::start::<Aes>(self, key, iv),
        }
    }

    const fn takes(self) -> &'static str {
        match self.mode() {
            Mode::Ecb | Mode::Cbc => "whole blocks of 16 bytes",
            Mode::Ctr | Mode::Cfb | Mode::Ofb => "any length",
            Mode::Xts => "data units of 16 bytes to 16 MiB",
        }
    }
}

/// Starts a text under SM4-XTS in the variant of IEEE 1619, whose tweaks differ from the second
/// block on. [`Algorithm::start`] starts that of GB/T 17964, as OpenSSL and openHiTLS do.
///
/// # Errors
/// As [`Algorithm::start`].
pub fn start_sm4_xts_ieee(key: &[u8], unit: &[u8; 16]) -> Result<Box<dyn Cipher>, CipherError> {
    Ok(Box::new(xts::Xts::<Sm4>::new(Algorithm::Sm4Xts, true, key, *unit)?))
}

/// Returns the implementation of the modes of AES on this processor.
pub(crate) fn aes_backend() -> Backend {
    Backend::own_or(Aes::features(), Backend::Library("aes"))
}

/// Returns the implementation of the modes of SM4 on this processor.
pub(crate) fn sm4_backend() -> Backend {
    Backend::Own(Implementation::best().features().into())
}

/// Pads `text` to whole blocks: appends 1 to 16 bytes, each with their count as its value (PKCS #7,
/// RFC 5652 §6.3).
pub fn pad(text: &mut Vec<u8>) {
    let added = BLOCK_BYTES - text.len() % BLOCK_BYTES;
    text.resize(text.len() + added, added as u8);
}

/// Returns the length of `text` without the padding from [`pad`].
///
/// Constant time with respect to the last block. The caller's reaction to the result usually is
/// not: with a padding oracle, an attacker that submits ciphertexts of its own can decrypt other
/// texts. Authenticate first.
///
/// # Errors
/// [`CipherError::Padding`].
pub fn unpadded_len(text: &[u8]) -> Result<usize, CipherError> {
    let last: &[u8; BLOCK_BYTES] = text.last_chunk().ok_or(CipherError::Padding)?;
    let added = last[BLOCK_BYTES - 1];
    let mut wrong = u8::from(added == 0 || usize::from(added) > BLOCK_BYTES);
    for (i, byte) in last.iter().rev().enumerate() {
        // Without the barrier the compiler stops at the first wrong byte.
        wrong |= black_box(u8::from(i < usize::from(added)) & u8::from(*byte != added));
    }
    match text.len().is_multiple_of(BLOCK_BYTES) && wrong == 0 {
        true => Ok(text.len() - usize::from(added)),
        false => Err(CipherError::Padding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpad_removes_exactly_the_padding() {
        for len in 0..40 {
            let mut text = vec![7; len];
            pad(&mut text);
            assert!(text.len().is_multiple_of(BLOCK_BYTES) && text.len() > len);
            assert_eq!(unpadded_len(&text), Ok(len));
            let last = text.len() - 1;
            for (at, byte) in [(last, 0), (last, 17), (last, 255), (len, 99)] {
                let mut wrong = text.clone();
                wrong[at] = byte;
                assert_eq!(unpadded_len(&wrong), Err(CipherError::Padding), "{len} {at} {byte}");
            }
        }
        assert_eq!(unpadded_len(&[]), Err(CipherError::Padding));
        assert_eq!(unpadded_len(&[1; 17]), Err(CipherError::Padding));
    }

    #[test]
    fn each_mode_begins_by_name_with_keys_and_ivs_of_its_lengths_only() {
        for &algorithm in Algorithm::ALL {
            let (key_bytes, iv_bytes) = (algorithm.key_bytes(), algorithm.iv_bytes());
            let key: Vec<u8> = (0..key_bytes as u8).collect();
            let iv = vec![1; iv_bytes];
            assert_eq!(algorithm.start(&key, &iv).unwrap().algorithm(), algorithm);
            let found = key_bytes - 1;
            let short = algorithm.start(&key[1..], &iv).err();
            assert_eq!(short, Some(CipherError::KeyLength { algorithm, found }));
            let found = iv_bytes + 1;
            let long = algorithm.start(&key, &vec![1; found]).err();
            assert_eq!(long, Some(CipherError::IvLength { algorithm, found }));
        }
    }
}
