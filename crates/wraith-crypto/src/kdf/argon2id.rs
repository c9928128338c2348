//! Argon2id (RFC 9106), computed by the crate `argon2`: the recommended key derivation from
//! passwords.

use argon2::{Argon2, AssociatedData, Block, ParamsBuilder, Version};
use zeroize::Zeroizing;

use super::limits::{KdfError, MEMORY_BYTES_MAX, WORK_BYTES_MAX};

/// Cost parameters. The output depends on them, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Params {
    /// Memory in KiB, at least 8 for each lane.
    pub memory_kib: u32,
    /// Passes over the memory, at least 1.
    pub passes: u32,
    /// Lanes, 1 to 2^24 - 1. They could run in parallel, but this implementation is sequential.
    pub lanes: u32,
}

impl Argon2Params {
    /// The second recommended option of RFC 9106, §4: 64 MiB.
    pub const RECOMMENDED: Self = Self { memory_kib: 64 << 10, passes: 3, lanes: 4 };
}

/// Fills `out` with a key derived from `password` and `salt`.
///
/// # Errors
/// - [`KdfError::OutputLength`] if `out` has less than 4 bytes or more than 2^32 - 1.
/// - [`KdfError::InputLength`] if the salt has less than 8 bytes or more than 2^32 - 1.
/// - [`KdfError::Cost`] if a parameter is invalid, or exceeds [`MEMORY_BYTES_MAX`] or
///   [`WORK_BYTES_MAX`].
/// - [`KdfError::Memory`] if out of memory.
pub fn argon2id(
    params: Argon2Params,
    password: &[u8],
    salt: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    argon2id_with(params, password, salt, &[], &[], out)
}

/// Like [`argon2id`], with a `secret` that is stored apart from the digests (a "pepper"), and with
/// associated data of at most 32 bytes.
///
/// # Errors
/// As [`argon2id`], and [`KdfError::InputLength`] if `secret` or `data` is too long.
pub fn argon2id_with(
    params: Argon2Params,
    password: &[u8],
    salt: &[u8],
    secret: &[u8],
    data: &[u8],
    out: &mut [u8],
) -> Result<(), KdfError> {
    let work = u64::from(params.memory_kib) * u64::from(params.passes);
    if params.memory_kib as usize > MEMORY_BYTES_MAX >> 10 || work > WORK_BYTES_MAX >> 10 {
        return Err(KdfError::Cost);
    }
    let len = out.len();
    let fail = |found| error(found, len);
    let mut builder = ParamsBuilder::new();
    builder.m_cost(params.memory_kib).t_cost(params.passes).p_cost(params.lanes);
    builder.output_len(len);
    if !data.is_empty() {
        builder.data(AssociatedData::new(data).map_err(fail)?);
    }
    let params = builder.build().map_err(fail)?;
    let mut memory = Zeroizing::new(Vec::new());
    memory.try_reserve_exact(params.block_count()).map_err(|_| KdfError::Memory)?;
    memory.resize(params.block_count(), Block::default());
    let (algorithm, version) = (argon2::Algorithm::Argon2id, Version::V0x13);
    let argon2 = Argon2::new_with_secret(secret, algorithm, version, params).map_err(fail)?;
    argon2.hash_password_into_with_memory(password, salt, out, &mut memory[..]).map_err(fail)
}

fn error(error: argon2::Error, found: usize) -> KdfError {
    use argon2::Error as E;
    match error {
        E::OutputTooLong | E::OutputTooShort => {
            KdfError::OutputLength { min: 4, max: u32::MAX as usize, found }
        }
        E::OutOfMemory => KdfError::Memory,
        E::MemoryTooLittle | E::MemoryTooMuch | E::ThreadsTooFew | E::ThreadsTooMany => {
            KdfError::Cost
        }
        E::TimeTooSmall => KdfError::Cost,
        _ => KdfError::InputLength,
    }
}
