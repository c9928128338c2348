//! Random numbers of the operating system, for one call.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use wraith_crypto::Wiped;
use zeroize::Zeroizing;

use crate::status::wraith_status_t::WRAITH_NO_RANDOMNESS;
use crate::status::{Failure, Outcome};

/// Returns 32 bytes of system randomness.
pub(crate) fn seed() -> Outcome<Zeroizing<[u8; 32]>> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| {
        Failure::new(WRAITH_NO_RANDOMNESS, format!("the system gives no random bytes: {error}"))
    })?;
    Ok(seed)
}

/// Returns a generator seeded by the system, wiped at the end of the call.
pub(crate) fn generator() -> Outcome<Wiped<ChaCha20Rng>> {
    Ok(Wiped::new(ChaCha20Rng::from_seed(*seed()?)))
}
