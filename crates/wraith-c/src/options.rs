//! Values of the options structs: switches, paths and addresses.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::border::Call;
use crate::bytes::wraith_bytes_t;
use crate::status::{Failure, Outcome};

/// Parses a boolean field.
pub(crate) fn switch(value: u32) -> Outcome<bool> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(Failure::input("an option that must be 0 or 1 has another value")),
    }
}

/// Converts the operating system's bytes to a path.
pub(crate) fn path(bytes: &[u8]) -> Outcome<PathBuf> {
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(Failure::input("a path is empty or has a NUL in it"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// Parses the field `bind`; `None` if it is empty.
pub(crate) fn bind(call: &Call, field: wraith_bytes_t) -> Outcome<Option<SocketAddr>> {
    match call.text_field(field)? {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| Failure::input("`bind` is not IP:PORT")),
    }
}

/// Returns a field of which 0 means the default.
pub(crate) fn nonzero(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

/// Like [`nonzero`], with milliseconds.
pub(crate) fn millis(value: u64) -> Option<Duration> {
    nonzero(value).map(Duration::from_millis)
}

/// Sets an option of a builder, unless it has its default.
pub(crate) fn set<B, T>(builder: B, value: Option<T>, setter: impl FnMut(B, T) -> B) -> B {
    value.into_iter().fold(builder, setter)
}
