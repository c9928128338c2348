//! The C library: keys, messages, files and raw connections, behind functions whose names begin
//! with `wraith_`.
//!
//! ```text
//!   C ──▶ entry points ──▶ border ──────────▶ table ─────▶ wraith, wraith-session, wraith-crypto
//!         (one module      pointers become    numbers
//!          per subject)    slices, panics     become
//!                          become statuses    objects
//! ```
//!
//! Invariants:
//!
//! - Every entry point (exported function) runs inside [`border`]: a panic is returned as
//!   `WRAITH_PANICKED`, and never unwinds into the caller's stack.
//! - Only [`border`] accesses the caller's memory. Output is written last: a call that fails has
//!   changed nothing but `*out_len`.
//! - The C code holds numbers instead of pointers ([`table`]). The use of a freed number, or of a
//!   number of another kind, returns an error.
//! - No lock is held while a callback runs, with one exception: during a vault callback, the
//!   session or ratchet that is being stored is in use until the callback returns.
//!
//! `bindings/c/include/wraith.h` is generated from the items of this crate and their docs.
//! `bindings/c/README.md` has the rules for users.
#![allow(non_camel_case_types)]
// A handle type and its table have one name.
#![allow(non_upper_case_globals)]
#![allow(clippy::missing_safety_doc)] // The header states the rules for pointers and lengths once.
#![warn(missing_docs)]

mod border;
pub mod bytes;
pub mod connections;
pub mod files;
pub mod hash;
pub mod identity;
pub mod library;
pub mod messages;
mod options;
pub mod status;
mod table;
pub mod waiting;

#[cfg(test)]
mod unsafe_is_at_the_border;
