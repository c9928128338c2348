//! HKDF (RFC 5869) over any block-wise hash function.

use zeroize::{Zeroize, Zeroizing};

use super::KdfError;
use crate::hash::{Algorithm, DIGEST_MAX, Function, with_function};
use crate::mac::Hmac;

/// HKDF-Extract: writes the pseudorandom key of `secret` and `salt` to the front of `key`. It is as
/// long as a digest. The salt is public and may be empty.
///
/// # Errors
/// [`KdfError::OutputLength`] if `key` is shorter than a digest, [`KdfError::Hash`] if `hash` is
/// extendable.
pub fn hkdf_extract(
    hash: Algorithm,
    salt: &[u8],
    secret: &[u8],
    key: &mut [u8],
) -> Result<(), KdfError> {
    let min = hash.digest_bytes();
    if key.len() < min {
        return Err(KdfError::OutputLength { min, max: usize::MAX, found: key.len() });
    }
    with_function!(
        hash,
        F => {
            let mut mac = Hmac::<F>::new(salt);
            mac.update(secret);
            mac.finish(key);
            Ok(())
        },
        Err(KdfError::Hash(hash.name()))
    )
}

/// HKDF-Expand: fills `out` from `key`, the output of [`hkdf_extract`], for the purpose named by
/// `info`.
///
/// # Errors
/// [`KdfError::OutputLength`] if `out` is longer than 255 digests, [`KdfError::Hash`] if `hash` is
/// extendable.
pub fn hkdf_expand(
    hash: Algorithm,
    key: &[u8],
    info: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    let max = 255 * hash.digest_bytes();
    if out.len() > max {
        return Err(KdfError::OutputLength { min: 0, max, found: out.len() });
    }
    with_function!(
        hash,
        F => {
            expand::<F>(key, info, out);
            Ok(())
        },
        Err(KdfError::Hash(hash.name()))
    )
}

/// Combines [`hkdf_extract`] and [`hkdf_expand`].
///
/// # Errors
/// As [`hkdf_expand`].
pub fn hkdf(
    hash: Algorithm,
    salt: &[u8],
    secret: &[u8],
    info: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    let mut key = Zeroizing::new([0; DIGEST_MAX]);
    hkdf_extract(hash, salt, secret, &mut *key)?;
    hkdf_expand(hash, &key[..hash.digest_bytes()], info, out)
}

/// Fills `out`, at most 255 digests.
fn expand<F: Function>(key: &[u8], info: &[u8], out: &mut [u8]) {
    let key = Hmac::<F>::new(key);
    let (mut block, mut len) = ([0; DIGEST_MAX], 0);
    for (counter, part) in (1u8..=255).zip(out.chunks_mut(F::DIGEST_BYTES)) {
        let mut mac = key.clone();
        mac.update(&block[..len]);
        mac.update(info);
        mac.update(&[counter]);
        mac.finish(&mut block);
        len = F::DIGEST_BYTES;
        part.copy_from_slice(&block[..part.len()]);
    }
    block.zeroize();
}
