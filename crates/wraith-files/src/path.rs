//! Relative paths that cannot leave the directory they are joined to.
//!
//! A peer's names are bytes, not text, and hostile until parsed. A [`RelPath`] proves that they
//! were parsed. It has at least one component, and no component is empty, `.`, `..`, too long,
//! reserved by this crate, or contains NUL. It proves nothing about the object on disk under that
//! name; `beneath` opens that safely.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Maximum length of a path in bytes: `PATH_MAX` of Linux, and SPEC §10.4.
pub const PATH_BYTES_MAX: usize = 4096;

/// Maximum length of a component in bytes: `NAME_MAX` of every Linux file system.
pub const COMPONENT_BYTES_MAX: usize = 255;

/// Maximum number of components of a path. Bounds the open directories while walking and creating a
/// tree.
pub const DEPTH_MAX: usize = 128;

/// A refused name, escaped, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unsafe name \"{name}\": {reason}")]
pub struct UnsafeName {
    /// The name, escaped and cut to a length that a terminal can show.
    pub name: String,
    /// The reason.
    pub reason: UnsafeReason,
}

/// Why a name is unsafe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnsafeReason {
    /// The path or a component is empty.
    #[error("it is empty or has an empty component")]
    Empty,
    /// The path is absolute.
    #[error("it is absolute")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("it has a . or .. component")]
    Dots,
    /// The path contains a zero byte.
    #[error("it contains a zero byte")]
    Nul,
    /// The path exceeds [`PATH_BYTES_MAX`], [`COMPONENT_BYTES_MAX`] or [`DEPTH_MAX`].
    #[error("it is too long or too deep")]
    TooLong,
    /// This program uses the name for its own unfinished files.
    #[error("it is reserved for unfinished files of this program")]
    Reserved,
}

/// A validated relative path: bytes, with components joined by single slashes. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RelPath(Arc<[u8]>);

impl RelPath {
    /// Validates a path from a peer or a directory.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnsafeName> {
        match check(bytes) {
            Ok(()) => Ok(Self(bytes.into())),
            Err(reason) => Err(UnsafeName { name: shown(bytes), reason }),
        }
    }

    /// Returns the path as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Iterates over the components from the top.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }

    /// Returns the number of components, 1 to [`DEPTH_MAX`].
    pub fn depth(&self) -> usize {
        self.components().count()
    }

    /// Returns the last component.
    pub fn file_name(&self) -> &[u8] {
        &self.0[self.parent_bytes().map_or(0, |parent| parent.len() + 1)..]
    }

    /// Returns everything but the last component. `None` if there is only one.
    pub fn parent(&self) -> Option<Self> {
        self.parent_bytes().map(|bytes| Self(bytes.into()))
    }

    /// Returns the parent's bytes without allocating a path.
    pub fn parent_bytes(&self) -> Option<&[u8]> {
        self.0.iter().rposition(|&byte| byte == b'/').map(|slash| &self.0[..slash])
    }

    /// Returns the path of the entry `name` in this directory.
    pub fn join(&self, name: &[u8]) -> Result<Self, UnsafeName> {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self::parse(&bytes)
    }

    /// Returns the path beside this one whose last component is `name`.
    pub(crate) fn with_file_name(&self, name: &[u8]) -> Result<Self, UnsafeName> {
        let mut bytes = self.parent_bytes().map_or(Vec::new(), <[u8]>::to_vec);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self::parse(&bytes)
    }

    /// Returns a form for people: control, bidirectional and invisible characters and bytes that
    /// are not UTF-8 are escaped.
    pub fn display(&self) -> impl fmt::Display + '_ {
        Escaped(&self.0)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelPath({})", Escaped(&self.0))
    }
}

impl PartialOrd for RelPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares component by component, bytes as unsigned (SPEC §10.4): the order of a manifest.
impl Ord for RelPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.components().cmp(other.components())
    }
}

fn check(bytes: &[u8]) -> Result<(), UnsafeReason> {
    if bytes.is_empty() {
        return Err(UnsafeReason::Empty);
    }
    if bytes.len() > PATH_BYTES_MAX {
        return Err(UnsafeReason::TooLong);
    }
    if bytes[0] == b'/' {
        return Err(UnsafeReason::Absolute);
    }
    let mut depth = 0;
    for component in bytes.split(|&byte| byte == b'/') {
        depth += 1;
        check_component(component)?;
    }
    if depth > DEPTH_MAX { Err(UnsafeReason::TooLong) } else { Ok(()) }
}

fn check_component(component: &[u8]) -> Result<(), UnsafeReason> {
    match component {
        b"" => Err(UnsafeReason::Empty),
        b"." | b".." => Err(UnsafeReason::Dots),
        long if long.len() > COMPONENT_BYTES_MAX => Err(UnsafeReason::TooLong),
        nul if nul.contains(&0) => Err(UnsafeReason::Nul),
        own if is_reserved(own) => Err(UnsafeReason::Reserved),
        _ => Ok(()),
    }
}

/// Suffix of a file that is being received.
pub(crate) const PART_SUFFIX: &[u8] = b".wraith-part";
/// Suffix of the journal of verified chunks.
pub(crate) const JOURNAL_SUFFIX: &[u8] = b".wraith-journal";
/// Suffix of a finished file that is about to replace another.
pub(crate) const NEW_SUFFIX: &[u8] = b".wraith-new";

/// Returns true for names of unfinished files and of transfer state. A peer that could create these
/// could pass off its own bytes as verified content of this process. The comparison ignores case,
/// for file systems that fold it, and dots and spaces at the end, which FAT drops.
fn is_reserved(component: &[u8]) -> bool {
    let end = component.iter().rposition(|byte| !b". ".contains(byte));
    let component = &component[..end.map_or(1, |end| end + 1)];
    let ends_with = |suffix: &[u8]| {
        component.len() > suffix.len()
            && component[component.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    };
    let starts_with = |prefix: &[u8]| {
        component.len() > prefix.len() && component[..prefix.len()].eq_ignore_ascii_case(prefix)
    };
    component[0] == b'.'
        && (ends_with(PART_SUFFIX)
            || ends_with(JOURNAL_SUFFIX)
            || ends_with(NEW_SUFFIX)
            || (starts_with(b".wraith-") && ends_with(b".state")))
}

/// Maximum number of characters of a name in a message; longer ones are cut.
const SHOWN_CHARS_MAX: usize = 512;

/// Returns any bytes escaped for people and cut to a bounded length.
pub fn shown(bytes: &[u8]) -> String {
    let text = Escaped(bytes).to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Displays bytes. Valid UTF-8 stays, except characters that move the cursor or reorder or hide
/// text. Those and all other bytes become `\x1b` or `\u{202e}`. A backslash is doubled, so the
/// result is unambiguous.
struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for piece in self.0.utf8_chunks() {
            for character in piece.valid().chars() {
                match character {
                    '\\' => f.write_str("\\\\")?,
                    hidden if hidden.is_ascii_control() => write!(f, "\\x{:02x}", hidden as u32)?,
                    hidden if is_hidden(hidden) => write!(f, "\\u{{{:x}}}", hidden as u32)?,
                    visible => f.write_char(visible)?,
                }
            }
            for byte in piece.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Returns true for control characters beyond ASCII, bidirectional controls, zero-width and other
/// invisible characters, line separators, private use, and tags.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reason(bytes: &[u8]) -> Option<UnsafeReason> {
        RelPath::parse(bytes).err().map(|error| error.reason)
    }

    #[test]
    fn names_that_could_leave_the_target_are_refused() {
        use UnsafeReason::{Absolute, Dots, Empty, Nul, Reserved, TooLong};
        let long = vec![b'a'; COMPONENT_BYTES_MAX + 1];
        let deep = vec![b"a".as_slice(); DEPTH_MAX + 1].join(&b'/');
        let longest = vec![vec![b'a'; 200]; 21].join(&b'/');
        let cases: &[(&[u8], UnsafeReason)] = &[
            (b"", Empty),
            (b"/", Absolute),
            (b"/etc/passwd", Absolute),
            (b"//x", Absolute),
            (b"a//b", Empty),
            (b"a/", Empty),
            (b".", Dots),
            (b"..", Dots),
            (b"../x", Dots),
            (b"a/../b", Dots),
            (b"a/..", Dots),
            (b"a/./b", Dots),
            (b"a\0b", Nul),
            (b"a/\0", Nul),
            (&long, TooLong),
            (&deep, TooLong),
            (&longest, TooLong),
            (b".x.wraith-part", Reserved),
            (b"a/.X.Wraith-Journal", Reserved),
            (b".x.wraith-part/b", Reserved),
            (b".x.wraith-part. ", Reserved),
            (b".wraith-00.state", Reserved),
        ];
        for (bytes, expected) in cases {
            assert_eq!(reason(bytes), Some(*expected), "{}", shown(bytes));
        }
    }

    #[test]
    fn strange_but_safe_names_are_accepted() {
        for bytes in [
            b"...".as_slice(),
            b"..a",
            b"a..",
            b" ",
            b"-rf",
            b"~",
            b"a\\b",
            b"con",
            b"a:b",
            b"\xff\xfe",
            b"a\nb",
            b"x.wraith-part",
            b".wraith-part",
            &[b'a'; COMPONENT_BYTES_MAX],
        ] {
            assert_eq!(reason(bytes), None, "{}", shown(bytes));
        }
    }

    #[test]
    fn shown_names_cannot_move_the_cursor_or_hide_their_ending() {
        let shown = |bytes: &[u8]| RelPath::parse(bytes).unwrap().display().to_string();
        assert_eq!(shown(b"a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
        assert_eq!(shown("photo\u{202e}gpj.exe".as_bytes()), "photo\\u{202e}gpj.exe");
        assert_eq!(shown(b"caf\xe9"), "caf\\xe9");
        assert_eq!(shown("café/日本".as_bytes()), "café/日本");
        assert_eq!(shown(b"a\\x1b"), "a\\\\x1b");
        assert_eq!(shown("a\u{200b}b\u{85}".as_bytes()), "a\\u{200b}b\\u{85}");
    }

    #[test]
    fn parent_and_file_name_take_a_path_apart() {
        let path = RelPath::parse(b"a/bc/d").unwrap();
        assert_eq!((path.file_name(), path.depth()), (b"d".as_slice(), 3));
        assert_eq!(path.parent().unwrap().as_bytes(), b"a/bc");
        assert_eq!(path.with_file_name(b"e").unwrap().as_bytes(), b"a/bc/e");
        let top = RelPath::parse(b"a").unwrap();
        assert_eq!((top.file_name(), top.parent()), (b"a".as_slice(), None));
        assert_eq!(top.with_file_name(b"e").unwrap().as_bytes(), b"e");
        assert!(top.join(b"..").is_err() && top.join(b"").is_err());
    }

    #[test]
    fn order_is_by_component_so_that_a_directory_is_followed_by_its_content() {
        let mut paths: Vec<_> = ["a.b", "a/z", "a", "a/b/c", "a/b"]
            .map(|p| RelPath::parse(p.as_bytes()).unwrap())
            .into();
        paths.sort();
        let order: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(order, ["a", "a/b", "a/b/c", "a/z", "a.b"]);
    }

    proptest! {
        #[test]
        fn an_accepted_path_has_only_harmless_components(bytes in proptest::collection::vec(
            prop_oneof![Just(b'/'), Just(b'.'), Just(0u8), any::<u8>()], 0..40)) {
            if let Ok(path) = RelPath::parse(&bytes) {
                prop_assert_eq!(path.as_bytes(), &bytes[..]);
                for component in path.components() {
                    prop_assert!(!component.is_empty() && component != b"." && component != b"..");
                    prop_assert!(!component.contains(&0) && !component.contains(&b'/'));
                }
            }
        }

        #[test]
        fn shown_text_has_no_control_characters(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let text = shown(&bytes);
            prop_assert!(!text.chars().any(|c| c.is_control() || is_hidden(c)));
        }
    }
}
