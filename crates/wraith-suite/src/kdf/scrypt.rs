//! scrypt (RFC 7914), computed by AWS-LC: for formats that demand it.

use super::{KdfError, MEMORY_BYTES_MAX, WORK_BYTES_MAX};

/// Cost parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScryptParams {
    /// log2 of N, the cost in time and memory: 1 to 31.
    pub log_n: u8,
    /// r, the length of a block in units of 128 bytes. A computation holds 128 · N · r bytes.
    pub r: u32,
    /// p, the number of computations. r · p is at most 2^30 - 1.
    pub p: u32,
}

impl ScryptParams {
    /// OWASP's recommendation of 2023: 128 MB.
    pub const RECOMMENDED: Self = Self { log_n: 17, r: 8, p: 1 };

    /// Returns the memory in bytes: the standard's B and V, and AWS-LC's buffer T.
    fn memory(self) -> Option<u64> {
        let blocks =
            1u64.checked_shl(self.log_n.into())?.checked_add(1)?.checked_add(self.p.into())?;
        blocks.checked_mul(128)?.checked_mul(self.r.into())
    }
}

/// Fills `out` with a key derived from `password` and `salt`.
///
/// # Errors
/// - [`KdfError::OutputLength`] if `out` is empty or has more than (2^32 - 1) · 32 bytes.
/// - [`KdfError::Cost`] if a parameter is invalid, or exceeds [`MEMORY_BYTES_MAX`] or
///   [`WORK_BYTES_MAX`].
/// - [`KdfError::Memory`] if out of memory.
pub fn scrypt(
    params: ScryptParams,
    password: &[u8],
    salt: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    let max = (u32::MAX as usize).saturating_mul(32);
    if out.is_empty() || out.len() > max {
        return Err(KdfError::OutputLength { min: 1, max, found: out.len() });
    }
    let ScryptParams { log_n, r, p } = params;
    let in_range = (1..=31).contains(&log_n) && r > 0 && p > 0;
    // RFC 7914, §2: N < 2^(128 r / 8), and r · p < 2^30.
    let in_range =
        in_range && u64::from(log_n) < 16 * u64::from(r) && u64::from(r) * u64::from(p) < 1 << 30;
    let work = (u64::from(r) * u64::from(p)).saturating_mul(128 << log_n.min(31));
    let in_range = in_range && work <= WORK_BYTES_MAX;
    if !in_range || params.memory().is_none_or(|bytes| bytes > MEMORY_BYTES_MAX as u64) {
        return Err(KdfError::Cost);
    }
    let is_made =
        wraith_aws_lc::scrypt(password, salt, [log_n.into(), r, p], MEMORY_BYTES_MAX, out);
    is_made.then_some(()).ok_or(KdfError::Memory)
}
