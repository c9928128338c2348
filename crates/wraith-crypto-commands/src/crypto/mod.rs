//! `wraith crypto`: the algorithms of `wraith-suite` for files and pipes. docs/CRYPTO.md describes
//! the formats byte by byte.
//!
//! Invariants:
//! - A result appears completely or not at all: a file is written under a temporary name and
//!   renamed at the end (`output.rs`). Decrypted data on standard output was verified first, chunk
//!   by chunk, and a premature end is a failure.
//! - Secrets come from files or the terminal, never from the command line. A file with a secret is
//!   readable only by its owner, and replaced only on request.

mod args;
mod completed;
mod container;
mod digest;
mod encapsulate;
mod generate;
mod input;
mod keys;
mod list;
mod names;
mod output;
mod passphrase;
mod random;
mod raw;
mod sealing;
mod signing;
mod unreadable;

pub use args::CryptoArgs;
pub use completed::with_names;

use args::CryptoAction;

use crate::failure::Failure;
use crate::report::Reporter;

/// Runs the command. It blocks, and may ask for a passphrase at the terminal.
///
/// The caller must call [`abandon`] after a failure, and before a signal ends the process during
/// the command.
///
/// # Errors
/// The failure of the command.
pub fn run(args: &CryptoArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    match &args.action {
        CryptoAction::Hash(args) => digest::hash(args, reporter),
        CryptoAction::Mac(args) => digest::mac(args, reporter),
        CryptoAction::Enc(args) => sealing::encrypt(args, reporter),
        CryptoAction::Dec(args) => sealing::decrypt(args, reporter),
        CryptoAction::Genkey(args) => generate::key(args, reporter),
        CryptoAction::Pub(args) => generate::public(args, reporter),
        CryptoAction::Sign(args) => signing::sign(args, reporter),
        CryptoAction::Verify(args) => signing::verify(args, reporter),
        CryptoAction::Kem(args) => encapsulate::run(&args.action, reporter),
        CryptoAction::Rand(args) => random::run(args, reporter),
        CryptoAction::List(args) => list::run(args, reporter),
    }
}

/// Removes the partial output of a failed or stopped command, and restores the echo of the
/// terminal.
pub fn abandon() {
    output::abandon();
    passphrase::show_again();
}
