//! Ed25519 (RFC 8032), without a context.

use aws_lc_sys as aws;
use zeroize::Zeroizing;

/// Returns the key pair of `seed`: the seed, followed by the public key.
#[must_use]
pub fn key_pair(seed: &[u8; 32]) -> Zeroizing<[u8; 64]> {
    let (mut public, mut pair) = ([0; 32], Zeroizing::new([0; 64]));
    // SAFETY: the pointers are to the 32, 64 and 32 bytes that are written and read.
    unsafe {
        aws::ED25519_keypair_from_seed(public.as_mut_ptr(), pair.as_mut_ptr(), seed.as_ptr());
    }
    pair
}

/// Signs `message` with a [`key_pair`]. Deterministic.
#[must_use]
pub fn sign(pair: &[u8; 64], message: &[u8]) -> [u8; 64] {
    let mut signature = [0; 64];
    let (out, data, len) = (signature.as_mut_ptr(), message.as_ptr(), message.len());
    // SAFETY: `signature` has room for 64 bytes, `message` the length passed, and the pair 64
    // bytes.
    let signed = unsafe { aws::ED25519_sign(out, data, len, pair.as_ptr()) };
    assert_eq!(signed, 1, "every key signs every message");
    signature
}

/// Returns whether `signature` over `message` belongs to the public key. The equation has no
/// cofactor, and s must be below the order.
#[must_use]
pub fn verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let (data, len) = (message.as_ptr(), message.len());
    // SAFETY: `message` has the length passed, the signature 64 bytes and the key 32.
    crate::object::succeeded(unsafe {
        aws::ED25519_verify(data, len, signature.as_ptr(), public.as_ptr())
    })
}
