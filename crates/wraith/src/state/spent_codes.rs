//! Codes that this side has tried.
//!
//! The joiner (the side that typed the code) sends a proof that it knows the words. With this
//! proof, the code's creator, or an attacker in its place, can test one guess of the words. If the
//! joiner used the code again, its second proof would allow a second guess. A code is therefore
//! recorded before its proof is sent.
//!
//! Invariants:
//!
//! - The record is written before the proof is sent.
//! - The file contains no codes: it contains hashes of codes, keyed by a secret of the identity. So
//!   the file does not reveal which codes were tried.
//! - There are at most [`SPENT_MAX`] entries, none older than [`MAX_AGE`].
//! - If the file cannot be written (a read-only home), codes are remembered for the lifetime of
//!   this object.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE32_NOPAD;
use wraith_crypto::{SecretIdentity, kdf, redacted_debug};
use wraith_discovery::Code;
use zeroize::Zeroizing;

use super::dir::StateDir;
use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile, version_behind};

const FILE: &str = "spent-codes";
/// Far more than a user types in a month; beyond it, the oldest is removed.
const SPENT_MAX: usize = 512;
/// Far longer than the lifetime of a code.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Prefix of the first line, before the version.
const HEADER: &str = "wraith spent codes ";
const FORMAT: Format = Format {
    version: 1,
    version_of: |text| version_behind(text, HEADER),
    // Twice the maximum.
    max_bytes: 64 << 10,
    is_secret: true,
};
/// Stands for a code where the code itself must not appear: a hash under a key of the identity that
/// tried it.
pub type CodeTag = [u8; 20];

/// The record of tried codes (see the module docs).
pub struct SpentCodes {
    key: Zeroizing<[u8; 32]>,
    /// `None` in memory.
    file: Option<StateFile>,
    /// The codes of this run.
    tried: Mutex<Vec<SpentCode>>,
    /// The error of the last failed write.
    unwritten: Mutex<Option<StateError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpentCode {
    tag: CodeTag,
    at: SystemTime,
}

/// An earlier attempt with the same code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriedBefore {
    /// The time of the attempt.
    pub at: SystemTime,
}

redacted_debug!(SpentCodes);

impl SpentCodes {
    /// Returns the record of the codes that this identity has tried.
    pub fn of(state: &StateDir, identity: &SecretIdentity) -> Self {
        let key = Zeroizing::new(kdf::derive("wraith/1 spent codes", identity.seed()));
        let file = state.folder().map(|folder| StateFile::new(folder, Path::new(FILE), FORMAT));
        Self { key, file, tried: Mutex::default(), unwritten: Mutex::default() }
    }

    /// Returns when the code was tried, if it was.
    pub fn tried(&self, code: &Code) -> Option<TriedBefore> {
        let (tag, now) = (self.tag(code), SystemTime::now());
        let written = self.file.as_ref().and_then(|file| file.read().ok().flatten());
        let written = written.map(|text| parse(&text, now)).unwrap_or_default();
        find(&self.lock(), &tag).or_else(|| find(&written, &tag))
    }

    /// Records a code; call it before the proof is sent.
    ///
    /// # Errors
    /// The code was tried before, by this process or by another a moment ago. The proof must not be
    /// sent.
    pub fn spend(&self, code: &Code) -> Result<(), TriedBefore> {
        let now = SystemTime::now();
        let spent = SpentCode { tag: self.tag(code), at: now };
        let mut tried = self.lock();
        if let Some(before) = find(&tried, &spent.tag) {
            return Err(before);
        }
        let before = match self.file.as_ref().map(|file| append(file, spent, now)) {
            Some(Ok(before)) => before,
            Some(Err(error)) => {
                *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                None
            }
            None => None,
        };
        tried.push(spent);
        let beyond = tried.len().saturating_sub(SPENT_MAX);
        tried.drain(..beyond);
        before.map_or(Ok(()), Err)
    }

    /// Returns, once, why a spent code is remembered for this run only.
    pub fn take_unwritten(&self) -> Option<StateError> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the hash that stands for `code`.
    pub fn tag(&self, code: &Code) -> CodeTag {
        let text = Zeroizing::new(code.to_string());
        *kdf::keyed(&self.key, text.as_bytes()).first_chunk().expect("a hash is longer")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SpentCode>> {
        // Ignores poisoning: this is a plain list.
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes an entry under the state lock. Returns the earlier entry if there was one.
fn append(
    file: &StateFile,
    spent: SpentCode,
    now: SystemTime,
) -> Result<Option<TriedBefore>, StateError> {
    let result = file.change(|text| -> Result<_, StateError> {
        let mut all = text.map(|text| parse(text, now)).unwrap_or_default();
        if let Some(before) = find(&all, &spent.tag) {
            return Ok((None, Some(before)));
        }
        all.push(spent);
        let beyond = all.len().saturating_sub(SPENT_MAX);
        all.drain(..beyond);
        Ok((Some(encode(&all)), None))
    });
    match result {
        Err(error) if matches!(error.kind(), StateErrorKind::Damaged | StateErrorKind::Exposed) => {
            // No entry of this file can be trusted. Replace it.
            file.replace(encode(&[spent])).map(|()| None)
        }
        result => result,
    }
}

fn find(all: &[SpentCode], tag: &CodeTag) -> Option<TriedBefore> {
    all.iter().find(|spent| spent.tag == *tag).map(|spent| TriedBefore { at: spent.at })
}

fn encode(all: &[SpentCode]) -> Zeroizing<String> {
    let mut text = format!("{HEADER}{}\n", FORMAT.version);
    for spent in all {
        let seconds = spent.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let tag = BASE32_NOPAD.encode(&spent.tag).to_ascii_lowercase();
        text.push_str(&format!("{tag} {seconds}\n"));
    }
    Zeroizing::new(text)
}

/// Returns the entries that are not too old. An entry with a time in the future is kept: the clock
/// may have been set back.
fn parse(text: &str, now: SystemTime) -> Vec<SpentCode> {
    let line = |line: &str| {
        let (tag, seconds) = line.split_once(' ')?;
        let tag = BASE32_NOPAD.decode(tag.to_ascii_uppercase().as_bytes()).ok()?;
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds.parse().ok()?))?;
        Some(SpentCode { tag: tag.try_into().ok()?, at })
    };
    let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > MAX_AGE);
    text.lines().skip(1).filter_map(line).filter(|spent| !is_old(spent.at)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn identity(n: u8) -> SecretIdentity {
        SecretIdentity::from_seed([n; 32])
    }

    fn code(n: u16) -> Code {
        let [a, b] = n.to_be_bytes();
        Code::new(7, [a, b, a, b])
    }

    #[test]
    fn a_code_is_spent_once_by_all_runs_and_no_file_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let codes = || SpentCodes::of(&StateDir::in_folder(folder.path()), &identity(1));
        let (one, other) = (codes(), codes());
        assert_eq!(one.tried(&code(1)), None);
        one.spend(&code(1)).unwrap();
        let before = other.tried(&code(1)).unwrap();
        assert!(before.at.elapsed().unwrap_or_default() < Duration::from_secs(60));
        assert!(one.spend(&code(1)).is_err() && other.spend(&code(1)).is_err());
        other.spend(&code(2)).unwrap();
        assert!(codes().tried(&code(1)).is_some() && codes().tried(&code(2)).is_some());

        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        for word in code(1).to_string().split('-').skip(1) {
            assert!(!text.contains(word));
        }
        // The hash is under a key of the identity.
        let stranger = SpentCodes::of(&StateDir::in_folder(folder.path()), &identity(2));
        assert_eq!(stranger.tried(&code(1)), None);
    }

    #[test]
    fn a_home_that_cannot_be_written_remembers_for_the_run() {
        let nowhere = StateDir::in_folder("/dev/null/home");
        let memory = StateDir::in_memory().unwrap();
        for state in [nowhere, memory] {
            let codes = SpentCodes::of(&state, &identity(1));
            codes.spend(&code(1)).unwrap();
            assert!(codes.tried(&code(1)).is_some() && codes.spend(&code(1)).is_err());
            assert_eq!(SpentCodes::of(&state, &identity(1)).tried(&code(1)), None);
        }
    }

    #[test]
    fn old_entries_go_and_so_do_those_beyond_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::in_folder(folder.path());
        let codes = SpentCodes::of(&state, &identity(1));
        let at = |age| SystemTime::now() - age;
        let hour = Duration::from_secs(3600);
        let spent = |n, at| SpentCode { tag: codes.tag(&code(n)), at };
        let file = codes.file.as_ref().unwrap();
        file.replace(encode(&[spent(1, at(MAX_AGE + hour)), spent(2, at(MAX_AGE - hour))]))
            .unwrap();
        assert_eq!(codes.tried(&code(1)), None);
        assert!(codes.tried(&code(2)).is_some());

        let many: Vec<_> = (0..SPENT_MAX as u16).map(|n| spent(n, at(hour))).collect();
        file.replace(encode(&many)).unwrap();
        codes.spend(&code(5000)).unwrap();
        let again = SpentCodes::of(&state, &identity(1));
        assert_eq!(again.tried(&code(0)), None, "the oldest made room");
        assert!(again.tried(&code(1)).is_some() && again.tried(&code(5000)).is_some());
    }

    #[test]
    fn a_damaged_file_is_replaced_and_a_newer_one_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::in_folder(folder.path());
        let codes = || SpentCodes::of(&state, &identity(1));
        let path = folder.path().join(FILE);
        fs::write(&path, [0xff; 10]).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        codes().spend(&code(1)).unwrap();
        assert!(codes().tried(&code(1)).is_some());
        let newer = "wraith spent codes 2\nanother world";
        fs::write(&path, newer).unwrap();
        codes().spend(&code(2)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }
}
