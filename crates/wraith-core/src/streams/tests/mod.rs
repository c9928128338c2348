//! Tests of two [`Streams`] joined by a channel that may lose, repeat and reorder packets (`pair`).
//! It checks every flow control rule. `exchange` and `blocked` test honest peers, `hostile` tests
//! hostile ones.

mod blocked;
mod exchange;
mod hostile;
mod pair;
mod repeats;
