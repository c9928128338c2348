//! The layout of a message.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | kind: `0x20` a message, `0x21` a message with the initial part |
//! | 1161 | the initial part (kind `0x21` only; [`InitialPart`]) |
//! | 16 | salt, random; its first 12 bytes are the nonce of the header |
//! | 57 | header: 41 bytes and a tag, under the header key of the chain |
//! | 1200 or 1104 | ML-KEM part: an encapsulation key or a ciphertext, and a tag (if the header has its flag) |
//! | n + 16 | body: the text, padded if the header has that flag, and a tag, under the body key |
//!
//! The plain header: flags (1: padded, 2: an encapsulation key follows, 4: a ciphertext follows),
//! the sender's ratchet key (32 bytes), the message number in the chain, and the length of the
//! sender's previous chain (32 bits each, little-endian).
//!
//! The header's nonce is sent in the clear, because the message number is inside the header. It is
//! random instead of a counter: a rolled-back state would reuse a counter. A chain ends before 2³²
//! messages, so two of its 96-bit random nonces collide with probability below 2⁻³³ (NIST SP
//! 800-38D, §8.3, allows the same number). The ML-KEM part and the body have their own keys,
//! derived with the salt, and an all-zero nonce.
//!
//! The body's key depends on everything in front of the body, except the tag directly before it.
//! That tag is a function of the rest and has been verified. The caller's associated data is the
//! associated data of the body's AEAD.

use wraith_crypto::TAG_BYTES;
use wraith_crypto::ml_kem_768::{CIPHERTEXT_BYTES, ENCAPSULATION_KEY_BYTES};

use super::error::DecryptError;
use super::padding::padded_len;

/// First byte of a message; its high half is the version.
pub(super) const KIND_MESSAGE: u8 = 0x20;
/// First byte of a message with the initial part.
pub(super) const KIND_INITIAL: u8 = 0x21;

/// Bytes of the initial part: suite, initiator, ephemeral key, id of the signed prekeys, id of the
/// one-time prekeys, ciphertext.
pub(super) const INITIAL_BYTES: usize = 1 + 32 + 32 + 4 + 4 + CIPHERTEXT_BYTES;
pub(super) const SALT_BYTES: usize = 16;
pub(super) const HEADER_BYTES: usize = 1 + 32 + 4 + 4;
const SEALED_HEADER_BYTES: usize = HEADER_BYTES + TAG_BYTES;

/// Maximum length of a plaintext: 16 MiB.
pub const PLAINTEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes that an ordinary unpadded message adds to its plaintext.
pub const OVERHEAD_BYTES: usize = 1 + SALT_BYTES + SEALED_HEADER_BYTES + TAG_BYTES;
/// Maximum length of a message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = OVERHEAD_BYTES
    + INITIAL_BYTES
    + ENCAPSULATION_KEY_BYTES
    + TAG_BYTES
    + padded_len(PLAINTEXT_BYTES_MAX);

/// Kind of the ML-KEM part that each message of a chain carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KemKind {
    EncapsulationKey,
    Ciphertext,
}

impl KemKind {
    pub(super) const fn len(self) -> usize {
        match self {
            Self::EncapsulationKey => ENCAPSULATION_KEY_BYTES,
            Self::Ciphertext => CIPHERTEXT_BYTES,
        }
    }
}

/// A decrypted header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) padded: bool,
    pub(super) kem: Option<KemKind>,
    /// The sender's ratchet key.
    pub(super) ratchet_key: [u8; 32],
    /// Number of the message in its chain, from 0.
    pub(super) number: u32,
    /// Number of messages in the sender's previous chain.
    pub(super) previous_len: u32,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let kem = match self.kem {
            None => 0,
            Some(KemKind::EncapsulationKey) => 2,
            Some(KemKind::Ciphertext) => 4,
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = u8::from(self.padded) | kem;
        bytes[1..33].copy_from_slice(&self.ratchet_key);
        bytes[33..37].copy_from_slice(&self.number.to_le_bytes());
        bytes[37..].copy_from_slice(&self.previous_len.to_le_bytes());
        bytes
    }

    /// Decodes a header. Returns `None` for invalid flags.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let (&[flags], rest) = bytes.split_first_chunk()?;
        let (ratchet_key, rest) = rest.split_first_chunk()?;
        let (number, previous_len) = rest.split_first_chunk()?;
        let kem = match flags & !1 {
            0 => None,
            2 => Some(KemKind::EncapsulationKey),
            4 => Some(KemKind::Ciphertext),
            _ => return None,
        };
        Some(Self {
            padded: flags & 1 == 1,
            kem,
            ratchet_key: *ratchet_key,
            number: u32::from_le_bytes(*number),
            previous_len: u32::from_le_bytes(previous_len.try_into().ok()?),
        })
    }
}

/// A message of valid length, not yet authenticated.
#[derive(Clone, Copy)]
pub(super) struct Envelope<'a> {
    message: &'a [u8],
    /// Offset of the salt.
    start: usize,
}

impl<'a> Envelope<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, DecryptError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(DecryptError::TooLong);
        }
        let start = match message.first() {
            Some(&KIND_MESSAGE) => 1,
            Some(&KIND_INITIAL) => 1 + INITIAL_BYTES,
            _ => return Err(DecryptError::Malformed),
        };
        if message.len() < start + OVERHEAD_BYTES - 1 {
            return Err(DecryptError::Malformed);
        }
        Ok(Self { message, start })
    }

    /// Returns the initial part, if the message has one.
    pub(super) fn initial(&self) -> Option<&'a [u8; INITIAL_BYTES]> {
        if self.start == 1 { None } else { self.message[1..].first_chunk() }
    }

    pub(super) fn salt(&self) -> &'a [u8; SALT_BYTES] {
        self.message[self.start..].first_chunk().expect("the shortest message has one")
    }

    pub(super) fn sealed_header(&self) -> &'a [u8; SEALED_HEADER_BYTES] {
        self.message[self.start + SALT_BYTES..].first_chunk().expect("the shortest message has one")
    }

    /// Returns the sealed ML-KEM part of `kind`.
    pub(super) fn sealed_kem(&self, kind: KemKind) -> Result<&'a [u8], DecryptError> {
        let at = self.header_end();
        self.message.get(at..at + kind.len() + TAG_BYTES).ok_or(DecryptError::Malformed)
    }

    /// Splits off the bytes that the body's key depends on from the body with its tag.
    pub(super) fn split_body(
        &self,
        kem: Option<KemKind>,
    ) -> Result<(&'a [u8], &'a [u8]), DecryptError> {
        let at = self.header_end() + kem.map_or(0, |kind| kind.len() + TAG_BYTES);
        let body = self.message.get(at..).ok_or(DecryptError::Malformed)?;
        if body.len() < TAG_BYTES {
            return Err(DecryptError::Malformed);
        }
        Ok((&self.message[..at - TAG_BYTES], body))
    }

    fn header_end(&self) -> usize {
        self.start + SALT_BYTES + SEALED_HEADER_BYTES
    }
}

/// Returns the header nonce of a message with this salt.
pub(super) fn header_nonce(salt: &[u8; SALT_BYTES]) -> [u8; 12] {
    *salt.first_chunk().expect("16 bytes hold 12")
}
