//! The only source of randomness in the simulator: a ChaCha8 stream that is the same on every
//! machine.
//!
//! Each box of a path (one effect, such as loss or delay) and each part of a world has its own
//! stream, derived from the seed and a label. So adding a box does not change the numbers that
//! other boxes draw.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// Returns stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&stream.to_le_bytes());
        Self(ChaCha8Rng::from_seed(bytes))
    }

    /// Returns a uniform 64-bit number.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in `0..bound`; zero if `bound` is zero. The bias is below 2^-32 for
    /// every bound in this crate.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(product >> 64).expect("a product of two u64 shifted by 64 fits")
    }

    /// Returns a uniform number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns a number between `low` and `high` with a uniform logarithm: every order of magnitude
    /// is equally likely.
    pub fn scaled(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1) as f64, high.max(1) as f64);
        (low * (high / low).powf(self.unit())) as u64
    }

    /// Returns a uniform number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Returns a uniform duration in `0..=max`, in whole nanoseconds.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.below(nanos + 1))
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Returns 32 random bytes.
    pub fn seed(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers_and_others_do_not() {
        let draw = |seed, stream| Rng::new(seed, stream).bits();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..1000 {
            assert!((3..=5).contains(&rng.between(3, 5)));
            assert!((10..=1000).contains(&rng.scaled(10, 1000)));
            assert!(rng.up_to(Duration::from_nanos(7)) <= Duration::from_nanos(7));
        }
        assert_eq!(rng.below(0), 0);
    }
}
