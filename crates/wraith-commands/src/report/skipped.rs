//! Messages about entries of a tree that are not sent: the first few by name and reason, the others
//! as a number.
//!
//! Invariant: the messages fit on one screen, however many entries there are. Programs get one
//! event per entry.

/// Maximum number of lines about single files, folders and links.
const LINES_MAX: u64 = 12;
/// Maximum number of names of sockets, pipes and devices, which users rarely need.
const SPECIAL_NAMES_MAX: usize = 3;
/// Maximum length of a name in characters. An escaped name can have 16 KiB.
const NAME_CHARS_MAX: usize = 200;

/// The entries that a walk has skipped so far.
#[derive(Debug, Default)]
pub struct SkippedNames {
    lines: u64,
    special: Vec<String>,
}

impl SkippedNames {
    /// Counts one more entry. Returns the line to show now, if any.
    pub fn line(&mut self, path: &str, why: &str, special: bool) -> Option<String> {
        if special {
            if self.special.len() < SPECIAL_NAMES_MAX {
                self.special.push(short(path));
            }
            return None;
        }
        self.lines += 1;
        match self.lines {
            line if line < LINES_MAX => Some(format!("left out: {}: {why}", short(path))),
            LINES_MAX => Some("left out: more entries (--json names all)".to_owned()),
            _ => None,
        }
    }

    /// Returns the line about `count` special files at the end.
    pub fn special_line(&self, count: u64) -> Option<String> {
        let what = match count {
            0 => return None,
            1 => "1 special file was".to_owned(),
            n => format!("{n} special files were"),
        };
        let names = self.special.join(", ");
        let more = if count > self.special.len() as u64 { " …" } else { "" };
        Some(format!("{what} left out: {names}{more}"))
    }
}

/// Shortens a long path to its beginning and end.
fn short(path: &str) -> String {
    let chars = path.chars().count();
    if chars <= NAME_CHARS_MAX {
        return path.to_owned();
    }
    let half = NAME_CHARS_MAX / 2;
    let begin: String = path.chars().take(half).collect();
    let end: String = path.chars().skip(chars - half).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_skipped_entries_are_bounded() {
        let mut left_out = SkippedNames::default();
        let path = "ä".repeat(4096);
        let said: Vec<_> = (0..1000).filter_map(|_| left_out.line(&path, "why", false)).collect();
        assert_eq!(said.len() as u64, LINES_MAX);
        assert!(said.iter().all(|line| line.chars().count() < NAME_CHARS_MAX + 20));
        assert!(said[0].ends_with(": why") && said[11].contains("more"));
        for n in 0..1000 {
            assert_eq!(left_out.line(&format!("s{n}"), "why", true), None);
        }
        assert_eq!(left_out.special_line(0), None);
        let line = left_out.special_line(1000).unwrap();
        assert_eq!(line, "1000 special files were left out: s0, s1, s2 …");
    }
}
