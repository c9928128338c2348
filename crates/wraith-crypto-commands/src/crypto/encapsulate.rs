//! `wraith crypto kem`: key encapsulation, a shared secret in a ciphertext.

use std::path::Path;

use wraith_suite::kem::KemError;

use super::args::{KemAction, OutArgs};
use super::generate::{hexadecimal, write_secret};
use super::input::Input;
use super::keys::{self, LoadedPrivateKey};
use super::output::{Output, Readers};
use crate::failure::{Exit, Failure};
use crate::report::Reporter;

/// Maximum length of a ciphertext in bytes; that of ML-KEM-1024 fits.
const CIPHERTEXT_MAX: u64 = 4096;

pub fn run(action: &KemAction, reporter: &dyn Reporter) -> Result<(), Failure> {
    match action {
        KemAction::Encapsulate { key, secret, out } => encapsulate(key, secret, out, reporter),
        KemAction::Decapsulate { file, key, out } => {
            decapsulate(file.as_deref(), key, out, reporter)
        }
    }
}

fn encapsulate(
    key: &Path,
    secret: &Path,
    out: &OutArgs,
    reporter: &dyn Reporter,
) -> Result<(), Failure> {
    let key = keys::encapsulation(key)?;
    let secret = OutArgs { out: Some(secret.to_owned()), force: out.force };
    let mut output = Output::open(out, Readers::Anybody, false, reporter)?;
    let mut kept = Output::open(&secret, Readers::Owner, true, reporter)?;
    if output.place()? == kept.place()? {
        return Err(Failure::new(Exit::Usage, "ciphertext and secret have the same destination")
            .hint("write one of them to a file: -o FILE or --secret FILE"));
    }
    let (ciphertext, shared) = key.encapsulate().map_err(of)?;
    let name = key.algorithm().name();
    // Both are complete before either of them appears.
    output.write(&ciphertext)?;
    kept.write(hexadecimal(&shared).as_bytes())?;
    kept.finish("secret", Some(name), reporter)?;
    output.finish("ciphertext", Some(name), reporter)
}

fn decapsulate(
    file: Option<&Path>,
    key: &Path,
    out: &OutArgs,
    reporter: &dyn Reporter,
) -> Result<(), Failure> {
    let key = match keys::private(key, None)? {
        LoadedPrivateKey::Kem(key) => key,
        LoadedPrivateKey::Sign(key) => {
            let message = format!("a key of {} cannot decrypt", key.algorithm());
            return Err(Failure::new(Exit::Usage, message)
                .hint("wraith crypto list kem lists suitable algorithms"));
        }
    };
    let ciphertext = Input::open(file)?.all(CIPHERTEXT_MAX)?;
    let secret = key.decapsulate(ciphertext.as_deref().map_or(&[][..], |c| c)).map_err(of)?;
    write_secret(out, &secret, key.algorithm().name(), reporter)
}

fn of(error: KemError) -> Failure {
    match error {
        KemError::Failed { .. } => Failure::new(Exit::Other, error.to_string()),
        _ => Failure::new(Exit::Verification, error.to_string())
            .hint("get the complete ciphertext again"),
    }
}
