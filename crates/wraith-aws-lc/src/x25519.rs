//! X25519 (RFC 7748).
//!
//! A secret is any 32 bytes, and is clamped on use. A public key is any 32 bytes, too. The top bit
//! is ignored; values that are not below p, points on the twist and points with a torsion component
//! are accepted like any other.

use zeroize::Zeroizing;

/// Computes the public key of `secret`.
#[must_use]
pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    let mut public = [0; 32];
    // SAFETY: both pointers are to 32 bytes.
    unsafe { aws_lc_sys::X25519_public_from_private(public.as_mut_ptr(), secret.as_ptr()) };
    public
}

/// Computes the shared secret. Returns `None` if `public` has small order, so that the result would
/// not depend on `secret` (the check for all zeros in RFC 7748 §6.1).
#[must_use]
pub fn agree(secret: &[u8; 32], public: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let mut shared = Zeroizing::new([0; 32]);
    // SAFETY: all three pointers are to 32 bytes.
    let is_good =
        unsafe { aws_lc_sys::X25519(shared.as_mut_ptr(), secret.as_ptr(), public.as_ptr()) } == 1;
    is_good.then_some(shared)
}
