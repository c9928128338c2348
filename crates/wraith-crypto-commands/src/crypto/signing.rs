//! `wraith crypto sign` and `wraith crypto verify`. A signature has the standard's encoding, as in
//! `openssl`: DER for ECDSA and SM2.

use std::path::Path;

use wraith_suite::sign::{self, SignError};

use super::args::{CheckArgs, SignArgs};
use super::input::{Input, name};
use super::keys::{self, LoadedPrivateKey};
use super::names::named;
use super::output::{Output, Readers};
use crate::failure::{Exit, Failure};
use crate::report::{Event, Reporter};

/// Maximum length of a signature in bytes; SLH-DSA-*-256f has 49,856.
const SIGNATURE_MAX: u64 = 1 << 16;

/// Advice for a bad signature.
const TAKE_NOTHING: &str =
    "do not use this file; get it and the signature again, and the key from its owner";
/// The same for an RSA key without a named algorithm, because it supports several.
const OF_RSA: &str = "if it was signed with another scheme, name it: -a RSA-PKCS1-SHA-256 is the default of openssl; \
    for PSS, the salt must be as long as the hash. Otherwise do not use this file";

pub fn sign(args: &SignArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let algorithm = algorithm(args.algorithm.as_deref())?;
    let key = match keys::private(&args.key, algorithm)? {
        LoadedPrivateKey::Sign(key) => key,
        LoadedPrivateKey::Kem(key) => {
            let message = format!("a key of {} cannot sign", key.algorithm());
            return Err(Failure::new(Exit::Usage, message)
                .hint("wraith crypto list sign lists suitable algorithms"));
        }
    };
    let mut output = Output::open(&args.out, Readers::Anybody, false, reporter)?;
    let message = Input::open(args.file.as_deref())?.message()?;
    let signature = key.sign(&message).map_err(|e| Failure::new(Exit::Other, e.to_string()))?;
    output.write(&signature)?;
    output.finish("signature", Some(key.algorithm().name()), reporter)
}

pub fn verify(args: &CheckArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let key = keys::verifying(&args.key, algorithm(args.algorithm.as_deref())?)?;
    let signature = Input::open(Some(&args.signature))?.all(SIGNATURE_MAX)?;
    let message = Input::open(args.file.as_deref())?.message()?;
    let path = args.file.as_deref().unwrap_or(Path::new("-"));
    let checked = match signature {
        Some(signature) => key.verify(&message, &signature),
        // Longer than any signature.
        None => Err(SignError::Unauthentic),
    };
    let algorithm = key.algorithm().name();
    match checked {
        Ok(()) => {
            reporter.event(&Event::SignatureValid { path: &path.to_string_lossy(), algorithm });
            reporter.status(&format!("{}: good signature ({algorithm})", name(path)));
            Ok(())
        }
        Err(error) => {
            let message = format!("{}: bad signature ({algorithm}): {error}", name(path));
            let is_guess = args.algorithm.is_none() && algorithm.starts_with("RSA");
            let hint = match digest(key.algorithm()) {
                Some((hash, option)) => of_ecdsa(algorithm, hash, option),
                None if is_guess => OF_RSA.to_owned(),
                None => TAKE_NOTHING.to_owned(),
            };
            Err(Failure::new(Exit::Verification, message).hint(hint))
        }
    }
}

/// Returns the hash of this ECDSA algorithm, and its option of `openssl dgst`.
fn digest(algorithm: sign::Algorithm) -> Option<(&'static str, &'static str)> {
    use sign::Algorithm as A;
    match algorithm {
        A::EcdsaP224 => Some(("SHA-224", "-sha224")),
        A::EcdsaP256 | A::EcdsaBrainpoolP256r1 => Some(("SHA-256", "-sha256")),
        A::EcdsaP384 | A::EcdsaBrainpoolP384r1 => Some(("SHA-384", "-sha384")),
        A::EcdsaP521 | A::EcdsaBrainpoolP512r1 => Some(("SHA-512", "-sha512")),
        _ => None,
    }
}

/// The same for ECDSA, where other programs combine a key with several hashes and wraith with one.
fn of_ecdsa(algorithm: &str, hash: &str, option: &str) -> String {
    format!(
        "{algorithm} uses {hash} in wraith; if another hash was used, have the file signed with this one: openssl dgst {option} -sign KEY. \
         Otherwise do not use this file"
    )
}

fn algorithm(name: Option<&str>) -> Result<Option<sign::Algorithm>, Failure> {
    name.map(named).transpose()
}
