//! The `wraith` program: the entry point and nothing else. The crate `wraith-commands` has the
//! commands.
//!
//! Why a package of its own: cargo has one `opt-level` per package. The commands run at a person's
//! pace and are compiled for size. The link-time optimization, however, uses the level of the
//! linked package, and it also optimizes the code for packets and ciphers. So the linked package is
//! this one, at level 3 (docs/decisions/0012-program-size.md).

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    wraith_commands::main()
}
