//! Deterministic variations of an input, for machines without libFuzzer and for short runs. The
//! same seed gives the same variations.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Maximum length of a variation.
const BYTES_MAX: usize = 4096;

/// A generator of variations.
#[derive(Debug)]
pub struct Mutator(ChaCha20Rng);

impl Mutator {
    /// Creates a generator; `seed` determines all variations.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    fn below(&mut self, end: usize) -> usize {
        // Slightly biased, which does not matter for mutations.
        self.0.next_u32() as usize % end.max(1)
    }

    /// Applies one to four changes to `input`, some of which copy from `other`.
    pub fn vary(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len());
        let kind = if bytes.is_empty() { 4 } else { self.below(8) };
        match kind {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.0.next_u32() as u8,
            2 => bytes[at] = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff][self.below(8)],
            3 => bytes.truncate(at),
            4 => {
                let random = self.0.next_u64().to_be_bytes();
                let len = 1 + self.below(8);
                bytes.splice(at..at, random[..len].iter().copied());
            }
            5 => drop(bytes.remove(at)),
            6 => {
                let repeated = bytes[at..].to_vec();
                bytes.extend(repeated);
            }
            _ => {
                let from = self.below(other.len());
                let end = (at + other.len() - from).min(bytes.len());
                bytes.splice(at..end, other[from..].iter().copied());
            }
        }
    }
}
