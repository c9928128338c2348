//! Randomness, which the crates below take as an argument.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use zeroize::Zeroizing;

use crate::error::WraithError;

/// 32 bytes from the system.
///
/// # Errors
/// It gives none.
pub(crate) fn seed() -> Result<Zeroizing<[u8; 32]>, WraithError> {
    let mut seed = Zeroizing::new([0; 32]);
    let no_randomness =
        |error| WraithError::NoRandomness(format!("no randomness from the system: {error}"));
    getrandom::fill(&mut *seed).map_err(no_randomness)?;
    Ok(seed)
}

/// A generator with such a seed, which cannot fail any more.
///
/// # Errors
/// The system gives none.
pub(crate) fn generator() -> Result<ChaCha20Rng, WraithError> {
    Ok(ChaCha20Rng::from_seed(*seed()?))
}
