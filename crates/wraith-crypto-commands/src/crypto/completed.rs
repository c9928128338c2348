//! Algorithm names for shell completion.
//!
//! The commands accept a name in any spelling, so their own definition has no list of names.
//! Completion offers lower case, which is the easiest to type.

use clap::Command;
use clap::builder::PossibleValuesParser;
use wraith_suite::{aead, cipher, hash, kem, mac, sign};

use super::names::AlgorithmNames;

/// Returns the definition of `wraith` with the names of `wraith crypto list` as possible values of
/// each algorithm argument. Only for the generators of completion scripts; the one for fish uses
/// the values of options only.
pub fn with_names(definition: Command) -> Command {
    let [hashes, macs] = [titles::<hash::Algorithm>(), titles::<mac::Algorithm>()];
    let [aeads, ciphers] = [titles::<aead::Algorithm>(), titles::<cipher::Algorithm>()];
    let [signatures, kems] = [titles::<sign::Algorithm>(), titles::<kem::Algorithm>()];
    // Every other key type implies its algorithm.
    let of_rsa: Vec<_> =
        signatures.iter().filter(|name| name.starts_with("rsa")).cloned().collect();
    definition.mut_subcommand("crypto", |crypto| {
        [
            ("hash", hashes),
            ("enc", [&aeads[..], &ciphers].concat()),
            ("dec", ciphers.clone()),
            ("genkey", [signatures, kems, aeads, ciphers, macs.clone()].concat()),
            ("mac", macs),
            ("sign", of_rsa.clone()),
            ("verify", of_rsa),
        ]
        .into_iter()
        .fold(crypto, |crypto, (command, names)| {
            let names = PossibleValuesParser::new(names);
            crypto.mut_subcommand(command, |command| {
                // `mut_arg` would move it to the end.
                command.mut_args(|arg| match arg.get_id() == "algorithm" {
                    true => arg.value_parser(names.clone()),
                    false => arg,
                })
            })
        })
    })
}

fn titles<A: AlgorithmNames>() -> Vec<String> {
    A::EVERY.iter().map(|each| each.title().to_ascii_lowercase()).collect()
}
