//! PBKDF2 with HMAC (RFC 8018, §5.2) over any block-wise hash function. It costs time but no
//! memory, so an attacker with special hardware pays less for a guess than the verifier for a
//! verification. Use it only for formats that demand it.

use std::num::NonZeroU32;

use zeroize::Zeroize;

use super::KdfError;
use crate::hash::{Algorithm, DIGEST_MAX, Function, with_function};
use crate::mac::Hmac;

/// Maximum number of iterations for a whole output. Takes about ten seconds.
pub const ITERATIONS_MAX: u64 = 1 << 27;

/// Fills `out` with a key derived from `password` and `salt`. Each digest of `out` takes
/// `iterations`.
///
/// # Errors
/// - [`KdfError::OutputLength`] if `out` is empty or longer than 2^32 - 1 digests.
/// - [`KdfError::Cost`] if all of it takes more than [`ITERATIONS_MAX`].
/// - [`KdfError::Hash`] if `hash` is extendable.
pub fn pbkdf2(
    hash: Algorithm,
    password: &[u8],
    salt: &[u8],
    iterations: NonZeroU32,
    out: &mut [u8],
) -> Result<(), KdfError> {
    let max = hash.digest_bytes().saturating_mul(u32::MAX as usize);
    if out.is_empty() || out.len() > max {
        return Err(KdfError::OutputLength { min: 1, max, found: out.len() });
    }
    let digests = out.len().div_ceil(hash.digest_bytes()) as u64;
    if digests.saturating_mul(iterations.get().into()) > ITERATIONS_MAX {
        return Err(KdfError::Cost);
    }
    with_function!(
        hash,
        F => {
            fill(&Hmac::<F>::new(password), salt, iterations, out);
            Ok(())
        },
        Err(KdfError::Hash(hash.name()))
    )
}

fn fill<F: Function>(key: &Hmac<F>, salt: &[u8], iterations: NonZeroU32, out: &mut [u8]) {
    for (index, part) in (1u32..).zip(out.chunks_mut(F::DIGEST_BYTES)) {
        let (mut u, mut sum) = ([0; DIGEST_MAX], [0; DIGEST_MAX]);
        let u = &mut u[..F::DIGEST_BYTES];
        let mut mac = key.clone();
        mac.update(salt);
        mac.update(&index.to_be_bytes());
        mac.finish(u);
        sum[..u.len()].copy_from_slice(u);
        for _ in 1..iterations.get() {
            let mut mac = key.clone();
            mac.update(u);
            mac.finish(u);
            sum.iter_mut().zip(&*u).for_each(|(sum, u)| *sum ^= u);
        }
        part.copy_from_slice(&sum[..part.len()]);
        u.zeroize();
        sum.zeroize();
    }
}
