//! ML-KEM-768 (FIPS 203), computed by AWS-LC. Every output is a function of the seeds that are passed in.
//!
//! aws-lc-rs takes the randomness of a key and of an encapsulation from the system. The functions of AWS-LC that take it from
//! their caller are called here directly.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::{self, NonNull};

use aws_lc_sys as aws;
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Bytes of an encapsulation key.
pub const ENCAPSULATION_KEY_BYTES: usize = 1184;
/// Bytes of a ciphertext.
pub const CIPHERTEXT_BYTES: usize = 1088;

/// The secret that opens ciphertexts made for its [encapsulation key](Self::encapsulation_key). It is in memory of AWS-LC,
/// which wipes what it frees.
pub struct DecapsulationKey(Key);

impl DecapsulationKey {
    /// The key of `seed`, which is d ‖ z of FIPS 203, 32 bytes each.
    #[must_use]
    pub fn from_seed(seed: &[u8; 64]) -> Self {
        let context = Context::for_generation();
        let (mut key, mut seed_len) = (ptr::null_mut(), seed.len());
        // SAFETY: the context is alive, `seed` has `seed_len` bytes, and `key` is null, so that a new key is put there.
        let made = unsafe {
            aws::EVP_PKEY_keygen_deterministic(
                context.0.as_ptr(),
                &mut key,
                seed.as_ptr(),
                &mut seed_len,
            )
        };
        assert_eq!(made, 1, "a seed of this length has a key");
        Self(Key(NonNull::new(key).expect("there is a key where one was made")))
    }

    /// What others [`encapsulate`] to.
    #[must_use]
    pub fn encapsulation_key(&self) -> [u8; ENCAPSULATION_KEY_BYTES] {
        let (mut bytes, mut len) = ([0; ENCAPSULATION_KEY_BYTES], ENCAPSULATION_KEY_BYTES);
        // SAFETY: the key is alive, and `bytes` has room for `len` bytes.
        let written = unsafe {
            aws::EVP_PKEY_get_raw_public_key(self.0.0.as_ptr(), bytes.as_mut_ptr(), &mut len)
        };
        assert_eq!((written, len), (1, bytes.len()), "a key from a seed has both halves");
        bytes
    }

    /// The secret in `ciphertext`. One that was not made for this key gives a secret that nobody else knows (implicit
    /// rejection), and takes the same time.
    #[must_use]
    pub fn decapsulate(&self, ciphertext: &[u8; CIPHERTEXT_BYTES]) -> Zeroizing<[u8; 32]> {
        let context = Context::of(&self.0);
        let (mut secret, mut len) = (Zeroizing::new([0; 32]), 32);
        // SAFETY: the context is alive, `ciphertext` has the length passed, and `secret` has room for `len` bytes. AWS-LC
        // reads the ciphertext only: some of its bindings have no const there.
        let opened = unsafe {
            aws::EVP_PKEY_decapsulate(
                context.0.as_ptr(),
                secret.as_mut_ptr(),
                &mut len,
                ciphertext.as_ptr().cast_mut(),
                ciphertext.len(),
            )
        };
        assert_eq!((opened, len), (1, 32), "every ciphertext of this length has a secret");
        secret
    }
}

impl ZeroizeOnDrop for DecapsulationKey {}

impl fmt::Debug for DecapsulationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecapsulationKey").finish_non_exhaustive()
    }
}

/// The ciphertext for the owner of `key`, and the secret in it. `seed` is m of FIPS 203: fresh randomness for each call, and as
/// secret as what it makes. `None` if `key` is not a valid key, that is, if a coefficient is not below the modulus (FIPS 203
/// §7.2).
#[must_use]
pub fn encapsulate(
    key: &[u8; ENCAPSULATION_KEY_BYTES],
    seed: &[u8; 32],
) -> Option<([u8; CIPHERTEXT_BYTES], Zeroizing<[u8; 32]>)> {
    let key = Key::of_encapsulation(key);
    let context = Context::of(&key);
    let (mut ciphertext, mut ciphertext_len) = ([0; CIPHERTEXT_BYTES], CIPHERTEXT_BYTES);
    let (mut secret, mut secret_len) = (Zeroizing::new([0; 32]), 32);
    let mut seed_len = seed.len();
    // SAFETY: the context is alive, and each pointer is to as many bytes as the length beside it says.
    let made = unsafe {
        aws::EVP_PKEY_encapsulate_deterministic(
            context.0.as_ptr(),
            ciphertext.as_mut_ptr(),
            &mut ciphertext_len,
            secret.as_mut_ptr(),
            &mut secret_len,
            seed.as_ptr(),
            &mut seed_len,
        )
    };
    if made != 1 {
        // SAFETY: always safe. It empties this thread's list of errors, in which others would look for their own.
        unsafe { aws::ERR_clear_error() };
        return None;
    }
    assert_eq!((ciphertext_len, secret_len), (CIPHERTEXT_BYTES, 32), "the lengths are fixed");
    Some((ciphertext, secret))
}

/// Owns one reference to a key of AWS-LC. Nothing changes the key after it was made.
struct Key(NonNull<aws::EVP_PKEY>);

// SAFETY: AWS-LC counts references atomically, and a key that does not change can be read from several threads.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Key {
    fn of_encapsulation(bytes: &[u8; ENCAPSULATION_KEY_BYTES]) -> Self {
        // SAFETY: `bytes` has the length passed, and AWS-LC makes a copy.
        let key = unsafe {
            aws::EVP_PKEY_kem_new_raw_public_key(aws::NID_MLKEM768, bytes.as_ptr(), bytes.len())
        };
        Self(NonNull::new(key).expect("only the length is looked at, and it is right"))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and gone after this.
        unsafe { aws::EVP_PKEY_free(self.0.as_ptr()) }
    }
}

/// One operation. It has a reference to its key.
struct Context(NonNull<aws::EVP_PKEY_CTX>);

impl Context {
    fn of(key: &Key) -> Self {
        // SAFETY: the key is alive. There is no engine.
        let context = unsafe { aws::EVP_PKEY_CTX_new(key.0.as_ptr(), ptr::null_mut()) };
        Self(NonNull::new(context).expect("there is memory"))
    }

    fn for_generation() -> Self {
        // SAFETY: there is no engine.
        let context = unsafe { aws::EVP_PKEY_CTX_new_id(aws::EVP_PKEY_KEM, ptr::null_mut()) };
        let context = Self(NonNull::new(context).expect("there is memory"));
        // SAFETY: the context is alive, and has no key yet.
        let ready = unsafe {
            aws::EVP_PKEY_CTX_kem_set_params(context.0.as_ptr(), aws::NID_MLKEM768) == 1
                && aws::EVP_PKEY_keygen_init(context.0.as_ptr()) == 1
        };
        assert!(ready, "AWS-LC has ML-KEM-768");
        context
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is ours, and gone after this.
        unsafe { aws::EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_same_secret() {
        let key = DecapsulationKey::from_seed(&[1; 64]);
        let (ciphertext, secret) = encapsulate(&key.encapsulation_key(), &[2; 32]).unwrap();
        assert_eq!(key.decapsulate(&ciphertext), secret);
    }

    #[test]
    fn everything_is_a_function_of_its_seed() {
        let [key, same, other] =
            [1, 1, 2].map(|seed| DecapsulationKey::from_seed(&[seed; 64]).encapsulation_key());
        assert_eq!(key, same);
        assert_ne!(key, other);
        let [made, same, other] = [1, 1, 2].map(|seed| encapsulate(&key, &[seed; 32]).unwrap());
        assert_eq!(made, same);
        assert_ne!(made.0, other.0);
        assert_ne!(made.1, other.1);
    }

    #[test]
    fn both_halves_of_the_seed_matter() {
        let mut seed = [1; 64];
        let key = DecapsulationKey::from_seed(&seed);
        seed[63] = 2;
        let other = DecapsulationKey::from_seed(&seed);
        // z is the secret of implicit rejection only.
        assert_eq!(key.encapsulation_key(), other.encapsulation_key());
        let garbage = [3; CIPHERTEXT_BYTES];
        assert_ne!(key.decapsulate(&garbage), other.decapsulate(&garbage));
        seed[0] = 2;
        let other = DecapsulationKey::from_seed(&seed);
        assert_ne!(key.encapsulation_key(), other.encapsulation_key());
    }

    #[test]
    fn a_changed_ciphertext_gives_another_secret_and_always_the_same() {
        let key = DecapsulationKey::from_seed(&[1; 64]);
        let (ciphertext, secret) = encapsulate(&key.encapsulation_key(), &[2; 32]).unwrap();
        for bit in [0, 4000, CIPHERTEXT_BYTES * 8 - 1] {
            let mut changed = ciphertext;
            changed[bit / 8] ^= 1 << (bit % 8);
            let rejected = key.decapsulate(&changed);
            assert_ne!(rejected, secret);
            assert_eq!(rejected, key.decapsulate(&changed));
        }
    }

    #[test]
    fn a_coefficient_that_is_not_below_the_modulus_is_refused() {
        let mut key = DecapsulationKey::from_seed(&[1; 64]).encapsulation_key();
        assert!(encapsulate(&key, &[2; 32]).is_some());
        // Twelve bits of the first coefficient: 3328 is the last that is allowed.
        let first = |key: &mut [u8; ENCAPSULATION_KEY_BYTES], coefficient: u16| {
            key[0] = coefficient as u8;
            key[1] = key[1] & 0xf0 | (coefficient >> 8) as u8;
        };
        first(&mut key, 3328);
        assert!(encapsulate(&key, &[2; 32]).is_some());
        first(&mut key, 3329);
        assert!(encapsulate(&key, &[2; 32]).is_none());
        assert!(encapsulate(&[0xff; ENCAPSULATION_KEY_BYTES], &[2; 32]).is_none());
    }

    #[test]
    fn a_refusal_leaves_no_error_for_others_to_find() {
        assert!(encapsulate(&[0xff; ENCAPSULATION_KEY_BYTES], &[2; 32]).is_none());
        // SAFETY: always safe.
        assert_eq!(unsafe { aws::ERR_peek_error() }, 0);
    }

    #[test]
    fn a_key_is_used_by_several_threads_at_once_and_prints_nothing() {
        let key = DecapsulationKey::from_seed(&[1; 64]);
        let (ciphertext, secret) = encapsulate(&key.encapsulation_key(), &[2; 32]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..50).for_each(|_| assert_eq!(key.decapsulate(&ciphertext), secret))
                });
            }
        });
        assert_eq!(format!("{key:?}"), "DecapsulationKey { .. }");
    }
}
