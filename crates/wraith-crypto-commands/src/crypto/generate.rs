//! `wraith crypto genkey` and `wraith crypto pub`.

use data_encoding::HEXLOWER;
use wraith_suite::{aead, agree, cipher, encrypt, hash, kem, mac, rand, sign};
use zeroize::Zeroizing;

use super::args::{GenkeyArgs, OutArgs, PubArgs};
use super::keys::{self, LoadedPrivateKey};
use super::names::{AlgorithmNames, nearest, not_there};
use super::output::{Output, Readers};
use crate::failure::{Exit, Failure};
use crate::report::Reporter;

pub fn key(args: &GenkeyArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let made = made(&args.algorithm)?;
    match made {
        NewKey::Pair(key, name) => {
            let text = keys::private_text(&key)?;
            write(&args.out, Readers::Owner, text.as_bytes(), "private-key", name, reporter)
        }
        NewKey::Secret(bytes, name) => {
            let mut secret = Zeroizing::new(vec![0; bytes]);
            rand::fill(&mut secret);
            write_secret(&args.out, &secret, name, reporter)
        }
    }
}

pub fn public(args: &PubArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let key = keys::private(&args.key, None)?;
    let algorithm = match &key {
        LoadedPrivateKey::Sign(key) => key.algorithm().name(),
        LoadedPrivateKey::Kem(key) => key.algorithm().name(),
    };
    let text = keys::public_text(&key)?;
    write(&args.out, Readers::Anybody, text.as_bytes(), "public-key", algorithm, reporter)
}

/// Writes a secret in hexadecimal, readable only by its owner.
pub fn write_secret(
    out: &OutArgs,
    secret: &[u8],
    algorithm: &'static str,
    reporter: &dyn Reporter,
) -> Result<(), Failure> {
    write(out, Readers::Owner, hexadecimal(secret).as_bytes(), "secret", algorithm, reporter)
}

/// Formats a secret as a line of hexadecimal digits.
pub fn hexadecimal(secret: &[u8]) -> Zeroizing<String> {
    // The full capacity from the start, so that the text is never moved.
    let mut text = Zeroizing::new(String::with_capacity(2 * secret.len() + 1));
    HEXLOWER.encode_append(secret, &mut text);
    text.push('\n');
    text
}

fn write(
    out: &OutArgs,
    readers: Readers,
    text: &[u8],
    what: &str,
    algorithm: &'static str,
    reporter: &dyn Reporter,
) -> Result<(), Failure> {
    let mut output = Output::open(out, readers, true, reporter)?;
    output.write(text)?;
    output.finish(what, Some(algorithm), reporter)
}

enum NewKey {
    Pair(LoadedPrivateKey, &'static str),
    /// A key of this many random bytes.
    Secret(usize, &'static str),
}

/// Makes a key for the algorithm of this name.
fn made(name: &str) -> Result<NewKey, Failure> {
    if let Ok(algorithm) = name.parse::<sign::Algorithm>() {
        let key = algorithm.generate().map_err(|error| other(&error))?;
        return Ok(NewKey::Pair(LoadedPrivateKey::Sign(key), algorithm.name()));
    }
    if let Ok(algorithm) = name.parse::<kem::Algorithm>() {
        let key = algorithm.generate().map_err(|error| other(&error))?;
        return Ok(NewKey::Pair(LoadedPrivateKey::Kem(key), algorithm.name()));
    }
    if let Ok(algorithm) = name.parse::<aead::Algorithm>() {
        return Ok(NewKey::Secret(algorithm.key_bytes(), algorithm.name()));
    }
    if let Ok(algorithm) = name.parse::<cipher::Algorithm>() {
        return Ok(NewKey::Secret(algorithm.key_bytes(), algorithm.name()));
    }
    if let Ok(algorithm) = name.parse::<mac::Algorithm>() {
        let bytes = algorithm.key_bytes().unwrap_or(algorithm.tag_bytes());
        return Ok(NewKey::Secret(bytes, algorithm.name()));
    }
    if let Ok(algorithm) = name.parse::<agree::Algorithm>() {
        return Err(without(algorithm.name(), "use a KEM instead: genkey X-Wing"));
    }
    if let Ok(algorithm) = name.parse::<encrypt::Algorithm>() {
        return Err(without(algorithm.name(), "use a KEM instead: genkey X-Wing"));
    }
    if let Ok(algorithm) = name.parse::<hash::Algorithm>() {
        return Err(without(algorithm.name(), "use an authentication code instead: genkey HMAC-…"));
    }
    Err(no_algorithm(name))
}

fn without(algorithm: &str, instead: &str) -> Failure {
    Failure::new(Exit::Usage, format!("there are no key files for {algorithm}")).hint(instead)
}

/// Names of keys in `openssl` and other programs, in lower case, and their equivalents here.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("prime256v1", "ECDSA-P-256"),
    ("secp224r1", "ECDSA-P-224"),
    ("secp256r1", "ECDSA-P-256"),
    ("secp384r1", "ECDSA-P-384"),
    ("secp521r1", "ECDSA-P-521"),
    ("rsa-2048", "RSA-PSS-SHA-256"),
    ("rsa-3072", "RSA-PSS-SHA-256"),
    ("rsa-4096", "RSA-PSS-SHA-256"),
    ("rsa", "RSA-PSS-SHA-256"),
];

fn no_algorithm(name: &str) -> Failure {
    fn titles<A: AlgorithmNames>() -> impl Iterator<Item = &'static str> {
        A::EVERY.iter().map(|each| each.title())
    }
    let pairs = titles::<sign::Algorithm>().chain(titles::<kem::Algorithm>());
    let secrets = titles::<aead::Algorithm>().chain(titles::<cipher::Algorithm>());
    let is_it = |(other, _): &&(&str, &str)| plain(other).eq(plain(name));
    let near = match OTHER_NAMES.iter().find(is_it) {
        Some((_, here)) => vec![*here],
        None => nearest(name, pairs.chain(secrets).chain(titles::<mac::Algorithm>())),
    };
    let shown: String = name.chars().take(wraith_suite::NAME_MAX).collect();
    not_there(&format!("there is no algorithm named '{shown}'"), &near, None)
}

/// Returns the significant characters of a name.
fn plain(name: &str) -> impl Iterator<Item = char> {
    let kept = name.chars().filter(|c| !matches!(c, '-' | '_' | ':' | ' '));
    kept.map(|c| c.to_ascii_lowercase())
}

fn other(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Other, error.to_string())
}
