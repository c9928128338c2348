//! Finds names that deserve attention before an offer is accepted: hidden ones, programs, and names
//! that other systems cannot store or cannot distinguish.

use std::collections::HashSet;
use std::fmt::Display;

use wraith_transfer::{Entry, Kind, RelPath};

/// Maximum number of names to show for each category.
const SHOWN: usize = 4;
/// Maximum number of characters to show of a name.
const NAME_CHARS_MAX: usize = 120;

/// A count of names, and the first few of them.
#[derive(Debug, Default)]
pub struct NameSample {
    count: u64,
    first: Vec<String>,
}

impl NameSample {
    pub fn add(&mut self, name: impl Display) {
        self.count += 1;
        if self.first.len() < SHOWN {
            // The name is escaped already; only its length is unbounded.
            let mut name = name.to_string();
            if let Some((end, _)) = name.char_indices().nth(NAME_CHARS_MAX) {
                name.truncate(end);
                name.push('…');
            }
            self.first.push(name);
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first few names.
    pub fn first(&self) -> &[String] {
        &self.first
    }

    /// Returns a line such as `  3 hidden: a, b, c`; None without names.
    pub fn line(&self, what: &str) -> Option<String> {
        let more = if self.count > self.first.len() as u64 { " …" } else { "" };
        (self.count > 0)
            .then(|| format!("  {} {what}: {}{more}", self.count, self.first.join(", ")))
    }
}

/// Links that lead out of the received files, and entries that others can write to.
#[derive(Debug, Default)]
pub struct RiskyEntries {
    pub leading_out: NameSample,
    pub writable: NameSample,
}

impl RiskyEntries {
    pub fn of<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Self {
        let top = top_level(entries.clone());
        let mut risky = Self::default();
        for entry in entries {
            if entry.leads_out(|name| top.contains(name)) {
                risky.leading_out.add(entry.path.display());
            }
            if entry.is_open_to_others() {
                risky.writable.add(entry.path.display());
            }
        }
        risky
    }
}

/// Returns the top-level names of an offer.
pub fn top_level<'a>(entries: impl Iterator<Item = &'a Entry>) -> HashSet<&'a [u8]> {
    entries.filter_map(|entry| entry.path.components().next()).collect()
}

/// Returns a line for each category that has names.
pub fn remarks<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Vec<String> {
    let risky = RiskyEntries::of(entries.clone());
    let [mut hidden, mut programs, mut windows, mut case]: [NameSample; 4] = Default::default();
    let mut folded = HashSet::new();
    for entry in entries {
        let path = &entry.path;
        let is_folder = matches!(entry.kind, Kind::Dir);
        if !is_folder && path.components().any(|name| name.starts_with(b".")) {
            hidden.add(path.display());
        }
        if matches!(entry.kind, Kind::File { .. }) && entry.mode & 0o111 != 0 {
            programs.add(path.display());
        }
        if !fits_windows(path.file_name()) {
            windows.add(path.display());
        }
        if !folded.insert(fold(path)) {
            case.add(path.display());
        }
    }
    [
        risky.leading_out.line("that point out of the received files (links)"),
        risky.writable.line("that their group or every user may write to at the sender (here the umask decides, unless --keep-modes)"),
        hidden.line("hidden"),
        programs.line("executable"),
        case.line("that differ from another only in upper and lower case (on a disk that ignores case, they get a number)"),
        windows.line("that Windows cannot store (kept unchanged)"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a path as a case-insensitive disk compares it.
fn fold(path: &RelPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).to_lowercase()
}

/// Returns whether Windows can store the name.
fn fits_windows(name: &[u8]) -> bool {
    let forbidden = |byte: &u8| *byte < 0x20 || b"<>:\"|?*\\".contains(byte);
    if name.iter().any(forbidden) || name.ends_with(b".") || name.ends_with(b" ") {
        return false;
    }
    let stem = name.split(|&byte| byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered =
        |device: &[u8]| stem.strip_prefix(device).is_some_and(|rest| matches!(rest, [b'1'..=b'9']));
    let device = [&b"con"[..], b"prn", b"aux", b"nul"].contains(&stem.trim_ascii_end());
    !(device || numbered(b"com") || numbered(b"lpt"))
}

#[cfg(test)]
mod tests {
    use wraith_files::Mtime;

    use super::*;

    fn entry(path: &[u8], mode: u32) -> Entry {
        let kind = Kind::File { size: 1, sparse: None };
        Entry { path: RelPath::parse(path).unwrap(), kind, mode, mtime: Mtime::default() }
    }

    #[test]
    fn names_that_windows_reserves_are_known() {
        for name in [
            "con", "AUX.txt", "nul .c", "com1", "LPT9.log", "a:b", "x?", "dot.", "space ", "a\u{1}",
        ] {
            assert!(!fits_windows(name.as_bytes()), "{name}");
        }
        for name in ["console", "com", "com10", "lpt0", "aux1", ".nul", "a b", "ä.txt"] {
            assert!(fits_windows(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn every_sort_of_name_gets_a_line_with_its_first_few() {
        let mut all = vec![entry(b".ssh/authorized_keys", 0o600), entry(b"run", 0o755)];
        all.extend((0..9).map(|n| entry(format!("p/{n}.sh").as_bytes(), 0o744)));
        all.extend([entry("a/Ä".as_bytes(), 0o644), entry("a/ä".as_bytes(), 0o644)]);
        let lines = remarks(all.iter());
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], "  1 hidden: .ssh/authorized_keys");
        assert_eq!(lines[1], "  10 executable: run, p/0.sh, p/1.sh, p/2.sh …");
        assert!(
            lines[2].starts_with("  1 that differ from another") && lines[2].ends_with("a/ä"),
            "{lines:?}"
        );
    }
}
