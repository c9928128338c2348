//! RSA key pairs of 2048 to 4096 bits, a multiple of 8, for [signatures](crate::sign::rsa) and
//! [encryption](crate::encrypt::rsa).
//!
//! AWS-LC checks the keys and computes with them. [Our code](generate) generates new ones where the
//! processor supports [`montgomery`], else AWS-LC does.
//!
//! Reading a key checks that:
//!
//! - all its numbers are present (RFC 8017 §A.1.2, with two primes) and consistent;
//! - the modulus has an allowed length;
//! - the public exponent is odd and has at most 33 bits;
//! - the private exponent is below the modulus.
//!
//! Private operations are blinded.
//!
//! RFC 8017 §3.2 allows several encodings of one private key. Either prime may be first. The
//! private exponent is any number below the modulus that inverts the public exponent. The number of
//! such exponents is the greatest common divisor of p - 1 and q - 1, or one more. (Old programs
//! reduce the private exponent modulo the product of p - 1 and q - 1, new programs modulo their
//! least common multiple.) A key is written as it was read.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::aws::{Digest, Owned, number, succeeded, write_number};
use crate::encoding::EncodingError;
use crate::encoding::der::Reader;
use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use crate::kernels::montgomery;

mod generate;
mod prime;
#[cfg(test)]
mod tests;
mod trial;

/// Bits of the shortest modulus.
pub const BITS_MIN: u32 = 2048;
/// Bits of the longest modulus.
pub const BITS_MAX: u32 = 4096;
/// Default bits of a modulus (128 bits of strength).
pub(crate) const BITS_DEFAULT: u32 = 3072;

/// The public exponent of new keys, 2^16 + 1.
const E: u64 = 65_537;

/// NULL, the algorithm parameters of RSA.
const PARAMETERS: [u8; 2] = [5, 0];
const IDENTIFIER: AlgorithmIdentifier<'static> =
    AlgorithmIdentifier { oid: oid::RSA, parameters: Some(&PARAMETERS) };

/// A key of AWS-LC and the size of its modulus in bytes.
struct Key {
    rsa: Owned<aws::RSA>,
    bytes: usize,
}

impl Key {
    /// Wraps `rsa` if its modulus has an allowed length.
    fn new(rsa: Owned<aws::RSA>) -> Option<Self> {
        // SAFETY: the key is alive.
        let (bits, bytes) = unsafe { (aws::RSA_bits(rsa.as_ptr()), aws::RSA_size(rsa.as_ptr())) };
        let fits = (BITS_MIN..=BITS_MAX).contains(&bits) && bits.is_multiple_of(8);
        fits.then_some(Self { rsa, bytes: bytes as usize })
    }

    /// Encodes the key with `write`, a function of AWS-LC.
    fn written(
        &self,
        write: unsafe extern "C" fn(*mut *mut u8, *mut usize, *const aws::RSA) -> i32,
    ) -> Zeroizing<Vec<u8>> {
        let (mut data, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the key is alive. The buffer written is ours, has `len` bytes, and is wiped when
        // freed.
        unsafe {
            let written = write(&mut data, &mut len, self.rsa.as_ptr());
            assert_eq!(written, 1, "a key that was read can be written");
            let bytes = Zeroizing::new(std::slice::from_raw_parts(data, len).to_vec());
            aws::OPENSSL_free(data.cast());
            bytes
        }
    }
}

/// A private key.
pub(crate) struct PrivateKey(Key);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("bytes", &self.0.bytes).finish_non_exhaustive()
    }
}

impl PrivateKey {
    /// Generates a key with a modulus of `bits` bits. Returns `None` if that length is not allowed
    /// or there is no memory.
    pub(crate) fn generate(bits: u32) -> Option<Self> {
        if !(BITS_MIN..=BITS_MAX).contains(&bits) || !bits.is_multiple_of(128) {
            return None;
        }
        let rsa = if montgomery::is_available() {
            generate::generate(bits as usize / 128)
        } else {
            generated_by_aws_lc(bits)
        };
        Key::new(rsa?).map(Self)
    }

    /// Parses an RSAPrivateKey (RFC 8017 §A.1.2, DER). Returns `None` if it is malformed, or its
    /// numbers are not consistent.
    pub(crate) fn from_pkcs1(der: &[u8]) -> Option<Self> {
        if !is_whole(der).is_ok_and(|is_whole| is_whole) {
            return None;
        }
        // SAFETY: `der` has the length passed.
        let rsa = unsafe { Owned::new(aws::RSA_private_key_from_bytes(der.as_ptr(), der.len())) }?;
        // SAFETY: the key is alive and has both numbers.
        let is_below = unsafe {
            let rsa = rsa.as_ptr();
            aws::BN_cmp(aws::RSA_get0_d(rsa), aws::RSA_get0_n(rsa)) < 0
        };
        is_below.then(|| Key::new(rsa)).flatten().map(Self)
    }

    /// Encodes the key as RSAPrivateKey.
    pub(crate) fn to_pkcs1(&self) -> Zeroizing<Vec<u8>> {
        self.0.written(aws::RSA_private_key_to_bytes)
    }

    /// Parses a key in PKCS #8.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let info = PrivateKeyInfo::from_der(der).ok()?;
        // RSAPrivateKey contains the public half; no software writes it a second time.
        let is_ours = info.algorithm == IDENTIFIER && info.public_key.is_none();
        is_ours.then(|| Self::from_pkcs1(info.private_key)).flatten()
    }

    /// Encodes the key as PKCS #8.
    pub(crate) fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        PrivateKeyInfo::new(IDENTIFIER, &self.to_pkcs1()).to_der()
    }

    /// Returns the public half.
    pub(crate) fn public(&self) -> PublicKey {
        // SAFETY: the key is alive and gets one more reference.
        let rsa = unsafe {
            aws::RSA_up_ref(self.0.rsa.as_ptr());
            Owned::new(self.0.rsa.as_ptr())
        };
        PublicKey(Key { rsa: rsa.expect("the pointer is not null"), bytes: self.0.bytes })
    }

    /// Returns a PSS signature over `hash`, with a salt of the length of the hash (RFC 8017 §8.1).
    pub(crate) fn sign_pss(&self, digest: Digest, hash: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.0.bytes];
        let (out, max, mut len) = (signature.as_mut_ptr(), signature.len(), 0);
        let (rsa, md) = (self.0.rsa.as_ptr(), digest.evp());
        let (data, data_len) = (hash.as_ptr(), hash.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed. −1 selects a salt as
        // long as the hash.
        let made =
            unsafe { aws::RSA_sign_pss_mgf1(rsa, &mut len, out, max, data, data_len, md, md, -1) };
        (succeeded(made) && len == max).then_some(signature)
    }

    /// Returns a PKCS #1 v1.5 signature over `hash` (RFC 8017 §8.2).
    pub(crate) fn sign_pkcs1(&self, digest: Digest, hash: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.0.bytes];
        let (out, mut len) = (signature.as_mut_ptr(), 0);
        // SAFETY: the key is alive, `hash` has the length passed, and `signature` that of the
        // modulus.
        let made = unsafe {
            let (data, data_len) = (hash.as_ptr(), hash.len());
            aws::RSA_sign(digest.nid(), data, data_len, out, &mut len, self.0.rsa.as_ptr())
        };
        (succeeded(made) && len as usize == signature.len()).then_some(signature)
    }

    /// Returns `block` to the power of the private exponent.
    ///
    /// Returns `None` if `block` has not the length of the modulus n, or is not from 2 to n - 2.
    /// AWS-LC does not compute the trivial powers.
    pub(crate) fn raise(&self, block: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut raised = Zeroizing::new(vec![0; self.0.bytes]);
        let (out, max, mut len) = (raised.as_mut_ptr(), raised.len(), 0);
        let (data, data_len) = (block.as_ptr(), block.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed.
        let made = unsafe {
            let (rsa, padding) = (self.0.rsa.as_ptr(), aws::RSA_NO_PADDING);
            aws::RSA_decrypt(rsa, &mut len, out, max, data, data_len, padding)
        };
        (succeeded(made) && len == max).then_some(raised)
    }

    /// Returns the private exponent, as long as the modulus.
    pub(crate) fn private_exponent(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.0.bytes]);
        // SAFETY: the key is alive and has a private exponent.
        let fits = unsafe { write_number(aws::RSA_get0_d(self.0.rsa.as_ptr()), &mut bytes) };
        assert!(fits, "the private exponent is below the modulus");
        bytes
    }

    /// Decrypts `ciphertext` with OAEP (RFC 8017 §7.1.2) of `digest` and `label`.
    pub(crate) fn open_oaep(
        &self,
        digest: Digest,
        label: &[u8],
        ciphertext: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut text = Zeroizing::new(vec![0; self.0.bytes]);
        let mut len = text.len();
        // SAFETY: the objects are alive, and the buffers have the lengths passed. The context has
        // its own references to the objects, and to a copy of the label.
        let opened = unsafe {
            let pkey = Owned::new(aws::EVP_PKEY_new())?;
            let is_set = aws::EVP_PKEY_set1_RSA(pkey.as_ptr(), self.0.rsa.as_ptr()) == 1;
            let context = Owned::new(aws::EVP_PKEY_CTX_new(pkey.as_ptr(), ptr::null_mut()))?;
            let context = context.as_ptr();
            let padding = aws::RSA_PKCS1_OAEP_PADDING;
            let (out, data) = (text.as_mut_ptr(), ciphertext.as_ptr());
            is_set
                && aws::EVP_PKEY_decrypt_init(context) == 1
                && aws::EVP_PKEY_CTX_set_rsa_padding(context, padding) == 1
                && aws::EVP_PKEY_CTX_set_rsa_oaep_md(context, digest.evp()) == 1
                && aws::EVP_PKEY_CTX_set_rsa_mgf1_md(context, digest.evp()) == 1
                && set_label(context, label)
                && aws::EVP_PKEY_decrypt(context, out, &mut len, data, ciphertext.len()) == 1
        };
        if !succeeded(opened.into()) {
            return None;
        }
        text.truncate(len);
        Some(text)
    }
}

/// Returns whether `der` is the RSAPrivateKey of a key with two primes, none of its numbers is
/// zero, and the private exponent is no longer than the modulus.
///
/// AWS-LC also accepts a modulus and a private exponent with six zeros, as Java strips keys. Such a
/// key cannot be checked, is used without blinding, and has no public half.
fn is_whole(der: &[u8]) -> Result<bool, EncodingError> {
    let mut reader = Reader::of_sequence(der)?;
    let version = reader.small()?;
    let mut number = || reader.unsigned();
    let [n, e, d] = [number()?, number()?, number()?];
    let [p, q, d_p, d_q, q_inverse] = [number()?, number()?, number()?, number()?, number()?];
    reader.finish()?;
    let has_all = [n, e, d, p, q, d_p, d_q, q_inverse].iter().all(|number| !number.is_empty());
    Ok(version == 0 && has_all && d.len() <= n.len())
}

/// Generates a key with AWS-LC.
fn generated_by_aws_lc(bits: u32) -> Option<Owned<aws::RSA>> {
    let exponent = number(&E.to_be_bytes())?;
    // SAFETY: the key is new and ours, and the number is alive.
    unsafe {
        let rsa = Owned::new(aws::RSA_new())?;
        let (key, bits) = (rsa.as_ptr(), bits as i32);
        let made = aws::RSA_generate_key_ex(key, bits, exponent.as_ptr(), ptr::null_mut());
        succeeded(made).then_some(rsa)
    }
}

/// Returns `number` modulo [`E`]. Modulo `E`, 2^16 is -1, and 2^32 and 2^64 are 1.
fn modulo_e(number: &[u64]) -> u64 {
    let halves: u64 = number.iter().map(|limb| (limb >> 32) + (limb & 0xffff_ffff)).sum();
    halves % E
}

/// Gives `context` a copy of `label`.
///
/// # Safety
/// `context` is a live context of RSA-OAEP.
unsafe fn set_label(context: *mut aws::EVP_PKEY_CTX, label: &[u8]) -> bool {
    if label.is_empty() {
        return true;
    }
    // SAFETY: `label` has the length passed. If the context accepts the copy, it owns it; otherwise
    // we free it.
    unsafe {
        let copy: *mut u8 = aws::OPENSSL_memdup(label.as_ptr().cast(), label.len()).cast();
        let is_set = !copy.is_null()
            && aws::EVP_PKEY_CTX_set0_rsa_oaep_label(context, copy, label.len()) == 1;
        if !is_set {
            aws::OPENSSL_free(copy.cast());
        }
        is_set
    }
}

/// A public key.
pub(crate) struct PublicKey(Key);

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("bytes", &self.0.bytes).finish_non_exhaustive()
    }
}

impl PublicKey {
    /// Parses an RSAPublicKey (RFC 8017 §A.1.1, DER).
    pub(crate) fn from_pkcs1(der: &[u8]) -> Option<Self> {
        Reader::of_sequence(der).ok()?;
        // SAFETY: `der` has the length passed.
        let rsa = unsafe { Owned::new(aws::RSA_public_key_from_bytes(der.as_ptr(), der.len())) };
        Key::new(rsa?).map(Self)
    }

    /// Encodes the key as RSAPublicKey.
    pub(crate) fn to_pkcs1(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.written(aws::RSA_public_key_to_bytes))
    }

    /// Parses a key in a SubjectPublicKeyInfo.
    pub(crate) fn from_spki(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::from_der(der).ok()?;
        (info.algorithm == IDENTIFIER).then(|| Self::from_pkcs1(info.key)).flatten()
    }

    /// Encodes the key as SubjectPublicKeyInfo.
    pub(crate) fn to_spki(&self) -> Vec<u8> {
        SubjectPublicKeyInfo { algorithm: IDENTIFIER, key: &self.to_pkcs1() }.to_der()
    }

    /// Returns whether `signature` is a PSS signature over `hash`, with a salt of the length of the
    /// hash.
    pub(crate) fn verify_pss(&self, digest: Digest, hash: &[u8], signature: &[u8]) -> bool {
        let (rsa, md) = (self.0.rsa.as_ptr(), digest.evp());
        let (data, len) = (hash.as_ptr(), hash.len());
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed. −1 selects a salt as
        // long as the hash.
        succeeded(unsafe { aws::RSA_verify_pss_mgf1(rsa, data, len, md, md, -1, sig, sig_len) })
    }

    /// Returns whether `signature` is a PKCS #1 v1.5 signature over `hash`.
    pub(crate) fn verify_pkcs1(&self, digest: Digest, hash: &[u8], signature: &[u8]) -> bool {
        let (data, len) = (hash.as_ptr(), hash.len());
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        let rsa = self.0.rsa.as_ptr();
        // SAFETY: the key is alive, and the buffers have the lengths passed.
        succeeded(unsafe { aws::RSA_verify(digest.nid(), data, len, sig, sig_len, rsa) })
    }

    /// Returns the size of the modulus in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Encrypts `text` with OAEP of `digest` and `label`. `text` is at most as long as the modulus
    /// minus 2 hashes minus 2 bytes.
    pub(crate) fn seal_oaep(&self, digest: Digest, label: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let mut padded = Zeroizing::new(vec![0; self.0.bytes]);
        let (to, to_len) = (padded.as_mut_ptr(), padded.len());
        let (from, from_len, md) = (text.as_ptr(), text.len(), digest.evp());
        let (param, param_len) = (label.as_ptr(), label.len());
        // SAFETY: the buffers have the lengths passed.
        let is_padded = succeeded(unsafe {
            aws::RSA_padding_add_PKCS1_OAEP_mgf1(
                to, to_len, from, from_len, param, param_len, md, md,
            )
        });
        is_padded.then(|| self.encrypt(&padded, aws::RSA_NO_PADDING)).flatten()
    }

    /// Encrypts `text` with PKCS #1 v1.5. `text` is at most as long as the modulus minus 11 bytes.
    pub(crate) fn seal_pkcs1(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.encrypt(text, aws::RSA_PKCS1_PADDING)
    }

    fn encrypt(&self, text: &[u8], padding: i32) -> Option<Vec<u8>> {
        let mut sealed = vec![0; self.0.bytes];
        let (out, max, mut len) = (sealed.as_mut_ptr(), sealed.len(), 0);
        let (data, data_len) = (text.as_ptr(), text.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed.
        let made = unsafe {
            let rsa = self.0.rsa.as_ptr();
            aws::RSA_encrypt(rsa, &mut len, out, max, data, data_len, padding)
        };
        (succeeded(made) && len == max).then_some(sealed)
    }
}
