//! Key files: secrets in hexadecimal, key pairs in PEM.
//!
//! A private key is a PKCS #8 block ("PRIVATE KEY"), a public key a SubjectPublicKeyInfo block
//! ("PUBLIC KEY"). `openssl` reads and writes both.

use std::path::Path;

use data_encoding::HEXLOWER_PERMISSIVE;
use wraith_suite::encoding::pem;
use wraith_suite::encoding::pkcs8::PrivateKeyInfo;
use wraith_suite::encoding::spki::SubjectPublicKeyInfo;
use wraith_suite::kem::{self, DecapsulationKey, EncapsulationKey};
use wraith_suite::sign::{self, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use super::input::{Input, name};
use super::unreadable::{self, no_key, other_use};
use crate::failure::{Exit, Failure};

/// Maximum length of a key file in bytes; an RSA key of 16384 bits takes 13 KB.
const FILE_MAX: u64 = 1 << 16;
/// Valid lengths of a secret key in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 8..=1024;
/// Minimum length in bytes of a key file that encrypts. The files may be recorded and attacked
/// later, and no slow hash protects the key.
const ENCRYPTION_SECRET_BYTES_MIN: usize = 16;

/// A private key from a file.
pub enum LoadedPrivateKey {
    Sign(Box<dyn SigningKey>),
    Kem(Box<dyn DecapsulationKey>),
}

/// A key for decryption from a file.
pub enum LoadedOpeningKey {
    Secret(Zeroizing<Vec<u8>>),
    PrivateKey(LoadedPrivateKey),
}

/// Decodes a hexadecimal argument of the command line.
pub fn hex(text: &str, what: &str) -> Result<Vec<u8>, Failure> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| {
        Failure::new(Exit::Usage, format!("{what} is not in hexadecimal"))
            .hint("use two digits for each byte, without separators")
    })
}

/// Reads a secret in hexadecimal from a file.
pub fn secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    match opening(path)? {
        LoadedOpeningKey::Secret(secret) => Ok(secret),
        LoadedOpeningKey::PrivateKey(_) => {
            Err(no_key(path, "a private key, not a secret in hexadecimal"))
        }
    }
}

/// Reads a secret in hexadecimal that is strong enough to encrypt with.
pub fn encryption_secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let secret = secret(path)?;
    if secret.len() < ENCRYPTION_SECRET_BYTES_MIN {
        let message = format!(
            "{} contains a key of {} bytes, which can be guessed: encryption needs \
             {ENCRYPTION_SECRET_BYTES_MIN} or more",
            name(path),
            secret.len()
        );
        return Err(Failure::new(Exit::Usage, message)
            .hint("wraith crypto genkey AES-256-GCM -o FILE makes a key of 32 bytes"));
    }
    Ok(secret)
}

/// Reads a private key from a file. An RSA key is for `algorithm`, or for the first RSA algorithm.
pub fn private(
    path: &Path,
    algorithm: Option<sign::Algorithm>,
) -> Result<LoadedPrivateKey, Failure> {
    let der = block(path, PrivateKeyInfo::PEM_LABEL, "private key")?;
    private_of(&der, algorithm).ok_or_else(|| unreadable::private(path, &der, algorithm))
}

/// Reads a secret or a private key from a file.
pub fn opening(path: &Path) -> Result<LoadedOpeningKey, Failure> {
    let text = text(path)?;
    if text.trim_start().starts_with("-----") {
        return private(path, None).map(LoadedOpeningKey::PrivateKey);
    }
    // Allocated with its full capacity, and wiped in every case.
    let mut digits = Zeroizing::new(Vec::with_capacity(text.len()));
    digits.extend(text.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    let mut secret = Zeroizing::new(vec![0; digits.len() / 2]);
    let is_even = digits.len().is_multiple_of(2);
    let is_hex = is_even && HEXLOWER_PERMISSIVE.decode_mut(&digits, &mut secret).is_ok();
    match is_hex.then_some(secret) {
        Some(secret) if SECRET_BYTES.contains(&secret.len()) => {
            Ok(LoadedOpeningKey::Secret(secret))
        }
        Some(secret) => {
            let (least, most) = (SECRET_BYTES.start(), SECRET_BYTES.end());
            Err(no_key(
                path,
                &format!("no key: {} bytes, but keys have {least} to {most}", secret.len()),
            ))
        }
        None => Err(no_key(path, "no key: neither hexadecimal nor PEM")),
    }
}

/// Reads a public key for signature verification from a file.
pub fn verifying(
    path: &Path,
    algorithm: Option<sign::Algorithm>,
) -> Result<Box<dyn VerifyingKey>, Failure> {
    let der = public(path)?;
    let mut tried = tried(algorithm);
    let key = tried.find_map(|each| each.verifying_key_spki(&der).ok());
    key.ok_or_else(|| match kem_of_public(&der) {
        Some(key) => other_use(path, key.algorithm().name(), "cannot sign", "sign"),
        None => unreadable::public(path, &der, algorithm),
    })
}

/// Reads a public key for encapsulation from a file.
pub fn encapsulation(path: &Path) -> Result<Box<dyn EncapsulationKey>, Failure> {
    let der = public(path)?;
    kem_of_public(&der).ok_or_else(|| {
        match tried(None).find(|each| each.verifying_key_spki(&der).is_ok()) {
            Some(signs) => other_use(path, signs.name(), "is for signatures only", "kem"),
            None => unreadable::public(path, &der, None),
        }
    })
}

fn kem_of_public(der: &[u8]) -> Option<Box<dyn EncapsulationKey>> {
    kem::Algorithm::ALL.iter().find_map(|each| each.encapsulation_key_spki(der).ok())
}

/// Encodes the private key as a PEM file.
pub fn private_text(key: &LoadedPrivateKey) -> Result<Zeroizing<String>, Failure> {
    let der = match key {
        LoadedPrivateKey::Sign(key) => key.to_pkcs8(),
        LoadedPrivateKey::Kem(key) => key.to_pkcs8().ok_or_else(|| no_format(key.algorithm()))?,
    };
    Ok(pem::encode(PrivateKeyInfo::PEM_LABEL, &der))
}

/// Encodes the public key as a PEM file.
pub fn public_text(key: &LoadedPrivateKey) -> Result<Zeroizing<String>, Failure> {
    let der = match key {
        LoadedPrivateKey::Sign(key) => key.verifying_key().to_spki(),
        LoadedPrivateKey::Kem(key) => {
            let public = key.encapsulation_key();
            public.to_spki().ok_or_else(|| no_format(key.algorithm()))?
        }
    };
    Ok(pem::encode(SubjectPublicKeyInfo::PEM_LABEL, &der))
}

fn private_of(der: &[u8], algorithm: Option<sign::Algorithm>) -> Option<LoadedPrivateKey> {
    if let Some(key) = tried(algorithm).find_map(|each| each.signing_key_pkcs8(der).ok()) {
        return Some(LoadedPrivateKey::Sign(key));
    }
    let mut kems = kem::Algorithm::ALL.iter();
    kems.find_map(|each| each.decapsulation_key_pkcs8(der).ok()).map(LoadedPrivateKey::Kem)
}

/// Returns the algorithms to try for a key.
fn tried(algorithm: Option<sign::Algorithm>) -> impl Iterator<Item = sign::Algorithm> {
    let is_meant = move |each: &sign::Algorithm| algorithm.is_none_or(|wanted| wanted == *each);
    sign::Algorithm::ALL.iter().copied().filter(is_meant)
}

fn no_format(algorithm: kem::Algorithm) -> Failure {
    Failure::new(Exit::Usage, format!("keys of {algorithm} have no file format"))
        .hint("use X-Wing: it has the same components, and a file format")
}

fn text(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let bytes = Input::open(Some(path))?.all(FILE_MAX)?;
    let mut bytes = bytes.ok_or_else(|| no_key(path, "no key: it has more than 64 KiB"))?;
    if std::str::from_utf8(&bytes).is_err() {
        return Err(unreadable::binary(path, &bytes));
    }
    Ok(Zeroizing::new(String::from_utf8(std::mem::take(&mut *bytes)).expect("it is UTF-8")))
}

fn public(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    block(path, SubjectPublicKeyInfo::PEM_LABEL, "public key")
}

/// Decodes the file as one PEM block with this label.
fn block(path: &Path, label: &str, what: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let text = text(path)?;
    pem::decode(label, &text)
        .map_err(|error| unreadable::block(path, &text, label, what, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_kem_with_a_format_come_back() {
        for algorithm in kem::Algorithm::ALL {
            let key = LoadedPrivateKey::Kem(algorithm.generate().unwrap());
            let Ok(text) = private_text(&key) else {
                assert_eq!(*algorithm, kem::Algorithm::X25519MlKem768);
                continue;
            };
            let der = pem::decode(PrivateKeyInfo::PEM_LABEL, &text).unwrap();
            let again = private_of(&der, None).unwrap();
            assert_eq!(private_text(&again).unwrap(), text);
            assert_eq!(public_text(&again).unwrap(), public_text(&key).unwrap());
        }
    }

    #[test]
    fn a_private_key_that_is_cut_is_none() {
        let key = LoadedPrivateKey::Kem(kem::Algorithm::MlKem768.generate().unwrap());
        let text = private_text(&key).unwrap();
        let der = pem::decode(PrivateKeyInfo::PEM_LABEL, &text).unwrap();
        for len in 0..der.len() {
            assert!(private_of(&der[..len], None).is_none(), "{len}");
        }
    }
}
