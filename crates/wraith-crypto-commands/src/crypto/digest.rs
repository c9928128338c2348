//! `wraith crypto hash` and `wraith crypto mac`: print a line for each file, in the format of
//! `sha256sum`.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use wraith_command_text::units::Files;
use wraith_command_text::{shell_word, sum_line};
use wraith_suite::hash;
use wraith_suite::mac::{self, MacError};
use zeroize::Zeroizing;

use super::args::{HashWithArgs, MacArgs};
use super::input::{Input, at_most_one_stdin};
use super::keys;
use super::names::named;
use crate::failure::{Exit, Failure};
use crate::report::{Event, Reporter};

/// Size of one read.
const BUFFER_BYTES: usize = 1 << 18;

pub fn hash(args: &HashWithArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let algorithm: hash::Algorithm = named(&args.algorithm).map_err(|failure| {
        let word = &args.algorithm;
        match Path::new(word).is_file() {
            true => failure.hint(format!(
                "the name of the hash function comes first: wraith crypto hash SHA-256 {}",
                shell_word(word)
            )),
            false => failure,
        }
    })?;
    let files = files(&args.files);
    at_most_one_stdin(files.iter().map(PathBuf::as_path))?;
    each(&files, algorithm.name(), reporter, |input| {
        let mut hasher = algorithm.hasher();
        pieces(input, |piece| hasher.update(piece))?;
        let mut digest = vec![0; algorithm.digest_bytes()];
        hasher.finish_into(&mut digest);
        Ok(digest)
    })
}

pub fn mac(args: &MacArgs, reporter: &dyn Reporter) -> Result<(), Failure> {
    let algorithm: mac::Algorithm = named(&args.algorithm)?;
    let files = files(&args.files);
    at_most_one_stdin(files.iter().chain([&args.key]).map(PathBuf::as_path))?;
    let key = keys::secret(&args.key)?;
    let nonce = keys::hex(args.nonce.as_deref().unwrap_or_default(), "the nonce")?;
    if !nonce.is_empty() && files.len() > 1 {
        return Err(Failure::new(Exit::Usage, "a nonce can be used for one file only")
            .hint("run the command for each file, with a new nonce"));
    }
    let start = || {
        let started = algorithm.start(&key, &nonce);
        started.map_err(|error| {
            let hint = match error {
                MacError::NonceLength { expected: 0, .. } => "leave --nonce out",
                MacError::NonceLength { .. } => {
                    "use --nonce HEX, and never the same nonce twice with one key"
                }
                _ => "wraith crypto genkey NAME -o FILE makes a key of the right length",
            };
            Failure::new(Exit::Usage, error.to_string()).hint(hint)
        })
    };
    // Report a wrong key before reading any input.
    drop(start()?);
    each(&files, algorithm.name(), reporter, |input| {
        let mut mac = start()?;
        pieces(input, |piece| mac.update(piece))?;
        let mut tag = vec![0; algorithm.tag_bytes()];
        mac.finish_into(&mut tag);
        Ok(tag)
    })
}

/// Returns the named files, or standard input if there are none.
fn files(named: &[PathBuf]) -> Cow<'_, [PathBuf]> {
    match named {
        [] => Cow::Owned(vec![PathBuf::from("-")]),
        _ => Cow::Borrowed(named),
    }
}

/// Passes the whole input to `take`, piece by piece.
fn pieces(input: &mut Input, mut take: impl FnMut(&[u8])) -> Result<(), Failure> {
    let mut buffer = Zeroizing::new(vec![0; BUFFER_BYTES]);
    loop {
        match input.fill(&mut buffer)? {
            0 => return Ok(()),
            n => take(&buffer[..n]),
        }
    }
}

/// Prints a line for each file. Continues after an unreadable file, and fails at the end.
fn each(
    files: &[PathBuf],
    algorithm: &str,
    reporter: &dyn Reporter,
    digest: impl Fn(&mut Input) -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let mut unreadable = 0;
    for path in files {
        let digested = Input::open(Some(path)).and_then(|mut input| digest(&mut input));
        match digested {
            Ok(digest) => report_digest(path, algorithm, &HEXLOWER.encode(&digest), reporter),
            Err(failure) if failure.exit == Exit::Disk => {
                reporter.unreadable(&path.to_string_lossy(), &failure.message);
                unreadable += 1;
            }
            Err(failure) => return Err(failure),
        }
    }
    match unreadable {
        0 => Ok(()),
        some => {
            let total = Files(files.len() as u64);
            Err(Failure::new(Exit::Disk, format!("{some} of {total} could not be read")))
        }
    }
}

fn report_digest(path: &Path, algorithm: &str, value: &str, reporter: &dyn Reporter) {
    reporter.event(&Event::Digest { path: &path.to_string_lossy(), algorithm, value });
    reporter.print(&sum_line(value, path.as_os_str().as_bytes()));
}
