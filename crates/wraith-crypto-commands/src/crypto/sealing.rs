//! `wraith crypto enc` and `wraith crypto dec`: select the secret and the format, and explain
//! failures.

use std::path::Path;

use wraith_suite::{aead, aes_hardware};

/// The arguments of an unauthenticated mode, common to both directions.
struct RawModeArgs<'a> {
    file: Option<&'a Path>,
    algorithm: Option<&'a str>,
    key: Option<&'a Path>,
    raw: &'a RawArgs,
    out: &'a OutArgs,
}

/// Returns those arguments of [`EncArgs`] or [`DecArgs`].
macro_rules! raw_mode_args {
    ($args:expr) => {
        RawModeArgs {
            file: $args.file.as_deref(),
            algorithm: $args.algorithm.as_deref(),
            key: $args.key.as_deref(),
            raw: &$args.raw,
            out: &$args.out,
        }
    };
}

use super::args::{DecArgs, EncArgs, OutArgs, RawArgs};
use super::container::{self, OpenError, Recipient, SealError, Unlock};
use super::input::{Input, name};
use super::keys::{self, LoadedOpeningKey, LoadedPrivateKey};
use super::names::{named, not_there};
use super::output::{Output, Readers};
use super::{passphrase, raw};
use crate::failure::{Exit, Failure};
use crate::report::Reporter;

pub fn encrypt(args: &EncArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    if args.raw.raw {
        return raw_mode(raw_mode_args!(args), raw::encrypt, "encrypted", reporter);
    }
    let algorithm = match &args.algorithm {
        Some(name) => named_aead(name)?,
        None if aes_hardware() => aead::Algorithm::Aes256Gcm,
        None => aead::Algorithm::ChaCha20Poly1305,
    };
    let named = if let Some(path) = &args.to {
        Some(Recipient::Kem(keys::encapsulation(path)?))
    } else if let Some(path) = &args.key {
        Some(Recipient::Secret(keys::encryption_secret(path)?))
    } else if let Some(path) = &args.passphrase_file {
        Some(Recipient::Passphrase(passphrase::of_file(path)?))
    } else if args.passphrase {
        None
    } else {
        return Err(no_secret("--key FILE, --passphrase, or --to FILE")
            .hint("wraith crypto genkey AES-256-GCM -o FILE makes a key"));
    };
    let mut input = Input::open(args.file.as_deref())?;
    let mut output = Output::open(&args.out, Readers::Anybody, false, reporter)?;
    // Ask for a passphrase only when input and output are open.
    let recipient = match named {
        Some(recipient) => recipient,
        None => Recipient::Passphrase(passphrase::ask(true)?),
    };
    match container::seal(algorithm, &recipient, &mut input, &mut output) {
        Ok(()) => output.finish("encrypted", Some(algorithm.name()), reporter),
        Err(SealError::Io(failure)) => Err(failure),
        Err(error) => Err(Failure::new(Exit::Other, error.to_string())),
    }
}

pub fn decrypt(args: &DecArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    if args.raw.raw {
        return raw_mode(raw_mode_args!(args), raw::decrypt, "decrypted", reporter);
    }
    if args.algorithm.is_some() {
        return Err(Failure::new(
            Exit::Usage,
            "-a is only for --raw: the file itself names its algorithm",
        )
        .hint(
            "leave -a out; for a file encrypted by another program: --raw -a NAME -k FILE --iv HEX",
        ));
    }
    let unlock = if let Some(path) = &args.key {
        match keys::opening(path)? {
            LoadedOpeningKey::Secret(secret) => Unlock::Secret(secret),
            LoadedOpeningKey::PrivateKey(LoadedPrivateKey::Kem(key)) => Unlock::Kem(key),
            LoadedOpeningKey::PrivateKey(LoadedPrivateKey::Sign(key)) => {
                let message = format!("a key of {} cannot decrypt", key.algorithm());
                return Err(Failure::new(Exit::Usage, message)
                    .hint("wraith crypto list kem lists suitable algorithms"));
            }
        }
    } else if let Some(path) = &args.passphrase_file {
        Unlock::Passphrase(passphrase::of_file(path)?)
    } else if args.passphrase {
        Unlock::Asked(|| passphrase::ask(false))
    } else {
        return Err(no_secret("--key FILE or --passphrase").hint(
            "use the key or passphrase that encrypted it; after --to, the matching private key",
        ));
    };
    let mut input = Input::open(args.file.as_deref())?;
    let mut output = Output::open(&args.out, Readers::Anybody, true, reporter)?;
    match container::open(&unlock, &mut input, &mut output) {
        Ok(algorithm) => output.finish("decrypted", Some(algorithm.name()), reporter),
        Err(OpenError::Io(failure)) => Err(failure),
        Err(error) => Err(of(&error, args.file.as_deref())),
    }
}

fn of(error: &OpenError, path: Option<&Path>) -> Failure {
    let exit = match error {
        OpenError::OtherSecret { .. } => Exit::Usage,
        OpenError::Failed | OpenError::Aead(_) => Exit::Other,
        _ => Exit::Verification,
    };
    let hint = match error {
        OpenError::Foreign => {
            "for a file encrypted by another program: --raw -a NAME -k FILE --iv HEX"
        }
        OpenError::Empty => "get the file again; an encrypted file is never empty",
        OpenError::OtherSecret { next, .. } => next,
        OpenError::WrongSecret => {
            "use the key or passphrase that encrypted it, or get the file again"
        }
        OpenError::TooCostly => "wraith writes no file that needs so much; get the file again",
        OpenError::Aead(_) => "decrypt it on another machine",
        OpenError::Failed => "free some memory and try again",
        _ => "get the file again: this copy differs from the encrypted original",
    };
    let file = match path {
        Some(path) if path.as_os_str() != "-" => name(path),
        _ => "standard input".to_owned(),
    };
    Failure::new(exit, format!("{file}: {error}")).hint(hint)
}

fn no_secret(which: &str) -> Failure {
    Failure::new(Exit::Usage, format!("the key is missing: give {which}"))
}

/// Returns the AEAD of this name. For the name of a cipher, the failure suggests --raw.
fn named_aead(name: &str) -> Result<aead::Algorithm, Failure> {
    match name.parse::<wraith_suite::cipher::Algorithm>() {
        Ok(cipher) => {
            let what = format!("{cipher} alone does not detect changes of its output");
            Err(not_there(&what, &["AES-256-GCM"], None)
                .hint("use an AEAD (wraith crypto list aead), or --raw --iv HEX"))
        }
        Err(_) => named(name),
    }
}

fn raw_mode(
    args: RawModeArgs<'_>,
    work: impl Fn(&raw::CipherJob<'_>, &mut Input, &mut Output) -> Result<(), Failure>,
    what: &str,
    reporter: &dyn Reporter,
) -> Result<(), Failure> {
    // --raw requires both.
    let name = args.algorithm.unwrap_or_default();
    let key = keys::secret(args.key.unwrap_or(Path::new("-")))?;
    if let Ok(algorithm) = name.parse::<aead::Algorithm>() {
        let message = format!("{algorithm} has a tag, and raw output has no room for it");
        return Err(Failure::new(Exit::Usage, message).hint("leave --raw out"));
    }
    let iv = keys::hex(args.raw.iv.as_deref().unwrap_or_default(), "the IV")?;
    let job =
        raw::CipherJob { algorithm: named(name)?, key: &key, iv: &iv, pads: !args.raw.no_padding };
    job.check()?;
    let mut input = Input::open(args.file)?;
    let mut output = Output::open(args.out, Readers::Anybody, false, reporter)?;
    work(&job, &mut input, &mut output)?;
    output.finish(what, Some(job.algorithm.name()), reporter)
}
