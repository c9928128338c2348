//! Preview of an offer: its names and the predicted result of each, before anything is accepted or
//! written.
//!
//! The sender streams its manifest without waiting for a decision, so its beginning is present when
//! the user is asked. Nothing is created or read in full; names, sizes and times are compared.
//! Entries, bytes and time are limited. A larger tree is shown in part ([`Preview::complete`]), and
//! no entry is read twice.

use std::collections::HashMap;
use std::time::Instant;

use wraith_crypto::NodeId;
use wraith_files::{
    CHUNK_BYTES, Entry, ExistingKind, Kind, OnConflict, RelPath, TargetDir, chunk_count,
};

use super::entries::{Entries, ParseResult};
use super::placement::{FolderPlacement, Placement};
use super::renamed_folders::RenamedFolders;
use crate::error::TransferError;
use crate::limits::{PREVIEW_ENTRIES_MAX, PREVIEW_PATH_BYTES_MAX, PREVIEW_TIME};
use crate::message::Offer;
use crate::session::Session;
use wraith_transport::{Addr, Connection};

/// A proposal for the user to decide about.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// Counts and sizes, as stated by the sender.
    pub offer: &'a Offer,
    /// Identity of the sender.
    pub sender: NodeId,
    /// Address of the sender.
    pub remote: Addr,
    /// The names, if requested ([`super::ReceiveOptions::preview`]).
    pub preview: Option<&'a Preview>,
    /// Connection of the offer. A caller that waits for a decision must wait for
    /// [`Connection::closed`] too. It resolves when the sender leaves or the transfer is cancelled;
    /// a later decision has no effect.
    pub connection: &'a Connection,
}

/// The previewed entries of an offer.
#[derive(Debug, Default)]
pub struct Preview {
    /// Entries in the order of the manifest.
    pub entries: Vec<Previewed>,
    /// False if there are more entries, or they did not arrive in time.
    pub complete: bool,
}

/// One entry with its predicted result.
#[derive(Clone, Debug)]
pub struct Previewed {
    /// The file, folder or link.
    pub entry: Entry,
    /// The conflict at its path, if any.
    pub outcome: PreviewOutcome,
    /// Its name if it is renamed; `None` without a conflict.
    pub copy: Option<RelPath>,
}

/// State of an entry's path in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewOutcome {
    /// Nothing has the name: the entry would be created.
    New,
    /// A part from an earlier connection of this transfer, with this many verified bytes.
    Continues(u64),
    /// An object of the same type, size and time (or a folder): its content would be compared.
    Same,
    /// A file of the same size with another time. Unless the policy is to skip, its content is
    /// compared; if it differs, the conflict policy decides.
    SameSize,
    /// Another object: the conflict policy decides. For a folder, also about everything below it.
    Differs,
    /// A folder that is not empty, in the place of a file or link: never replaced, under any
    /// policy.
    Irreplaceable,
}

/// Conflict policies for an offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// Default policy.
    pub otherwise: OnConflict,
    /// Policies of individual paths.
    pub of: HashMap<RelPath, OnConflict>,
}

impl Conflicts {
    /// Returns true if any entry has this policy.
    pub(crate) fn may(&self, policy: OnConflict) -> bool {
        self.of.values().chain([&self.otherwise]).any(|other| *other == policy)
    }

    pub(crate) fn at(&self, path: &RelPath) -> OnConflict {
        self.of.get(path).copied().unwrap_or(self.otherwise)
    }
}

/// Reads ahead until the manifest ends or a limit is reached. Returns true if it ended.
pub(crate) fn read_ahead(session: &Session, entries: &mut Entries) -> Result<bool, TransferError> {
    let deadline = Instant::now() + PREVIEW_TIME;
    let mut path_bytes = 0;
    while entries.ahead().len() < PREVIEW_ENTRIES_MAX && path_bytes < PREVIEW_PATH_BYTES_MAX {
        match entries.parse(session)? {
            ParseResult::Entry(entry) => {
                path_bytes += entry.path.as_bytes().len();
                if let Kind::Symlink { target } = &entry.kind {
                    path_bytes += target.len();
                }
                entries.push_ahead(entry);
            }
            ParseResult::End(_) => return Ok(true),
            ParseResult::NeedsMoreBytes => {
                let left = deadline.saturating_duration_since(Instant::now());
                let read = session.wait_within(left, entries.stream().read_chunk());
                let Some(read) = read else { return Ok(false) };
                entries.push(session, read.map_err(|error| session.read_failed(error))?)?;
            }
        }
    }
    Ok(false)
}

/// Inspects the target for each entry that was read ahead.
pub(crate) fn preview(
    entries: &Entries,
    complete: bool,
    target: Option<&TargetDir>,
    part_key: &[u8; 32],
    renamed: Option<&RenamedFolders>,
) -> Preview {
    let mut look = target.map(|target| TargetInspector {
        target,
        part_key,
        renamed,
        placement: Placement::default(),
    });
    let look = |entry: &Entry| {
        let seen = look.as_mut().map(|look| look.inspect(entry));
        let (outcome, copy) = seen.unwrap_or((PreviewOutcome::New, None));
        Previewed { entry: entry.clone(), outcome, copy }
    };
    Preview { entries: entries.ahead().iter().map(look).collect(), complete }
}

/// Inspects the target for one entry after the other.
struct TargetInspector<'a> {
    target: &'a TargetDir,
    part_key: &'a [u8; 32],
    renamed: Option<&'a RenamedFolders>,
    placement: Placement,
}

impl TargetInspector<'_> {
    /// Returns the state of the entry's path, and its name if it is renamed.
    fn inspect(&mut self, entry: &Entry) -> (PreviewOutcome, Option<RelPath>) {
        let offered = &entry.path;
        // A folder that is yet to be created is empty.
        let Ok(FolderPlacement::At(path)) = self.placement.of(offered) else {
            return (PreviewOutcome::New, None);
        };
        let entry = Entry { path, ..entry.clone() };
        let is_ours = self.renamed.is_some_and(|renamed| renamed.is_taken(&entry.path));
        let outcome = match outcome_of(self.target, &entry, self.part_key) {
            PreviewOutcome::Same if is_ours && entry.kind == Kind::Dir => {
                PreviewOutcome::Irreplaceable
            }
            outcome => outcome,
        };
        let is_taken = matches!(
            outcome,
            PreviewOutcome::Differs | PreviewOutcome::SameSize | PreviewOutcome::Irreplaceable
        );
        if !is_taken {
            return (outcome, None);
        }
        let is_folder = entry.kind == Kind::Dir;
        let ours = self
            .renamed
            .filter(|_| is_folder)
            .and_then(|renamed| renamed.find(offered, &entry.path));
        if is_folder {
            let fate = ours.clone().map_or(FolderPlacement::Skipped, FolderPlacement::At);
            self.placement.set(offered.clone(), fate);
        }
        (outcome, ours.or_else(|| self.target.free_copy(&entry.path)))
    }
}

fn outcome_of(target: &TargetDir, entry: &Entry, part_key: &[u8; 32]) -> PreviewOutcome {
    if let Some(bytes) = verified_bytes(target, entry, part_key) {
        return PreviewOutcome::Continues(bytes);
    }
    // Paths that cannot be inspected are reported when they are written.
    let Ok(Some(existing)) = target.existing(&entry.path) else { return PreviewOutcome::New };
    let is_file = existing.kind == ExistingKind::File;
    let same_size = match &entry.kind {
        Kind::File { size, .. } => is_file && existing.stamp.size == *size,
        _ => false,
    };
    let same = match (&entry.kind, existing.kind) {
        (Kind::Dir, ExistingKind::Dir) => true,
        (Kind::File { .. }, ExistingKind::File) => same_size && existing.stamp.mtime == entry.mtime,
        (Kind::Symlink { target: to }, ExistingKind::Symlink) => {
            target.link_target(&entry.path).is_ok_and(|there| there == *to)
        }
        _ => false,
    };
    let is_folder = existing.kind == ExistingKind::Dir && entry.kind != Kind::Dir;
    match (same, same_size) {
        _ if is_folder && !target.is_empty_dir(&entry.path) => PreviewOutcome::Irreplaceable,
        (true, _) => PreviewOutcome::Same,
        (false, true) => PreviewOutcome::SameSize,
        (false, false) => PreviewOutcome::Differs,
    }
}

/// Returns the bytes of the file that an earlier connection received, if it left a part of this
/// version.
fn verified_bytes(target: &TargetDir, entry: &Entry, part_key: &[u8; 32]) -> Option<u64> {
    let chunks = chunk_count(entry.size());
    if chunks < 2 {
        return None;
    }
    let part = target.resume(entry, part_key).ok().flatten()?;
    let at = |chunk: u64| entry.size().min(chunk * CHUNK_BYTES as u64);
    let have = part.may_have();
    if have.is_empty() && !part.earlier().is_empty() {
        // Content of another version only: the file is fetched anew, with the part as an old copy.
        return None;
    }
    let missing: u64 = have.missing(chunks).map(|range| at(range.end) - at(range.start)).sum();
    Some(entry.size() - missing)
}
