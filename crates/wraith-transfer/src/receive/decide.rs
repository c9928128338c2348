//! What to do about one file of the manifest: compare it with the disk, and want it, want a part of it, or not.

use wraith_files::{
    CHUNK_BYTES, Entry, Error, Existing, ExistingKind, IntervalSet, OnConflict, RelPath,
    chunk_count,
};

use super::Receiving;
use crate::error::TransferError;
use crate::events::{FileStatus, InPlace};
use crate::limits::{DELTA_BYTES_MIN, DELTA_SHRINK_MAX};
use crate::wanted::{Wanted, coarse};

/// What is done about a file.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is wanted; so many bytes of it are missing, some of which the `old` copy may have.
    Want { wanted: Wanted, missing: u64, old: Option<Existing> },
    /// It is here from an earlier connection, or something else stays in its place.
    Pass(FileStatus),
}

/// Looks at the disk. `before_reading` is called before a file here is read in full, which can take long.
pub(crate) fn decide(
    receiving: &Receiving<'_>,
    (number, entry): (u32, &Entry),
    mut before_reading: impl FnMut() -> Result<(), TransferError>,
) -> Result<Verdict, TransferError> {
    let size = entry.size();
    if let Some(missing) = missing_of_part(receiving, (number, entry), &mut before_reading)? {
        let at = |chunk: u64| size.min(chunk * wraith_files::CHUNK_BYTES as u64);
        let bytes = missing.iter().map(|range| at(range.end) - at(range.start)).sum();
        // What cannot be looked at is of no use.
        let existing = receiving.target.existing(&entry.path).ok().flatten();
        let old = existing
            .filter(|existing| bytes >= DELTA_BYTES_MIN && is_old_copy(receiving, size, existing));
        return Ok(Verdict::Want { wanted: Wanted::Chunks(missing), missing: bytes, old });
    }
    let existing = match receiving.target.existing(&entry.path) {
        Ok(Some(existing)) => existing,
        Ok(None) => return Ok(Verdict::Want { wanted: Wanted::Whole, missing: size, old: None }),
        Err(error) => {
            receiving.note_unless_fatal(entry, error)?;
            return Ok(Verdict::Pass(FileStatus::Blocked));
        }
    };
    let old = Some(existing).filter(|existing| is_old_copy(receiving, size, existing));
    let whole = Verdict::Want { wanted: Wanted::Whole, missing: size, old };
    let path = entry.path.as_bytes();
    if existing.kind == ExistingKind::File {
        let mark = receiving.completed.mark_of(path, path, &existing.stamp);
        if receiving.completed.is_known(&mark) {
            return Ok(already_here(receiving, entry, &entry.path));
        }
    }
    match receiving.conflicts.at(&entry.path) {
        OnConflict::Skip => return Ok(Verdict::Pass(FileStatus::Skipped)),
        OnConflict::Rename => {
            if let Some(copy) = finished_copy(receiving, entry) {
                return Ok(already_here(receiving, entry, &copy));
            }
        }
        OnConflict::Overwrite => {}
    }
    if existing.kind != ExistingKind::File || existing.stamp.size != size {
        return Ok(whole);
    }
    before_reading()?;
    match receiving.target.root_of(&entry.path, || !receiving.session.is_over()) {
        // Nothing is missing if it is the same, which the disk can hardly be too full for.
        Ok(Some(root)) => Ok(Verdict::Want { wanted: Wanted::Unless(root), missing: 0, old }),
        // It cannot be read, or somebody works on it: then it is not the same.
        Ok(None) | Err(_) => Ok(whole),
    }
}

/// True if the file at the place of one of `size` bytes is worth comparing with it piece by piece.
fn is_old_copy(receiving: &Receiving<'_>, size: u64, existing: &Existing) -> bool {
    let bytes = existing.stamp.size;
    receiving.delta
        && existing.kind == ExistingKind::File
        && crate::delta::suits(size)
        && bytes >= DELTA_BYTES_MIN.max(size / DELTA_SHRINK_MAX)
}

/// An earlier connection finished the file at `path`, and nobody has touched it since.
fn already_here(receiving: &Receiving<'_>, entry: &Entry, path: &RelPath) -> Verdict {
    receiving.target.keep_existing(path);
    receiving.in_place(path, InPlace::File { bytes: entry.size(), verified: None });
    Verdict::Pass(FileStatus::AlreadyHere)
}

/// Where an earlier connection finished the file under another name, because its own was taken.
fn finished_copy(receiving: &Receiving<'_>, entry: &Entry) -> Option<RelPath> {
    if !receiving.completed.is_resumed() {
        return None;
    }
    let path = &entry.path;
    // The copies of a name are numbered without gaps, as long as nobody removes one.
    let copies = (1..).map_while(|number| path.copy(number).ok());
    for copy in copies {
        let existing = receiving.target.existing(&copy).ok().flatten()?;
        let mark = receiving.completed.mark_of(path.as_bytes(), copy.as_bytes(), &existing.stamp);
        if receiving.completed.is_known(&mark) {
            return Some(copy);
        }
    }
    None
}

/// The chunks that an earlier connection did not get, if it got any.
fn missing_of_part(
    receiving: &Receiving<'_>,
    (number, entry): (u32, &Entry),
    before_reading: &mut dyn FnMut() -> Result<(), TransferError>,
) -> Result<Option<IntervalSet>, TransferError> {
    if chunk_count(entry.size()) < 2 {
        return Ok(None);
    }
    let mut part = match receiving.target.resume(entry, &receiving.part_key) {
        Ok(Some(part)) => part,
        Ok(None) => return Ok(None),
        Err(error @ Error::InUse { .. }) => return Err(receiving.disk(&error)),
        // What cannot be looked at now fails when it is written.
        Err(_) => return Ok(None),
    };
    if part.needs_recheck() {
        before_reading()?;
        let progress = receiving.progress;
        progress.begin_file(number, &entry.path.display(), 0, entry.size());
        // If it cannot be read, nothing of it counts and all of it is fetched again.
        let _ = part.recheck(|_| {
            progress.show_bytes_of(number, CHUNK_BYTES as u64);
            !receiving.session.is_over()
        });
        progress.end_file(number);
    }
    let missing: IntervalSet = part.have().missing(chunk_count(entry.size())).collect();
    let (span, path) = (&receiving.session.span, entry.path.display());
    tracing::debug!(parent: span, %path, missing_chunks = missing.count(), "resumes a file");
    Ok(Some(coarse(missing)))
}
