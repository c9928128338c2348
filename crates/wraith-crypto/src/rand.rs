//! Random bytes from AWS-LC's generator, which reseeds itself regularly from the operating system,
//! and after a fork. This is the source of keys.

use std::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};
use zeroize::Zeroizing;

/// Fills `out` with random bytes. If the system has no randomness, AWS-LC aborts the process.
pub fn fill(out: &mut [u8]) {
    wraith_aws_lc::rand::fill(out);
}

/// Returns random bytes.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// Returns random bytes for a secret, wiped when dropped.
#[must_use]
pub fn secret<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    fill(&mut *bytes);
    bytes
}

/// [`fill`] behind the traits of `rand_core`.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl TryRng for System {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(bytes()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        fill(out);
        Ok(())
    }
}

impl TryCryptoRng for System {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ_each_time() {
        assert_ne!(bytes::<32>(), bytes::<32>());
        let (mut a, mut b) = ([0; 100], [0; 100]);
        System.try_fill_bytes(&mut a).unwrap();
        fill(&mut b);
        assert!(a != b && a != [0; 100]);
        fill(&mut []);
    }
}
