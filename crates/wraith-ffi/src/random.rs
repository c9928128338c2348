//! Random numbers for the crates that this crate calls, which take a generator as an argument.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use zeroize::Zeroizing;

use crate::error::WraithError;

/// Returns 32 random bytes of the operating system.
///
/// # Errors
/// [`WraithError::NoRandomness`].
pub(crate) fn seed() -> Result<Zeroizing<[u8; 32]>, WraithError> {
    let mut seed = Zeroizing::new([0; 32]);
    let no_randomness =
        |error| WraithError::NoRandomness(format!("no randomness from the system: {error}"));
    getrandom::fill(&mut *seed).map_err(no_randomness)?;
    Ok(seed)
}

/// Returns a generator with such a seed. It cannot fail later.
///
/// # Errors
/// [`WraithError::NoRandomness`].
pub(crate) fn generator() -> Result<ChaCha20Rng, WraithError> {
    Ok(ChaCha20Rng::from_seed(*seed()?))
}
