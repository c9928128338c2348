//! What an offer holds, name by name, and what would become of each, before anything is accepted or written.
//!
//! The sender streams its manifest without waiting for an answer, so the beginning of it is here when the user is asked.
//! Nothing is created or read in full: names, sizes and times are compared. Bounded in entries, bytes and time; a tree
//! beyond that is shown in part ([`Preview::complete`]), and what was read is not read again.

use std::collections::HashMap;
use std::time::Instant;

use wraith_crypto::NodeId;
use wraith_files::{
    CHUNK_BYTES, Entry, ExistingKind, Kind, OnConflict, RelPath, TargetDir, chunk_count,
};

use super::entries::{Entries, Step};
use super::placement::{Fate, Placement};
use super::renamed_folders::RenamedFolders;
use crate::error::TransferError;
use crate::limits::{PREVIEW_ENTRIES_MAX, PREVIEW_PATH_BYTES_MAX, PREVIEW_TIME};
use crate::message::Offer;
use crate::session::Session;
use wraith_transport::{Addr, Connection};

/// What is put to the user.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// Counts and sizes, as the sender says.
    pub offer: &'a Offer,
    /// Who offers it.
    pub sender: NodeId,
    /// From where.
    pub remote: Addr,
    /// The names, if they were asked for ([`super::ReceiveOptions::preview`]).
    pub preview: Option<&'a Preview>,
    /// Over which it is offered. Whoever waits for an answer waits for [`Connection::closed`] too: it says that the sender has
    /// left, and comes as well when the transfer is cancelled. What is answered then has no effect.
    pub connection: &'a Connection,
}

/// The entries of an offer, as far as they were looked at.
#[derive(Debug, Default)]
pub struct Preview {
    /// In the order of the manifest.
    pub entries: Vec<Previewed>,
    /// False if there are more, or if they did not come in time.
    pub complete: bool,
}

/// One entry and what would become of it.
#[derive(Clone, Debug)]
pub struct Previewed {
    /// The file, folder or link.
    pub entry: Entry,
    /// What stands in its place.
    pub outcome: PreviewOutcome,
    /// The name that it gets if it is renamed; None where nothing is in its way.
    pub copy: Option<RelPath>,
}

/// What an entry meets at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewOutcome {
    /// Nothing: it would be made.
    New,
    /// A part of it, from an earlier connection of this transfer, with so many verified bytes.
    Continues(u64),
    /// Something of the same kind, size and time (or a folder): its content would be compared.
    Same,
    /// A file of the same size and another time: unless the policy is to skip, its content is compared, and the conflict policy
    /// decides if it is another.
    SameSize,
    /// Something else: the conflict policy decides. Of a folder, about everything below it too.
    Differs,
    /// A folder with something in it, in the place of a file or link: it is not replaced, whatever the policy.
    Irreplaceable,
}

/// What to do about names that are taken by something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// Where nothing else is said.
    pub otherwise: OnConflict,
    /// For single paths.
    pub of: HashMap<RelPath, OnConflict>,
}

impl Conflicts {
    pub(crate) fn at(&self, path: &RelPath) -> OnConflict {
        self.of.get(path).copied().unwrap_or(self.otherwise)
    }
}

/// Reads ahead until the manifest ends, is long enough, or has taken long enough. True if it ended.
pub(crate) fn read_ahead(session: &Session, entries: &mut Entries) -> Result<bool, TransferError> {
    let deadline = Instant::now() + PREVIEW_TIME;
    let mut path_bytes = 0;
    while entries.ahead().len() < PREVIEW_ENTRIES_MAX && path_bytes < PREVIEW_PATH_BYTES_MAX {
        match entries.parse(session)? {
            Step::Entry(entry) => {
                path_bytes += entry.path.as_bytes().len();
                if let Kind::Symlink { target } = &entry.kind {
                    path_bytes += target.len();
                }
                entries.keep(entry);
            }
            Step::End(_) => return Ok(true),
            Step::Starved => {
                let left = deadline.saturating_duration_since(Instant::now());
                let read = session.wait_within(left, entries.stream().read_chunk());
                let Some(read) = read else { return Ok(false) };
                entries.push(session, read.map_err(|error| session.read_failed(error))?)?;
            }
        }
    }
    Ok(false)
}

/// Looks at the target for each entry that was read ahead.
pub(crate) fn preview(
    entries: &Entries,
    complete: bool,
    target: Option<&TargetDir>,
    part_key: &[u8; 32],
    renamed: Option<&RenamedFolders>,
) -> Preview {
    let mut look =
        target.map(|target| Look { target, part_key, renamed, placement: Placement::default() });
    let look = |entry: &Entry| {
        let seen = look.as_mut().map(|look| look.at(entry));
        let (outcome, copy) = seen.unwrap_or((PreviewOutcome::New, None));
        Previewed { entry: entry.clone(), outcome, copy }
    };
    Preview { entries: entries.ahead().iter().map(look).collect(), complete }
}

/// Looks at the target for one entry after the other.
struct Look<'a> {
    target: &'a TargetDir,
    part_key: &'a [u8; 32],
    renamed: Option<&'a RenamedFolders>,
    placement: Placement,
}

impl Look<'_> {
    /// What the entry meets, and the name that it gets if it is renamed.
    fn at(&mut self, entry: &Entry) -> (PreviewOutcome, Option<RelPath>) {
        let offered = &entry.path;
        // Below a folder that would be made now there is nothing.
        let Ok(Fate::Goes(path)) = self.placement.of(offered) else {
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
            let fate = ours.clone().map_or(Fate::Skipped, Fate::Goes);
            self.placement.set(offered.clone(), fate);
        }
        (outcome, ours.or_else(|| self.target.free_copy(&entry.path)))
    }
}

fn outcome_of(target: &TargetDir, entry: &Entry, part_key: &[u8; 32]) -> PreviewOutcome {
    if let Some(bytes) = verified_bytes(target, entry, part_key) {
        return PreviewOutcome::Continues(bytes);
    }
    // What cannot be looked at is told when it is written.
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

/// Bytes that an earlier connection has got of the file, if it left a part.
fn verified_bytes(target: &TargetDir, entry: &Entry, part_key: &[u8; 32]) -> Option<u64> {
    let chunks = chunk_count(entry.size());
    if chunks < 2 {
        return None;
    }
    let part = target.resume(entry, part_key).ok().flatten()?;
    let at = |chunk: u64| entry.size().min(chunk * CHUNK_BYTES as u64);
    let have = part.may_have();
    let missing: u64 = have.missing(chunks).map(|range| at(range.end) - at(range.start)).sum();
    Some(entry.size() - missing)
}
