//! The habits: how names and times are stored, compared and refused.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use fuser::Errno;

use super::store::{Answer, Children};

/// Differences from an ordinary Linux file system. None has nameless files, attributes, preallocation
/// or holes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Names that differ only in case are one name; the first spelling is kept.
    pub folds_case: bool,
    /// U+00E9 is the same as U+0065 U+0301, as in Unicode, and U+00C9 as U+0045 U+0301.
    pub normalises: bool,
    /// A long name has a second, short name, as on FAT: `LONGFI~1.TXT`.
    pub has_short_names: bool,
    /// Longer names are cut to this many bytes.
    pub cuts_names: Option<usize>,
    /// Longer names are refused.
    pub refuses_long_names: Option<usize>,
    /// Names of FAT and NTFS only: no `:*?"<>|\`, no dot or space at the end.
    pub refuses_characters: bool,
    /// The inode follows from the path as it was looked up.
    pub inodes_by_path: bool,
    /// No hard or symbolic links.
    pub no_links: bool,
    /// No `RENAME_NOREPLACE`.
    pub no_noreplace: bool,
    /// A change of the permissions fails.
    pub no_modes: bool,
    /// Times are multiples of 2 s.
    pub coarse_times: bool,
    /// Larger files fail with `EFBIG`.
    pub size_max: Option<u64>,
}

impl Habits {
    /// Returns the name as it is stored.
    pub(super) fn stored(&self, name: &OsStr) -> Answer<Vec<u8>> {
        let mut name = name.as_bytes().to_vec();
        if self.refuses_long_names.is_some_and(|max| name.len() > max) {
            return Err(Errno::ENAMETOOLONG);
        }
        let ends_badly = name.ends_with(b".") || name.ends_with(b" ");
        let is_bad = |byte: &u8| b":*?\"<>|\\".contains(byte) || *byte < 32;
        if self.refuses_characters && (ends_badly || name.iter().any(is_bad)) {
            return Err(Errno::EINVAL);
        }
        name.truncate(self.cuts_names.unwrap_or(name.len()));
        Ok(name)
    }

    /// Returns the key of the child that the stored form of a name means, or its own.
    pub(super) fn key(&self, children: &Children, stored: &[u8]) -> Vec<u8> {
        let key = self.folded(stored);
        if !self.has_short_names || children.contains_key(&key) {
            return key;
        }
        let short = stored.to_ascii_uppercase();
        let meant =
            children.iter().find(|(_, (spelling, _))| short_name(spelling) == Some(short.clone()));
        meant.map_or(key, |(meant, _)| meant.clone())
    }

    /// Returns the form in which names are compared.
    fn folded(&self, name: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(name) else { return name.to_vec() };
        let mut text = text.to_owned();
        if self.normalises {
            text = text.replace('\u{e9}', "e\u{301}").replace('\u{c9}', "E\u{301}");
        }
        if self.folds_case {
            text = text.to_uppercase().to_lowercase();
        }
        text.into_bytes()
    }

    /// Returns the time as it is stored.
    pub(super) fn rounded(&self, time: SystemTime) -> SystemTime {
        if !self.coarse_times {
            return time;
        }
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs() / 2 * 2)
    }
}

/// Returns the short name of a name with a stem of more than eight bytes.
fn short_name(name: &[u8]) -> Option<Vec<u8>> {
    let dot = name.iter().rposition(|byte| *byte == b'.').unwrap_or(name.len());
    let (stem, extension) = name.split_at(dot);
    let short = [stem.get(..6)?, b"~1", &extension[..extension.len().min(4)]].concat();
    (stem.len() > 8).then(|| short.to_ascii_uppercase())
}
