//! RSA keys (RFC 8017) with two primes. Private operations are blinded. `None` means an input that
//! is no key, a length that does not fit the key, or no memory.
//!
//! AWS-LC checks that all numbers of a private key are present and consistent.

use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::hash::Digest;
use crate::object::{Owned, number, succeeded, write_number};

/// A key: a public key, or both halves.
pub struct Key(Owned<aws::RSA>);

impl Key {
    /// Generates a key with a modulus of `bits` bits and the public exponent `exponent`.
    #[must_use]
    pub fn generate(bits: u32, exponent: u64) -> Option<Self> {
        let exponent = number(&exponent.to_be_bytes())?;
        // SAFETY: the key is new and ours, and the number is alive.
        unsafe {
            let rsa = Owned::new(aws::RSA_new())?;
            let (key, bits) = (rsa.as_ptr(), i32::try_from(bits).ok()?);
            let made = aws::RSA_generate_key_ex(key, bits, exponent.as_ptr(), ptr::null_mut());
            succeeded(made).then_some(Self(rsa))
        }
    }

    /// Parses an RSAPrivateKey (RFC 8017 §A.1.2, DER).
    ///
    /// AWS-LC also accepts a modulus and a private exponent with six zeros, as Java strips keys.
    /// Such a key cannot be checked, is used without blinding, and has no public half. The caller
    /// refuses them.
    #[must_use]
    pub fn from_private_der(der: &[u8]) -> Option<Self> {
        // SAFETY: `der` has the length passed.
        unsafe { Owned::new(aws::RSA_private_key_from_bytes(der.as_ptr(), der.len())) }.map(Self)
    }

    /// Parses an RSAPublicKey (RFC 8017 §A.1.1, DER).
    #[must_use]
    pub fn from_public_der(der: &[u8]) -> Option<Self> {
        // SAFETY: `der` has the length passed.
        unsafe { Owned::new(aws::RSA_public_key_from_bytes(der.as_ptr(), der.len())) }.map(Self)
    }

    /// Encodes a private key as RSAPrivateKey.
    #[must_use]
    pub fn to_private_der(&self) -> Zeroizing<Vec<u8>> {
        self.written(aws::RSA_private_key_to_bytes)
    }

    /// Encodes the public half as RSAPublicKey.
    #[must_use]
    pub fn to_public_der(&self) -> Zeroizing<Vec<u8>> {
        self.written(aws::RSA_public_key_to_bytes)
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
            let written = write(&mut data, &mut len, self.0.as_ptr());
            assert_eq!(written, 1, "a key that was read can be written");
            let bytes = Zeroizing::new(std::slice::from_raw_parts(data, len).to_vec());
            aws::OPENSSL_free(data.cast());
            bytes
        }
    }

    /// Returns another reference to the key.
    #[must_use]
    pub fn again(&self) -> Self {
        // SAFETY: the key is alive and gets one more reference.
        let rsa = unsafe {
            aws::RSA_up_ref(self.0.as_ptr());
            Owned::new(self.0.as_ptr())
        };
        Self(rsa.expect("the pointer is not null"))
    }

    /// Returns the length of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        // SAFETY: the key is alive.
        unsafe { aws::RSA_bits(self.0.as_ptr()) }
    }

    /// Returns the length of the modulus in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // SAFETY: the key is alive.
        unsafe { aws::RSA_size(self.0.as_ptr()) as usize }
    }

    /// Returns the private exponent of a private key, as long as the modulus. `None` if it is not
    /// below the modulus.
    #[must_use]
    pub fn private_exponent(&self) -> Option<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(vec![0; self.bytes()]);
        // SAFETY: the key is alive, and so are its numbers.
        let fits = unsafe {
            let (d, n) = (aws::RSA_get0_d(self.0.as_ptr()), aws::RSA_get0_n(self.0.as_ptr()));
            !d.is_null() && aws::BN_cmp(d, n) < 0 && write_number(d, &mut bytes)
        };
        fits.then_some(bytes)
    }

    /// Returns a PSS signature over `hash`, with a salt of the length of the hash (RFC 8017 §8.1).
    #[must_use]
    pub fn sign_pss(&self, digest: Digest, hash: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.bytes()];
        let (out, max, mut len) = (signature.as_mut_ptr(), signature.len(), 0);
        let (rsa, md) = (self.0.as_ptr(), digest.evp());
        let (data, data_len) = (hash.as_ptr(), hash.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed. −1 selects a salt as
        // long as the hash.
        let made =
            unsafe { aws::RSA_sign_pss_mgf1(rsa, &mut len, out, max, data, data_len, md, md, -1) };
        (succeeded(made) && len == max).then_some(signature)
    }

    /// Returns a PKCS #1 v1.5 signature over `hash` (RFC 8017 §8.2).
    #[must_use]
    pub fn sign_pkcs1(&self, digest: Digest, hash: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), 0);
        // SAFETY: the key is alive, `hash` has the length passed, and `signature` that of the
        // modulus.
        let made = unsafe {
            let (data, data_len) = (hash.as_ptr(), hash.len());
            aws::RSA_sign(digest.nid(), data, data_len, out, &mut len, self.0.as_ptr())
        };
        (succeeded(made) && len as usize == signature.len()).then_some(signature)
    }

    /// Returns whether `signature` is a PSS signature over `hash`, with a salt of the length of the
    /// hash.
    #[must_use]
    pub fn verify_pss(&self, digest: Digest, hash: &[u8], signature: &[u8]) -> bool {
        let (rsa, md) = (self.0.as_ptr(), digest.evp());
        let (data, len) = (hash.as_ptr(), hash.len());
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed. −1 selects a salt as
        // long as the hash.
        succeeded(unsafe { aws::RSA_verify_pss_mgf1(rsa, data, len, md, md, -1, sig, sig_len) })
    }

    /// Returns whether `signature` is a PKCS #1 v1.5 signature over `hash`.
    #[must_use]
    pub fn verify_pkcs1(&self, digest: Digest, hash: &[u8], signature: &[u8]) -> bool {
        let (data, len) = (hash.as_ptr(), hash.len());
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        let rsa = self.0.as_ptr();
        // SAFETY: the key is alive, and the buffers have the lengths passed.
        succeeded(unsafe { aws::RSA_verify(digest.nid(), data, len, sig, sig_len, rsa) })
    }

    /// Returns `block` to the power of the private exponent. `None` if `block` has not the length
    /// of the modulus n, or is not from 2 to n - 2: AWS-LC does not compute the trivial powers.
    #[must_use]
    pub fn raise(&self, block: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut raised = Zeroizing::new(vec![0; self.bytes()]);
        let (out, max, mut len) = (raised.as_mut_ptr(), raised.len(), 0);
        let (data, data_len) = (block.as_ptr(), block.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed.
        let made = unsafe {
            let (rsa, padding) = (self.0.as_ptr(), aws::RSA_NO_PADDING);
            aws::RSA_decrypt(rsa, &mut len, out, max, data, data_len, padding)
        };
        (succeeded(made) && len == max).then_some(raised)
    }

    /// Decrypts `ciphertext` with OAEP (RFC 8017 §7.1.2) of `digest` and `label`.
    #[must_use]
    pub fn open_oaep(
        &self,
        digest: Digest,
        label: &[u8],
        ciphertext: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut text = Zeroizing::new(vec![0; self.bytes()]);
        let mut len = text.len();
        // SAFETY: the objects are alive, and the buffers have the lengths passed. The context has
        // its own references to the objects, and to a copy of the label.
        let opened = unsafe {
            let pkey = Owned::new(aws::EVP_PKEY_new())?;
            let is_set = aws::EVP_PKEY_set1_RSA(pkey.as_ptr(), self.0.as_ptr()) == 1;
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

    /// Encrypts `text` with OAEP of `digest` and `label`. `text` is at most as long as the modulus
    /// minus 2 hashes minus 2 bytes.
    #[must_use]
    pub fn seal_oaep(&self, digest: Digest, label: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let mut padded = Zeroizing::new(vec![0; self.bytes()]);
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
    #[must_use]
    pub fn seal_pkcs1(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.encrypt(text, aws::RSA_PKCS1_PADDING)
    }

    fn encrypt(&self, text: &[u8], padding: i32) -> Option<Vec<u8>> {
        let mut sealed = vec![0; self.bytes()];
        let (out, max, mut len) = (sealed.as_mut_ptr(), sealed.len(), 0);
        let (data, data_len) = (text.as_ptr(), text.len());
        // SAFETY: the key is alive, and the buffers have the lengths passed.
        let made = unsafe {
            let rsa = self.0.as_ptr();
            aws::RSA_encrypt(rsa, &mut len, out, max, data, data_len, padding)
        };
        (succeeded(made) && len == max).then_some(sealed)
    }
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
