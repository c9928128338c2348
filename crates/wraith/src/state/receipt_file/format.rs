//! The file of one receipt. Each field ends with a NUL, so names are stored unescaped.
//!
//! ```text
//! wraith receipt 1 ␀ receipt BASE32 ␀ by NODEID ␀ from NODEID ␀
//! (f STATUS ROOT MODE SECONDS NANOSECONDS BYTES PATH ␀ | h … ␀ | p … ␀
//!  | d STATUS MODE SECONDS NANOSECONDS PATH ␀ | l STATUS MODE SECONDS NANOSECONDS LENGTH TARGET PATH ␀)*
//! ```
//!
//! The lines are the manifest, in its order, with the result for each entry:
//!
//! - STATUS is `here`, or the reason why the receiver does not have the entry. ROOT is `-` if the
//!   entry has no root.
//! - `h` is a file with holes. `p` is a file whose ROOT is the root of its position-free tree
//!   instead of its BLAKE3 hash.
//! - A byte stream has no manifest, but one line `s STATUS ROOT BYTES`.
//!
//! There is no seal: the receiver's signature covers the hash of the manifest (the list of the
//! offered entries), and so every name, size, mode and time. The signature also covers the digest
//! of numbers, roots and reasons, and the sender. Each field has exactly one valid encoding; any
//! other is refused.

use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::path::PathBuf;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use wraith_crypto::NodeId;
use wraith_files::{Entry, Kind, Mtime, RelPath, Tree};
use wraith_transfer::{Exception, Receipt};

use crate::state::received_list::{
    ProofError, ReceiptEntry, ReceiptEntryKind, ReceiptHeader, Sum, field, number, word,
};

/// Prefix of the first field, before the version.
const MAGIC: &str = "wraith receipt ";
const VERSION: u32 = 1;

const HERE: &str = "here";

/// The result for one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryResult {
    /// Why the receiver does not have it; `None` if it does.
    pub(super) exception: Option<Exception>,
    /// The root of its content, if it was sent or is already the same there.
    pub(super) root: Option<[u8; 32]>,
}

/// Writes the fields before the lines.
pub(super) fn write_head(out: &mut impl Write, receipt: &Receipt, by: &NodeId) -> io::Result<()> {
    out.write_all(&head(receipt, by))
}

fn head(receipt: &Receipt, by: &NodeId) -> Vec<u8> {
    let from = receipt.sender;
    let receipt = BASE32_NOPAD.encode(&receipt.to_bytes()).to_ascii_lowercase();
    format!("{MAGIC}{VERSION}\0receipt {receipt}\0by {by}\0from {from}\0").into_bytes()
}

/// Appends the line of an entry.
pub(super) fn encode(entry: &Entry, result: &EntryResult, out: &mut Vec<u8>) {
    let Entry { path, kind, mode, mtime } = entry;
    let EntryResult { exception, root } = result;
    let status = exception.map_or(HERE, Exception::name);
    let root = root.map_or_else(|| "-".to_owned(), |root| HEXLOWER.encode(&root));
    let meta = format!("{mode:o} {} {}", mtime.s, mtime.ns);
    match kind {
        Kind::File { size, sparse } => {
            let kind = match sparse {
                None => 'f',
                Some(Tree::Blake3) => 'h',
                Some(Tree::PositionFree) => 'p',
            };
            put(out, format_args!("{kind} {status} {root} {meta} {size} "));
        }
        Kind::Dir => put(out, format_args!("d {status} {meta} ")),
        Kind::Symlink { target } => {
            put(out, format_args!("l {status} {meta} {} ", target.len()));
            out.extend_from_slice(target);
            out.push(b' ');
        }
    }
    out.extend_from_slice(path.as_bytes());
    out.push(0);
}

/// Appends the line of a stream.
pub(super) fn encode_stream(result: &EntryResult, bytes: u64, out: &mut Vec<u8>) {
    let status = result.exception.map_or(HERE, Exception::name);
    let root = result.root.map_or_else(|| "-".to_owned(), |root| HEXLOWER.encode(&root));
    put(out, format_args!("s {status} {root} {bytes}\0"));
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes everything");
}

/// A parsed line.
enum ReceiptLine {
    Entry(Entry, EntryResult),
    Stream(EntryResult, u64),
}

impl ReceiptLine {
    fn parse(line: &[u8]) -> Option<Self> {
        let (kind, rest) = word(line)?;
        let (status, rest) = word(rest)?;
        let exception = match std::str::from_utf8(status).ok()? {
            HERE => None,
            name => Some(Exception::from_name(name)?),
        };
        let (root, rest) = match kind {
            b"f" | b"h" | b"p" | b"s" => {
                let (hex, rest) = word(rest)?;
                let root = match hex {
                    b"-" => None,
                    hex => Some(HEXLOWER.decode(hex).ok()?.try_into().ok()?),
                };
                (root, rest)
            }
            _ => (None, rest),
        };
        let result = EntryResult { exception, root };
        // A file that is present must have a root.
        if matches!(kind, b"f" | b"h" | b"p" | b"s") && exception.is_none() && root.is_none() {
            return None;
        }
        if kind == b"s" {
            return Some(Self::Stream(result, number(rest)?));
        }
        let (mode, rest) = word(rest)?;
        let (s, rest) = word(rest)?;
        let (ns, rest) = word(rest)?;
        let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
        let mtime = Mtime { s: number(s)?, ns: number(ns)? };
        let (kind, path) = match kind {
            b"f" | b"h" | b"p" => {
                let (size, path) = word(rest)?;
                let sparse = match kind {
                    b"f" => None,
                    b"h" => Some(Tree::Blake3),
                    _ => Some(Tree::PositionFree),
                };
                (Kind::File { size: number(size)?, sparse }, path)
            }
            b"d" => (Kind::Dir, rest),
            b"l" => {
                let (len, rest) = word(rest)?;
                let (target, path) = rest.split_at_checked(number(len)?)?;
                (Kind::Symlink { target: target.to_vec() }, path.strip_prefix(b" ")?)
            }
            _ => return None,
        };
        let path = RelPath::parse(path).ok()?;
        Some(Self::Entry(Entry { path, kind, mode, mtime }, result))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Entry(entry, result) => encode(entry, result, &mut out),
            Self::Stream(result, bytes) => encode_stream(result, *bytes, &mut out),
        }
        out
    }
}

/// Reads the lines of a receipt one by one.
#[derive(Debug)]
pub struct ReceiptReader {
    reader: BufReader<File>,
    buffer: Vec<u8>,
    manifest: blake3::Hasher,
    entries: u32,
    sum: Sum,
}

/// Opens a receipt and reads the fields before the lines. [`ReceiptReader::verify`] verifies its
/// signature.
///
/// # Errors
/// It cannot be read, has a newer version, or does not start like a receipt.
pub fn open_receipt(file: File) -> Result<(ReceiptHeader, ReceiptReader), ProofError> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut buffer = Vec::new();
    let magic = next_field(&mut reader, &mut buffer)?;
    let magic = magic.and_then(|magic| std::str::from_utf8(magic).ok()?.strip_prefix(MAGIC));
    match magic.and_then(|version| number(version.as_bytes())) {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => return Err(ProofError::Newer(newer)),
        _ => return Err(ProofError::Edited("it does not begin as a receipt does")),
    }
    let bad = ProofError::Edited("the header of the list is invalid");
    let named = |reader: &mut _, buffer: &mut _, name: &str| -> Result<_, ProofError> {
        let text = next_field(reader, buffer)?.and_then(|text| std::str::from_utf8(text).ok());
        Ok(text.and_then(|text| text.strip_prefix(name)).map(str::to_owned))
    };
    let text = named(&mut reader, &mut buffer, "receipt ")?.unwrap_or_default();
    let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok();
    let receipt = bytes.and_then(|bytes| Receipt::from_bytes(&bytes));
    let by = named(&mut reader, &mut buffer, "by ")?.and_then(|text| text.parse().ok());
    let from = named(&mut reader, &mut buffer, "from ")?.and_then(|text| text.parse().ok());
    let (Some(receipt), Some(by), Some(from)) = (receipt, by, from) else { return Err(bad) };
    let written = head(&receipt, &by);
    let head = ReceiptHeader { receipt, by, from, folder: PathBuf::new() };
    let mut file = reader.into_inner();
    file.rewind()?;
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut stored = vec![0; written.len()];
    let is_canonical = io::Read::read_exact(&mut reader, &mut stored).is_ok() && stored == written;
    if !is_canonical {
        return Err(bad);
    }
    Ok((head, ReceiptReader::at(reader)))
}

fn next_field<'a>(
    reader: &mut BufReader<File>,
    buffer: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>, ProofError> {
    field(reader, buffer).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => ProofError::Edited("it is cut off"),
        _ => ProofError::Unreadable(error),
    })
}

impl ReceiptReader {
    fn at(reader: BufReader<File>) -> Self {
        let (buffer, manifest) = (Vec::new(), blake3::Hasher::new());
        Self { reader, buffer, manifest, entries: 0, sum: Sum::default() }
    }

    /// Returns the next line; `None` at the end. The path of a stream is `-`.
    ///
    /// # Errors
    /// The file cannot be read, or its content was changed.
    pub fn next_entry(&mut self) -> Result<Option<ReceiptEntry>, ProofError> {
        let invalid = || ProofError::Edited("a line is invalid");
        let Some(text) = next_field(&mut self.reader, &mut self.buffer)? else { return Ok(None) };
        let item = ReceiptLine::parse(text).ok_or_else(invalid)?;
        // Refuses other encodings of the same value, such as a sign or leading zeros.
        if item.encode().strip_suffix(b"\0") != Some(text) {
            return Err(invalid());
        }
        let entry = self.entries;
        self.entries = entry.checked_add(1).ok_or_else(invalid)?;
        let (path, bytes, tree, result, otherwise) = match item {
            ReceiptLine::Stream(result, bytes) => {
                (b"-".to_vec(), bytes, Tree::Blake3, result, None)
            }
            ReceiptLine::Entry(listed, result) => {
                let mut written = vec![0; 4];
                listed.encode(&mut written);
                let len = (written.len() - 4) as u32;
                written[..4].copy_from_slice(&len.to_be_bytes());
                self.manifest.update(&written);
                let (path, bytes, tree) =
                    (listed.path.as_bytes().to_vec(), listed.size(), listed.tree());
                let otherwise = match listed.kind {
                    Kind::File { .. } => None,
                    Kind::Dir => Some(ReceiptEntryKind::Folder),
                    Kind::Symlink { target } => Some(ReceiptEntryKind::Link { target }),
                };
                (path, bytes, tree, result, otherwise)
            }
        };
        let kind = match (result.exception, result.root, otherwise) {
            (Some(exception), root, _) => {
                self.sum.lacks(entry, exception, root);
                ReceiptEntryKind::Absent { exception, bytes, entry, root }
            }
            (None, _, Some(kind)) => kind,
            (None, root, None) => {
                let root = root.ok_or_else(invalid)?;
                self.sum.has(entry, &root, bytes);
                ReceiptEntryKind::File { bytes, entry, tree, root }
            }
        };
        Ok(Some(ReceiptEntry { path, kind }))
    }

    /// Reads to the end, and checks that the receiver signed exactly this content. Returns the
    /// lines from the first one again.
    ///
    /// # Errors
    /// The file cannot be read, or part of it differs from the signed content.
    pub fn verify(mut self, head: &ReceiptHeader) -> Result<Self, ProofError> {
        while self.next_entry()?.is_some() {}
        if head.receipt.verify(&head.by).is_err() {
            return Err(ProofError::Edited("it is not signed by the receiver that it names"));
        }
        if head.receipt.sender != head.from {
            return Err(ProofError::Edited("it is about the files of another sender"));
        }
        if head.receipt.manifest != *self.manifest.finalize().as_bytes() {
            return Err(ProofError::Edited("its list is not the one that was signed"));
        }
        if !self.sum.fits(&head.receipt) {
            return Err(ProofError::Edited("it is signed for other contents"));
        }
        let mut file = self.reader.into_inner();
        file.rewind()?;
        Ok(open_receipt(file)?.1)
    }
}
