//! Writes down what arrives, while it arrives, and makes the record of it in the end.
//!
//! Until the receipt is signed the lines are in a part file of the transfer and its folder, which later connections and runs
//! continue: what an earlier one verified comes without its root then, and is looked up. Memory holds only those names
//! (as hashes), everything else is written and read as a stream.
//!
//! Invariants: a part has the lines of all connections, the last of which lists everything that is there, in at most twice the
//! room of a record; and what there was no room for is counted.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_transfer::{Event, InPlace, Receipt};

use super::list::{Head, Line, Rest, What, Writer, encode, field};
use super::store::{self, PART, ReceivedStore};
use crate::state::commit::{Commit, FolderLock};
use crate::state::dir::StateDir;
use crate::state::error::{StateError, plain};

const BUFFER_BYTES: usize = 64 << 10;

/// The recorder of one transfer, over all its connections. Errors wait for [`Self::finish`].
#[derive(Debug)]
pub struct Recorder {
    state: StateDir,
    out: PathBuf,
    /// Bytes that a record may have.
    room: u64,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
enum Progress {
    /// Nothing is to be recorded.
    Off,
    /// Nothing was accepted; which transfer it is, once that is known.
    Waiting(Option<[u8; 16]>),
    Writing(Part),
    Failed(String),
}

#[derive(Debug)]
struct Part {
    transfer: [u8; 16],
    store: ReceivedStore,
    path: PathBuf,
    lines: BufWriter<File>,
    /// The target, wherever it is moved to meanwhile.
    folder: File,
    buffer: Vec<u8>,
    /// Where the lines of this connection begin, and where they end.
    begin: u64,
    end: u64,
    /// Some of them are without a root.
    has_earlier: bool,
    /// What they leave out.
    rest: Rest,
}

/// Roots of files that came without, by the hash of their path.
type Earlier = HashMap<[u8; 16], Option<(u64, [u8; 32])>>;

impl Recorder {
    /// A recorder of what goes into `out`, in a record of so many bytes; none if there is to be none.
    pub fn new(state: &StateDir, out: &Path, room: Option<u64>) -> Self {
        let is_on = room.is_some() && state.folder().is_some();
        let progress = if is_on { Progress::Waiting(None) } else { Progress::Off };
        let (state, out, room) = (state.clone(), out.to_owned(), room.unwrap_or(0));
        Self { state, out, room, progress: Mutex::new(progress) }
    }

    /// One event of the engine.
    pub fn tell(&self, event: &Event<'_>) {
        match event {
            Event::Offer(offer) => {
                if let Progress::Waiting(transfer) = &mut *self.lock() {
                    *transfer = Some(offer.transfer_id);
                }
            }
            Event::Accepted => {
                let mut progress = self.lock();
                if let Progress::Waiting(Some(transfer)) = *progress {
                    *progress = match Part::open(&self.state, &self.out, transfer) {
                        Ok(part) => Progress::Writing(part),
                        Err(why) => Progress::Failed(why),
                    };
                }
                progress.begin(self.room);
            }
            Event::InPlace { path, what } => {
                let what = match *what {
                    InPlace::Folder => What::Folder,
                    InPlace::Link { target } => What::Link { target: target.to_vec() },
                    InPlace::File { bytes, verified } => What::File {
                        bytes,
                        entry: verified.map(|(entry, _)| entry),
                        root: verified.map(|(_, root)| root),
                    },
                    InPlace::Other { bytes, verified: (entry, root) } => {
                        What::Other { bytes, entry, root }
                    }
                };
                self.lock().write(path.as_bytes(), &what, self.room);
            }
            _ => {}
        }
    }

    /// Makes the record; says what it leaves out.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn finish(
        &self,
        receipt: &Receipt,
        from: NodeId,
        identity: &SecretIdentity,
    ) -> Result<Rest, String> {
        match std::mem::replace(&mut *self.lock(), Progress::Off) {
            Progress::Off | Progress::Waiting(_) => Ok(Rest::default()),
            Progress::Failed(why) => Err(why),
            Progress::Writing(part) => {
                let path = part.path.clone();
                let made = part.finish(self.room, receipt, from, identity);
                let rest = made.map_err(|error| cannot_write(&path, &error))?;
                // What cannot be removed is in nobody's way.
                let _ = fs::remove_file(&path);
                let _ = store::tidy(path.parent().expect("a part is in the folder of the lists"));
                Ok(rest)
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn begin(&mut self, room: u64) {
        let Self::Writing(part) = self else { return };
        if let Err(error) = part.begin(room) {
            *self = Self::Failed(cannot_write(&part.path, &error));
        }
    }

    fn write(&mut self, path: &[u8], what: &What, room: u64) {
        let Self::Writing(part) = self else { return };
        if let Err(error) = part.write(path, what, room) {
            *self = Self::Failed(cannot_write(&part.path, &error));
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), plain(error))
}

impl Part {
    fn open(state: &StateDir, out: &Path, transfer: [u8; 16]) -> Result<Self, String> {
        let store = ReceivedStore::of(state).map_err(|error: StateError| error.to_string())?;
        let lists = store.folder().expect("nothing is recorded in memory");
        // Also of transfers that never end.
        let _ = store::tidy(lists);
        let out = fs::canonicalize(out).map_err(|error| cannot_write(out, &error))?;
        let folder = blake3::hash(out.as_os_str().as_bytes()).to_hex();
        let transfer_hex = data_encoding::HEXLOWER.encode(&transfer);
        let path = lists.join(format!("{transfer_hex}-{}{PART}", &folder[..16]));
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).mode(0o600).open(&path);
        let made = opened.and_then(|file| {
            // Two of the same at once, into the same folder: the engine lets one of them write.
            file.try_lock()?;
            cut_after_last_field(&file)?;
            Ok((file, File::open(&out)?))
        });
        let (file, folder) = made.map_err(|error| cannot_write(&path, &error))?;
        let lines = BufWriter::with_capacity(BUFFER_BYTES, file);
        let (buffer, rest) = (Vec::new(), Rest::default());
        Ok(Self {
            transfer,
            store,
            path,
            lines,
            folder,
            buffer,
            begin: 0,
            end: 0,
            has_earlier: false,
            rest,
        })
    }

    /// A connection begins, which lists everything that is there. If the earlier ones have filled a record's room, they are
    /// given up: of their files only the sizes are known then.
    fn begin(&mut self, room: u64) -> io::Result<()> {
        self.lines.flush()?;
        let file = self.lines.get_ref();
        let mut len = file.metadata()?.len();
        if len > room {
            file.set_len(0)?;
            len = 0;
        }
        (self.begin, self.end, self.has_earlier, self.rest) = (len, len, false, Rest::default());
        Ok(())
    }

    fn write(&mut self, path: &[u8], what: &What, room: u64) -> io::Result<()> {
        self.buffer.clear();
        encode(path, what, &mut self.buffer);
        let end = self.end + self.buffer.len() as u64;
        if !self.rest.is_empty() || end - self.begin > room {
            self.rest.add(what);
            return Ok(());
        }
        self.end = end;
        self.has_earlier |= matches!(what, What::File { root: None, .. });
        self.lines.write_all(&self.buffer)
    }

    /// Where the target is now.
    fn folder(&self) -> io::Result<PathBuf> {
        fs::read_link(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    fn finish(
        mut self,
        room: u64,
        receipt: &Receipt,
        from: NodeId,
        identity: &SecretIdentity,
    ) -> io::Result<Rest> {
        self.lines.flush()?;
        let folder = self.folder()?;
        let (file, begin) = (self.lines.get_ref(), self.begin);
        let mut earlier = Earlier::new();
        if self.has_earlier {
            earlier = without_root(file, begin)?;
            look_up_in_lists(&self.store, &self.transfer, &folder, &mut earlier);
            look_up(lines_of(file, 0)?.take(begin), &mut earlier)?;
        }
        let by = identity.node_id();
        let head = Head { receipt: receipt.clone(), by, from, folder };
        let lists = self.path.parent().expect("a part is in the folder of the lists");
        let place = store::place(lists, receipt);
        let commit = Commit::begin(&place)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, commit.file());
        let mut writer = Writer::begin(out, &head, room, self.rest)?;
        each(lines_of(file, begin)?, |mut line| {
            if let What::File { bytes, root: root @ None, .. } = &mut line.what {
                let known = earlier.get(&key(&line.path)).copied().flatten();
                *root = known.filter(|known| known.0 == *bytes).map(|known| known.1);
            }
            writer.line(&line)
        })?;
        let (mut out, rest) = writer.seal(identity)?;
        out.flush()?;
        drop(out);
        let state = lists.parent().expect("the folder of the lists is in that of the state");
        commit.finish(&FolderLock::wait(state)?)?;
        Ok(rest)
    }
}

/// A process that was killed may have left half a field.
fn cut_after_last_field(mut file: &File) -> io::Result<()> {
    let len = file.metadata()?.len();
    let tail = len.saturating_sub(BUFFER_BYTES as u64);
    file.seek(SeekFrom::Start(tail))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|&byte| byte == 0).map_or(0, |at| at as u64 + 1);
    if tail + whole < len {
        file.set_len(if whole == 0 { 0 } else { tail + whole })?;
    }
    Ok(())
}

fn lines_of(mut file: &File, from: u64) -> io::Result<BufReader<&File>> {
    file.seek(SeekFrom::Start(from))?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Calls `of` with each line; other fields are passed over.
fn each(
    mut reader: impl io::BufRead,
    mut of: impl FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(field) = field(&mut reader, &mut buffer)? {
        if let Some(line) = Line::parse(field) {
            of(line)?;
        }
    }
    Ok(())
}

fn key(path: &[u8]) -> [u8; 16] {
    *blake3::hash(path).as_bytes().first_chunk().expect("a hash has 32 bytes")
}

fn without_root(file: &File, from: u64) -> io::Result<Earlier> {
    let mut earlier = Earlier::new();
    each(lines_of(file, from)?, |line| {
        if matches!(line.what, What::File { root: None, .. }) {
            earlier.insert(key(&line.path), None);
        }
        Ok(())
    })?;
    Ok(earlier)
}

fn look_up(reader: impl io::BufRead, earlier: &mut Earlier) -> io::Result<()> {
    each(reader, |line| {
        learn(&line, earlier);
        Ok(())
    })
}

fn learn(line: &Line, earlier: &mut Earlier) {
    if let What::File { bytes, root: Some(root), .. } = line.what
        && let Some(known) = earlier.get_mut(&key(&line.path))
    {
        *known = Some((bytes, root));
    }
}

/// The newest record of the same transfer into the same folder: then some files had failed.
fn look_up_in_lists(
    store: &ReceivedStore,
    transfer: &[u8; 16],
    folder: &Path,
    earlier: &mut Earlier,
) {
    let all = store.all().unwrap_or_default();
    let same = all.iter().filter_map(|list| list.open().ok());
    let mut same =
        same.filter(|(head, _)| head.receipt.transfer_id == *transfer && head.folder == folder);
    let proven = same.next().and_then(|(head, lines)| lines.proven(&head).ok());
    let Some(mut lines) = proven else { return };
    while let Ok(Some(line)) = lines.next_line() {
        learn(&line, earlier);
    }
}
