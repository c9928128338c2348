//! Decides about one file of the manifest: compares the file with the disk, then requests all of
//! it, a part of it, or nothing.

use wraith_files::{
    CHUNK_BYTES, Entry, Error, Existing, ExistingKind, IntervalSet, OnConflict, RelPath, Root,
    chunk_count,
};

use super::assembly::Assembly;
use super::incoming::{LocalCopies, OldCopy};
use super::placement::Placed;
use crate::error::TransferError;
use crate::exception::Exception;
use crate::limits::{DELTA_BYTES_MIN, DELTA_SHRINK_MAX};
use crate::roots::{FileId, Roots};
use crate::wanted::{Wanted, coarse};

/// Decision about a file.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The file is wanted. `missing` bytes must be transferred; some of them may be `local`. They
    /// need `space` bytes of free disk space.
    Want { wanted: Wanted, missing: u64, space: u64, local: LocalCopies },
    /// The file is not wanted: another object keeps its name, or it cannot be placed.
    Pass(Exception),
}

/// Inspects the disk. Calls `before_reading` before a local file is read in full, which can take
/// long.
pub(crate) fn decide(
    assembly: &Assembly<'_>,
    (number, placed): (u32, &Placed),
    mut before_reading: impl FnMut() -> Result<(), TransferError>,
) -> Result<Verdict, TransferError> {
    let entry = &placed.entry;
    let size = entry.size();
    let part = found_part(assembly, (number, placed), &mut before_reading)?;
    if let Some(part) = part.as_ref().filter(|part| part.has_any) {
        let at = |chunk: u64| size.min(chunk * CHUNK_BYTES as u64);
        let bytes: u64 = part.missing.iter().map(|range| at(range.end) - at(range.start)).sum();
        // A file that cannot be inspected is useless as an old copy.
        let existing = assembly.target.existing(&entry.path).ok().flatten();
        let old = old_copy(assembly, entry, existing.as_ref(), Some(part));
        let old = old.filter(|_| bytes >= DELTA_BYTES_MIN);
        let local = LocalCopies { old, copy: None };
        let space = bytes.min(part.unallocated_bytes);
        let wanted = Wanted::Chunks(part.missing.clone());
        return Ok(Verdict::Want { wanted, missing: bytes, space, local });
    }
    let mut verdict = decide_anew(assembly, placed, part.as_ref(), before_reading)?;
    let Some(part) = part else { return Ok(verdict) };
    if let Verdict::Want { wanted: Wanted::Whole, ref mut space, .. } = verdict {
        *space = part.unallocated_bytes;
        return Ok(verdict);
    }
    // Another file has the content, or keeps the name.
    let swept = assembly.target.sweep(entry, &assembly.part_key);
    swept.or_else(|error| assembly.record_unless_fatal(&placed.offered, error))?;
    Ok(verdict)
}

/// Decides about a file of which nothing is received. `part` may have content of an earlier version.
fn decide_anew(
    assembly: &Assembly<'_>,
    placed: &Placed,
    part: Option<&FoundPart>,
    mut before_reading: impl FnMut() -> Result<(), TransferError>,
) -> Result<Verdict, TransferError> {
    let entry = &placed.entry;
    let size = entry.size();
    let existing = match assembly.target.existing(&entry.path) {
        Ok(Some(existing)) => existing,
        Ok(None) => {
            let local = LocalCopies { old: old_copy(assembly, entry, None, part), copy: None };
            return Ok(Verdict::Want { wanted: Wanted::Whole, missing: size, space: size, local });
        }
        Err(error) => {
            assembly.record_unless_fatal(&placed.offered, error)?;
            return Ok(Verdict::Pass(Exception::Blocked));
        }
    };
    let local = LocalCopies { old: old_copy(assembly, entry, Some(&existing), part), copy: None };
    let whole = Verdict::Want { wanted: Wanted::Whole, missing: size, space: size, local };
    let local = LocalCopies { old: old_copy(assembly, entry, Some(&existing), None), copy: None };
    let is_as_long = existing.kind == ExistingKind::File && existing.stamp.size == size;
    if is_as_long && !placed.may_replace {
        assembly.names.protect(assembly.target, &entry.path);
    }
    // An earlier connection completed the file, and it is unchanged since. Only the sender's file
    // may differ now.
    if let Some(root) = finished_root(assembly, entry, &entry.path, &existing) {
        return Ok(Verdict::Want { wanted: Wanted::Unless(root), missing: 0, space: 0, local });
    }
    match assembly.names.policy(placed) {
        OnConflict::Skip => return compare_kept(assembly, entry, &existing, before_reading),
        OnConflict::Rename => {
            if let Some((copy, root)) = finished_copy(assembly, entry) {
                assembly.names.protect(assembly.target, &copy);
                let local = LocalCopies { copy: Some(copy), ..local };
                return Ok(Verdict::Want {
                    wanted: Wanted::Unless(root),
                    missing: 0,
                    space: 0,
                    local,
                });
            }
        }
        OnConflict::Overwrite => {}
    }
    if !is_as_long {
        return Ok(whole);
    }
    before_reading()?;
    match checked_root(assembly, entry) {
        // Nothing is missing if the roots match, so no disk space is needed.
        Ok(Some(root)) => {
            Ok(Verdict::Want { wanted: Wanted::Unless(root), missing: 0, space: 0, local })
        }
        // The file cannot be read or is being changed: treat it as different.
        Ok(None) | Err(_) => Ok(whole),
    }
}

/// Reads and hashes the existing file under the name of `entry`, which is as long as the entry.
fn checked_root(assembly: &Assembly<'_>, entry: &Entry) -> Result<Option<Root>, Error> {
    let mut check = assembly.books.progress.begin_check(entry.size());
    assembly.target.root_of(&entry.path, entry.tree(), || {
        check.add(CHUNK_BYTES as u64);
        !assembly.is_stopped()
    })
}

/// Decides about a file if the existing object keeps its name: it is already here if both have
/// the same content.
fn compare_kept(
    assembly: &Assembly<'_>,
    entry: &Entry,
    existing: &Existing,
    mut before_reading: impl FnMut() -> Result<(), TransferError>,
) -> Result<Verdict, TransferError> {
    if existing.kind != ExistingKind::File || existing.stamp.size != entry.size() {
        return Ok(Verdict::Pass(Exception::Skipped));
    }
    before_reading()?;
    match checked_root(assembly, entry) {
        Ok(Some(root)) => {
            let local = LocalCopies::default();
            Ok(Verdict::Want { wanted: Wanted::Kept(root), missing: 0, space: 0, local })
        }
        Ok(None) | Err(_) => Ok(Verdict::Pass(Exception::Skipped)),
    }
}

/// Returns true if the file under the name of `entry` is worth a comparison piece by piece.
fn is_old_copy(assembly: &Assembly<'_>, entry: &Entry, existing: &Existing) -> bool {
    let (size, bytes) = (entry.size(), existing.stamp.size);
    assembly.uses().old_copies
        && existing.kind == ExistingKind::File
        && crate::delta::suits(size, entry.tree())
        && bytes >= DELTA_BYTES_MIN.max(size / DELTA_SHRINK_MAX)
}

/// Returns the root of the file at `path`, if an earlier connection completed it and it is
/// unchanged since.
fn finished_root(
    assembly: &Assembly<'_>,
    entry: &Entry,
    path: &RelPath,
    existing: &Existing,
) -> Option<Root> {
    if existing.kind != ExistingKind::File || existing.stamp.size != entry.size() {
        return None;
    }
    let (path, tree) = (path.as_bytes(), entry.tree());
    let file = FileId { entry: entry.path.as_bytes(), path, tree, stamp: &existing.stamp };
    assembly.completed.root_of(&file, None)
}

/// Returns the path and root of a file that an earlier connection completed under another name,
/// because its own was taken.
fn finished_copy(assembly: &Assembly<'_>, entry: &Entry) -> Option<(RelPath, Root)> {
    if !assembly.completed.is_resumed() {
        return None;
    }
    let path = &entry.path;
    // The copies of a name are numbered without gaps, unless the user removes one.
    let copies = (1..).map_while(|number| path.copy(number).ok());
    for copy in copies {
        let existing = assembly.target.existing(&copy).ok().flatten()?;
        if let Some(root) = finished_root(assembly, entry, &copy, &existing) {
            return Some((copy, root));
        }
    }
    None
}

/// Returns the better old copy: the file under the name, or the content of an earlier version in the
/// part.
fn old_copy(
    assembly: &Assembly<'_>,
    entry: &Entry,
    existing: Option<&Existing>,
    part: Option<&FoundPart>,
) -> Option<OldCopy> {
    let existing = existing.filter(|existing| is_old_copy(assembly, entry, existing));
    let in_part = part.map_or(0, |part| part.earlier_bytes);
    if assembly.uses().old_copies
        && crate::delta::suits(entry.size(), entry.tree())
        && in_part >= DELTA_BYTES_MIN
        && existing.is_none_or(|existing| existing.stamp.size <= in_part)
    {
        return Some(OldCopy::Part);
    }
    existing.copied().map(OldCopy::Existing)
}

/// A part that an earlier connection left.
struct FoundPart {
    /// The chunks that it lacks.
    missing: IntervalSet,
    /// True if it has any chunk of this version.
    has_any: bool,
    /// Bytes of an earlier version.
    earlier_bytes: u64,
    /// Bytes of the file without disk space.
    unallocated_bytes: u64,
}

/// Returns the part that an earlier connection left of this version or an earlier one.
fn found_part(
    assembly: &Assembly<'_>,
    (number, placed): (u32, &Placed),
    before_reading: &mut dyn FnMut() -> Result<(), TransferError>,
) -> Result<Option<FoundPart>, TransferError> {
    let entry = &placed.entry;
    if chunk_count(entry.size()) < 2 {
        return Ok(None);
    }
    let (target, key) = (assembly.target, &assembly.part_key);
    let resumed =
        match assembly.uses().old_copies && crate::delta::suits(entry.size(), entry.tree()) {
            true => target.resume_or_renew(entry, key),
            false => target.resume_or_remove(entry, key),
        };
    let mut part = match resumed {
        Ok(Some(part)) => part,
        Ok(None) => return Ok(None),
        Err(error @ Error::InUse { .. }) => return Err(assembly.disk(&error)),
        // A part that cannot be inspected now fails when it is written.
        Err(_) => return Ok(None),
    };
    if part.needs_recheck() {
        before_reading()?;
        let progress = assembly.books.progress;
        progress.begin_file(number, &placed.offered.display(), 0, entry.size());
        // If the part cannot be read, none of its chunks is used and all of them are fetched again.
        let present = part.may_have().count().saturating_mul(CHUNK_BYTES as u64).min(entry.size());
        let mut check = progress.begin_check(present);
        let _ = part.recheck(|_| {
            check.add(CHUNK_BYTES as u64);
            progress.show_bytes_of(number, CHUNK_BYTES as u64);
            !assembly.is_stopped()
        });
        progress.end_file(number);
    }
    let have = part.have();
    let missing: IntervalSet = have.missing(chunk_count(entry.size())).collect();
    let earlier_bytes = part.earlier().count();
    let (span, path) = (assembly.books.span, entry.path.display());
    let missing_chunks = missing.count();
    tracing::debug!(parent: span, %path, missing_chunks, earlier_bytes, "resumes a file");
    Ok(Some(FoundPart {
        missing: coarse(missing),
        // With content of an earlier version, it counts as begun only once a chunk is verified.
        has_any: !have.is_empty() || earlier_bytes == 0,
        earlier_bytes,
        unallocated_bytes: part.unallocated_bytes(),
    }))
}
