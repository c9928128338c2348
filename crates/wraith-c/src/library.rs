//! The library itself: its version, and words for what went wrong.

use std::ffi::c_char;

use crate::border::{entry, last_error};
use crate::status::wraith_status_t;

/// The number of this interface. Programs that were compiled for another one must not use the library.
pub const WRAITH_ABI: u32 = 1;

/// The library's version as text, which is always there and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The interface of the library that is loaded: to be compared with `WRAITH_ABI` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_abi() -> u32 {
    WRAITH_ABI
}

/// Why the last call on this thread that failed did so: one sentence as UTF-8, for people. Empty if none has. A call of this
/// that fails itself changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_last_error(
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    let words = last_error();
    let status = entry!(|call| call.output(out, out_cap, out_len)?.write(words.as_bytes()));
    if status != wraith_status_t::WRAITH_OK {
        crate::border::restore(words);
    }
    status
}
