//! What somebody publishes so that conversations can be started while they are away.

use std::sync::Mutex;

use wraith_session::ratchet::{MAX_BUNDLE_BYTES, PreKeys, StartError};

use crate::border::entry;
use crate::identity::{self, wraith_identity_t};
use crate::random::generator;
use crate::status::wraith_status_t::*;
use crate::status::{Failure, wraith_status_t};
use crate::table::{Kind, Table};

/// Room for a bundle, in bytes.
pub const WRAITH_BUNDLE_MAX: usize = 1417;
const _: () = assert!(WRAITH_BUNDLE_MAX == MAX_BUNDLE_BYTES);
/// Most one-time prekeys.
pub const WRAITH_ONE_TIME_MAX: usize = 1000;

/// The prekeys of one identity, with their secrets.
pub type wraith_prekeys_t = u64;

pub(super) static PREKEYS: Table<Mutex<PreKeys>> = Table::new(Kind::Prekeys);

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

fn bounded(one_time: usize) -> Result<usize, Failure> {
    match one_time <= WRAITH_ONE_TIME_MAX {
        true => Ok(one_time),
        false => Err(Failure::input(format!("at most {WRAITH_ONE_TIME_MAX} one-time prekeys"))),
    }
}

/// New prekeys of an identity, `one_time` of them for one conversation each. Save them before a bundle leaves, and after each
/// conversation that they started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_generate(
    identity: wraith_identity_t,
    one_time: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let place = call.place(out)?;
        let (one_time, identity) = (bounded(one_time)?, identity::identity(identity)?);
        let prekeys = PreKeys::generate(&mut *generator()?, &identity, one_time);
        place.put(PREKEYS.insert(Mutex::new(prekeys))?);
        Ok(())
    })
}

/// A bundle for one initiator, to be published; it takes a one-time prekey with it while there are some. Needs room for
/// `WRAITH_BUNDLE_MAX`.
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
        output.write(&PREKEYS.with(prekeys, |prekeys| Ok(prekeys.bundle().encode()))?)
    })
}

/// How many one-time prekeys have not been handed out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_remaining(
    prekeys: wraith_prekeys_t,
    out: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let place = call.place(out)?;
        place.put(PREKEYS.with(prekeys, |prekeys| Ok(prekeys.remaining()))?);
        Ok(())
    })
}

/// Makes one-time prekeys until `one_time` of them have not been handed out.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_prekeys_replenish(
    prekeys: wraith_prekeys_t,
    identity: wraith_identity_t,
    one_time: usize,
) -> wraith_status_t {
    entry!(|_call| {
        let (one_time, identity) = (bounded(one_time)?, identity::identity(identity)?);
        let mut generator = generator()?;
        PREKEYS.with(prekeys, |keys| Ok(keys.replenish(&mut *generator, &identity, one_time)?))
    })
}

/// Makes new signed prekeys, every week or so. Those before stay for first messages that are under way.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_prekeys_rotate(
    prekeys: wraith_prekeys_t,
    identity: wraith_identity_t,
) -> wraith_status_t {
    entry!(|_call| {
        let (identity, mut generator) = (identity::identity(identity)?, generator()?);
        PREKEYS.with(prekeys, |prekeys| Ok(prekeys.rotate(&mut *generator, &identity)?))
    })
}

/// The prekeys as bytes, secrets included, without a checksum.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_save(
    prekeys: wraith_prekeys_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        PREKEYS.with(prekeys, |prekeys| output.write(&prekeys.save()))
    })
}

/// The prekeys of these bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_restore(
    saved: *const u8,
    saved_len: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let (saved, place) = (call.bytes(saved, saved_len)?, call.place(out)?);
        place.put(PREKEYS.insert(Mutex::new(PreKeys::restore(saved)?))?);
        Ok(())
    })
}

/// Frees them, and wipes their secrets.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_prekeys_free(prekeys: wraith_prekeys_t) -> wraith_status_t {
    entry!(|_call| PREKEYS.remove(prekeys).map(drop))
}
