#![deny(missing_docs)]
#![allow(missing_debug_implementations, reason = "keys; callers wrap them")]
//! The functions of AWS-LC's C interface that wraith needs, behind safe functions and types that
//! free themselves. This is the only crate of wraith that names `aws_lc_sys`.
//!
//! aws-lc-rs does not expose all of these functions, or draws the randomness itself where wraith
//! passes it in. Nothing is computed here: each function checks what its `SAFETY` comments need,
//! calls AWS-LC, and clears the thread's error queue after a failure, so that other users of AWS-LC
//! do not find errors of this crate in it.
//!
//! Without the feature `suite`, only the functions of a transfer are compiled: AEADs, SHA-256,
//! X25519, Ed25519, ML-KEM and randomness.

pub mod aead;
#[cfg(feature = "suite")]
pub mod bignum;
#[cfg(feature = "suite")]
pub mod ctr_drbg;
#[cfg(feature = "suite")]
pub mod ec;
pub mod ed25519;
#[cfg(feature = "suite")]
pub mod gmac;
pub mod hash;
#[cfg(feature = "suite")]
pub mod keccak;
#[cfg(feature = "suite")]
pub mod key_wrap;
#[cfg(feature = "suite")]
pub mod ml_dsa;
pub mod ml_kem;
mod object;
pub mod rand;
#[cfg(feature = "reference")]
pub mod reference;
#[cfg(feature = "suite")]
pub mod rsa;
pub mod x25519;

/// Returns whether `a` and `b` are equal. The time depends only on their lengths.
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    // SAFETY: both have the length passed.
    a.len() == b.len()
        && unsafe { aws_lc_sys::CRYPTO_memcmp(a.as_ptr().cast(), b.as_ptr().cast(), a.len()) == 0 }
}

/// Fills `out` by scrypt (RFC 7914) with the parameters log2(N), r and p. Returns `false` if they
/// are invalid or need more than twice `memory_bytes`, or if out of memory.
#[cfg(feature = "suite")]
#[must_use]
pub fn scrypt(
    password: &[u8],
    salt: &[u8],
    [log_n, r, p]: [u32; 3],
    memory_bytes: usize,
    out: &mut [u8],
) -> bool {
    let Some(n) = 1_u64.checked_shl(log_n) else { return false };
    // SAFETY: the inputs and `out` have the lengths passed.
    object::succeeded(unsafe {
        aws_lc_sys::EVP_PBE_scrypt(
            password.as_ptr().cast(),
            password.len(),
            salt.as_ptr(),
            salt.len(),
            n,
            r.into(),
            p.into(),
            2 * memory_bytes,
            out.as_mut_ptr(),
            out.len(),
        )
    })
}
