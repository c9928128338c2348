//! The secrets that operations run with: values at the edges of their range, values of low and high
//! Hamming weight, and random ones.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// A secret with a name for the tables.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The name.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Secret {
    /// Creates a secret.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

/// Number of secrets for each operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A few, for every change.
    Small,
    /// All.
    Full,
}

/// Secrets of an operation in the small form.
const SMALL_SECRETS: usize = 4;
/// Bytes of the longest order, that of P-521.
pub const ORDER_MAX: usize = 66;

/// Draws secrets and other inputs. They follow from the seed and the name of the operation.
#[derive(Debug)]
pub struct Draw {
    form: Form,
    rng: ChaCha20Rng,
}

impl Draw {
    /// Creates the draw of an operation.
    pub fn new(form: Form, seed: u64, operation: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        for (i, byte) in operation.bytes().enumerate() {
            let place = &mut key[8 + i % 24];
            *place = place.rotate_left(3) ^ byte;
        }
        Self { form, rng: ChaCha20Rng::from_seed(key) }
    }

    /// Returns random bytes.
    pub fn random<const N: usize>(&mut self) -> [u8; N] {
        crate::targets::random(&mut self.rng)
    }

    /// Returns `len` random bytes.
    pub fn random_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    /// Returns the generator.
    pub fn rng(&mut self) -> &mut ChaCha20Rng {
        &mut self.rng
    }

    /// Returns as many of `secrets` as the form wants. The most telling ones come first.
    pub fn chosen(&self, mut secrets: Vec<Secret>) -> Vec<Secret> {
        if self.form == Form::Small {
            secrets.truncate(SMALL_SECRETS);
        }
        secrets
    }

    /// Returns secrets of `len` bytes, of which every value is permitted.
    pub fn bytes(&mut self, len: usize) -> Vec<Secret> {
        let mut lowest_bit = vec![0; len];
        lowest_bit[len - 1] = 1;
        let mut highest_bit = vec![0; len];
        highest_bit[0] = 0x80;
        let secrets = vec![
            Secret::new("zeros", vec![0; len]),
            Secret::new("ones", vec![0xff; len]),
            Secret::new("random 1", self.random_bytes(len)),
            Secret::new("random 2", self.random_bytes(len)),
            Secret::new("lowest bit", lowest_bit),
            Secret::new("highest bit", highest_bit),
            Secret::new("alternating", vec![0x55; len]),
            Secret::new("random 3", self.random_bytes(len)),
            Secret::new("random 4", self.random_bytes(len)),
        ];
        self.chosen(secrets)
    }

    /// Returns random secrets of `len` bytes, for the functions that refuse others.
    pub fn random_secrets(&mut self, len: usize) -> Vec<Secret> {
        let secrets = (1..=8).map(|i| Secret::new(format!("random {i}"), self.random_bytes(len)));
        let secrets = secrets.collect();
        self.chosen(secrets)
    }

    /// Returns numbers from 1 to `max`, big-endian and as long as `max`.
    pub fn scalars(&mut self, max: &[u8]) -> Vec<Secret> {
        let len = max.len();
        let mut one = vec![0; len];
        one[len - 1] = 1;
        let mut two = one.clone();
        two[len - 1] = 2;
        let mut highest_bit = vec![0; len];
        highest_bit[0] = 1 << max[0].ilog2();
        let mut few_ones = highest_bit.clone();
        few_ones[len - 1] |= 1;
        // Every second one is below: the digits of a window then borrow and carry.
        let mut many_ones = vec![0xff; len];
        many_ones[0] = highest_bit[0] - 1;
        let mut below = max.to_vec();
        below[len - 1] -= 1;
        let mut short = self.random_bytes(len);
        short[..len / 2].fill(0);
        let below_highest = highest_bit[0] - 1;
        let mut random = || {
            let mut bytes = self.random_bytes(len);
            bytes[0] &= below_highest;
            bytes
        };
        let secrets = vec![
            Secret::new("few ones", few_ones),
            Secret::new("the largest", max),
            Secret::new("many ones", many_ones),
            Secret::new("random 1", random()),
            Secret::new("one", one),
            Secret::new("two", two),
            Secret::new("the largest but one", below),
            Secret::new("highest bit", highest_bit),
            Secret::new("half as long", short),
            Secret::new("random 2", random()),
            Secret::new("random 3", random()),
        ];
        self.chosen(secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_two_operations_differ_and_repeat() {
        let draw = |name| Draw::new(Form::Full, 1, name).random::<32>();
        assert_eq!(draw("mac/a"), draw("mac/a"));
        assert_ne!(draw("mac/a"), draw("mac/b"));
    }

    #[test]
    fn scalars_are_in_range_and_distinct() {
        for max in [vec![0x01, 0x05, 0x03], vec![0xff, 0xfe, 0x09], vec![0x8c, 0x00, 0x01]] {
            let secrets = Draw::new(Form::Full, 1, "scalars").scalars(&max);
            for secret in &secrets {
                assert!(
                    secret.bytes <= max && secret.bytes.iter().any(|&byte| byte > 0),
                    "{secret:?}"
                );
            }
            assert!(secrets.len() > 8);
        }
    }
}
