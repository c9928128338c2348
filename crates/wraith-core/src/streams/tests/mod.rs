//! Tests of two [`Streams`] joined by a channel that may lose, repeat and reorder packets (`pair`).
//! The channel checks every flow control rule. `exchange` and `blocked` test honest peers,
//! `hostile` tests peers that break the rules.

mod blocked;
mod exchange;
mod hostile;
mod pair;
mod repeats;
