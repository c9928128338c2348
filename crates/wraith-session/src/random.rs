//! The system's random generator, for callers that report its absence.

use thiserror::Error;

use crate::SystemRng;

/// The system has no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// Returns [`SystemRng`], after a check that the system has randomness. Without the check, the
/// process ends if there is none.
///
/// # Errors
/// [`NoRandomness`].
pub fn system_rng() -> Result<SystemRng, NoRandomness> {
    let mut probe = [0];
    getrandom::fill(&mut probe).map(|()| SystemRng).map_err(|_| NoRandomness)
}
