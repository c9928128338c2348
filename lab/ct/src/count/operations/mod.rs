//! The counted operations: every algorithm of the suite by its name, and the functions of a
//! transfer. A new algorithm is counted without a change here.
//!
//! | operations | content |
//! |---|---|
//! | [`symmetric`] | hashes, MACs, AEADs, ciphers, key derivation, generators, by algorithm |
//! | [`transfer`] | packets, masks, comparisons, Elligator2, identities, codes |
//! | [`public_key`] | key agreement, signatures, KEMs, public-key encryption, by algorithm |
//! | [`numbers`] | big integers, PEM, DER |

pub mod numbers;
pub mod public_key;
pub mod symmetric;
pub mod transfer;

use super::{Expectation, Operation};

/// The first part of the names of operations whose counts may differ, and the reason.
pub const EXCLUSIONS: &[(&str, &str)] = &[];

/// Returns every operation.
pub fn all() -> Vec<Operation> {
    let mut all = symmetric::all();
    all.extend(transfer::all());
    all.extend(public_key::all());
    all.extend(numbers::all());
    all.into_iter().map(excluded).collect()
}

fn excluded(operation: Operation) -> Operation {
    let exclusion = EXCLUSIONS.iter().find(|(name, _)| operation.name.starts_with(name));
    match exclusion {
        Some((_, reason)) => operation.expecting(Expectation::Excluded(reason)),
        None => operation,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::count::secrets::{Draw, Form};

    #[test]
    fn every_exclusion_excludes_something() {
        let all = all();
        for (name, reason) in EXCLUSIONS {
            assert!(all.iter().any(|each| each.name.starts_with(name)), "{name}");
            assert!(reason.len() > 20, "{name} has no reason");
        }
    }

    #[test]
    fn names_are_unique_and_every_short_operation_runs() {
        let all = crate::count::all();
        let names: BTreeSet<_> = all.iter().map(|each| &each.name).collect();
        assert_eq!(names.len(), all.len());
        for operation in all.iter().filter(|each| !each.is_long) {
            let mut draw = Draw::new(Form::Small, 1, &operation.name);
            let prepared = operation.prepare(&mut draw);
            let prepared = prepared.unwrap_or_else(|| panic!("{} is not there", operation.name));
            prepared.secrets.iter().for_each(|secret| (prepared.run)(&secret.bytes));
        }
    }
}
