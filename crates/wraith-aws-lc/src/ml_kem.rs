//! ML-KEM (FIPS 203). A secret key is its 64-byte seed d ‖ z. The caller passes all randomness in.

use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::object::{Owned, succeeded};

/// Length of a key's seed in bytes.
pub const SEED_BYTES: usize = 64;
/// Length of an encapsulation seed in bytes.
pub const ENCAPSULATION_SEED_BYTES: usize = 32;
/// Length of a shared secret in bytes.
pub const SECRET_BYTES: usize = 32;
/// Maximum length of an expanded key in bytes: ML-KEM-1024's.
const EXPANDED_MAX: usize = 3168;

/// A parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// ML-KEM-512, security category 1.
    MlKem512,
    /// ML-KEM-768, security category 3.
    MlKem768,
    /// ML-KEM-1024, security category 5.
    MlKem1024,
}

impl Set {
    /// Returns the length of an encapsulation key in bytes.
    #[must_use]
    pub const fn encapsulation_key_bytes(self) -> usize {
        match self {
            Self::MlKem512 => 800,
            Self::MlKem768 => 1184,
            Self::MlKem1024 => 1568,
        }
    }

    /// Returns the length of a ciphertext in bytes.
    #[must_use]
    pub const fn ciphertext_bytes(self) -> usize {
        match self {
            Self::MlKem512 => 768,
            Self::MlKem768 => 1088,
            Self::MlKem1024 => 1568,
        }
    }

    const fn nid(self) -> i32 {
        match self {
            Self::MlKem512 => aws::NID_MLKEM512,
            Self::MlKem768 => aws::NID_MLKEM768,
            Self::MlKem1024 => aws::NID_MLKEM1024,
        }
    }

    /// Creates a public key from `bytes`.
    ///
    /// # Panics
    /// If the length is not that of the parameter set.
    #[must_use]
    pub fn public(self, bytes: &[u8]) -> PublicKey {
        assert_eq!(
            bytes.len(),
            self.encapsulation_key_bytes(),
            "the caller has checked the length"
        );
        let (data, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` has the length passed, and AWS-LC copies it.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_kem_new_raw_public_key(self.nid(), data, len)) };
        PublicKey(key.expect("AWS-LC checks only the length, which is right"))
    }

    /// Creates a key pair from `seed`.
    #[must_use]
    pub fn secret(self, seed: &[u8; SEED_BYTES]) -> SecretKey {
        let (mut key, mut seed_len) = (ptr::null_mut(), seed.len());
        // SAFETY: a null engine is allowed, the context is live, and `seed` has `seed_len` bytes.
        // `key` is null, so AWS-LC stores a new key there.
        let key = unsafe {
            let none = ptr::null_mut();
            let context = Owned::new(aws::EVP_PKEY_CTX_new_id(aws::EVP_PKEY_KEM, none));
            let context = context.expect("there is memory");
            let context = context.as_ptr();
            let is_ready = aws::EVP_PKEY_CTX_kem_set_params(context, self.nid()) == 1
                && aws::EVP_PKEY_keygen_init(context) == 1;
            assert!(is_ready, "AWS-LC has ML-KEM");
            let seed = seed.as_ptr();
            let made = aws::EVP_PKEY_keygen_deterministic(context, &mut key, seed, &mut seed_len);
            assert_eq!(made, 1, "a seed of this length has a key");
            Owned::new(key)
        };
        SecretKey(key.expect("there is a key where one was made"))
    }
}

/// A public key.
pub struct PublicKey(Owned<aws::EVP_PKEY>);

impl PublicKey {
    /// Writes the ciphertext and the shared secret for `seed`. Returns false if a coefficient of
    /// the key is not below the modulus (FIPS 203 §7.2). The buffers must have the lengths of the
    /// parameter set.
    #[must_use]
    pub fn encapsulate(
        &self,
        seed: &[u8; ENCAPSULATION_SEED_BYTES],
        ciphertext: &mut [u8],
        secret: &mut [u8; SECRET_BYTES],
    ) -> bool {
        let context = context(&self.0);
        let (mut ciphertext_len, mut secret_len) = (ciphertext.len(), secret.len());
        let mut seed_len = seed.len();
        // SAFETY: the context is live, and each pointer is passed with its length.
        let made = unsafe {
            aws::EVP_PKEY_encapsulate_deterministic(
                context.as_ptr(),
                ciphertext.as_mut_ptr(),
                &mut ciphertext_len,
                secret.as_mut_ptr(),
                &mut secret_len,
                seed.as_ptr(),
                &mut seed_len,
            )
        };
        let is_whole = (ciphertext_len, secret_len) == (ciphertext.len(), secret.len());
        succeeded(made) && is_whole
    }
}

/// A key pair. AWS-LC wipes memory that it frees.
pub struct SecretKey(Owned<aws::EVP_PKEY>);

impl SecretKey {
    /// Writes the encapsulation key to `bytes`, which must have its length.
    pub fn write_public(&self, bytes: &mut [u8]) {
        let (key, mut len) = (self.0.as_ptr(), bytes.len());
        // SAFETY: the key is live, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_public_key(key, bytes.as_mut_ptr(), &mut len) };
        assert_eq!((written, len), (1, bytes.len()), "a key from a seed has both halves");
    }

    /// Returns the expanded key of FIPS 203.
    #[must_use]
    pub fn expanded(&self) -> Zeroizing<Vec<u8>> {
        let (key, mut len) = (self.0.as_ptr(), EXPANDED_MAX);
        let mut bytes = Zeroizing::new(vec![0; len]);
        // SAFETY: the key is live, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_private_key(key, bytes.as_mut_ptr(), &mut len) };
        assert!(written == 1 && len <= EXPANDED_MAX, "a key from a seed has both halves");
        bytes.truncate(len);
        bytes
    }

    /// Returns the shared secret in `ciphertext`, which must have the length of the parameter set.
    ///
    /// # Panics
    /// If the length is another one.
    #[must_use]
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Zeroizing<[u8; SECRET_BYTES]> {
        let context = context(&self.0);
        let (mut secret, mut len) = (Zeroizing::new([0; SECRET_BYTES]), SECRET_BYTES);
        // SAFETY: the context is live, `ciphertext` has the length passed, and `secret` has room
        // for `len` bytes. AWS-LC only reads the ciphertext; some of its bindings lack the const.
        let opened = unsafe {
            aws::EVP_PKEY_decapsulate(
                context.as_ptr(),
                secret.as_mut_ptr(),
                &mut len,
                ciphertext.as_ptr().cast_mut(),
                ciphertext.len(),
            )
        };
        assert_eq!(
            (opened, len),
            (1, SECRET_BYTES),
            "every ciphertext of this length has a secret"
        );
        secret
    }
}

/// Creates a context for one operation with `key`; it holds its own reference to the key.
fn context(key: &Owned<aws::EVP_PKEY>) -> Owned<aws::EVP_PKEY_CTX> {
    // SAFETY: the key is live, and a null engine is allowed.
    let context = unsafe { Owned::new(aws::EVP_PKEY_CTX_new(key.as_ptr(), ptr::null_mut())) };
    context.expect("there is memory")
}
