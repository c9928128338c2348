//! Owned objects of AWS-LC, numbers, and the thread's error queue.
//!
//! Only keys and states of hash functions outlive a call. Keys do not change once created; AWS-LC
//! keeps caches inside keys, and locks those caches itself. States change only through `&mut`.

#[cfg(feature = "suite")]
use std::ptr;
use std::ptr::NonNull;

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
    BN_CTX: BN_CTX_free,
    BN_MONT_CTX: BN_MONT_CTX_free,
    CTR_DRBG_STATE: CTR_DRBG_free,
    ECDSA_SIG: ECDSA_SIG_free,
    EC_GROUP: EC_GROUP_free,
    EC_KEY: EC_KEY_free,
    EC_POINT: EC_POINT_free,
    EVP_AEAD_CTX: EVP_AEAD_CTX_free,
    EVP_CIPHER_CTX: EVP_CIPHER_CTX_free,
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

    /// Gives the reference away: the caller passes it to another owner.
    #[cfg(feature = "suite")]
    pub(crate) fn into_ptr(self) -> *mut T {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
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
#[cfg(feature = "suite")]
pub(crate) fn number(bytes: &[u8]) -> Option<Owned<aws::BIGNUM>> {
    // SAFETY: `bytes` has the length passed. For a null pointer AWS-LC allocates a new number.
    unsafe { Owned::new(aws::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut())) }
}

/// Writes `number` to `bytes`, big-endian, with leading zeros. Returns whether it fits.
///
/// # Safety
/// `number` is a live number.
#[cfg(feature = "suite")]
#[must_use]
pub(crate) unsafe fn write_number(number: *const aws::BIGNUM, bytes: &mut [u8]) -> bool {
    // SAFETY: the caller guarantees that `number` is live, and `bytes` has the length passed.
    succeeded(unsafe { aws::BN_bn2bin_padded(bytes.as_mut_ptr(), bytes.len(), number) })
}
