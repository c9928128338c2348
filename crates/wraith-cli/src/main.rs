//! The `wraith` program: the entry point and nothing else. The crate `wraith-commands` has the
//! commands.
//!
//! Why a package of its own: link-time optimization compiles the whole program at the level of the
//! package that is linked. That level is the one of packets, chunks and keys; the commands are
//! compiled to be small.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    wraith_commands::main()
}
