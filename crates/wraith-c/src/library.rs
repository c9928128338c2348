//! The library itself: its version, and messages for failures.

use std::ffi::c_char;

use crate::border::{entry, last_error};
use crate::status::wraith_status_t;

/// ABI number of this header. A program must not use a library with another number.
pub const WRAITH_ABI: u32 = 1;

/// Returns the library's version as a static string, which is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the ABI number of the loaded library; compare it with `WRAITH_ABI` of the header.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_abi() -> u32 {
    WRAITH_ABI
}

/// Returns the message of the last failed call on this thread: one UTF-8 sentence for people, or
/// empty if none failed. If this call itself fails, the message is unchanged.
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
