//! Getting through NATs (SPEC §14).

mod target;

pub use target::is_target;
