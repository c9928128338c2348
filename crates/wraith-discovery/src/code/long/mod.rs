//! Long codes: six words that need no server and no simultaneous presence, only a record store
//! (SPEC §11.9).
//!
//! Anyone may read stored records and test words against them offline. The words are therefore not
//! the secret of an online exchange as in a short code. They are the input of the password hash
//! Argon2id. They hold 60 bits, and each guess costs 64 MiB and three passes. The words also
//! determine the storage keys, so an attacker cannot pick out a single code to test.
//!
//! ```text
//!   creator                        records                          joiner
//!   offer: creator's NodeId  ──▶   creator's key of the hour   ──▶  found
//!                            ◀──   joiner's key of the hour    ◀──  joiner's NodeId, addresses, its ticket if any
//!   offer with the joiner    ──▶   creator's key of the hour   ──▶  the ticket, or its acceptance
//! ```
//!
//! Invariant: tickets are made only for the first joiners, as many as the code has uses. But anyone
//! with the words can read a ticket until it is overwritten or expires. A wrong guess does not end
//! such a code.

mod announce;
mod join;
mod keys;
mod message;

pub use announce::announce_long;
pub(super) use join::join_long;
