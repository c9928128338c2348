//! The manifest on its way in: every entry is checked, compared with the disk, and decided (SPEC §10.4, §10.5).
//!
//! Folders are made at once, links are kept for the end (up to a bound), files are looked up: finished by an earlier
//! connection, begun, there with other or maybe equal content, or not there. What is decided is sent whenever the stream
//! has nothing more to read, so the first file is asked for while the sender still walks.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wraith_files::{BadEntry, Entry, Kind, UnsafeName};
use wraith_transport::RecvStream;

use super::Receiving;
use super::decide::{Verdict, decide};
use super::incoming::{Due, Incoming};
use super::wants::Wants;
use crate::control::ControlWriter;
use crate::error::TransferError;
use crate::gather::Gather;
use crate::limits::{ENTRIES_MAX, ENTRY_BYTES_MAX, LINKS_KEPT_BYTES_MAX, LINKS_KEPT_MAX};
use crate::manifest_order::ManifestOrder;
use crate::message::Message;
use crate::offer_limits::OfferLimits;

/// Bytes after the last entry: count and hash.
const TRAILER_BYTES: usize = 8 + 32;

/// Files up to this size are compared at once; before a larger one is read, what was decided so far is sent.
const QUICK_COMPARE_BYTES: u64 = 1024 * 1024;

/// Reads the manifest to its end and sends every Want. Returns the links that are still to be made.
pub(crate) fn receive(
    receiving: &Receiving<'_>,
    stream: RecvStream,
    writer: &mut ControlWriter,
) -> Result<Vec<Entry>, TransferError> {
    let mut reader = ManifestReader {
        receiving,
        stream,
        writer,
        gather: Gather::default(),
        hasher: blake3::Hasher::new(),
        order: ManifestOrder::default(),
        limits: OfferLimits::of(receiving.offer),
        wants: Wants::default(),
        wanted: Vec::new(),
        entries: 0,
        links: Vec::new(),
        link_bytes: 0,
        space: receiving.target.free_bytes().unwrap_or(u64::MAX),
    };
    reader.fill(1)?;
    if reader.gather.first() != Some(1) {
        return Err(receiving.session.protocol("a manifest stream of another kind"));
    }
    reader.gather.advance(1);
    while reader.next_entry()? {}
    reader.send_wants()?;
    receiving.table.manifest_ended();
    reader.read_to_end()?;
    Ok(reader.links)
}

/// Makes the links and gives the folders their modes and times, when all files are in place.
pub(crate) fn finish_tree(
    receiving: &Receiving<'_>,
    links: Vec<Entry>,
) -> Result<(), TransferError> {
    for link in &links {
        make_link(receiving, link)?;
    }
    receiving.target.finish_dirs().map_err(|error| receiving.disk(&error))
}

fn make_link(receiving: &Receiving<'_>, link: &Entry) -> Result<(), TransferError> {
    match receiving.target.make_symlink(link, receiving.placing.on_conflict) {
        Ok(_) => Ok(()),
        Err(error) => {
            receiving.note_unless_fatal(link, error)?;
            receiving.counts.failed.fetch_add(1, Relaxed);
            Ok(())
        }
    }
}

struct ManifestReader<'a> {
    receiving: &'a Receiving<'a>,
    stream: RecvStream,
    writer: &'a mut ControlWriter,
    gather: Gather,
    hasher: blake3::Hasher,
    order: ManifestOrder,
    limits: OfferLimits,
    wants: Wants,
    /// The files in `wants`.
    wanted: Vec<(u32, Arc<Incoming>)>,
    entries: u64,
    links: Vec<Entry>,
    /// Bytes of the paths and targets of `links`.
    link_bytes: usize,
    /// Bytes the disk had free at the start, less what was asked for.
    space: u64,
}

impl ManifestReader<'_> {
    /// Reads until `n` bytes are gathered. What was decided is sent before the first wait.
    fn fill(&mut self, n: usize) -> Result<(), TransferError> {
        let session = self.receiving.session;
        if self.gather.len() < n {
            self.send_wants()?;
        }
        while self.gather.len() < n {
            let read = session.wait(self.stream.read_chunk());
            match read.map_err(|error| session.read_failed(error))? {
                Some(chunk) => {
                    session.moved(chunk.len() as u64);
                    self.gather.push(chunk);
                }
                None => return Err(session.protocol("it ended the manifest too early")),
            }
        }
        Ok(())
    }

    /// Tells the sender what was decided, then waits until there is room for more.
    fn send_wants(&mut self) -> Result<(), TransferError> {
        let Some(want) = self.wants.take() else { return Ok(()) };
        self.receiving.table.insert(self.wanted.drain(..));
        self.writer.send(self.receiving.session, &Message::Want(want))?;
        if self.receiving.table.wait_for_room() {
            return Ok(());
        }
        Err(self.receiving.session.stopped())
    }

    /// Handles the next entry. False if it was the trailer.
    fn next_entry(&mut self) -> Result<bool, TransferError> {
        let session = self.receiving.session;
        self.fill(4)?;
        let mut prefix = [0; 4];
        self.gather.copy_to(&mut prefix);
        let len = u32::from_be_bytes(prefix) as usize;
        if len == 0 {
            self.gather.advance(4);
            self.check_trailer()?;
            return Ok(false);
        }
        if len > ENTRY_BYTES_MAX || self.entries >= ENTRIES_MAX {
            return Err(session.protocol("a manifest that is too large"));
        }
        self.fill(4 + len)?;
        let mut bytes = vec![0; 4 + len];
        self.gather.copy_to(&mut bytes);
        self.gather.advance(4 + len);
        self.hasher.update(&bytes);
        let (entry, used) = Entry::decode(&bytes[4..]).map_err(|error| match error {
            BadEntry::Name(name) => unsafe_name(&name),
            other => session.protocol(other.to_string()),
        })?;
        if used != len {
            return Err(session.protocol("a manifest entry with something behind it"));
        }
        self.judge(&entry)?;
        let number = self.entries as u32;
        self.entries += 1;
        self.act_on(number, entry)?;
        if self.wants.is_full() {
            self.send_wants()?;
        }
        Ok(true)
    }

    /// Makes a folder, keeps a link for later, decides about a file.
    fn act_on(&mut self, number: u32, entry: Entry) -> Result<(), TransferError> {
        let receiving = self.receiving;
        match entry.kind {
            Kind::Dir => {
                self.wants.pass(number);
                match receiving.target.make_dir(&entry) {
                    Ok(_) => Ok(()),
                    // What lies in it fails by itself, file by file.
                    Err(error) => receiving.note_unless_fatal(&entry, error),
                }
            }
            Kind::Symlink { ref target } => {
                self.wants.pass(number);
                let bytes = entry.path.as_bytes().len() + target.len();
                let has_room = self.links.len() < LINKS_KEPT_MAX
                    && self.link_bytes + bytes <= LINKS_KEPT_BYTES_MAX;
                if !has_room {
                    return make_link(receiving, &entry);
                }
                self.link_bytes += bytes;
                self.links.push(entry);
                Ok(())
            }
            Kind::File { .. } => self.decide_file(number, entry),
        }
    }

    fn decide_file(&mut self, number: u32, entry: Entry) -> Result<(), TransferError> {
        let receiving = self.receiving;
        let is_large = entry.size() > QUICK_COMPARE_BYTES;
        let before_reading = || if is_large { self.send_wants() } else { Ok(()) };
        let (due, missing) = match decide(receiving, &entry, before_reading)? {
            Verdict::Want { due, missing } => (due, missing),
            Verdict::Pass(status) => {
                self.wants.pass(number);
                receiving.progress.add_bytes(entry.size());
                receiving.passed(&entry, status);
                return Ok(());
            }
        };
        if !matches!(entry.kind, Kind::File { sparse: true, .. }) {
            let shown = entry.path.display();
            self.space = self.space.checked_sub(missing).ok_or_else(|| {
                let what = format!("{shown}: not enough space left for this and what comes before");
                receiving.session.disk(what)
            })?;
        }
        match &due {
            Due::Whole => self.wants.whole(number),
            Due::Chunks(chunks) => {
                receiving.progress.add_bytes(entry.size() - missing);
                self.wants.part(number, chunks);
            }
            Due::Unless(root) => self.wants.compare(number, *root),
        }
        self.wanted.push((number, Arc::new(Incoming::new(number, entry, due))));
        Ok(())
    }

    fn check_trailer(&mut self) -> Result<(), TransferError> {
        let session = self.receiving.session;
        self.fill(TRAILER_BYTES)?;
        let mut trailer = [0; TRAILER_BYTES];
        self.gather.copy_to(&mut trailer);
        let hash = *self.hasher.finalize().as_bytes();
        if trailer[..8] != self.entries.to_be_bytes() || trailer[8..] != hash {
            return Err(session.protocol("a manifest that does not match its hash"));
        }
        let known = self.receiving.manifest_hash.set(hash);
        debug_assert!(known.is_ok(), "a manifest ends once");
        self.gather.advance(TRAILER_BYTES);
        Ok(())
    }

    /// Waits for the end of the stream behind the trailer. A stream that is dropped before its end is stopped, and that
    /// would reach a sender that is just about to end it as a refusal to read.
    fn read_to_end(&mut self) -> Result<(), TransferError> {
        let session = self.receiving.session;
        let nothing_left = self.gather.len() == 0;
        let read = session.wait(self.stream.read_chunk());
        match read.map_err(|error| session.read_failed(error))? {
            None if nothing_left => Ok(()),
            _ => Err(session.protocol("a manifest with something behind it")),
        }
    }

    /// Refuses entries that no honest sender lists.
    fn judge(&mut self, entry: &Entry) -> Result<(), TransferError> {
        let session = self.receiving.session;
        let shown = entry.path.display();
        if let Err(error) = self.order.check(entry.path.as_bytes(), entry.kind == Kind::Dir) {
            return Err(TransferError::UnsafeName { what: format!("{shown}: {error}") });
        }
        if !self.limits.admit(entry.size()) {
            return Err(session.protocol(format!("{shown}: goes beyond what was offered")));
        }
        Ok(())
    }
}

fn unsafe_name(name: &UnsafeName) -> TransferError {
    TransferError::UnsafeName { what: name.to_string() }
}
