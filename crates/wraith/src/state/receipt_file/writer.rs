//! Records the entries sent over one connection, and writes the receipt file at the end.
//!
//! Every connection reports the result of every entry, so each connection starts anew. Until the
//! receipt arrives, two unnamed files exist in the folder of the receipt:
//!
//! - the manifest as sent;
//! - fixed-length rows with the result for each entry, which arrive in any order.
//!
//! Neither is held in memory, and a killed process leaves nothing behind.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{self, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wraith_crypto::NodeId;
use wraith_files::Entry;
use wraith_transfer::{Event, Exception, Receipt};

use super::format::{EntryResult, encode, encode_stream, write_head};
use crate::state::commit::Commit;
use crate::state::error::plain;

const BUFFER_BYTES: usize = 64 << 10;

/// The number of the exception, or 0; 1 if there is a root; the root.
const ROW_BYTES: usize = 1 + 1 + 32;

/// Hexadecimal digits of a receipt's hash that form its file name in a folder, as for received
/// lists.
const ID_LETTERS: usize = 12;

/// Writes receipt files (see the module docs).
#[derive(Debug)]
pub(crate) struct ReceiptWriter {
    /// A file, or a folder with one file per receiver.
    place: PathBuf,
    state: Mutex<WriterState>,
}

#[derive(Debug, Default)]
struct WriterState {
    by: Option<NodeId>,
    parts: Option<io::Result<PartFiles>>,
}

#[derive(Debug)]
struct PartFiles {
    manifest: BufWriter<File>,
    rows: File,
    /// Bytes of the entry being written.
    buffer: Vec<u8>,
}

impl ReceiptWriter {
    /// Creates a writer that writes to `place`.
    pub(crate) fn at(place: &Path) -> Self {
        Self { place: place.to_owned(), state: Mutex::default() }
    }

    /// Handles an event of the transfer engine. After the last one, returns the path of the receipt
    /// file, or why there is none.
    pub(crate) fn record_event(&self, event: &Event<'_>) -> Option<Result<PathBuf, String>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Connected { peer, .. } => state.by = Some(*peer),
            Event::Offer(_) => state.parts = Some(self.folder().and_then(|f| PartFiles::open(&f))),
            Event::Entry { entry, .. } => state.with(|parts| parts.entry(entry)),
            Event::Root { number, root } => state.with(|parts| parts.root(*number, root)),
            Event::Excepted { number, exception } => {
                state.with(|parts| parts.excepted(*number, *exception));
            }
            Event::Done { receipt } => {
                let (by, parts) = (state.by.take(), state.parts.take());
                let parts = parts.expect("an offer is made before its receipt comes");
                let by = by.expect("and a connection before both");
                let written = parts.and_then(|parts| self.write(parts, receipt, &by));
                let shown = self.place.display();
                return Some(written.map_err(|e| format!("cannot write {shown}: {}", plain(&e))));
            }
            _ => {}
        }
        None
    }

    /// Returns the folder of the receipt file.
    fn folder(&self) -> io::Result<PathBuf> {
        let place = path::absolute(&self.place)?;
        if place.is_dir() {
            return Ok(place);
        }
        Ok(place.parent().map_or(place.clone(), Path::to_owned))
    }

    fn write(&self, parts: PartFiles, receipt: &Receipt, by: &NodeId) -> io::Result<PathBuf> {
        let mut place = path::absolute(&self.place)?;
        if place.is_dir() {
            let id = blake3::hash(&receipt.to_bytes()).to_hex();
            place.push(format!("{}.receipt", &id[..ID_LETTERS]));
        }
        let commit = Commit::start(&place)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, commit.file());
        write_head(&mut out, receipt, by)?;
        parts.copy_to(&mut out, receipt)?;
        out.flush()?;
        drop(out);
        commit.finish_new()?;
        Ok(place)
    }
}

impl WriterState {
    fn with(&mut self, act: impl FnOnce(&mut PartFiles) -> io::Result<()>) {
        if let Some(Ok(parts)) = &mut self.parts
            && let Err(error) = act(parts)
        {
            self.parts = Some(Err(error));
        }
    }
}

impl PartFiles {
    fn open(folder: &Path) -> io::Result<Self> {
        let manifest = tempfile::tempfile_in(folder)?;
        let rows = tempfile::tempfile_in(folder)?;
        let manifest = BufWriter::with_capacity(BUFFER_BYTES, manifest);
        Ok(Self { manifest, rows, buffer: Vec::new() })
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.buffer.clear();
        entry.encode(&mut self.buffer);
        self.manifest.write_all(&(self.buffer.len() as u32).to_be_bytes())?;
        self.manifest.write_all(&self.buffer)
    }

    fn root(&self, number: u32, root: &[u8; 32]) -> io::Result<()> {
        let mut row = [1; ROW_BYTES - 1];
        row[1..].copy_from_slice(root);
        self.rows.write_all_at(&row, row_at(number) + 1)
    }

    fn excepted(&self, number: u32, exception: Exception) -> io::Result<()> {
        self.rows.write_all_at(&[exception.number()], row_at(number))
    }

    /// Merges manifest and rows. The sender has already checked the figures of the receipt, except
    /// for the bytes of files that the receiver discarded in the end. This checks them too, so the
    /// stored file is self-verifying.
    fn copy_to(self, out: &mut impl Write, receipt: &Receipt) -> io::Result<()> {
        let mut manifest = self.manifest.into_inner().map_err(io::IntoInnerError::into_error)?;
        let entries = manifest.stream_position()?;
        manifest.rewind()?;
        let mut manifest = BufReader::with_capacity(BUFFER_BYTES, manifest);
        let mut rows = self.rows;
        rows.rewind()?;
        let mut rows = BufReader::with_capacity(BUFFER_BYTES, rows);
        let (mut bytes, mut line) = (Vec::new(), Vec::new());
        if entries == 0 && receipt.verified + receipt.kept > 0 {
            encode_stream(&next_row(&mut rows)?, receipt.bytes, &mut line);
            return out.write_all(&line);
        }
        let (mut left, mut has) = (entries, 0u64);
        while left > 0 {
            let mut len = [0; 4];
            manifest.read_exact(&mut len)?;
            bytes.resize(u32::from_be_bytes(len) as usize, 0);
            manifest.read_exact(&mut bytes)?;
            left -= 4 + bytes.len() as u64;
            let (entry, _) = Entry::decode(&bytes).map_err(io::Error::other)?;
            line.clear();
            let result = next_row(&mut rows)?;
            let size = if result.exception.is_none() { entry.size() } else { 0 };
            has = has.saturating_add(size);
            encode(&entry, &result, &mut line);
            out.write_all(&line)?;
        }
        if has != receipt.bytes {
            return Err(io::Error::other("the receiver signed for another size than it has"));
        }
        Ok(())
    }
}

fn row_at(number: u32) -> u64 {
    u64::from(number) * ROW_BYTES as u64
}

/// Returns the result for the next entry. Rows never written, and those after the last, are zeros.
fn next_row(rows: &mut impl Read) -> io::Result<EntryResult> {
    let mut row = [0; ROW_BYTES];
    let mut filled = 0;
    while filled < ROW_BYTES {
        match rows.read(&mut row[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    let root = (row[1] == 1).then(|| *row[2..].first_chunk().expect("a row has a root"));
    Ok(EntryResult { exception: Exception::from_number(row[0].into()), root })
}

#[cfg(test)]
mod tests {
    use wraith_crypto::SecretIdentity;
    use wraith_files::{Kind, Mtime, RelPath};
    use wraith_transfer::Offer;

    use super::*;

    fn file(name: &[u8], size: u64) -> Entry {
        let path = RelPath::parse(name).unwrap();
        let (kind, mtime) = (Kind::File { size, sparse: None }, Mtime { s: 0, ns: 0 });
        Entry { path, kind, mode: 0o644, mtime }
    }

    #[test]
    fn a_receipt_for_another_size_than_its_list_has_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a.receipt");
        let peer = SecretIdentity::from_seed([1; 32]).node_id();
        let suite = wraith_transport::Suite::Aes256Gcm;
        for (bytes, is_kept) in [(9, false), (15, false), (10, true)] {
            let writer = ReceiptWriter::at(&place);
            let remote = "127.0.0.1:9".parse::<std::net::SocketAddr>().unwrap().into();
            writer.record_event(&Event::Connected { peer, remote, suite, instance: None });
            writer.record_event(&Event::Offer(&Offer::default()));
            for (number, entry) in (0..).zip([file(b"a", 10), file(b"b", 5)]) {
                writer.record_event(&Event::Entry { number, entry: &entry });
                writer.record_event(&Event::Root { number, root: [7; 32] });
            }
            writer.record_event(&Event::Excepted { number: 1, exception: Exception::Blocked });
            let receipt = Receipt {
                transfer_id: [0; 16],
                sender: peer,
                manifest: [0; 32],
                contents: [0; 32],
                verified: 1,
                kept: 0,
                failed: 1,
                bytes,
                unix_seconds: 0,
                durability_number: None,
                signature: [0; 64],
            };
            let written = writer.record_event(&Event::Done { receipt: &receipt }).unwrap();
            assert_eq!((written.is_ok(), place.exists()), (is_kept, is_kept), "{written:?}");
        }
    }
}
