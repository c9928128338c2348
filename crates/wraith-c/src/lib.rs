//! The library for C: keys, messages and files, behind functions whose names begin with `wraith_`.
//!
//! ```text
//!   C ──▶ entry points ──▶ border ──────────▶ table ─────▶ wraith, wraith-session, wraith-crypto
//!         (one module a    pointers become    numbers
//!          subject)        slices, panics     become
//!                          become statuses    objects
//! ```
//!
//! Invariants:
//! - Every entry point runs inside [`border`]: a panic ends as `WRAITH_PANICKED`, never in the caller's stack.
//! - Memory of the caller is touched in [`border`] only, and output is written last: a call that fails has changed nothing
//!   but `*out_len`.
//! - What the caller holds are numbers ([`table`]). One that was freed, or is of another kind, is an error.
//! - No lock is held while a callback runs, but for a vault's: the session or ratchet that is being stored is in use until it returns.
//!
//! `bindings/c/include/wraith.h` is made from the items here and their docs. `bindings/c/README.md` has the rules for users.
#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc)] // The header says it once for all: what a pointer and its length have to be.
#![warn(missing_docs)]

mod border;
pub mod bytes;
pub mod files;
pub mod hash;
pub mod identity;
pub mod library;
pub mod messages;
mod random;
pub mod status;
mod table;

#[cfg(test)]
mod unsafe_is_at_the_border;
