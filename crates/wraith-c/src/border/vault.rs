//! A vault implemented by the caller.

use std::ffi::c_void;

use wraith_session::vault::{Durability, KeyVault, NewRecord, VaultError};
use zeroize::Zeroizing;

use super::Plain;
use crate::bytes::wraith_bytes_t;
use crate::status::wraith_status_t::{
    WRAITH_BUFFER_TOO_SMALL, WRAITH_CONFLICT, WRAITH_NOT_FOUND, WRAITH_OK,
};

/// Initial buffer size for a record; a session record fits.
const RECORD_ROOM: usize = 4096;
/// Upper bound for the size of a record.
const RECORD_MAX: usize = 16 << 20;

/// A store for records of sessions, conversations and prekeys, implemented by the caller, such as a
/// keychain or a database. Each function returns a `wraith_status_t`.
///
/// The functions may be called from any thread, and concurrently for different names. They may call
/// this library, but not for the object they are called for; that returns `WRAITH_INVALID_STATE`.
///
/// The safety of all stored objects depends on these rules:
///
/// - A record is replaced as a whole or not at all.
/// - Of two stores with the same generation, one fails.
/// - After a store with `durability` 1, no load returns an older record.
///
/// A record contains keys, so it should be encrypted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_vault_callbacks_t {
    /// `sizeof(wraith_vault_callbacks_t)`.
    pub struct_size: usize,
    /// Passed to each function.
    pub user: *mut c_void,
    /// Replaces the record of this name by `record`. Returns `WRAITH_CONFLICT` if the stored record
    /// has this generation or a later one. `durability` is 0 if the record must survive the
    /// process, and 1 if it must survive a power cut.
    pub store: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            name: wraith_bytes_t,
            generation: u64,
            record: wraith_bytes_t,
            durability: u32,
        ) -> i32,
    >,
    /// Copies the record of this name to `out` and its length to `*out_len`. Returns
    /// `WRAITH_NOT_FOUND` if there is none. Returns `WRAITH_BUFFER_TOO_SMALL` and the length if
    /// there is too little room; the function is then called again.
    pub load: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            name: wraith_bytes_t,
            out: *mut u8,
            out_cap: usize,
            out_len: *mut usize,
        ) -> i32,
    >,
    /// Removes the record of this name, if there is one.
    pub remove: Option<unsafe extern "C" fn(user: *mut c_void, name: wraith_bytes_t) -> i32>,
    /// Returns the latest generation ever stored durably under this name, from a memory that is not
    /// restored together with the records. Opened messages are then stored durably. Returns
    /// `WRAITH_NOT_FOUND` if it is unknown. May be NULL; a rollback of the vault is then not
    /// detected.
    pub latest:
        Option<unsafe extern "C" fn(user: *mut c_void, name: wraith_bytes_t, out: *mut u64) -> i32>,
    /// The last call of all. May be NULL.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void)>,
}

// SAFETY: an integer, a pointer, and optional function pointers.
unsafe impl Plain for wraith_vault_callbacks_t {}

/// The caller's vault.
pub struct CallersVault(wraith_vault_callbacks_t);

// SAFETY: the `user` pointer is only passed back, and the header says that the functions are called
// from any thread.
unsafe impl Send for CallersVault {}
// SAFETY: as above, and also concurrently.
unsafe impl Sync for CallersVault {}

impl CallersVault {
    /// Returns `None` if a mandatory function is missing.
    pub fn new(callbacks: wraith_vault_callbacks_t) -> Option<Self> {
        let is_whole =
            callbacks.store.is_some() && callbacks.load.is_some() && callbacks.remove.is_some();
        is_whole.then_some(Self(callbacks))
    }
}

impl Drop for CallersVault {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the caller's function has this signature.
            unsafe { release(self.0.user) }
        }
    }
}

fn failed(call: &str, status: i32) -> VaultError {
    VaultError::Failed(format!("`{call}` of the vault returned {status}"))
}

fn name_of(name: &str) -> wraith_bytes_t {
    wraith_bytes_t::of(name.as_bytes())
}

impl KeyVault for CallersVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        let store = self.0.store.expect("`new` saw that it is there");
        let durability = match record.durability {
            Durability::Process => 0,
            Durability::Power => 1,
        };
        let bytes = wraith_bytes_t::of(record.bytes);
        // SAFETY: the caller's function has this signature, and the bytes live until it returns.
        let status =
            unsafe { store(self.0.user, name_of(name), record.generation, bytes, durability) };
        match status {
            _ if status == WRAITH_OK as i32 => Ok(()),
            _ if status == WRAITH_CONFLICT as i32 => Err(VaultError::Conflict),
            _ => Err(failed("store", status)),
        }
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        let load = self.0.load.expect("`new` saw that it is there");
        let mut room = RECORD_ROOM;
        while room <= RECORD_MAX {
            let mut record = Zeroizing::new(vec![0; room]);
            let mut len = 0;
            // SAFETY: as in `store`; the buffer has `room` bytes.
            let status =
                unsafe { load(self.0.user, name_of(name), record.as_mut_ptr(), room, &mut len) };
            match status {
                _ if status == WRAITH_OK as i32 && len <= room => {
                    record.truncate(len);
                    return Ok(Some(record));
                }
                _ if status == WRAITH_NOT_FOUND as i32 => return Ok(None),
                _ if status == WRAITH_BUFFER_TOO_SMALL as i32 && len > room => room = len,
                _ => return Err(failed("load", status)),
            }
        }
        Err(VaultError::Failed("a record is too long".to_owned()))
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        let remove = self.0.remove.expect("`new` saw that it is there");
        // SAFETY: as in `store`.
        let status = unsafe { remove(self.0.user, name_of(name)) };
        if status == WRAITH_OK as i32 { Ok(()) } else { Err(failed("remove", status)) }
    }

    fn latest(&self, name: &str) -> Result<Option<u64>, VaultError> {
        let Some(latest) = self.0.latest else { return Ok(None) };
        let mut generation = 0;
        // SAFETY: as in `store`; `generation` is a valid place for the result.
        let status = unsafe { latest(self.0.user, name_of(name), &mut generation) };
        match status {
            _ if status == WRAITH_OK as i32 => Ok(Some(generation)),
            _ if status == WRAITH_NOT_FOUND as i32 => Ok(None),
            _ => Err(failed("latest", status)),
        }
    }
}
