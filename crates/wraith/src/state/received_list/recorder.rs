//! Records received entries during the transfer, and creates the record at its end.
//!
//! Until the receipt is signed, the entries are in a part file, one per transfer and folder. Every
//! connection starts the part file anew and lists all entries: it also reports the entries that
//! earlier connections received, with their roots. Nothing is held in memory; the part file is
//! written and read as a stream.
//!
//! Invariants: a part file has the entries of one connection only, and is no larger than a record
//! may be. Entries without room are counted instead.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_transfer::{Event, InPlace, Receipt};

use super::format::{
    ListWriter, OmittedCounts, ReceiptEntry, ReceiptEntryKind, ReceiptHeader, encode, field,
};
use super::store::{self, PART, ReceivedStore};
use crate::state::commit::{Commit, FolderLock};
use crate::state::dir::StateDir;
use crate::state::error::{StateError, plain};

const BUFFER_BYTES: usize = 64 << 10;

/// The recorder of one transfer, over all its connections. Errors are reported by [`Self::finish`].
#[derive(Debug)]
pub struct ReceivedListRecorder {
    state: StateDir,
    out: PathBuf,
    /// Size limit of the record in bytes.
    room: u64,
    progress: Mutex<RecorderState>,
}

#[derive(Debug)]
enum RecorderState {
    /// Recording is off.
    Off,
    /// Nothing was accepted yet. Contains the transfer ID, once it is known.
    Waiting(Option<[u8; 16]>),
    Writing(PartFile),
    Failed(String),
}

#[derive(Debug)]
struct PartFile {
    path: PathBuf,
    lines: BufWriter<File>,
    /// The target folder; the handle follows it if it is moved.
    folder: File,
    buffer: Vec<u8>,
    /// Bytes of the entries.
    end: u64,
    /// Counts of omitted entries.
    rest: OmittedCounts,
}

impl ReceivedListRecorder {
    /// Creates a recorder for a transfer into `out`. `room` is the size limit of the record; `None`
    /// turns recording off.
    pub fn new(state: &StateDir, out: &Path, room: Option<u64>) -> Self {
        let is_on = room.is_some() && state.folder().is_some();
        let progress = if is_on { RecorderState::Waiting(None) } else { RecorderState::Off };
        let (state, out, room) = (state.clone(), out.to_owned(), room.unwrap_or(0));
        Self { state, out, room, progress: Mutex::new(progress) }
    }

    /// Handles an event of the transfer engine.
    pub fn record_event(&self, event: &Event<'_>) {
        match event {
            Event::Offer(offer) => {
                if let RecorderState::Waiting(transfer) = &mut *self.lock() {
                    *transfer = Some(offer.transfer_id);
                }
            }
            Event::Accepted => {
                let mut progress = self.lock();
                if let RecorderState::Waiting(Some(transfer)) = *progress {
                    *progress = match PartFile::open(&self.state, &self.out, transfer) {
                        Ok(part) => RecorderState::Writing(part),
                        Err(why) => RecorderState::Failed(why),
                    };
                }
                progress.start();
            }
            Event::InPlace { path, what } => {
                let kind = match *what {
                    InPlace::Folder => ReceiptEntryKind::Folder,
                    InPlace::Link { target } => ReceiptEntryKind::Link { target: target.to_vec() },
                    InPlace::File { bytes, entry, root: (tree, root) } => {
                        ReceiptEntryKind::File { bytes, entry, tree, root }
                    }
                    InPlace::Absent { bytes, entry, exception, root } => {
                        ReceiptEntryKind::Absent { exception, bytes, entry, root }
                    }
                };
                self.lock().write(path.as_bytes(), &kind, self.room);
            }
            _ => {}
        }
    }

    /// Creates the record and returns the counts of omitted entries.
    ///
    /// # Errors
    /// Why there is no record, as text.
    pub fn finish(
        &self,
        receipt: &Receipt,
        from: NodeId,
        identity: &SecretIdentity,
    ) -> Result<OmittedCounts, String> {
        match std::mem::replace(&mut *self.lock(), RecorderState::Off) {
            RecorderState::Off | RecorderState::Waiting(_) => Ok(OmittedCounts::default()),
            RecorderState::Failed(why) => Err(why),
            RecorderState::Writing(part) => {
                let path = part.path.clone();
                let made = part.finish(self.room, receipt, from, identity);
                let rest = made.map_err(|error| cannot_write(&path, &error))?;
                // A leftover part is harmless.
                let _ = fs::remove_file(&path);
                let _ = store::tidy(path.parent().expect("a part is in the folder of the lists"));
                Ok(rest)
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RecorderState> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderState {
    fn start(&mut self) {
        let Self::Writing(part) = self else { return };
        if let Err(error) = part.start() {
            *self = Self::Failed(cannot_write(&part.path, &error));
        }
    }

    fn write(&mut self, path: &[u8], kind: &ReceiptEntryKind, room: u64) {
        let Self::Writing(part) = self else { return };
        if let Err(error) = part.write(path, kind, room) {
            *self = Self::Failed(cannot_write(&part.path, &error));
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), plain(error))
}

impl PartFile {
    fn open(state: &StateDir, out: &Path, transfer: [u8; 16]) -> Result<Self, String> {
        let store = ReceivedStore::of(state).map_err(|error: StateError| error.to_string())?;
        let lists = store.folder().expect("nothing is recorded in memory");
        // This also removes parts of transfers that never end.
        let _ = store::tidy(lists);
        let out = fs::canonicalize(out).map_err(|error| cannot_write(out, &error))?;
        let folder = blake3::hash(out.as_os_str().as_bytes()).to_hex();
        let transfer_hex = data_encoding::HEXLOWER.encode(&transfer);
        let path = lists.join(format!("{transfer_hex}-{}{PART}", &folder[..16]));
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).mode(0o600).open(&path);
        let made = opened.and_then(|file| {
            // If two processes receive the same into one folder, the engine lets one of them write.
            file.try_lock()?;
            Ok((file, File::open(&out)?))
        });
        let (file, folder) = made.map_err(|error| cannot_write(&path, &error))?;
        let lines = BufWriter::with_capacity(BUFFER_BYTES, file);
        let (buffer, rest) = (Vec::new(), OmittedCounts::default());
        Ok(Self { path, lines, folder, buffer, end: 0, rest })
    }

    /// Starts a connection, which lists all present entries again.
    fn start(&mut self) -> io::Result<()> {
        self.lines.flush()?;
        self.lines.get_ref().set_len(0)?;
        (self.end, self.rest) = (0, OmittedCounts::default());
        Ok(())
    }

    fn write(&mut self, path: &[u8], kind: &ReceiptEntryKind, room: u64) -> io::Result<()> {
        self.buffer.clear();
        encode(path, kind, &mut self.buffer);
        let end = self.end + self.buffer.len() as u64;
        if !self.rest.is_empty() || end > room {
            self.rest.add(kind);
            return Ok(());
        }
        self.end = end;
        self.lines.write_all(&self.buffer)
    }

    /// Returns the current path of the target.
    fn folder(&self) -> io::Result<PathBuf> {
        fs::read_link(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    fn finish(
        mut self,
        room: u64,
        receipt: &Receipt,
        from: NodeId,
        identity: &SecretIdentity,
    ) -> io::Result<OmittedCounts> {
        self.lines.flush()?;
        let folder = self.folder()?;
        let by = identity.node_id();
        let head = ReceiptHeader { receipt: receipt.clone(), by, from, folder };
        let lists = self.path.parent().expect("a part is in the folder of the lists");
        let place = store::place(lists, receipt);
        let commit = Commit::start(&place)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, commit.file());
        let mut writer = ListWriter::start(out, &head, room, self.rest)?;
        each(lines_of(self.lines.get_ref())?, |line| writer.entry(&line))?;
        let (mut out, rest) = writer.seal(identity)?;
        out.flush()?;
        drop(out);
        let state = lists.parent().expect("the folder of the lists is in that of the state");
        commit.finish(&FolderLock::wait(state)?)?;
        Ok(rest)
    }
}

fn lines_of(mut file: &File) -> io::Result<BufReader<&File>> {
    file.rewind()?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Calls `of` with each entry; skips other fields.
fn each(
    mut reader: impl io::BufRead,
    mut of: impl FnMut(ReceiptEntry) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(field) = field(&mut reader, &mut buffer)? {
        if let Some(line) = ReceiptEntry::parse(field) {
            of(line)?;
        }
    }
    Ok(())
}
