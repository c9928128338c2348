//! The record file of one transfer. Each field ends with a NUL, so names are stored unescaped.
//!
//! ```text
//! wraith received 1 ␀ receipt BASE32 ␀ by NODEID ␀ from NODEID ␀ folder PATH ␀
//! (f BYTES ENTRY ROOT PATH ␀ | p BYTES ENTRY ROOT PATH ␀ | d PATH ␀ | l LENGTH TARGET PATH ␀ | x REASON BYTES ENTRY ROOT PATH ␀)*
//! (rest FILES OTHERS VERIFIED BYTES ␀)?
//! seal BLAKE3 SIGNATURE ␀
//! ```
//!
//! - PATH is relative to the folder, as on disk.
//! - ROOT is the BLAKE3 hash of the file; for `p`, the root of its position-free tree.
//! - `x` is an entry of the offer that the receiver lacks, with the reason. Its ROOT is `-` if the
//!   sender has not sent the root.
//! - The receipt covers numbers, roots and reasons, in `contents`.
//! - The seal is the BLAKE3 hash of everything before it, signed by the receiver. It covers the
//!   names, too.
//! - `rest` counts the entries for which the record had no room. Only the figures of the receipt
//!   can then be checked.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use wraith_crypto::{NodeId, SecretIdentity, from_variants};
use wraith_files::Tree;
use wraith_transfer::{ContentDigest, Exception, Receipt};

/// Prefix of the first field, before the version.
const MAGIC: &str = "wraith received ";
const VERSION: u32 = 1;
const SEAL_CONTEXT: &[u8] = b"wraith/1 record of what was received";

const REST: &str = "rest ";
const SEAL: &[u8] = b"seal ";

/// Maximum size of the fields after the list: four numbers, the hash and the signature.
const TAIL_BYTES: u64 = 512;

/// Maximum size of a field: a path, a link target and the values before them, with room to spare.
const FIELD_BYTES_MAX: u64 = 16 * 1024;

/// The fields before the list.
#[derive(Clone, Debug)]
pub struct ReceiptHeader {
    /// The receipt that the receiver signed for the sender.
    pub receipt: Receipt,
    /// The receiver, which signed the record.
    pub by: NodeId,
    /// The sender.
    pub from: NodeId,
    /// The target folder; empty in the receipt file of a sender.
    pub folder: PathBuf,
}

impl ReceiptHeader {
    /// Returns true for a byte stream, which has no list of names (SPEC §10.10).
    pub fn is_stream(&self) -> bool {
        self.receipt.manifest == *blake3::hash(b"").as_bytes()
    }
}

/// One entry of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptEntry {
    /// Path relative to the folder.
    pub path: Vec<u8>,
    /// The kind of entry.
    pub kind: ReceiptEntryKind,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptEntryKind {
    /// A file.
    File {
        /// Size in bytes.
        bytes: u64,
        /// Its number in the transfer.
        entry: u32,
        /// The kind of tree of its root.
        tree: Tree,
        /// The root of its content; its BLAKE3 hash only if `tree` says so.
        root: [u8; 32],
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link {
        /// The target of the link.
        target: Vec<u8>,
    },
    /// An entry of the offer that is absent.
    Absent {
        /// The reason.
        exception: Exception,
        /// Size in bytes.
        bytes: u64,
        /// Its number in the transfer.
        entry: u32,
        /// The root of its content, of either tree, if the sender has sent it.
        root: Option<[u8; 32]>,
    },
}

/// Counts of the entries for which a record has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedCounts {
    /// Number of files.
    pub files: u64,
    /// Number of folders and links.
    pub others: u64,
    /// Number of the files that are present.
    pub verified: u64,
    /// Bytes of the files that are present.
    pub bytes: u64,
}

/// Why a record proves nothing.
#[derive(Debug)]
pub enum ProofError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// It has the format of this newer version.
    Newer(u32),
    /// Its content was changed.
    Edited(&'static str),
}

from_variants!(ProofError { io::Error => Unreadable });

/// Appends the field for the entry at `path`.
pub fn encode(path: &[u8], kind: &ReceiptEntryKind, out: &mut Vec<u8>) {
    let number = |out: &mut Vec<u8>, n: u64| {
        write!(out, "{n} ").expect("a Vec takes everything");
    };
    let root = |out: &mut Vec<u8>, root: &[u8; 32]| {
        let mut hex = [0; 64];
        HEXLOWER.encode_mut(root, &mut hex);
        out.extend_from_slice(&hex);
        out.push(b' ');
    };
    match kind {
        ReceiptEntryKind::File { bytes, entry, tree, root: content } => {
            out.extend_from_slice(match tree {
                Tree::Blake3 => b"f ",
                Tree::PositionFree => b"p ",
            });
            number(out, *bytes);
            number(out, (*entry).into());
            root(out, content);
        }
        ReceiptEntryKind::Absent { exception, bytes, entry, root: content } => {
            out.extend_from_slice(b"x ");
            out.extend_from_slice(exception.name().as_bytes());
            out.push(b' ');
            number(out, *bytes);
            number(out, (*entry).into());
            match content {
                Some(content) => root(out, content),
                None => out.extend_from_slice(b"- "),
            }
        }
        ReceiptEntryKind::Folder => out.extend_from_slice(b"d "),
        ReceiptEntryKind::Link { target } => {
            out.extend_from_slice(b"l ");
            number(out, target.len() as u64);
            out.extend_from_slice(target);
            out.push(b' ');
        }
    }
    out.extend_from_slice(path);
    out.push(0);
}

impl OmittedCounts {
    /// Returns true if the list is complete.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts one more entry.
    pub fn add(&mut self, kind: &ReceiptEntryKind) {
        let (verified, bytes) = match kind {
            ReceiptEntryKind::Folder | ReceiptEntryKind::Link { .. } => {
                self.others += 1;
                return;
            }
            ReceiptEntryKind::File { bytes, .. } => (1, *bytes),
            ReceiptEntryKind::Absent { .. } => (0, 0),
        };
        self.files += 1;
        self.verified += verified;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn with(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            others: self.others + other.others,
            verified: self.verified + other.verified,
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    fn encode(&self) -> String {
        let Self { files, others, verified, bytes } = self;
        format!("{REST}{files} {others} {verified} {bytes}")
    }

    fn parse(field: &[u8]) -> Option<Self> {
        let (files, rest) = word(field)?;
        let (others, rest) = word(rest)?;
        let (verified, bytes) = word(rest)?;
        let (files, others) = (number(files)?, number(others)?);
        Some(Self { files, others, verified: number(verified)?, bytes: number(bytes)? })
    }
}

impl ReceiptEntry {
    /// Parses a field without its NUL.
    pub fn parse(field: &[u8]) -> Option<Self> {
        let (tag, rest) = word(field)?;
        let (path, kind) = match tag {
            b"d" => (rest, ReceiptEntryKind::Folder),
            b"l" => {
                let (len, rest) = word(rest)?;
                let (target, path) = rest.split_at_checked(number(len)?)?;
                (path.strip_prefix(b" ")?, ReceiptEntryKind::Link { target: target.to_vec() })
            }
            b"f" | b"p" => {
                let tree = if tag == b"f" { Tree::Blake3 } else { Tree::PositionFree };
                let (bytes, entry, root, path) = content(rest)?;
                (path, ReceiptEntryKind::File { bytes, entry, tree, root: root? })
            }
            b"x" => {
                let (reason, rest) = word(rest)?;
                let exception = Exception::from_name(std::str::from_utf8(reason).ok()?)?;
                let (bytes, entry, root, path) = content(rest)?;
                (path, ReceiptEntryKind::Absent { exception, bytes, entry, root })
            }
            _ => return None,
        };
        (!path.is_empty()).then(|| Self { path: path.to_vec(), kind })
    }
}

/// Parses size, number, root and path of a file.
#[allow(clippy::type_complexity, reason = "the parts of a line, taken apart at once")]
fn content(field: &[u8]) -> Option<(u64, u32, Option<[u8; 32]>, &[u8])> {
    let (bytes, rest) = word(field)?;
    let (entry, rest) = word(rest)?;
    let (root, path) = word(rest)?;
    let root = match root {
        b"-" => None,
        hex => Some(HEXLOWER.decode(hex).ok()?.try_into().ok()?),
    };
    Some((number(bytes)?, number(entry)?, root, path))
}

/// Splits a field at its first space.
pub(in crate::state) fn word(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = field.iter().position(|&byte| byte == b' ')?;
    Some((&field[..space], &field[space + 1..]))
}

pub(in crate::state) fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads one field; `None` at the end. A field without its NUL, or one that is too long, is an
/// error of kind `InvalidData`.
pub fn field<'a>(
    reader: &mut impl BufRead,
    buffer: &'a mut Vec<u8>,
) -> io::Result<Option<&'a [u8]>> {
    buffer.clear();
    reader.take(FIELD_BYTES_MAX).read_until(0, buffer)?;
    match buffer.split_last() {
        None => Ok(None),
        Some((0, field)) => Ok(Some(field)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "it is cut off")),
    }
}

/// Writes a record within a size limit.
#[derive(Debug)]
pub struct ListWriter<W> {
    out: W,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    /// Bytes left for the list.
    room: u64,
    /// Counts of entries without room in this record, and of entries left out earlier (`before`).
    rest: OmittedCounts,
    before: OmittedCounts,
}

impl<W: Write> ListWriter<W> {
    /// Starts a record. `before` counts entries that were already left out.
    pub fn start(
        out: W,
        head: &ReceiptHeader,
        room: u64,
        before: OmittedCounts,
    ) -> io::Result<Self> {
        let room = room.saturating_sub(TAIL_BYTES);
        let (hasher, buffer, rest) = (blake3::Hasher::new(), Vec::new(), OmittedCounts::default());
        let mut writer = Self { out, hasher, buffer, room, rest, before };
        let receipt = BASE32_NOPAD.encode(&head.receipt.to_bytes()).to_ascii_lowercase();
        writer.put(&[MAGIC.as_bytes(), VERSION.to_string().as_bytes()])?;
        writer.put(&[b"receipt ", receipt.as_bytes()])?;
        writer.put(&[b"by ", head.by.to_string().as_bytes()])?;
        writer.put(&[b"from ", head.from.to_string().as_bytes()])?;
        writer.put(&[b"folder ", head.folder.as_os_str().as_bytes()])?;
        Ok(writer)
    }

    /// Writes one entry. From the first one without room on, entries are only counted.
    pub fn entry(&mut self, entry: &ReceiptEntry) -> io::Result<()> {
        self.buffer.clear();
        encode(&entry.path, &entry.kind, &mut self.buffer);
        if !self.rest.is_empty() || self.buffer.len() as u64 > self.room {
            self.rest.add(&entry.kind);
            return Ok(());
        }
        self.write()
    }

    fn put(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.buffer.clear();
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.buffer.push(0);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.room = self.room.saturating_sub(self.buffer.len() as u64);
        self.hasher.update(&self.buffer);
        self.out.write_all(&self.buffer)
    }

    /// Signs the record and returns the counts of omitted entries.
    pub fn seal(mut self, identity: &SecretIdentity) -> io::Result<(W, OmittedCounts)> {
        let rest = self.rest.with(self.before);
        if !rest.is_empty() {
            self.put(&[rest.encode().as_bytes()])?;
        }
        let hash = self.hasher.finalize();
        let signature = identity.sign(&sealed(&hash));
        let signature = BASE32_NOPAD.encode(&signature).to_ascii_lowercase();
        write!(self.out, "seal {} {signature}\0", hash.to_hex())?;
        Ok((self.out, rest))
    }
}

fn sealed(hash: &blake3::Hash) -> Vec<u8> {
    [SEAL_CONTEXT, hash.as_bytes()].concat()
}

/// Totals of a list, in the form of a receipt.
#[derive(Debug, Default)]
pub(in crate::state) struct Sum {
    contents: ContentDigest,
    verified: u64,
    bytes: u64,
    kept: u64,
    failed: u64,
}

impl Sum {
    /// Adds a file that the receiver has.
    pub(in crate::state) fn has(&mut self, entry: u32, root: &[u8; 32], bytes: u64) {
        self.contents.add(entry, root);
        self.verified += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds an entry that the receiver does not have.
    pub(in crate::state) fn lacks(
        &mut self,
        entry: u32,
        exception: Exception,
        root: Option<[u8; 32]>,
    ) {
        root.iter().for_each(|root| self.contents.add(entry, root));
        self.contents.except(entry, exception);
        *(if exception.is_failure() { &mut self.failed } else { &mut self.kept }) += 1;
    }

    /// Returns true if the receipt is for exactly these totals.
    pub(in crate::state) fn fits(&self, receipt: &Receipt) -> bool {
        (receipt.verified, receipt.bytes) == (self.verified, self.bytes)
            && (receipt.kept, receipt.failed) == (self.kept, self.failed)
            && receipt.contents == self.contents.digest()
    }

    /// Compares only the figures, including those of the omitted entries.
    fn fits_with(&self, rest: &OmittedCounts, receipt: &Receipt) -> bool {
        receipt.verified == self.verified.saturating_add(rest.verified)
            && receipt.bytes == self.bytes.saturating_add(rest.bytes)
    }
}

/// Reads the entries of a record one by one.
#[derive(Debug)]
pub struct ReceivedListReader {
    reader: BufReader<File>,
    buffer: Vec<u8>,
    hasher: blake3::Hasher,
    /// Counts of the omitted entries, once the end was read.
    rest: OmittedCounts,
    /// Hash and signature of the seal, once it was read.
    seal: Option<(String, String)>,
}

/// Opens a record and reads the fields before the list.
///
/// # Errors
/// It cannot be read, has a newer version, or does not start like a record.
pub fn open(file: File) -> Result<(ReceiptHeader, ReceivedListReader), ProofError> {
    let mut lines = ReceivedListReader {
        reader: BufReader::with_capacity(64 << 10, file),
        buffer: Vec::new(),
        hasher: blake3::Hasher::new(),
        rest: OmittedCounts::default(),
        seal: None,
    };
    let magic = lines.field()?.and_then(|field| std::str::from_utf8(field).ok());
    match magic.and_then(|magic| number(magic.strip_prefix(MAGIC)?.as_bytes())) {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => return Err(ProofError::Newer(newer)),
        _ => return Err(ProofError::Edited("it does not begin as a record does")),
    }
    let bad = || ProofError::Edited("the header of the list is invalid");
    let receipt = BASE32_NOPAD.decode(lines.named(b"receipt ")?.to_ascii_uppercase().as_slice());
    let receipt = receipt.ok().and_then(|bytes| Receipt::from_bytes(&bytes)).ok_or_else(bad)?;
    let node_id =
        |bytes: &[u8]| -> Option<NodeId> { std::str::from_utf8(bytes).ok()?.parse().ok() };
    let by = node_id(lines.named(b"by ")?).ok_or_else(bad)?;
    let from = node_id(lines.named(b"from ")?).ok_or_else(bad)?;
    let folder = lines.named(b"folder ")?.to_vec();
    let folder = PathBuf::from(std::ffi::OsString::from_vec(folder));
    Ok((ReceiptHeader { receipt, by, from, folder }, lines))
}

impl ReceivedListReader {
    fn field(&mut self) -> Result<Option<&[u8]>, ProofError> {
        let field =
            field(&mut self.reader, &mut self.buffer).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => ProofError::Edited("it is cut off"),
                _ => ProofError::Unreadable(error),
            })?;
        if let Some(field) = field.filter(|field| !field.starts_with(SEAL)) {
            self.hasher.update(field);
            self.hasher.update(&[0]);
        }
        Ok(field)
    }

    fn named(&mut self, name: &[u8]) -> Result<&[u8], ProofError> {
        let field = self.field()?.and_then(|field| field.strip_prefix(name));
        field.ok_or(ProofError::Edited("the header of the list is invalid"))
    }

    /// Returns the next entry; `None` after the seal.
    pub fn next_entry(&mut self) -> Result<Option<ReceiptEntry>, ProofError> {
        let Some(field) = self.field()? else {
            return Err(ProofError::Edited("its end is missing"));
        };
        let invalid = ProofError::Edited("a line is invalid");
        if let Some(rest) = field.strip_prefix(REST.as_bytes()) {
            self.rest = OmittedCounts::parse(rest).ok_or(invalid)?;
            return self.end();
        }
        if !field.starts_with(SEAL) {
            return ReceiptEntry::parse(field).map(Some).ok_or(invalid);
        }
        let field = field.to_vec();
        self.take_seal(&field)
    }

    /// Reads the rest of the record: nothing but the seal.
    fn end(&mut self) -> Result<Option<ReceiptEntry>, ProofError> {
        let field = self.field()?.ok_or(ProofError::Edited("its end is missing"))?.to_vec();
        self.take_seal(&field)
    }

    fn take_seal(&mut self, field: &[u8]) -> Result<Option<ReceiptEntry>, ProofError> {
        let seal = field.strip_prefix(SEAL).ok_or(ProofError::Edited("its end is missing"))?;
        let text = String::from_utf8_lossy(seal).into_owned();
        let (hash, signature) = text.split_once(' ').unwrap_or_default();
        self.seal = Some((hash.to_owned(), signature.to_owned()));
        if self.field()?.is_some() {
            return Err(ProofError::Edited("something stands behind its end"));
        }
        Ok(None)
    }

    /// Reads to the end. Checks that the receiver wrote and signed exactly this, and that the
    /// receipt covers the roots. Returns the entries from the first one again.
    pub fn verify(mut self, head: &ReceiptHeader) -> Result<Self, ProofError> {
        let mut sum = Sum::default();
        while let Some(line) = self.next_entry()? {
            match line.kind {
                ReceiptEntryKind::File { bytes, entry, root, .. } => sum.has(entry, &root, bytes),
                ReceiptEntryKind::Absent { exception, entry, root, .. } => {
                    sum.lacks(entry, exception, root)
                }
                ReceiptEntryKind::Folder | ReceiptEntryKind::Link { .. } => {}
            }
        }
        let hash = self.hasher.finalize();
        let (said, signature) = self.seal.take().unwrap_or_default();
        let signature = BASE32_NOPAD.decode(signature.to_ascii_uppercase().as_bytes()).ok();
        let signature = signature.and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        let signed = signature.is_some_and(|s| head.by.verify(&sealed(&hash), &s).is_ok());
        if said != hash.to_hex().as_str() || !signed {
            return Err(ProofError::Edited("its content differs from the signed content"));
        }
        if head.receipt.verify(&head.by).is_err() {
            return Err(ProofError::Edited("its receipt is not signed by the receiver"));
        }
        let rest = self.rest;
        let is_covered = match rest.is_empty() {
            true => sum.fits(&head.receipt),
            false => sum.fits_with(&rest, &head.receipt),
        };
        if !is_covered || head.receipt.sender != head.from {
            return Err(ProofError::Edited("its receipt is for other contents"));
        }
        let mut file = self.reader.into_inner();
        file.rewind()?;
        let (_, lines) = open(file)?;
        Ok(Self { rest, ..lines })
    }

    /// Returns the counts of omitted entries. Valid after [`Self::verify`].
    pub fn rest(&self) -> OmittedCounts {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip_with_any_bytes_in_names() {
        let link = |target: &[u8]| ReceiptEntryKind::Link { target: target.to_vec() };
        let absent =
            |exception, root| ReceiptEntryKind::Absent { exception, bytes: 5, entry: 8, root };
        let kinds = [
            ReceiptEntryKind::File { bytes: u64::MAX, entry: 7, tree: Tree::Blake3, root: [9; 32] },
            ReceiptEntryKind::File { bytes: 1, entry: 0, tree: Tree::PositionFree, root: [9; 32] },
            absent(Exception::Skipped, Some([3; 32])),
            absent(Exception::Unreadable, None),
            ReceiptEntryKind::Folder,
            link(b"a b"),
            link(b" "),
        ];
        for kind in kinds {
            for path in [&b"a"[..], b" ", b"a b\n\xff/c", b"- - -"] {
                let line = ReceiptEntry { path: path.to_vec(), kind: kind.clone() };
                let mut bytes = Vec::new();
                encode(&line.path, &line.kind, &mut bytes);
                assert_eq!(bytes.pop(), Some(0));
                assert_eq!(ReceiptEntry::parse(&bytes), Some(line));
            }
        }
        for bad in [
            &b""[..],
            b"d",
            b"d ",
            b"x a",
            b"f 1 2 3 a",
            b"f 1 - - ",
            b"f 1 - - a",
            b"f 1 2 - a",
            b"p 1 2 - a",
            b"x done 1 2 - a",
            b"x skipped 1 - - a",
            b"l 9 a b",
            b"l 1 ab",
        ] {
            assert_eq!(ReceiptEntry::parse(bad), None, "{}", bad.escape_ascii());
        }
    }
}
