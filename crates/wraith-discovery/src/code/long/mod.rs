//! Long codes: six words that need no server and nobody online, only a place that stores (SPEC §11.9).
//!
//! What is stored may be read by anybody, who can then try words without asking anyone. So the words are not the secret of an online
//! exchange as in a short code, but the seed of keys, through Argon2id: 60 bits, each guess at 64 MiB and three passes. Who does not have
//! them finds nothing that could be tried one code at a time, because the words decide where the records stand, too.
//!
//! ```text
//!   creator                        records                          joiner
//!   offer: who I am          ──▶   creator's key of the hour   ──▶  found
//!                            ◀──   joiner's key of the hour    ◀──  who I am, where, the ticket if I have it
//!   offer with who joined    ──▶   creator's key of the hour   ──▶  the ticket, or that it was taken
//! ```
//!
//! Invariant: the ticket is made for the first joiner (or as many as the code has uses) and given to nobody else; but whoever has the
//! words can read it until it is overwritten or expires. There is no guess that could burn such a code.

mod announce;
mod join;
mod keys;
mod message;

pub use announce::announce_long;
pub(super) use join::join_long;
