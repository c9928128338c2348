//! The counted operations: every algorithm of the suite by its name, and the functions of a
//! transfer. A new algorithm of the suite is counted without a change here.
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

/// An exclusion: operations whose counts may differ.
#[derive(Debug)]
pub struct Exclusion {
    /// First part of the names.
    name: &'static str,
    /// Why the counts may differ.
    reason: &'static str,
}

const fn excluding(name: &'static str, reason: &'static str) -> Exclusion {
    Exclusion { name, reason }
}

/// Every exclusion.
pub const EXCLUSIONS: &[Exclusion] = &[
    excluding("sign/ECDSA-brainpool", ECDSA_NONCE),
    excluding("sign/RSA-", RSA_KEY),
    excluding("encrypt/RSA-PKCS1/key", RSA_KEY),
    excluding("sign/ML-DSA-44/", ML_DSA),
    excluding("sign/ML-DSA-65/", ML_DSA),
    excluding("sign/ML-DSA-87/", ML_DSA),
    excluding("kem/ML-KEM-512/key", ML_KEM_KEY),
    excluding("kem/ML-KEM-768/key", ML_KEM_KEY),
    excluding("kem/ML-KEM-1024/key", ML_KEM_KEY),
    excluding("kem/X25519MLKEM768/key", ML_KEM_KEY),
    excluding("kem/X-Wing/key", ML_KEM_KEY),
    excluding("sign/SLH-DSA-SHA2-128s/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHA2-128f/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHA2-192s/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHA2-192f/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHA2-256s/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHA2-256f/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHAKE-128s/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHAKE-128f/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHAKE-192s/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHAKE-192f/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHAKE-256s/sign", SLH_DSA),
    excluding("sign/SLH-DSA-SHAKE-256f/sign", SLH_DSA),
];

const ECDSA_NONCE: &str = "AWS-LC draws the nonce again until it is below the order, which it is with \
    a chance of two thirds; a dropped nonce is not used";
const RSA_KEY: &str = "AWS-LC draws the blinding again until it is below the public modulus, and \
    keys of other values lie at other places of the heap; encrypt/RSA-… counts what works on the \
    ciphertext, with one key";
const ML_DSA: &str = "rejection sampling: FIPS 204 draws again for the public matrix, for small \
    secrets (only the dropped draws are visible), and for a signature whose parts are too large";
const ML_KEM_KEY: &str = "rejection sampling: FIPS 203 draws again for the matrix, which follows \
    from a public part of the seed; the other part is kem/…/rejection-seed";
const SLH_DSA: &str = "the lengths of the hash chains are the digits of the roots, which the \
    signature reveals; sign/…/key runs whole chains";

/// Returns every operation.
pub fn all() -> Vec<Operation> {
    let mut all = symmetric::all();
    all.extend(transfer::all());
    all.extend(public_key::all());
    all.extend(numbers::all());
    all.into_iter().map(excluded).collect()
}

fn excluded(operation: Operation) -> Operation {
    match EXCLUSIONS.iter().find(|exclusion| operation.name.starts_with(exclusion.name)) {
        Some(exclusion) => operation.expecting(Expectation::Excluded(exclusion.reason)),
        None => operation,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::count::Length;
    use crate::count::secrets::{Draw, Form};

    #[test]
    fn every_exclusion_excludes_something() {
        let all = all();
        for Exclusion { name, reason } in EXCLUSIONS {
            assert!(all.iter().any(|each| each.name.starts_with(name)), "{name}");
            assert!(reason.len() > 20, "{name} has no reason");
        }
    }

    #[test]
    fn names_are_unique_and_every_short_operation_runs() {
        let all = crate::count::all();
        let names: BTreeSet<_> = all.iter().map(|each| &each.name).collect();
        assert_eq!(names.len(), all.len());
        for operation in all.iter().filter(|each| each.length == Length::Short) {
            let mut draw = Draw::new(Form::Small, 1, &operation.name);
            let prepared = operation.prepare(&mut draw);
            let prepared = prepared.unwrap_or_else(|| panic!("{} is not there", operation.name));
            for secret in &prepared.secrets {
                prepared.before.iter().for_each(|before| before(&secret.bytes));
                (prepared.run)(&secret.bytes);
            }
        }
    }
}
