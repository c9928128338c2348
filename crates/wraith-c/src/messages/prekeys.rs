//! Prekeys: public keys that their owner publishes. With them, peers can start conversations while
//! the owner is offline.

use std::sync::Mutex;

use wraith_session::StoredPreKeys;
use wraith_session::ratchet::{BUNDLE_BYTES_MAX, PreKeys, StartError};

use crate::border::entry;
use crate::identity::{self, wraith_identity_t};
use crate::random::generator;
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// Buffer size for a bundle, in bytes.
pub const WRAITH_BUNDLE_MAX: usize = 1417;
const _: () = assert!(WRAITH_BUNDLE_MAX == BUNDLE_BYTES_MAX);
/// Maximum number of one-time prekeys.
pub const WRAITH_ONE_TIME_MAX: usize = 1000;

/// The prekeys of one identity, with their secrets.
pub type wraith_prekeys_t = u64;

pub(super) static PREKEYS: Table<Mutex<PreKeysBacking>> = Table::new(Kind::Prekeys);

/// Where prekeys are kept. Changes of prekeys in a vault are stored before the call returns.
pub(super) enum PreKeysBacking {
    Memory(Box<PreKeys>),
    Vault(Box<StoredPreKeys>),
}

pub(super) fn insert_stored(prekeys: StoredPreKeys) -> Outcome<wraith_prekeys_t> {
    PREKEYS.insert(Mutex::new(PreKeysBacking::Vault(Box::new(prekeys))))
}

fn insert(prekeys: PreKeys) -> Outcome<wraith_prekeys_t> {
    PREKEYS.insert(Mutex::new(PreKeysBacking::Memory(Box::new(prekeys))))
}

impl PreKeysBacking {
    /// Returns the prekeys if the caller saves them.
    pub(super) fn in_memory(&mut self) -> Outcome<&mut PreKeys> {
        match self {
            Self::Memory(prekeys) => Ok(prekeys),
            Self::Vault(_) => {
                Err(Failure::new(WRAITH_INVALID_STATE, "these prekeys are kept in a vault"))
            }
        }
    }

    /// Returns the prekeys if they are in a vault.
    pub(super) fn in_vault(&mut self) -> Outcome<&mut StoredPreKeys> {
        match self {
            Self::Memory(_) => {
                Err(Failure::new(WRAITH_INVALID_STATE, "these prekeys are kept in no vault"))
            }
            Self::Vault(stored) => Ok(stored),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let status = match error {
            StartError::Identity => WRAITH_INVALID_INPUT,
            StartError::UnknownPreKey => WRAITH_NOT_FOUND,
            StartError::Replayed => WRAITH_REPLAYED,
            StartError::PreKeysExhausted => WRAITH_EXHAUSTED,
            _ => WRAITH_UNAUTHENTIC,
        };
        Self::new(status, error.to_string())
    }
}

pub(super) fn bounded(one_time: usize) -> Outcome<usize> {
    match one_time <= WRAITH_ONE_TIME_MAX {
        true => Ok(one_time),
        false => Err(Failure::input(format!("at most {WRAITH_ONE_TIME_MAX} one-time prekeys"))),
    }
}

/// Generates prekeys of an identity, with `one_time` one-time prekeys. They are in memory: save
/// them before a bundle leaves, and after each conversation started with them.
/// `wraith_prekeys_generate_in_vault` does this automatically.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_generate(
    identity: wraith_identity_t,
    one_time: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let out = call.out(out)?;
        let (one_time, identity) = (bounded(one_time)?, identity::identity(identity)?);
        let prekeys = PreKeys::generate(&mut *generator()?, &identity, one_time);
        out.write(insert(prekeys)?);
        Ok(())
    })
}

/// Returns a bundle for one initiator, to be published. It contains a one-time prekey while there
/// are some. Needs room for `WRAITH_BUNDLE_MAX`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_bundle(
    prekeys: wraith_prekeys_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        output.room(WRAITH_BUNDLE_MAX)?;
        PREKEYS.with(prekeys, |kept| {
            let bundle = match kept {
                PreKeysBacking::Memory(prekeys) => prekeys.bundle(),
                PreKeysBacking::Vault(stored) => stored.bundle()?,
            };
            output.write(&bundle.encode())
        })
    })
}

/// Returns the number of one-time prekeys that were not handed out yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_remaining(
    prekeys: wraith_prekeys_t,
    out: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let out = call.out(out)?;
        PREKEYS.with(prekeys, |kept| {
            out.write(match kept {
                PreKeysBacking::Memory(prekeys) => prekeys.remaining(),
                PreKeysBacking::Vault(stored) => stored.remaining(),
            });
            Ok(())
        })
    })
}

/// Generates one-time prekeys until `one_time` of them are available.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_prekeys_replenish(
    prekeys: wraith_prekeys_t,
    identity: wraith_identity_t,
    one_time: usize,
) -> wraith_status_t {
    entry!(|_call| {
        let (one_time, identity) = (bounded(one_time)?, identity::identity(identity)?);
        let mut generator = generator()?;
        PREKEYS.with(prekeys, |kept| match kept {
            PreKeysBacking::Memory(keys) => {
                Ok(keys.replenish(&mut *generator, &identity, one_time)?)
            }
            PreKeysBacking::Vault(stored) => {
                Ok(stored.replenish(&mut *generator, &identity, one_time)?)
            }
        })
    })
}

/// Generates new signed prekeys; call it about once a week. The previous ones remain valid for
/// first messages in transit.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_prekeys_rotate(
    prekeys: wraith_prekeys_t,
    identity: wraith_identity_t,
) -> wraith_status_t {
    entry!(|_call| {
        let (identity, mut generator) = (identity::identity(identity)?, generator()?);
        PREKEYS.with(prekeys, |kept| match kept {
            PreKeysBacking::Memory(prekeys) => Ok(prekeys.rotate(&mut *generator, &identity)?),
            PreKeysBacking::Vault(stored) => Ok(stored.rotate(&mut *generator, &identity)?),
        })
    })
}

/// Serializes the prekeys, secrets included, without a checksum, for a caller without a vault.
/// Prefer `wraith_prekeys_keep`. `WRAITH_INVALID_STATE` if they are in a vault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_save(
    prekeys: wraith_prekeys_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        PREKEYS.with(prekeys, |kept| output.write(&kept.in_memory()?.save()))
    })
}

/// Restores prekeys from saved bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_restore(
    saved: *const u8,
    saved_len: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let (saved, out) = (call.bytes(saved, saved_len)?, call.out(out)?);
        out.write(insert(PreKeys::restore(saved)?)?);
        Ok(())
    })
}

/// Frees the prekeys and wipes their secrets.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_prekeys_free(prekeys: wraith_prekeys_t) -> wraith_status_t {
    entry!(|_call| PREKEYS.remove(prekeys).map(drop))
}
