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
    /// Something else: the conflict policy decides.
    Differs,
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
) -> Preview {
    let outcome = |entry: &Entry| {
        target.map_or(PreviewOutcome::New, |target| outcome_of(target, entry, part_key))
    };
    let look = |entry: &Entry| Previewed { entry: entry.clone(), outcome: outcome(entry) };
    Preview { entries: entries.ahead().iter().map(look).collect(), complete }
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
    match (same, same_size) {
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
