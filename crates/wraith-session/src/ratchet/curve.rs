//! All X25519 and ML-KEM operations of a ratchet, in one module so that tests can count them: a
//! message within a chain must cost none.

use rand_core::CryptoRng;
use wraith_crypto::agree;
use wraith_crypto::ml_kem_768::{
    self as kem, CIPHERTEXT_BYTES, DecapsulationKey, ENCAPSULATION_KEY_BYTES,
};
use zeroize::Zeroizing;

use super::keys::Secret;

/// Draws an X25519 secret and computes its public key.
pub(super) fn new_pair(rng: &mut impl CryptoRng) -> (Secret, [u8; 32]) {
    let mut secret = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *secret);
    let public = public_of(&secret);
    (secret, public)
}

/// Returns the public key of `secret`.
pub(super) fn public_of(secret: &[u8; 32]) -> [u8; 32] {
    count();
    agree::x25519_public(secret)
}

/// Computes the X25519 shared secret. Returns `None` if `public` has small order.
pub(super) fn agree(secret: &[u8; 32], public: &[u8; 32]) -> Option<Secret> {
    count();
    agree::x25519(secret, public)
}

/// Returns the encapsulation key of `seed`.
pub(super) fn encapsulation_key(seed: &[u8; 64]) -> [u8; ENCAPSULATION_KEY_BYTES] {
    count();
    DecapsulationKey::from_seed(seed).encapsulation_key()
}

/// Encapsulates a fresh secret to `key`. Returns `None` if `key` is invalid.
pub(super) fn encapsulate(
    rng: &mut impl CryptoRng,
    key: &[u8; ENCAPSULATION_KEY_BYTES],
) -> Option<([u8; CIPHERTEXT_BYTES], Secret)> {
    count();
    let mut seed = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *seed);
    kem::encapsulate(key, &seed)
}

/// Returns whether `key` is a valid encapsulation key (FIPS 203 §7.2).
pub(super) fn is_encapsulation_key(key: &[u8; ENCAPSULATION_KEY_BYTES]) -> bool {
    count();
    // A constant seed is safe: the result is discarded.
    kem::encapsulate(key, &[0; 32]).is_some()
}

/// Decapsulates `ciphertext`, which was made for the key of `seed`.
pub(super) fn decapsulate(seed: &[u8; 64], ciphertext: &[u8; CIPHERTEXT_BYTES]) -> Secret {
    count();
    DecapsulationKey::from_seed(seed).decapsulate(ciphertext)
}

#[cfg(not(test))]
fn count() {}

#[cfg(test)]
fn count() {
    OPERATIONS.with(|operations| operations.set(operations.get() + 1));
}

#[cfg(test)]
thread_local! {
    static OPERATIONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns the number of operations of this thread.
#[cfg(test)]
pub(super) fn operations() -> u64 {
    OPERATIONS.with(std::cell::Cell::get)
}
