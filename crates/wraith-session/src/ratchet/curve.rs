//! Every operation on the curve and on ML-KEM that a ratchet does goes through here, so that tests can count them: a
//! message inside a chain must cost none.

use rand_core::CryptoRng;
use wraith_crypto::agree;
use wraith_crypto::kem::ml_kem_768::{
    self as kem, CIPHERTEXT_BYTES, DecapsulationKey, ENCAPSULATION_KEY_BYTES,
};
use zeroize::Zeroizing;

use super::keys::Secret;

/// A new secret of X25519 and its public key.
pub(super) fn new_pair(rng: &mut impl CryptoRng) -> (Secret, [u8; 32]) {
    let mut secret = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *secret);
    let public = public_of(&secret);
    (secret, public)
}

/// The public key of `secret`.
pub(super) fn public_of(secret: &[u8; 32]) -> [u8; 32] {
    count();
    agree::x25519_public(secret)
}

/// X25519. `None` if `public` has small order.
pub(super) fn agree(secret: &[u8; 32], public: &[u8; 32]) -> Option<Secret> {
    count();
    agree::x25519(secret, public)
}

/// The encapsulation key of `seed`.
pub(super) fn encapsulation_key(seed: &[u8; 64]) -> [u8; ENCAPSULATION_KEY_BYTES] {
    count();
    DecapsulationKey::from_seed(seed).encapsulation_key()
}

/// A ciphertext for the owner of `key` and the secret in it. `None` if `key` is no key.
pub(super) fn encapsulate(
    rng: &mut impl CryptoRng,
    key: &[u8; ENCAPSULATION_KEY_BYTES],
) -> Option<([u8; CIPHERTEXT_BYTES], Secret)> {
    count();
    let mut seed = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *seed);
    kem::encapsulate(key, &seed)
}

/// Whether `key` is an encapsulation key (FIPS 203 §7.2).
pub(super) fn is_encapsulation_key(key: &[u8; ENCAPSULATION_KEY_BYTES]) -> bool {
    count();
    // The seed is public: nothing is done with what comes of it.
    kem::encapsulate(key, &[0; 32]).is_some()
}

/// The secret in `ciphertext`, which was made for the key of `seed`.
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

/// How many operations this thread has done.
#[cfg(test)]
pub(super) fn operations() -> u64 {
    OPERATIONS.with(std::cell::Cell::get)
}
