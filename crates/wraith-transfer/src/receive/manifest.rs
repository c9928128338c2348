//! The manifest at the receiver: every entry is checked, compared with the disk, and decided (SPEC
//! §10.4, §10.5).
//!
//! Folders are created at once, under another name if theirs is taken. Links are kept for the end,
//! up to a limit. Each file is looked up on the disk. It was completed by an earlier connection, is
//! partly received, is present with equal or other content, or is absent. Decisions are sent
//! whenever the stream has nothing more to read. The first file is thus requested while the sender
//! still walks.

use std::sync::{Arc, Mutex};

use wraith_files::{Entry, Error, Kind, OnConflict, Outcome, RelPath};

use super::Receiving;
use super::decide::{Verdict, decide};
use super::earlier_names::{Claim, EarlierNames};
use super::entries::{Entries, ParseResult};
use super::incoming::Incoming;
use super::placement::{FolderPlacement, Placed, Placement};
use super::send_receipt::send_exceptions;
use crate::control::ControlWriter;
use crate::error::TransferError;
use crate::events::{Event, InPlace};
use crate::exception::Exception;
use crate::limits::{EXCEPTIONS_MAX, LINKS_KEPT_BYTES_MAX, LINKS_KEPT_MAX};
use crate::lock::lock;
use crate::message::Message;
use crate::wanted::{WantWriter, Wanted};

/// Maximum size in bytes of a file that is compared at once. Before a larger one is read, earlier
/// decisions are sent.
const QUICK_COMPARE_BYTES: u64 = 1024 * 1024;

/// Reads the manifest to its end and sends every Want. Returns the links that are still to be
/// created.
pub(crate) fn receive(
    receiving: &Receiving<'_>,
    entries: Entries,
    writer: &Mutex<ControlWriter>,
) -> Result<Vec<(u32, Placed)>, TransferError> {
    let session = receiving.session;
    let needs_names = receiving.may_overwrite || receiving.conflicts.may(OnConflict::Skip);
    let names = needs_names.then(|| EarlierNames::of(receiving.target));
    let mut reader = ManifestReader {
        receiving,
        manifest: entries,
        placement: Placement::default(),
        names,
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

/// Creates the links and gives the folders their modes and times, once all files are in place.
pub(crate) fn finish_tree(
    receiving: &Receiving<'_>,
    links: Vec<(u32, Placed)>,
    writer: &Mutex<ControlWriter>,
) -> Result<(), TransferError> {
    for link in &links {
        make_link(receiving, link)?;
        send_exceptions(receiving, &mut lock(writer), EXCEPTIONS_MAX)?;
    }
    receiving.target.finish_dirs().map_err(|error| receiving.disk(&error))
}

fn make_link(
    receiving: &Receiving<'_>,
    (number, link): &(u32, Placed),
) -> Result<(), TransferError> {
    let make = |on_conflict| receiving.target.make_symlink(&link.entry, on_conflict);
    match receiving.place(link, make) {
        Ok(committed) if committed.outcome == Outcome::Skipped => {
            receiving.lacks(*number, link, Exception::Skipped, None);
        }
        Ok(committed) => {
            if committed.outcome == Outcome::Renamed {
                receiving.renamed(link, &committed.path);
            }
            if let Kind::Symlink { target } = &link.entry.kind {
                receiving.in_place(&committed.path, InPlace::Link { target });
            }
        }
        Err(error) => {
            receiving.record_unless_fatal(&link.offered, error)?;
            receiving.lacks(*number, link, Exception::Blocked, None);
        }
    }
    Ok(())
}

struct ManifestReader<'a> {
    receiving: &'a Receiving<'a>,
    manifest: Entries,
    placement: Placement,
    /// `None` if nothing may be replaced or skipped.
    names: Option<EarlierNames>,
    writer: &'a Mutex<ControlWriter>,
    wants: WantWriter,
    /// The files in `wants`.
    wanted: Vec<(u32, Arc<Incoming>)>,
    entries: u64,
    links: Vec<(u32, Placed)>,
    /// Total bytes of the paths and targets of `links`.
    link_bytes: usize,
    /// Free bytes of the disk at the start, minus the requested bytes.
    space: u64,
}

impl ManifestReader<'_> {
    /// Sends the decisions to the sender, then waits until there is room for more.
    fn send_wants(&mut self) -> Result<(), TransferError> {
        let Some(want) = self.wants.take() else { return Ok(()) };
        let (table, pushes) = (&self.receiving.table, &self.receiving.pushes);
        let pushed = pushes.decide(table, want.upto, || table.insert(self.wanted.drain(..)));
        let mut writer = lock(self.writer);
        writer.send(self.receiving.session, &Message::Want(want))?;
        send_exceptions(self.receiving, &mut writer, EXCEPTIONS_MAX)?;
        drop(writer);
        for pushed in pushed {
            pushed.place(self.receiving)?;
        }
        if self.receiving.table.wait_for_room() {
            return Ok(());
        }
        Err(self.receiving.session.stopped())
    }

    /// Handles the next entry. Returns false at the end. Sends the decisions before the first wait.
    fn next_entry(&mut self) -> Result<bool, TransferError> {
        let session = self.receiving.session;
        if session.is_over() {
            return Err(session.stopped());
        }
        match self.manifest.next(session)? {
            ParseResult::Entry(entry) => {
                let number = self.entries as u32;
                self.entries += 1;
                self.act_on(number, entry)?;
                if self.wants.is_full() {
                    self.send_wants()?;
                }
                Ok(true)
            }
            ParseResult::End(end) => {
                let known = self.receiving.manifest_end.set(end);
                debug_assert!(known.is_ok(), "a manifest ends once");
                Ok(false)
            }
            ParseResult::NeedsMoreBytes => {
                self.send_wants()?;
                let read = session.wait(self.manifest.stream().read_chunk());
                let read = read.map_err(|error| session.read_failed(error))?;
                self.manifest.push(session, read)?;
                Ok(true)
            }
        }
    }

    /// Creates a folder, keeps a link for later, or decides about a file.
    fn act_on(&mut self, number: u32, entry: Entry) -> Result<(), TransferError> {
        let receiving = self.receiving;
        let offered = entry.path.clone();
        let may_replace = false;
        let mut placed = match self.placement.of(&offered) {
            Ok(FolderPlacement::At(path)) => {
                Placed { entry: Entry { path, ..entry }, offered, may_replace }
            }
            Ok(FolderPlacement::Skipped) => {
                self.pass(number, &Placed { entry, offered, may_replace }, Exception::Skipped);
                return Ok(());
            }
            Ok(FolderPlacement::Refused) => {
                self.pass(number, &Placed { entry, offered, may_replace }, Exception::Blocked);
                return Ok(());
            }
            // The path is too long below the other name of its folder.
            Err(error) => {
                let (path, what) = (offered.display(), error.reason);
                receiving.events.event(Event::Note { path: &path, what: &what });
                let placed = Placed { entry, offered: offered.clone(), may_replace };
                self.pass(number, &placed, Exception::Blocked);
                return Ok(());
            }
        };
        if !self.is_accepted(&placed.offered) {
            let what = "not part of the accepted offer; left out";
            receiving.events.event(Event::Note { path: &placed.offered.display(), what: &what });
            if placed.entry.kind == Kind::Dir {
                self.placement.set(placed.offered.clone(), FolderPlacement::Refused);
            }
            self.pass(number, &placed, Exception::Blocked);
            return Ok(());
        }
        let claim = self.claim(&placed.entry);
        placed.may_replace = claim == Claim::Earlier;
        match placed.entry.kind {
            Kind::Dir => {
                self.wants.pass(number);
                match self.make_folder(&placed, claim) {
                    Ok(Some(path)) => {
                        receiving.in_place(&path, InPlace::Folder);
                        Ok(())
                    }
                    Ok(None) => {
                        receiving.lacks(number, &placed, Exception::Skipped, None);
                        Ok(())
                    }
                    // The contents of this folder must not go into any other folder.
                    Err(error) => {
                        receiving.record_unless_fatal(&placed.offered, error)?;
                        self.placement.set(placed.offered.clone(), FolderPlacement::Refused);
                        receiving.lacks(number, &placed, Exception::Blocked, None);
                        Ok(())
                    }
                }
            }
            Kind::Symlink { ref target } => {
                self.wants.pass(number);
                let paths = [&placed.entry.path, &placed.offered];
                let bytes =
                    paths.iter().map(|path| path.as_bytes().len()).sum::<usize>() + target.len();
                let has_room = self.links.len() < LINKS_KEPT_MAX
                    && self.link_bytes + bytes <= LINKS_KEPT_BYTES_MAX;
                if !has_room {
                    return make_link(receiving, &(number, placed));
                }
                self.link_bytes += bytes;
                self.links.push((number, placed));
                Ok(())
            }
            Kind::File { .. } => self.decide_file(number, placed),
        }
    }

    /// Returns the right of the next entry to the object under its name.
    fn claim(&mut self, entry: &Entry) -> Claim {
        let (target, is_folder) = (self.receiving.target, entry.kind == Kind::Dir);
        let names = self.names.as_mut();
        names.map_or(Claim::Earlier, |names| names.claim(target, &entry.path, is_folder))
    }

    /// Enters the folder at `path` before anything is placed in it.
    fn enter(&mut self, path: &RelPath, is_earlier: bool) {
        if let Some(names) = &mut self.names {
            names.enter(self.receiving.target, path, is_earlier);
        }
    }

    /// Returns true if the accepted offer covers this entry. Only top-level names are checked.
    fn is_accepted(&self, offered: &RelPath) -> bool {
        let within = self.receiving.within.as_ref();
        offered.depth() > 1 || within.is_none_or(|shown| shown.covers_name(offered))
    }

    /// Creates a folder, or applies the conflict policy if its name is taken. Returns its path;
    /// `None` if it is skipped.
    fn make_folder(&mut self, placed: &Placed, claim: Claim) -> Result<Option<RelPath>, Error> {
        let (receiving, Placed { entry, offered, .. }) = (self.receiving, placed);
        let (target, renamed) = (receiving.target, &receiving.renamed);
        // A renamed folder belongs to the entry offered under its own name; no other entry may go
        // into it.
        let is_ours = renamed.is_taken(&entry.path);
        // The object may be a folder of a later entry, under another of its names.
        let is_unknown = claim == Claim::Unlisted && target.existing(&entry.path)?.is_some();
        if !is_ours && !is_unknown {
            match target.make_dir(entry) {
                Ok(is_new) => {
                    self.enter(&entry.path, !is_new && claim == Claim::Earlier);
                    return Ok(Some(entry.path.clone()));
                }
                Err(Error::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match receiving.policy(placed) {
            OnConflict::Skip => {
                let what = "the name is taken; the folder and its contents are skipped";
                receiving.events.event(Event::Note { path: &offered.display(), what: &what });
                self.placement.set(offered.clone(), FolderPlacement::Skipped);
                return Ok(None);
            }
            OnConflict::Overwrite if !is_ours => {
                let protected = lock(&receiving.protected);
                if !receiving.is_protected(&protected, &entry.path) {
                    let is_new = target.replace_with_dir(entry)?;
                    drop(protected);
                    self.enter(&entry.path, !is_new);
                    return Ok(Some(entry.path.clone()));
                }
            }
            OnConflict::Overwrite | OnConflict::Rename => {}
        }
        let path = match renamed.find(offered, &entry.path) {
            Some(path) => {
                target.continue_dir(&Entry { path: path.clone(), ..entry.clone() })?;
                self.enter(&path, true);
                path
            }
            None => {
                let path = target.make_dir_copy(entry)?;
                renamed.add(offered, &path)?;
                self.enter(&path, false);
                path
            }
        };
        let what = format!("the name is taken; the received folder is named {}", path.display());
        receiving.events.event(Event::Note { path: &offered.display(), what: &what });
        self.placement.set(offered.clone(), FolderPlacement::At(path.clone()));
        Ok(Some(path))
    }

    /// Handles an entry that is not looked up.
    fn pass(&mut self, number: u32, placed: &Placed, exception: Exception) {
        let receiving = self.receiving;
        if let Kind::File { .. } = placed.entry.kind {
            self.wants.except(number, exception);
            receiving.progress.add_found(placed.entry.size());
            receiving.excepted(number, placed, exception, None);
        } else {
            self.wants.pass(number);
            receiving.lacks(number, placed, exception, None);
        }
    }

    fn decide_file(&mut self, number: u32, placed: Placed) -> Result<(), TransferError> {
        let receiving = self.receiving;
        let entry = &placed.entry;
        let is_large = entry.size() > QUICK_COMPARE_BYTES;
        let before_reading = || if is_large { self.send_wants() } else { Ok(()) };
        let verdict = decide(receiving, (number, &placed), before_reading)?;
        let (wanted, missing, space, local) = match verdict {
            Verdict::Want { wanted, missing, space, local } => (wanted, missing, space, local),
            Verdict::Pass(exception) => {
                self.pass(number, &placed, exception);
                return Ok(());
            }
        };
        // Before anything of it is requested: the rest of the transfer goes on without it.
        if let Wanted::Whole | Wanted::Chunks(_) = wanted
            && let Err(error) = receiving.target.check_size(entry)
        {
            receiving.record_unless_fatal(&placed.offered, error)?;
            self.pass(number, &placed, Exception::Blocked);
            return Ok(());
        }
        if !entry.is_sparse() {
            let shown = placed.offered.display();
            self.space = self.space.checked_sub(space).ok_or_else(|| {
                let what = format!(
                    "{shown}: not enough free disk space for this file and those before it"
                );
                receiving.session.disk(what)
            })?;
        }
        let found = match &wanted {
            Wanted::Chunks(_) => entry.size() - missing,
            Wanted::Whole | Wanted::Unless(_) | Wanted::Kept(_) => 0,
        };
        self.wants.add(number, &wanted, local.old.is_some());
        let file = Incoming::new(number, placed, wanted, local);
        file.progress.add_found(receiving.progress, found);
        self.wanted.push((number, Arc::new(file)));
        Ok(())
    }
}
