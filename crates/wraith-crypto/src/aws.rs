//! Owned objects of AWS-LC, and functions of AWS-LC that several families of algorithms call.
//!
//! Only keys outlive a call, and keys do not change once created. AWS-LC keeps caches inside keys,
//! and locks those caches itself.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use aws_lc_sys as aws;

/// A type that AWS-LC allocates and frees.
///
/// # Safety
/// `release` has to free the object, or drop the one reference passed to it, from any thread.
/// Reading the object from several threads has to be sound.
pub(crate) unsafe trait Object {
    /// # Safety
    /// `object` points to a live object, and the caller does not use this reference again.
    unsafe fn release(object: *mut Self);
}

macro_rules! objects {
    ($($name:ident: $free:ident),+ $(,)?) => {$(
        // SAFETY: AWS-LC counts references atomically. Its functions that read an object are
        // thread-safe.
        unsafe impl Object for aws::$name {
            unsafe fn release(object: *mut Self) {
                // SAFETY: the caller upholds the contract of `release`, which is the same.
                unsafe { aws::$free(object) }
            }
        }
    )+};
}

objects! {
    BIGNUM: BN_clear_free,
    ECDSA_SIG: ECDSA_SIG_free,
    EC_KEY: EC_KEY_free,
    EC_POINT: EC_POINT_free,
    EVP_MD_CTX: EVP_MD_CTX_free,
    EVP_PKEY: EVP_PKEY_free,
    EVP_PKEY_CTX: EVP_PKEY_CTX_free,
    RSA: RSA_free,
}

/// One reference to an object of AWS-LC.
pub(crate) struct Owned<T: Object>(NonNull<T>);

// SAFETY: the object is only read, which `Object` guarantees to be sound from any thread, and the
// reference count is atomic.
unsafe impl<T: Object> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T: Object> Sync for Owned<T> {}

impl<T: Object> Owned<T> {
    /// Takes ownership of the reference `made`. If it is null, clears the error queue and returns
    /// `None`.
    ///
    /// # Safety
    /// `made` is null, or an owned reference to a live object.
    pub(crate) unsafe fn new(made: *mut T) -> Option<Self> {
        let made = NonNull::new(made);
        if made.is_none() {
            forget_errors();
        }
        made.map(Self)
    }

    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Object> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the object is live, and not used after this call.
        unsafe { T::release(self.0.as_ptr()) }
    }
}

/// Clears this thread's error queue, so that other users of AWS-LC do not find the errors of this
/// crate in it.
pub(crate) fn forget_errors() {
    // SAFETY: the function has no preconditions.
    unsafe { aws::ERR_clear_error() }
}

/// Returns whether this thread's error queue has an entry.
#[cfg(test)]
pub(crate) fn has_errors() -> bool {
    // SAFETY: the function has no preconditions.
    unsafe { aws::ERR_peek_error() != 0 }
}

/// Returns whether `code` means success. Otherwise clears the error queue: callers have their own
/// errors.
#[must_use]
pub(crate) fn succeeded(code: i32) -> bool {
    if code != 1 {
        forget_errors();
    }
    code == 1
}

/// Converts big-endian `bytes` into a number. Returns `None` if out of memory.
pub(crate) fn number(bytes: &[u8]) -> Option<Owned<aws::BIGNUM>> {
    // SAFETY: `bytes` has the length passed. For a null pointer AWS-LC allocates a new number.
    unsafe { Owned::new(aws::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut())) }
}

/// Writes `number` to `bytes`, big-endian, with leading zeros. Returns whether it fits.
///
/// # Safety
/// `number` is a live number.
#[must_use]
pub(crate) unsafe fn write_number(number: *const aws::BIGNUM, bytes: &mut [u8]) -> bool {
    // SAFETY: the caller guarantees that `number` is live, and `bytes` has the length passed.
    succeeded(unsafe { aws::BN_bn2bin_padded(bytes.as_mut_ptr(), bytes.len(), number) })
}

/// Hash functions used by signatures and public-key encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    /// Returns AWS-LC's description of the hash function, which is static.
    pub(crate) fn evp(self) -> *const aws::EVP_MD {
        // SAFETY: these functions have no preconditions.
        unsafe {
            match self {
                Self::Sha1 => aws::EVP_sha1(),
                Self::Sha224 => aws::EVP_sha224(),
                Self::Sha256 => aws::EVP_sha256(),
                Self::Sha384 => aws::EVP_sha384(),
                Self::Sha512 => aws::EVP_sha512(),
            }
        }
    }

    pub(crate) const fn nid(self) -> i32 {
        match self {
            Self::Sha1 => aws::NID_sha1,
            Self::Sha224 => aws::NID_sha224,
            Self::Sha256 => aws::NID_sha256,
            Self::Sha384 => aws::NID_sha384,
            Self::Sha512 => aws::NID_sha512,
        }
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Hashes `message`. Returns a buffer and the length of the digest at its start.
    pub(crate) fn of(self, message: &[u8]) -> ([u8; 64], usize) {
        let mut hash = [0; 64];
        // SAFETY: the functions write at most 64 bytes to `hash`, and `message` has the length
        // passed.
        unsafe {
            let (data, len, out) = (message.as_ptr(), message.len(), hash.as_mut_ptr());
            match self {
                Self::Sha1 => aws::SHA1(data, len, out),
                Self::Sha224 => aws::SHA224(data, len, out),
                Self::Sha256 => aws::SHA256(data, len, out),
                Self::Sha384 => aws::SHA384(data, len, out),
                Self::Sha512 => aws::SHA512(data, len, out),
            }
        };
        (hash, self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_fips_180_4() {
        let hex = data_encoding::HEXLOWER;
        let of = |digest: Digest| {
            let (hash, len) = digest.of(b"abc");
            hex.encode(&hash[..len])
        };
        assert_eq!(of(Digest::Sha1), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(of(Digest::Sha224)[..16], *"23097d223405d822");
        assert_eq!(of(Digest::Sha256)[..16], *"ba7816bf8f01cfea");
        assert_eq!(of(Digest::Sha384)[..16], *"cb00753f45a35e8b");
        assert_eq!(of(Digest::Sha512)[..16], *"ddaf35a193617aba");
    }

    #[test]
    fn a_failure_leaves_no_error_for_others_to_find() {
        // SAFETY: with length zero, the null pointer is not read. The empty input is not a key.
        let none = unsafe { Owned::new(aws::RSA_private_key_from_bytes(ptr::null(), 0)) };
        assert!(none.is_none() && !has_errors());
        assert!(number(&[1, 2]).is_some_and(|n| {
            // SAFETY: the number is live.
            let [long, short] =
                [3, 1].map(|len| unsafe { write_number(n.as_ptr(), &mut vec![0; len]) });
            long && !short
        }));
        assert!(!has_errors());
    }
}
