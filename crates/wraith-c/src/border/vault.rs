//! A vault that the caller implements.

use std::ffi::c_void;

use wraith_session::vault::{Durability, KeyVault, VaultError};
use zeroize::Zeroizing;

use super::Plain;
use crate::bytes::wraith_bytes_t;
use crate::status::wraith_status_t::{
    WRAITH_BUFFER_TOO_SMALL, WRAITH_CONFLICT, WRAITH_NOT_FOUND, WRAITH_OK,
};

/// Room for a record at the first attempt: that of a session fits.
const RECORD_ROOM: usize = 4096;
/// Longer than any record.
const RECORD_MAX: usize = 16 << 20;

/// What keeps records of sessions, conversations and prekeys for the caller: a keychain, a database. Each function returns a `wraith_status_t`.
///
/// They may be called from any thread, and at the same time for different names. They may call this library, but not for what
/// they are called for, which gives `WRAITH_INVALID_STATE`. All that is kept rests on this: a record is replaced whole or not
/// at all; of two stores with the same generation one fails; what was stored with `durability` 1 is never followed by
/// anything older. A record holds keys, so it should be encrypted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_vault_callbacks_t {
    /// `sizeof(wraith_vault_callbacks_t)`.
    pub struct_size: usize,
    /// Is given to each function.
    pub user: *mut c_void,
    /// Puts `record` in the place of the one of this name. `WRAITH_CONFLICT` if the one that is there has this generation or a
    /// later one. `durability` is 0 if it has to outlive the process, 1 if a power cut.
    pub store: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            name: wraith_bytes_t,
            generation: u64,
            record: wraith_bytes_t,
            durability: u32,
        ) -> i32,
    >,
    /// Copies the record of this name into `out` and its length into `*out_len`. `WRAITH_NOT_FOUND` if there is none,
    /// `WRAITH_BUFFER_TOO_SMALL`, with the length, if there is too little room: it is called again then.
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
    /// The latest generation that was ever stored under this name, from a memory that is not restored together with the
    /// records. `WRAITH_NOT_FOUND` if it does not know. May be NULL; then a vault that was rolled back is not noticed.
    pub latest:
        Option<unsafe extern "C" fn(user: *mut c_void, name: wraith_bytes_t, out: *mut u64) -> i32>,
    /// The last call of all. May be NULL.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void)>,
}

// SAFETY: an integer, a pointer, and functions or nothing.
unsafe impl Plain for wraith_vault_callbacks_t {}

/// The caller's vault.
pub struct CallersVault(wraith_vault_callbacks_t);

// SAFETY: the pointer is only handed back, and the header says that the functions are called from any thread.
unsafe impl Send for CallersVault {}
// SAFETY: as above, at the same time too.
unsafe impl Sync for CallersVault {}

impl CallersVault {
    /// `None` if a function is missing that it cannot do without.
    pub fn new(callbacks: wraith_vault_callbacks_t) -> Option<Self> {
        let is_whole =
            callbacks.store.is_some() && callbacks.load.is_some() && callbacks.remove.is_some();
        is_whole.then_some(Self(callbacks))
    }
}

impl Drop for CallersVault {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: a function of the caller with this signature.
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
    fn store(
        &self,
        name: &str,
        generation: u64,
        record: &[u8],
        durability: Durability,
    ) -> Result<(), VaultError> {
        let store = self.0.store.expect("`new` saw that it is there");
        let durability = match durability {
            Durability::Process => 0,
            Durability::Power => 1,
        };
        let record = wraith_bytes_t::of(record);
        // SAFETY: a function of the caller with this signature, and bytes that live until it returns.
        let status = unsafe { store(self.0.user, name_of(name), generation, record, durability) };
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
        // SAFETY: as in `store`; the place is that of a number.
        let status = unsafe { latest(self.0.user, name_of(name), &mut generation) };
        match status {
            _ if status == WRAITH_OK as i32 => Ok(Some(generation)),
            _ if status == WRAITH_NOT_FOUND as i32 => Ok(None),
            _ => Err(failed("latest", status)),
        }
    }
}
