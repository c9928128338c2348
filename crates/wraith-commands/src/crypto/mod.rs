//! `wraith crypto`: the algorithms of `wraith-crypto` for files and pipes. docs/CRYPTO.md describes
//! the formats byte by byte.
//!
//! Invariants:
//! - A result appears completely or not at all: a file is written under a temporary name and
//!   renamed at the end ([`output`]). Decrypted data on standard output was verified first, chunk
//!   by chunk, and a premature end is a failure.
//! - Secrets come from files or the terminal, never from the command line. A file with a secret is
//!   readable only by its owner, and replaced only on request.

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

pub use completed::with_names;

use std::sync::Arc;

use crate::args::CryptoArgs;
use crate::args::crypto::CryptoAction;
use crate::failure::{Exit, Failure, plain};
use crate::output::Reporter;
use crate::signals::{Signals, blocking};

/// Runs the action on a thread of its own. A signal stops it and removes its partial output.
pub async fn run(args: &CryptoArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let signals = Signals::catch(|| ()).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
    })?;
    let (action, its_reporter) = (args.action.clone(), Arc::clone(reporter));
    let result = signals.or(blocking(move || act(&action, &its_reporter))).await;
    if result.is_err() {
        output::abandon();
        passphrase::show_again();
    }
    result
}

fn act(action: &CryptoAction, reporter: &Reporter) -> Result<(), Failure> {
    match action {
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
