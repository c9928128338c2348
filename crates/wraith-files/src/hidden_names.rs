//! Names derived from a file's name: the names of its part, its journal and its replacement, and of
//! a copy beside it.
//!
//! All except the name of the copy start with a dot and end with a reserved suffix, so a peer
//! cannot name them ([`RelPath`]).
//!
//! [`RelPath`]: crate::RelPath

use rustix::fs::Mode;

use crate::path::{JOURNAL_SUFFIX, NEW_SUFFIX, PART_SUFFIX, RelPath, UnsafeName};

impl RelPath {
    /// Returns the `number`th name, from 1, that [`crate::OnConflict::Rename`] tries.
    pub fn copy(&self, number: u32) -> Result<Self, UnsafeName> {
        self.with_file_name(&copy_name(self.file_name(), number))
    }
}

/// Mode of hidden files: other users must not see unfinished content.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Hidden names beside one file. `tag` distinguishes parts of the same name from different senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HiddenNames {
    pub(crate) part: Vec<u8>,
    pub(crate) journal: Vec<u8>,
    /// Name of the journal while it is being rewritten.
    pub(crate) new_journal: Vec<u8>,
}

impl HiddenNames {
    pub(crate) fn of(name: &[u8], tag: Option<[u8; 4]>) -> Self {
        let tagged = match tag {
            Some(tag) => [name, format!(".{:08x}", u32::from_be_bytes(tag)).as_bytes()].concat(),
            None => name.to_vec(),
        };
        Self {
            part: hidden(&tagged, PART_SUFFIX),
            journal: hidden(&tagged, JOURNAL_SUFFIX),
            new_journal: hidden(&[tagged.as_slice(), b".journal"].concat(), NEW_SUFFIX),
        }
    }
}

/// Returns the hidden name of a finished file that is about to replace `name`.
pub(crate) fn replacement_name(name: &[u8]) -> Vec<u8> {
    hidden(name, NEW_SUFFIX)
}

/// Longest name that is kept in a hidden name, in bytes. Hidden names then fit where a file system
/// allows 143 bytes (eCryptfs).
const PLAIN_BYTES_MAX: usize = 100;

/// Returns `.NAME` with the suffix for a short name of lower-case letters, digits, spaces and
/// `.-_()`. Any other name is replaced by `~` and its hash. Two names thus have different hidden
/// names even where the file system ignores case, normalises Unicode or cuts names, and no file
/// system refuses one.
fn hidden(name: &[u8], suffix: &[u8]) -> Vec<u8> {
    let is_plain =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_ ()".contains(byte);
    if name.len() <= PLAIN_BYTES_MAX && name.iter().all(is_plain) {
        return [b".", name, suffix].concat();
    }
    let hash = blake3::hash(name).to_hex();
    [b".~", &hash.as_bytes()[..32], suffix].concat()
}

/// Maximum length of a copy's name in bytes. A file system that cuts or refuses longer names
/// (eCryptfs: 143 bytes) still tells the copies of a long name apart.
const COPY_BYTES_MAX: usize = 143;

/// Longest extension that is kept in a copy's name (of `.tar.gz`, only `.gz` is the extension).
const EXTENSION_BYTES_MAX: usize = 16;

/// Returns `photo (2).jpg` for the second copy beside `photo.jpg`.
pub(crate) fn copy_name(name: &[u8], number: u32) -> Vec<u8> {
    let dot = name.iter().rposition(|&byte| byte == b'.');
    let dot = dot.filter(|&dot| dot > 0 && name.len() - dot <= EXTENSION_BYTES_MAX);
    let (stem, extension) = name.split_at(dot.unwrap_or(name.len()));
    let number = format!(" ({number})");
    let room = COPY_BYTES_MAX - number.len() - extension.len();
    let mut end = stem.len().min(room);
    // Do not cut in the middle of a UTF-8 character.
    while end > 0 && end < stem.len() && stem[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    [&stem[..end], number.as_bytes(), extension].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{COMPONENT_BYTES_MAX, RelPath};

    #[test]
    fn copies_keep_their_extension_and_fit() {
        let name = |name: &str, n| String::from_utf8(copy_name(name.as_bytes(), n)).unwrap();
        assert_eq!(name("photo.jpg", 1), "photo (1).jpg");
        assert_eq!(name(".profile", 2), ".profile (2)");
        assert_eq!(name("a.b c d e f g h i j k", 3), "a.b c d e f g h i j k (3)");
        assert_eq!(name("plain", 10), "plain (10)");
        let long = copy_name(&[b'x'; 255], 7);
        assert_eq!(long.len(), 143);
        let long = name(&format!("{}.txt", "é".repeat(125)), 1);
        assert!(long.len() <= 143 && long.ends_with("é (1).txt"));
    }

    #[test]
    fn hidden_names_differ_on_file_systems_that_tell_fewer_names_apart() {
        let long = |last: u8| [vec![b'x'; 143], vec![last]].concat();
        let names = [
            b"photo".to_vec(),
            b"Photo".to_vec(),
            b"PHOTO".to_vec(),
            "\u{e9}".into(),
            "e\u{301}".into(),
            "\u{c9}".into(),
            long(b'a'),
            long(b'b'),
            b"a:b".to_vec(),
            b"a?b".to_vec(),
        ];
        for hidden in [
            |name: &[u8]| HiddenNames::of(name, Some([0xab; 4])).new_journal,
            |name: &[u8]| HiddenNames::of(name, None).part,
            |name: &[u8]| replacement_name(name),
        ] {
            let all: Vec<_> = names.iter().map(|name| hidden(name)).collect();
            for (n, one) in all.iter().enumerate() {
                assert!(one.len() <= 143);
                assert!(
                    one.iter().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
                );
                assert!(!one.iter().any(|byte| b":*?\"<>|\\".contains(byte)));
                assert!(!all[..n].contains(one), "{}", one.escape_ascii());
            }
        }
    }

    #[test]
    fn no_peer_can_name_a_hidden_file() {
        for name in [b"x".as_slice(), b"X.Y", b"\xff", &[b'x'; 255], &[b'x'; 240], b"-"] {
            for tag in [None, Some([1, 2, 3, 4])] {
                let names = HiddenNames::of(name, tag);
                let all = [names.part, names.journal, names.new_journal, replacement_name(name)];
                for (i, hidden) in all.iter().enumerate() {
                    assert!(hidden.len() <= COMPONENT_BYTES_MAX);
                    assert!(RelPath::parse(hidden).is_err());
                    assert!(!all[..i].contains(hidden));
                }
            }
        }
        assert_ne!(HiddenNames::of(b"x", Some([0, 0, 0, 1])), HiddenNames::of(b"x", None));
    }
}
