//! HKDF (RFC 5869), of any hash function with blocks.

use zeroize::Zeroize;

use super::KdfError;
use crate::hash::{Algorithm, DIGEST_MAX, Function, with_function};
use crate::mac::Hmac;

/// The key that `secret` comes to with `salt`, which is no secret and may be empty: fills the front of `key` with as many bytes as a
/// digest has.
///
/// # Errors
/// `key` is shorter than that, or `hash` is extendable.
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
            extract::<F>(salt, secret, key);
            Ok(())
        },
        Err(KdfError::Hash(hash))
    )
}

/// Fills `out` with what comes of `key`, which [`hkdf_extract`] gave, for the purpose that `info` names.
///
/// # Errors
/// `out` has more than 255 times as many bytes as a digest, or `hash` is extendable.
pub fn hkdf_expand(
    hash: Algorithm,
    key: &[u8],
    info: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    check(hash, out)?;
    with_function!(
        hash,
        F => {
            expand::<F>(key, info, out);
            Ok(())
        },
        Err(KdfError::Hash(hash))
    )
}

/// [`hkdf_extract`] and [`hkdf_expand`].
///
/// # Errors
/// As theirs.
pub fn hkdf(
    hash: Algorithm,
    salt: &[u8],
    secret: &[u8],
    info: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    check(hash, out)?;
    with_function!(
        hash,
        F => {
            let mut key = [0; DIGEST_MAX];
            extract::<F>(salt, secret, &mut key);
            expand::<F>(&key[..F::DIGEST_BYTES], info, out);
            key.zeroize();
            Ok(())
        },
        Err(KdfError::Hash(hash))
    )
}

fn check(hash: Algorithm, out: &[u8]) -> Result<(), KdfError> {
    let max = 255 * hash.digest_bytes();
    match out.len() <= max {
        true => Ok(()),
        false => Err(KdfError::OutputLength { min: 0, max, found: out.len() }),
    }
}

fn extract<F: Function>(salt: &[u8], secret: &[u8], key: &mut [u8]) {
    let mut mac = Hmac::<F>::new(salt);
    mac.update(secret);
    mac.finish(key);
}

/// Of at most 255 digests.
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
