//! ML-KEM-768 (FIPS 203) with fixed-size arrays, for the handshake of the transport. Every output
//! is a function of the seeds passed in.

use wraith_aws_lc::ml_kem::{SecretKey, Set};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Length of an encapsulation key in bytes.
pub const ENCAPSULATION_KEY_BYTES: usize = 1184;
/// Length of a ciphertext in bytes.
pub const CIPHERTEXT_BYTES: usize = 1088;

/// Private key that opens ciphertexts for its [encapsulation key](Self::encapsulation_key). AWS-LC
/// holds it, and wipes memory that it frees.
pub struct DecapsulationKey(SecretKey);

impl DecapsulationKey {
    /// Derives the key from `seed`, d ‖ z of FIPS 203, 32 bytes each.
    #[must_use]
    pub fn from_seed(seed: &[u8; 64]) -> Self {
        Self(Set::MlKem768.secret(seed))
    }

    /// Returns the public key, for [`encapsulate`].
    #[must_use]
    pub fn encapsulation_key(&self) -> [u8; ENCAPSULATION_KEY_BYTES] {
        let mut bytes = [0; ENCAPSULATION_KEY_BYTES];
        self.0.write_public(&mut bytes);
        bytes
    }

    /// Returns the shared secret in `ciphertext`. A ciphertext made for another key gives an
    /// unpredictable secret (implicit rejection), in the same time.
    #[must_use]
    pub fn decapsulate(&self, ciphertext: &[u8; CIPHERTEXT_BYTES]) -> Zeroizing<[u8; 32]> {
        self.0.decapsulate(ciphertext)
    }
}

impl ZeroizeOnDrop for DecapsulationKey {}

crate::redacted_debug!(DecapsulationKey);

/// Returns a ciphertext for the owner of `key`, and its shared secret. `seed` is m of FIPS 203. It
/// has to be fresh randomness for each call, and as secret as the shared secret.
///
/// Returns `None` if `key` is invalid, that is, if a coefficient is not below the modulus (FIPS 203
/// §7.2).
#[must_use]
pub fn encapsulate(
    key: &[u8; ENCAPSULATION_KEY_BYTES],
    seed: &[u8; 32],
) -> Option<([u8; CIPHERTEXT_BYTES], Zeroizing<[u8; 32]>)> {
    let mut ciphertext = [0; CIPHERTEXT_BYTES];
    let mut secret = Zeroizing::new([0; 32]);
    let is_made = Set::MlKem768.public(key).encapsulate(seed, &mut ciphertext, &mut secret);
    is_made.then_some((ciphertext, secret))
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
        // z is used only for implicit rejection.
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
        // The first coefficient has twelve bits; 3328 is the largest valid value.
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
    fn a_failure_clears_the_aws_lc_error_queue() {
        assert!(encapsulate(&[0xff; ENCAPSULATION_KEY_BYTES], &[2; 32]).is_none());
        assert!(!wraith_aws_lc::reference::has_errors());
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
