//! A manifest entry: metadata of a file, folder or link, without its content. Codec of SPEC §10.4.
//!
//! Decoding checks everything that needs no disk: a safe path, permission bits only, a size that
//! fits a file offset, a link target without NUL. An [`Entry`] from a peer is therefore as harmless
//! as one from a walk of a local tree.

use thiserror::Error;

use crate::path::{PATH_BYTES_MAX, RelPath, UnsafeName};
use crate::tree::{POSITION_FREE_BYTES_MIN, Tree};

/// Maximum length of a link target in bytes: `PATH_MAX` without its NUL.
pub const LINK_TARGET_BYTES_MAX: usize = PATH_BYTES_MAX - 1;

/// Maximum size of a file in bytes: the system's largest file offset.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// Transmitted mode bits: permissions, set-uid, set-gid, sticky. The receiver drops the last three.
pub const MODE_BITS: u32 = 0o7777;

/// Length of the longest encoded entry in bytes.
pub const ENTRY_BYTES_MAX: usize = 1 + 4 + 8 + 4 + 2 + PATH_BYTES_MAX + 2 + LINK_TARGET_BYTES_MAX;

const KIND_FILE: u8 = 1;
const KIND_SPARSE_FILE: u8 = 2;
const KIND_DIR: u8 = 3;
const KIND_SYMLINK: u8 = 4;
const KIND_POSITION_FREE_FILE: u8 = 5;

/// Modification time: seconds since 1970 (may be negative) and nanoseconds below 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtime {
    /// Whole seconds.
    pub s: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub ns: u32,
}

/// Type of an entry, with the fields specific to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Size in bytes: at most [`FILE_BYTES_MAX`], and at least [`POSITION_FREE_BYTES_MIN`] with
        /// [`Tree::PositionFree`].
        size: u64,
        /// Set if the file has fewer blocks than bytes: holes are searched for, and zeros are not
        /// written. The value is the hash tree of its root. The root of every other file is its
        /// BLAKE3 hash.
        sparse: Option<Tree>,
    },
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink {
        /// The link's target: 1 to [`LINK_TARGET_BYTES_MAX`] bytes, no NUL, otherwise arbitrary.
        target: Vec<u8>,
    },
}

/// A file, folder or link of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path below the target directory.
    pub path: RelPath,
    /// Type of the entry.
    pub kind: Kind,
    /// Mode, within [`MODE_BITS`].
    pub mode: u32,
    /// Time of the last content change.
    pub mtime: Mtime,
}

/// Why bytes are not a valid entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadEntry {
    /// The entry ends too early.
    #[error("a manifest entry is cut off")]
    Truncated,
    /// A field has an impossible value.
    #[error("a manifest entry has an impossible {0}")]
    Field(&'static str),
    /// The path is unsafe.
    #[error(transparent)]
    Name(#[from] UnsafeName),
}

impl Entry {
    /// Returns the content length in bytes: zero for everything except files.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size, .. } => size,
            _ => 0,
        }
    }

    /// Returns true for a file that is searched for holes.
    pub fn is_sparse(&self) -> bool {
        matches!(self.kind, Kind::File { sparse: Some(_), .. })
    }

    /// Returns the hash tree of the file's root.
    pub fn tree(&self) -> Tree {
        match self.kind {
            Kind::File { sparse: Some(tree), .. } => tree,
            _ => Tree::Blake3,
        }
    }

    /// Appends the encoded entry to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            Kind::File { sparse: None, .. } => KIND_FILE,
            Kind::File { sparse: Some(Tree::Blake3), .. } => KIND_SPARSE_FILE,
            Kind::File { sparse: Some(Tree::PositionFree), .. } => KIND_POSITION_FREE_FILE,
            Kind::Dir => KIND_DIR,
            Kind::Symlink { .. } => KIND_SYMLINK,
        });
        out.extend_from_slice(&self.mode.to_be_bytes());
        out.extend_from_slice(&self.mtime.s.to_be_bytes());
        out.extend_from_slice(&self.mtime.ns.to_be_bytes());
        put_bytes(out, self.path.as_bytes());
        match &self.kind {
            Kind::File { size, .. } => out.extend_from_slice(&size.to_be_bytes()),
            Kind::Dir => {}
            Kind::Symlink { target } => put_bytes(out, target),
        }
    }

    /// Decodes one entry from the front of `bytes`. Returns it and its encoded length.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), BadEntry> {
        let mut fields = Fields(bytes);
        let [kind] = fields.take()?;
        let mode = u32::from_be_bytes(fields.take()?);
        let s = i64::from_be_bytes(fields.take()?);
        let ns = u32::from_be_bytes(fields.take()?);
        let path = RelPath::parse(fields.bytes()?)?;
        if mode & !MODE_BITS != 0 {
            return Err(BadEntry::Field("mode"));
        }
        if ns >= 1_000_000_000 {
            return Err(BadEntry::Field("modification time"));
        }
        let kind = match kind {
            KIND_FILE | KIND_SPARSE_FILE | KIND_POSITION_FREE_FILE => {
                let size = u64::from_be_bytes(fields.take()?);
                let (sparse, bytes_min) = match kind {
                    KIND_FILE => (None, 0),
                    KIND_SPARSE_FILE => (Some(Tree::Blake3), 0),
                    // Without this minimum, a sender could avoid, for any file, the BLAKE3 root
                    // that other programs can compute.
                    _ => (Some(Tree::PositionFree), POSITION_FREE_BYTES_MIN),
                };
                if !(bytes_min..=FILE_BYTES_MAX).contains(&size) {
                    return Err(BadEntry::Field("size"));
                }
                Kind::File { size, sparse }
            }
            KIND_DIR => Kind::Dir,
            KIND_SYMLINK => {
                let target = fields.bytes()?;
                if target.is_empty() || target.len() > LINK_TARGET_BYTES_MAX || target.contains(&0)
                {
                    return Err(BadEntry::Field("link target"));
                }
                Kind::Symlink { target: target.to_vec() }
            }
            _ => return Err(BadEntry::Field("kind")),
        };
        let entry = Self { path, kind, mode, mtime: Mtime { s, ns } };
        Ok((entry, bytes.len() - fields.0.len()))
    }

    /// Returns true for a link that leads outside the received tree:
    ///
    /// - an absolute target,
    /// - more `..` components than folders above the link,
    /// - a top-level name that `is_offered` rejects,
    /// - a `..` behind a name, because that name may itself be a link.
    ///
    /// This crate never follows links, but other programs do.
    pub fn leads_out(&self, is_offered: impl Fn(&[u8]) -> bool) -> bool {
        let Kind::Symlink { target } = &self.kind else { return false };
        if target.first() == Some(&b'/') {
            return true;
        }
        let mut above: Vec<&[u8]> = self.path.components().collect();
        above.pop();
        let mut has_names = false;
        for component in target.split(|&byte| byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." if has_names || above.pop().is_none() => return true,
                b".." => {}
                name => {
                    has_names = true;
                    above.push(name);
                }
            }
        }
        !above.first().is_some_and(|top| is_offered(top))
    }

    /// Returns true for a file or folder that its group or all users may write to.
    pub fn is_open_to_others(&self) -> bool {
        !matches!(self.kind, Kind::Symlink { .. }) && self.mode & 0o022 != 0
    }
}

/// Appends `length(2) ‖ bytes`. Paths and targets are shorter than 64 KiB by construction.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).expect("a path or target has at most 4096 bytes");
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The bytes not yet decoded.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadEntry> {
        let (field, rest) = self.0.split_first_chunk().ok_or(BadEntry::Truncated)?;
        self.0 = rest;
        Ok(*field)
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadEntry> {
        let len = usize::from(u16::from_be_bytes(self.take()?));
        let (field, rest) = self.0.split_at_checked(len).ok_or(BadEntry::Truncated)?;
        self.0 = rest;
        Ok(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_file() -> impl Strategy<Value = Kind> {
        let trees = [
            (None, 0),
            (Some(Tree::Blake3), 0),
            (Some(Tree::PositionFree), POSITION_FREE_BYTES_MIN),
        ];
        prop::sample::select(trees.to_vec()).prop_flat_map(|(sparse, bytes_min)| {
            (bytes_min..=FILE_BYTES_MAX).prop_map(move |size| Kind::File { size, sparse })
        })
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let name = proptest::collection::vec(1u8.., 1..20)
            .prop_filter("slashes join", |name| !name.contains(&b'/'));
        let path = proptest::collection::vec(name, 1..6)
            .prop_filter_map("unsafe", |names| RelPath::parse(&names.join(&b'/')).ok());
        let kind = prop_oneof![
            any_file(),
            Just(Kind::Dir),
            proptest::collection::vec(1u8.., 1..100).prop_map(|target| Kind::Symlink { target }),
        ];
        let mtime = (any::<i64>(), 0..1_000_000_000u32).prop_map(|(s, ns)| Mtime { s, ns });
        (path, kind, 0..=MODE_BITS, mtime).prop_map(|(path, kind, mode, mtime)| Entry {
            path,
            kind,
            mode,
            mtime,
        })
    }

    fn link(path: &str, target: &str) -> Entry {
        let path = RelPath::parse(path.as_bytes()).unwrap();
        let kind = Kind::Symlink { target: target.into() };
        Entry { path, kind, mode: 0o777, mtime: Mtime::default() }
    }

    #[test]
    fn the_encoding_is_that_of_the_specification() {
        let path = RelPath::parse(b"a/b").unwrap();
        let trees = [None, Some(Tree::Blake3), Some(Tree::PositionFree)];
        for (sparse, number) in trees.into_iter().zip([1, 2, 5]) {
            let kind = Kind::File { size: 0x0102, sparse };
            let (path, mtime) = (path.clone(), Mtime { s: -1, ns: 5 });
            let mut bytes = Vec::new();
            Entry { path, kind, mode: 0o644, mtime }.encode(&mut bytes);
            let mut expected = vec![number, 0, 0, 1, 0xa4];
            expected.extend([0xff; 8]);
            expected.extend([0, 0, 0, 5, 0, 3, b'a', b'/', b'b', 0, 0, 0, 0, 0, 0, 1, 2]);
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn links_out_of_the_offer_are_recognised() {
        let is_offered = |top: &[u8]| [&b"a"[..], b"c"].contains(&top);
        for (path, target) in [
            ("a", "/etc"),
            ("a", ".."),
            ("a/b", "../../x"),
            ("a/b", "c/../../../x"),
            ("a", "b/../../c"),
            // Links to the target folder itself, and to files beside the received tree.
            ("a/b", ".."),
            ("a/b", "../x"),
            // The name before `..` may be a link.
            ("a/b", "d/../e"),
        ] {
            assert!(link(path, target).leads_out(is_offered), "{path} -> {target}");
        }
        for (path, target) in
            [("a", "c"), ("a/b", "../c"), ("a/b/d", "../.././c/x"), ("a/b", "x"), ("a/b", ".")]
        {
            assert!(!link(path, target).leads_out(is_offered), "{path} -> {target}");
        }
    }

    #[test]
    fn modes_that_let_others_write_are_recognised() {
        let with = |mode, kind| Entry { mode, kind, ..link("a", "b") };
        for mode in [0o620, 0o602, 0o777] {
            assert!(with(mode, Kind::Dir).is_open_to_others());
        }
        assert!(!with(0o755, Kind::Dir).is_open_to_others());
        assert!(!link("a", "b").is_open_to_others(), "the mode of a link says nothing");
    }

    #[test]
    fn impossible_fields_are_refused() {
        let mut bytes = Vec::new();
        link("a", "b").encode(&mut bytes);
        let with = |at: usize, byte: u8| {
            let mut changed = bytes.clone();
            changed[at] = byte;
            Entry::decode(&changed)
        };
        assert_eq!(with(0, 9), Err(BadEntry::Field("kind")));
        assert_eq!(with(1, 1), Err(BadEntry::Field("mode")));
        assert_eq!(with(13, 0xff), Err(BadEntry::Field("modification time")));
        assert!(matches!(with(19, b'/'), Err(BadEntry::Name(_))));
        assert_eq!(with(22, 0), Err(BadEntry::Field("link target")));
        let file = |size, tree| {
            let mut bytes = Vec::new();
            let kind = Kind::File { size, sparse: Some(tree) };
            Entry { kind, ..link("a", "b") }.encode(&mut bytes);
            Entry::decode(&bytes).map(|(entry, _)| entry.size())
        };
        let (bad, least) = (Err(BadEntry::Field("size")), POSITION_FREE_BYTES_MIN);
        assert_eq!(file(FILE_BYTES_MAX + 1, Tree::Blake3), bad);
        assert_eq!(file(least - 1, Tree::PositionFree), bad);
        assert_eq!(file(least, Tree::PositionFree), Ok(least));
    }

    proptest! {
        #[test]
        fn an_entry_survives_its_encoding(entry in any_entry(), rest in any::<[u8; 3]>()) {
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            let len = bytes.len();
            prop_assert!(len <= ENTRY_BYTES_MAX);
            for cut in 0..len {
                prop_assert_eq!(Entry::decode(&bytes[..cut]), Err(BadEntry::Truncated));
            }
            bytes.extend(rest);
            prop_assert_eq!(Entry::decode(&bytes), Ok((entry, len)));
        }

        #[test]
        fn any_bytes_are_an_entry_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok((entry, len)) = Entry::decode(&bytes) {
                let mut again = Vec::new();
                entry.encode(&mut again);
                prop_assert_eq!(&again[..], &bytes[..len]);
            }
        }
    }
}
