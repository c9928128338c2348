//! Decides each entry of the manifest, in order.
//!
//! Folders are created at once, under another name if theirs is taken. Links are kept for the end,
//! up to a limit. Each file is looked up on the disk. It was completed by an earlier connection, is
//! partly received, is present with equal or other content, or is absent.

use std::sync::Arc;

use wraith_files::{Entry, Error, Kind, OnConflict, Outcome, RelPath};

use super::assembly::{Assembly, disk_failed};
use super::decide::{Verdict, decide};
use super::earlier_names::{Claim, EarlierNames};
use super::incoming::Incoming;
use super::placement::{FolderPlacement, Placed, Placement};
use crate::error::TransferError;
use crate::events::InPlace;
use crate::exception::Exception;
use crate::limits::{LINKS_KEPT_BYTES_MAX, LINKS_KEPT_MAX};
use crate::wanted::Wanted;

/// Maximum size in bytes of a file that is compared at once. Before a larger one is read, earlier
/// decisions are sent.
const QUICK_COMPARE_BYTES: u64 = 1024 * 1024;

/// The decision about an entry, for the sender.
pub(super) enum Decided {
    /// It is not a file.
    Pass,
    /// The file is not wanted.
    Except(Exception),
    /// The file is wanted.
    Want(Arc<Incoming>),
}

/// Decides entries; see the module documentation.
pub(super) struct Intake<'a> {
    assembly: &'a Assembly<'a>,
    placement: Placement,
    /// `None` if nothing may be replaced or skipped.
    names: Option<EarlierNames>,
    links: Vec<(u32, Placed)>,
    /// Total bytes of the paths and targets of `links`.
    link_bytes: usize,
    /// Free bytes of the disk at the start, minus the requested bytes.
    space: u64,
}

/// Creates a link, or records why this side lacks it.
pub(super) fn make_link(
    assembly: &Assembly<'_>,
    (number, link): &(u32, Placed),
) -> Result<(), TransferError> {
    let make = |on_conflict| assembly.target.make_symlink(&link.entry, on_conflict);
    match assembly.place(link, make) {
        Ok(committed) if committed.outcome == Outcome::Skipped => {
            assembly.books.lacks(*number, link, Exception::Skipped, None);
        }
        Ok(committed) => {
            if committed.outcome == Outcome::Renamed {
                assembly.note_rename(link, &committed.path);
            }
            if let Kind::Symlink { target } = &link.entry.kind {
                assembly.books.in_place(&committed.path, InPlace::Link { target });
            }
        }
        Err(error) => {
            assembly.record_unless_fatal(&link.offered, error)?;
            assembly.books.lacks(*number, link, Exception::Blocked, None);
        }
    }
    Ok(())
}

impl<'a> Intake<'a> {
    pub(super) fn new(assembly: &'a Assembly<'a>) -> Self {
        let needs_names = assembly.names.depend_on_earlier_names();
        Self {
            assembly,
            placement: Placement::default(),
            names: needs_names.then(|| EarlierNames::of(assembly.target)),
            links: Vec::new(),
            link_bytes: 0,
            space: assembly.target.free_bytes().unwrap_or(u64::MAX),
        }
    }

    /// Returns the links that are still to be created.
    pub(super) fn into_links(self) -> Vec<(u32, Placed)> {
        self.links
    }

    /// Creates a folder, keeps a link for later, or decides about a file. Calls `before_reading`
    /// before a large local file is read.
    pub(super) fn decide(
        &mut self,
        (number, entry): (u32, Entry),
        is_accepted: bool,
        before_reading: impl FnMut() -> Result<(), TransferError>,
    ) -> Result<Decided, TransferError> {
        let assembly = self.assembly;
        let (mut placed, nowhere) = self.place(entry);
        if let Some(exception) = nowhere {
            return Ok(self.except(number, &placed, exception));
        }
        if !is_accepted {
            assembly.books.note(&placed.offered, &"not part of the accepted offer; left out");
            if placed.entry.kind == Kind::Dir {
                self.placement.set(placed.offered.clone(), FolderPlacement::Refused);
            }
            return Ok(self.except(number, &placed, Exception::Blocked));
        }
        let claim = self.claim(&placed.entry);
        placed.may_replace = claim == Claim::Earlier;
        match placed.entry.kind {
            Kind::Dir => {
                match self.make_folder(&placed, claim) {
                    Ok(Some(path)) => assembly.books.in_place(&path, InPlace::Folder),
                    Ok(None) => assembly.books.lacks(number, &placed, Exception::Skipped, None),
                    // The contents of this folder must not go into any other folder.
                    Err(error) => {
                        assembly.record_unless_fatal(&placed.offered, error)?;
                        self.placement.set(placed.offered.clone(), FolderPlacement::Refused);
                        assembly.books.lacks(number, &placed, Exception::Blocked, None);
                    }
                }
                Ok(Decided::Pass)
            }
            Kind::Symlink { ref target } => {
                let paths = [&placed.entry.path, &placed.offered];
                let bytes =
                    paths.iter().map(|path| path.as_bytes().len()).sum::<usize>() + target.len();
                let has_room = self.links.len() < LINKS_KEPT_MAX
                    && self.link_bytes + bytes <= LINKS_KEPT_BYTES_MAX;
                if !has_room {
                    make_link(assembly, &(number, placed))?;
                    return Ok(Decided::Pass);
                }
                self.link_bytes += bytes;
                self.links.push((number, placed));
                Ok(Decided::Pass)
            }
            Kind::File { .. } => self.decide_file(number, placed, before_reading),
        }
    }

    /// Returns the next entry with its path, or the reason why it gets none.
    fn place(&mut self, entry: Entry) -> (Placed, Option<Exception>) {
        let (offered, may_replace) = (entry.path.clone(), false);
        let (path, nowhere) = match self.placement.of(&offered) {
            Ok(FolderPlacement::At(path)) => (path, None),
            Ok(FolderPlacement::Skipped) => (offered.clone(), Some(Exception::Skipped)),
            Ok(FolderPlacement::Refused) => (offered.clone(), Some(Exception::Blocked)),
            // The path is too long below the other name of its folder.
            Err(error) => {
                self.assembly.books.note(&offered, &error.reason);
                (offered.clone(), Some(Exception::Blocked))
            }
        };
        (Placed { entry: Entry { path, ..entry }, offered, may_replace }, nowhere)
    }

    /// Returns the right of the next entry to the object under its name.
    fn claim(&mut self, entry: &Entry) -> Claim {
        let (target, is_folder) = (self.assembly.target, entry.kind == Kind::Dir);
        let names = self.names.as_mut();
        names.map_or(Claim::Earlier, |names| names.claim(target, &entry.path, is_folder))
    }

    /// Enters the folder at `path` before anything is placed in it.
    fn enter(&mut self, path: &RelPath, is_earlier: bool) {
        if let Some(names) = &mut self.names {
            names.enter(self.assembly.target, path, is_earlier);
        }
    }

    /// Creates a folder, or applies the conflict policy if its name is taken. Returns its path;
    /// `None` if it is skipped.
    fn make_folder(&mut self, placed: &Placed, claim: Claim) -> Result<Option<RelPath>, Error> {
        let (assembly, Placed { entry, offered, .. }) = (self.assembly, placed);
        let (target, renamed) = (assembly.target, &assembly.renamed);
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
        match assembly.names.policy(placed) {
            OnConflict::Skip => {
                let what = "the name is taken; the folder and its contents are skipped";
                assembly.books.note(offered, &what);
                self.placement.set(offered.clone(), FolderPlacement::Skipped);
                return Ok(None);
            }
            OnConflict::Overwrite if !is_ours => {
                let replace = || target.replace_with_dir(entry);
                if let Some(is_new) = assembly.names.replace(target, &entry.path, replace)? {
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
        assembly.books.note(offered, &what);
        self.placement.set(offered.clone(), FolderPlacement::At(path.clone()));
        Ok(Some(path))
    }

    /// Records an entry that is not looked up.
    fn except(&self, number: u32, placed: &Placed, exception: Exception) -> Decided {
        let books = self.assembly.books;
        if let Kind::File { .. } = placed.entry.kind {
            books.progress.add_found(placed.entry.size());
            books.excepted(number, placed, exception, None);
            return Decided::Except(exception);
        }
        books.lacks(number, placed, exception, None);
        Decided::Pass
    }

    fn decide_file(
        &mut self,
        number: u32,
        placed: Placed,
        mut before_reading: impl FnMut() -> Result<(), TransferError>,
    ) -> Result<Decided, TransferError> {
        let assembly = self.assembly;
        let entry = &placed.entry;
        let is_large = entry.size() > QUICK_COMPARE_BYTES;
        let before_reading = || if is_large { before_reading() } else { Ok(()) };
        let verdict = decide(assembly, (number, &placed), before_reading)?;
        let (wanted, missing, space, local) = match verdict {
            Verdict::Want { wanted, missing, space, local } => (wanted, missing, space, local),
            Verdict::Pass(exception) => return Ok(self.except(number, &placed, exception)),
        };
        // Before anything of it is requested: the rest of the transfer goes on without it.
        if let Wanted::Whole | Wanted::Chunks(_) = wanted
            && let Err(error) = assembly.target.check_size(entry)
        {
            assembly.record_unless_fatal(&placed.offered, error)?;
            return Ok(self.except(number, &placed, Exception::Blocked));
        }
        if !entry.is_sparse() {
            let shown = placed.offered.display();
            self.space = self.space.checked_sub(space).ok_or_else(|| {
                let what = format!(
                    "{shown}: not enough free disk space for this file and those before it"
                );
                disk_failed(what)
            })?;
        }
        let found = match &wanted {
            Wanted::Chunks(_) => entry.size() - missing,
            Wanted::Whole | Wanted::Unless(_) | Wanted::Kept(_) => 0,
        };
        let file = Incoming::new(number, placed, wanted, local);
        file.progress.add_found(assembly.books.progress, found);
        Ok(Decided::Want(Arc::new(file)))
    }
}
