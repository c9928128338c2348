//! RSA encryption of PKCS #1 v1.5 (RFC 8017 §7.2), for old formats without an alternative. New
//! formats should use OAEP or HPKE.
//!
//! An attacker that can distinguish valid from invalid padding can decrypt (Bleichenbacher, 1998).
//! So decryption never reports invalid padding. Instead it returns bytes that depend on the
//! ciphertext and the key, and that look random in content and length (implicit rejection,
//! draft-irtf-cfrg-rsa-guidance §7). The application has to recognise a genuine message by its
//! content.

use wraith_aws_lc::hash::Digest;
use zeroize::Zeroizing;

use super::{Algorithm, EncryptError};
use crate::hash::Sha256;
use crate::mac::Hmac;
use crate::rsa;

/// Least number of padding bytes: 0, 2, eight nonzero bytes, 0.
const PADDING_MIN: usize = 11;
const INVALID: EncryptError = EncryptError::InvalidKey { algorithm: Algorithm::RsaPkcs1 };
const FAILED: EncryptError = EncryptError::Failed { algorithm: Algorithm::RsaPkcs1 };

/// A private key.
pub struct DecryptionKey {
    key: rsa::PrivateKey,
    /// Key from which the results for invalid paddings are derived.
    rejection: Hmac<Sha256>,
}

wraith_crypto::redacted_debug!(DecryptionKey);

impl DecryptionKey {
    /// Generates a key with a modulus of `bits`, a multiple of 128 from
    /// [`BITS_MIN`](super::rsa::BITS_MIN) to [`BITS_MAX`](super::rsa::BITS_MAX).
    pub fn generate(bits: u32) -> Result<Self, EncryptError> {
        rsa::PrivateKey::generate(bits).map(Self::new).ok_or(FAILED)
    }

    /// Parses a key in PKCS #8 (DER).
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, EncryptError> {
        rsa::PrivateKey::from_pkcs8(der).map(Self::new).ok_or(INVALID)
    }

    fn new(key: rsa::PrivateKey) -> Self {
        let exponent = key.private_exponent().expect("a private key has an exponent");
        let (hash, len) = Digest::Sha256.of(&exponent);
        let hash = Zeroizing::new(hash);
        Self { rejection: Hmac::new(&hash[..len]), key }
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> EncryptionKey {
        EncryptionKey(self.key.public())
    }
}

impl super::DecryptionKey for DecryptionKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RsaPkcs1
    }

    /// Decrypts `ciphertext`. If its padding is invalid, returns unpredictable bytes instead.
    ///
    /// # Errors
    /// [`EncryptError::Unopened`] if `ciphertext` does not have the length of the modulus n, or is
    /// not a number from 2 to n - 2. No message encrypts to such a value.
    fn decrypt(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, EncryptError> {
        let padded = self.key.raise(ciphertext).ok_or(EncryptError::Unopened)?;
        let len = padded.len();
        let derived = Hmac::new(&*tag(&self.rejection, &[ciphertext]));
        let mut chosen = stretched(&derived, b"message", len);
        let start = rejected_start(&derived, len);

        // Finds the first zero from the third byte on, in constant time.
        let (mut zero_at, mut is_found) = (0, 0);
        for (at, &byte) in padded.iter().enumerate().skip(2) {
            let is_first = is_zero(byte) & !is_found;
            zero_at |= at & is_first;
            is_found |= is_zero(byte);
        }
        let is_far = is_less(PADDING_MIN - 2, zero_at);
        let is_good = is_zero(padded[0]) & is_zero(padded[1] ^ 2) & is_found & is_far;
        for (chosen, byte) in chosen.iter_mut().zip(&*padded) {
            let mask = is_good as u8;
            *chosen = *chosen & !mask | byte & mask;
        }
        let start = start & !is_good | (zero_at + 1) & is_good;
        Ok(Zeroizing::new(chosen[start..].to_vec()))
    }

    fn encryption_key(&self) -> Box<dyn super::EncryptionKey> {
        Box::new(self.public())
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.key.to_pkcs8()
    }
}

/// A public key.
#[derive(Debug)]
pub struct EncryptionKey(rsa::PublicKey);

impl EncryptionKey {
    /// Parses a key in SubjectPublicKeyInfo (DER).
    pub fn from_spki(der: &[u8]) -> Result<Self, EncryptError> {
        rsa::PublicKey::from_spki(der).map(Self).ok_or(INVALID)
    }
}

impl super::EncryptionKey for EncryptionKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RsaPkcs1
    }

    fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, EncryptError> {
        let (found, max) = (message.len(), self.message_max());
        if found > max {
            return Err(EncryptError::TooLong { found, max });
        }
        self.0.seal_pkcs1(message).ok_or(FAILED)
    }

    fn message_max(&self) -> usize {
        self.0.bytes() - PADDING_MIN
    }

    fn to_spki(&self) -> Vec<u8> {
        self.0.to_spki()
    }
}

/// Returns the tag of a message under a prepared key.
fn tag(key: &Hmac<Sha256>, message: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let (mut mac, mut tag) = (key.clone(), Zeroizing::new([0; 32]));
    message.iter().for_each(|part| mac.update(part));
    mac.finish(&mut *tag);
    tag
}

/// Derives `len` bytes from `key` for `label`: the IRPRF of the draft.
fn stretched(key: &Hmac<Sha256>, label: &[u8], len: usize) -> Zeroizing<Vec<u8>> {
    let bits = u16::try_from(8 * len).expect("a modulus is short").to_be_bytes();
    let mut bytes = Zeroizing::new(Vec::with_capacity(len + 32));
    for i in 0.. {
        if bytes.len() >= len {
            break;
        }
        let number = u16::to_be_bytes(i);
        let block = tag(key, &[&number, label, &bits]);
        bytes.extend_from_slice(&*block);
    }
    bytes.truncate(len);
    bytes
}

/// Returns the start of the synthetic message in `len` bytes. Its length is the last of 128 derived
/// numbers that is small enough.
fn rejected_start(key: &Hmac<Sha256>, len: usize) -> usize {
    let longest = len - 10;
    let mask = longest.next_power_of_two() - 1;
    let mut chosen = 0;
    for pair in stretched(key, b"length", 256).chunks_exact(2) {
        let candidate = usize::from(u16::from_be_bytes([pair[0], pair[1]])) & mask;
        let fits = is_less(candidate, longest);
        chosen = chosen & !fits | candidate & fits;
    }
    len - chosen
}

/// Returns all ones if `byte` is zero, else 0.
fn is_zero(byte: u8) -> usize {
    (usize::from(byte).wrapping_sub(1) as isize >> (usize::BITS - 1)) as usize
}

/// Returns all ones if `a < b`, else 0. Both have to be small.
fn is_less(a: usize, b: usize) -> usize {
    (a.wrapping_sub(b) as isize >> (usize::BITS - 1)) as usize
}
