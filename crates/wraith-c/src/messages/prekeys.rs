//! Prekeys: public keys that their owner publishes. With them, peers can start conversations while
//! the owner is offline.

use std::sync::Mutex;

use wraith_session::ratchet::{BUNDLE_BYTES_MAX, PreKeys};
use wraith_session::{SecretIdentity, system_rng};

use super::session::not_kept;
use crate::border::export;
use crate::identity::wraith_identity_t;
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};

/// Buffer size for a bundle, in bytes.
pub const WRAITH_BUNDLE_MAX: usize = 1417;
const _: () = assert!(WRAITH_BUNDLE_MAX == BUNDLE_BYTES_MAX);
/// Maximum number of one-time prekeys.
pub const WRAITH_ONE_TIME_MAX: usize = 1000;

/// The prekeys of one identity, with their secrets.
pub type wraith_prekeys_t = u64;

pub(super) static wraith_prekeys_t: Table<Mutex<PreKeys>> = Table::new(Kind::Prekeys);

pub(super) fn generate(identity: &SecretIdentity, one_time: usize) -> Outcome<PreKeys> {
    let one_time = bounded(one_time)?;
    Ok(PreKeys::generate(&mut system_rng()?, identity, one_time))
}

fn bounded(one_time: usize) -> Outcome<usize> {
    match one_time <= WRAITH_ONE_TIME_MAX {
        true => Ok(one_time),
        false => Err(Failure::input(format!("at most {WRAITH_ONE_TIME_MAX} one-time prekeys"))),
    }
}

export!(
    /// Generates prekeys of an identity, with `one_time` one-time prekeys. They are in memory: save
    /// them before a bundle leaves, and after each conversation started with them.
    /// `wraith_prekeys_generate_in_vault` does this automatically.
    pub fn wraith_prekeys_generate(
        identity: Object<wraith_identity_t>,
        one_time: usize,
    ) -> Outcome<wraith_prekeys_t> {
        wraith_prekeys_t.add(generate(&identity, one_time)?)
    }

    /// Returns a bundle for one initiator, to be published. It contains a one-time prekey while
    /// there are some. Needs room for `WRAITH_BUNDLE_MAX`.
    pub fn wraith_prekeys_bundle(prekeys: Locked<wraith_prekeys_t>, out: Buffer) -> Outcome {
        out.room(WRAITH_BUNDLE_MAX)?;
        out.write(&prekeys.bundle()?.encode())
    }

    /// Returns the number of one-time prekeys that were not handed out yet.
    pub fn wraith_prekeys_remaining(prekeys: Locked<wraith_prekeys_t>) -> Outcome<usize> {
        Ok(prekeys.remaining())
    }

    /// Generates one-time prekeys until `one_time` of them are available.
    pub fn wraith_prekeys_replenish(
        prekeys: Locked<wraith_prekeys_t>,
        identity: Object<wraith_identity_t>,
        one_time: usize,
    ) -> Outcome {
        let one_time = bounded(one_time)?;
        Ok(prekeys.replenish(&mut system_rng()?, &identity, one_time)?)
    }

    /// Generates new signed prekeys; call it about once a week. The previous ones remain valid for
    /// first messages in transit.
    pub fn wraith_prekeys_rotate(
        prekeys: Locked<wraith_prekeys_t>,
        identity: Object<wraith_identity_t>,
    ) -> Outcome {
        Ok(prekeys.rotate(&mut system_rng()?, &identity)?)
    }

    /// Serializes the prekeys, secrets included, without a checksum, for a caller without a vault.
    /// Prefer `wraith_prekeys_keep`. `WRAITH_INVALID_STATE` if they are in a vault.
    pub fn wraith_prekeys_save(prekeys: Locked<wraith_prekeys_t>, out: Buffer) -> Outcome {
        not_kept(prekeys.is_kept())?;
        out.write(&prekeys.save())
    }

    /// Restores prekeys from saved bytes.
    pub fn wraith_prekeys_restore(saved: Bytes) -> Outcome<wraith_prekeys_t> {
        wraith_prekeys_t.add(PreKeys::restore(saved)?)
    }

    /// Frees the prekeys and wipes their secrets.
    pub fn wraith_prekeys_free(prekeys: wraith_prekeys_t) -> Outcome {
        wraith_prekeys_t.free(prekeys)
    }
);
