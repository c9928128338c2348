//! AES key wrap (RFC 3394) and key wrap with padding (RFC 5649). `None` if a length is wrong, or
//! what was wrapped is not authentic.

use std::ptr;

use aws_lc_sys::{
    AES_KEY, AES_set_decrypt_key, AES_set_encrypt_key, AES_unwrap_key, AES_unwrap_key_padded,
    AES_wrap_key, AES_wrap_key_padded,
};
use zeroize::{Zeroize, Zeroizing};

/// An expanded AES key. Wiped when dropped.
struct Schedule(AES_KEY);

impl Drop for Schedule {
    fn drop(&mut self) {
        self.0.rd_key.zeroize();
    }
}

impl Schedule {
    fn new(key: &[u8], encrypt: bool) -> Option<Self> {
        let bits = matches!(key.len(), 16 | 24 | 32).then(|| 8 * key.len() as u32)?;
        let mut schedule = Self(AES_KEY { rd_key: [0; 60], rounds: 0 });
        let make = if encrypt { AES_set_encrypt_key } else { AES_set_decrypt_key };
        // SAFETY: the key has this number of bits; the schedule is writable.
        let failed = unsafe { make(key.as_ptr(), bits, &raw mut schedule.0) };
        (failed == 0).then_some(schedule)
    }
}

/// Wraps `secret`, whole words of 8 bytes and at least two. The result is 8 bytes longer.
#[must_use]
pub fn wrap(key: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let schedule = Schedule::new(key, true)?;
    let mut out = vec![0; secret.len() + 8];
    // SAFETY: the output has room for 8 bytes more than the input; a null IV selects the
    // standard's.
    let len = unsafe {
        let (to, from) = (out.as_mut_ptr(), secret.as_ptr());
        AES_wrap_key(&raw const schedule.0, ptr::null(), to, from, secret.len())
    };
    (usize::try_from(len) == Ok(out.len())).then_some(out)
}

/// Reverses [`wrap`].
#[must_use]
pub fn unwrap(key: &[u8], wrapped: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let schedule = Schedule::new(key, false)?;
    let mut out = Zeroizing::new(vec![0; wrapped.len().checked_sub(8)?]);
    // SAFETY: the output has room for 8 bytes less than the input.
    let len = unsafe {
        let (to, from) = (out.as_mut_ptr(), wrapped.as_ptr());
        AES_unwrap_key(&raw const schedule.0, ptr::null(), to, from, wrapped.len())
    };
    (usize::try_from(len) == Ok(out.len())).then_some(out)
}

/// Wraps `secret`, at least a byte. The result is 8 bytes longer than whole words of 8 bytes.
#[must_use]
pub fn wrap_padded(key: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let schedule = Schedule::new(key, true)?;
    let (mut out, mut len) = (vec![0; secret.len().next_multiple_of(8) + 8], 0);
    // SAFETY: the output is passed with its length.
    let done = unsafe {
        let (to, room) = (out.as_mut_ptr(), out.len());
        let (from, bytes) = (secret.as_ptr(), secret.len());
        AES_wrap_key_padded(&raw const schedule.0, to, &raw mut len, room, from, bytes)
    };
    (done == 1 && len == out.len()).then_some(out)
}

/// Reverses [`wrap_padded`].
#[must_use]
pub fn unwrap_padded(key: &[u8], wrapped: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    // A single block is decrypted and longer inputs are unwrapped; both need the decryption
    // schedule.
    let schedule = Schedule::new(key, false)?;
    let (mut out, mut len) = (Zeroizing::new(vec![0; wrapped.len()]), 0);
    // SAFETY: the output is passed with its length.
    let done = unsafe {
        let (to, room) = (out.as_mut_ptr(), out.len());
        let (from, bytes) = (wrapped.as_ptr(), wrapped.len());
        AES_unwrap_key_padded(&raw const schedule.0, to, &raw mut len, room, from, bytes)
    };
    if done != 1 || len > out.len() {
        return None;
    }
    // Truncating a vector does not move it, so the unused end is wiped here.
    out[len..].zeroize();
    out.truncate(len);
    Some(out)
}
