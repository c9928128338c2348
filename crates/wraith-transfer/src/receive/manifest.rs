//! The manifest on its way in: every entry is checked, compared with the disk, and decided (SPEC §10.4, §10.5).
//!
//! Folders are made at once, links are kept for the end (up to a bound), files are looked up: finished by an earlier
//! connection, begun, there with other or maybe equal content, or not there. What is decided is sent whenever the stream
//! has nothing more to read, so the first file is asked for while the sender still walks.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use wraith_files::{Entry, Kind, Outcome};

use super::Receiving;
use super::decide::{Verdict, decide};
use super::entries::{Entries, Step};
use super::incoming::Incoming;
use crate::control::ControlWriter;
use crate::error::TransferError;
use crate::events::InPlace;
use crate::limits::{LINKS_KEPT_BYTES_MAX, LINKS_KEPT_MAX};
use crate::lock::lock;
use crate::message::Message;
use crate::wanted::{WantWriter, Wanted};

/// Files up to this size are compared at once; before a larger one is read, what was decided so far is sent.
const QUICK_COMPARE_BYTES: u64 = 1024 * 1024;

/// Reads the manifest to its end and sends every Want. Returns the links that are still to be made.
pub(crate) fn receive(
    receiving: &Receiving<'_>,
    entries: Entries,
    writer: &Mutex<ControlWriter>,
) -> Result<Vec<Entry>, TransferError> {
    let session = receiving.session;
    let mut reader = ManifestReader {
        receiving,
        manifest: entries,
        writer,
        wants: WantWriter::default(),
        wanted: Vec::new(),
        entries: 0,
        links: Vec::new(),
        link_bytes: 0,
        space: receiving.target.free_bytes().unwrap_or(u64::MAX),
    };
    while reader.next_entry()? {}
    reader.send_wants()?;
    receiving.table.manifest_ended();
    reader.manifest.read_to_end(session)?;
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
    match receiving.target.make_symlink(link, receiving.conflicts.at(&link.path)) {
        Ok(committed) => {
            if let (Kind::Symlink { target }, true) =
                (&link.kind, committed.outcome != Outcome::Skipped)
            {
                receiving.in_place(&committed.path, InPlace::Link { target });
            }
            Ok(())
        }
        Err(error) => {
            receiving.note_unless_fatal(link, error)?;
            receiving.counts.failed.fetch_add(1, Relaxed);
            Ok(())
        }
    }
}

struct ManifestReader<'a> {
    receiving: &'a Receiving<'a>,
    manifest: Entries,
    writer: &'a Mutex<ControlWriter>,
    wants: WantWriter,
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
    /// Tells the sender what was decided, then waits until there is room for more.
    fn send_wants(&mut self) -> Result<(), TransferError> {
        let Some(want) = self.wants.take() else { return Ok(()) };
        self.receiving.table.insert(self.wanted.drain(..));
        lock(self.writer).send(self.receiving.session, &Message::Want(want))?;
        if self.receiving.table.wait_for_room() {
            return Ok(());
        }
        Err(self.receiving.session.stopped())
    }

    /// Handles the next entry. False at the end. What was decided is sent before the first wait.
    fn next_entry(&mut self) -> Result<bool, TransferError> {
        let session = self.receiving.session;
        if session.is_over() {
            return Err(session.stopped());
        }
        match self.manifest.next(session)? {
            Step::Entry(entry) => {
                let number = self.entries as u32;
                self.entries += 1;
                self.act_on(number, entry)?;
                if self.wants.is_full() {
                    self.send_wants()?;
                }
                Ok(true)
            }
            Step::End(hash) => {
                let known = self.receiving.manifest_hash.set(hash);
                debug_assert!(known.is_ok(), "a manifest ends once");
                Ok(false)
            }
            Step::Starved => {
                self.send_wants()?;
                let read = session.wait(self.manifest.stream().read_chunk());
                let read = read.map_err(|error| session.read_failed(error))?;
                self.manifest.push(session, read)?;
                Ok(true)
            }
        }
    }

    /// Makes a folder, keeps a link for later, decides about a file.
    fn act_on(&mut self, number: u32, entry: Entry) -> Result<(), TransferError> {
        let receiving = self.receiving;
        match entry.kind {
            Kind::Dir => {
                self.wants.pass(number);
                match receiving.target.make_dir(&entry) {
                    Ok(_) => {
                        receiving.in_place(&entry.path, InPlace::Folder);
                        Ok(())
                    }
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
        let (wanted, missing, old) = match decide(receiving, (number, &entry), before_reading)? {
            Verdict::Want { wanted, missing, old } => (wanted, missing, old),
            Verdict::Pass(status) => {
                self.wants.pass(number);
                receiving.progress.add_found(entry.size());
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
        if let Wanted::Chunks(_) = &wanted {
            receiving.progress.add_found(entry.size() - missing);
        }
        self.wants.add(number, &wanted, old.is_some());
        self.wanted.push((number, Arc::new(Incoming::new(number, entry, wanted, old))));
        Ok(())
    }
}
