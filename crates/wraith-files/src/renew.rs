//! Turns the part of an earlier version of a file into a part of its current version.
//!
//! The source may change between two runs of a transfer, for example a log that grows. The part
//! then keeps its bytes and gets the new size and a new journal. That journal names no chunk as
//! received. It only lists the ranges that hold content of earlier versions, of any number of them.
//! [`crate::EarlierContent`] reads these ranges as an old copy.
//!
//! The new journal replaces the old one in one step. Before that step, a kill leaves the old
//! journal, and the next run repeats the renewal.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, fdatasync, fstat, ftruncate, renameat, unlinkat};
use rustix::io::Errno;

use crate::commit::clear;
use crate::entry::Entry;
use crate::error::{Context, Error, Result};
use crate::hidden_names::{HiddenNames, PRIVATE};
use crate::interval_set::IntervalSet;
use crate::journal::{Header, Journal, JournalEntry, boot_id};
use crate::own_file::file_id;
use crate::part_file::bytes_of;
use crate::path::shown;
use crate::small_file::create_hidden;

/// Maximum number of ranges that a renewed journal lists (3 MiB). A sender that works in order
/// leaves a handful. Content of further ranges is fetched again.
const EARLIER_RANGES_MAX: usize = 65_536;

/// Renews the part under `names`, or removes it if none of its content is of use. Its `journal` stays
/// locked until it is replaced.
pub(crate) fn renew(
    entry: &Entry,
    parent: &OwnedFd,
    names: &HiddenNames,
    mut journal: Journal,
    part: &OwnedFd,
) -> Result<()> {
    let content = content(&mut journal, part, entry)?;
    if content.is_empty() {
        return clear(parent, names, journal.into_fd(), &entry.path);
    }
    renew_part(entry, parent, names, part, journal.header(), &content)
}

/// Returns the bytes of the part that its journal names and that the new version has room for.
fn content(journal: &mut Journal, part: &OwnedFd, entry: &Entry) -> Result<IntervalSet> {
    let path = entry.path.as_bytes();
    let size = journal.header().size;
    let mut content = IntervalSet::new();
    let replayed = journal.replay(|record| {
        match record {
            JournalEntry::Chunk { index, .. } => {
                content.insert(bytes_of(&(index..index + 1), size))
            }
            JournalEntry::Earlier { offset, len } => content.insert(offset..offset + len),
            // Zeros need no old copy.
            JournalEntry::Hole { .. } => {}
        }
        true
    });
    replayed.context(path, "read its journal")?;
    // An earlier renewal may have ended between the truncation and the new journal.
    let stat = fstat(part).context(path, "inspect its part file")?;
    content.remove(entry.size().min(stat.st_size as u64)..u64::MAX);
    Ok(content.iter().take(EARLIER_RANGES_MAX).collect())
}

fn renew_part(
    entry: &Entry,
    parent: &OwnedFd,
    names: &HiddenNames,
    part: &OwnedFd,
    old: &Header,
    content: &IntervalSet,
) -> Result<()> {
    let path = entry.path.as_bytes();
    let (size, mtime, tree) = (entry.size(), entry.mtime, entry.tree());
    let id = file_id(part).context(path, "inspect its part file")?;
    let header = Header { size, mtime, tree, boot_id: boot_id(), part: id, ..*old };
    let fd = create_hidden(parent.as_fd(), &names.new_journal, PRIVATE).map_err(|errno| {
        if errno == Errno::BUSY {
            return Error::InUse { path: shown(path) };
        }
        Error::os(path, "create its journal", errno)
    })?;
    let renewed = write_journal(fd, header, content).and_then(|journal| {
        ftruncate(part, size)?;
        renameat(parent, &names.new_journal, parent, &names.journal)?;
        Ok(journal)
    });
    if renewed.is_err() {
        // The file is hidden, and the next attempt clears it.
        let _ = unlinkat(parent, &names.new_journal, AtFlags::empty());
    }
    renewed.map(drop).context(path, "renew its part")
}

/// Writes the journal of the new version through to disk: after a power cut, the rename must not
/// lead to an empty journal.
fn write_journal(
    fd: OwnedFd,
    header: Header,
    content: &IntervalSet,
) -> rustix::io::Result<Journal> {
    let mut journal = Journal::begin(fd, header).map_err(|(_, errno)| errno)?;
    for range in content.iter() {
        let (offset, len) = (range.start, range.end - range.start);
        journal.append(&JournalEntry::Earlier { offset, len })?;
    }
    match fdatasync(journal.fd()) {
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => Ok(journal),
        Err(errno) => Err(errno),
    }
}
