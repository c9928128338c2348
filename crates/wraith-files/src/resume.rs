//! Finds, continues and begins part files.
//!
//! A part is continued only under these conditions:
//!
//! - Its journal names the same sender, transfer, path, size and time.
//! - It belongs to this user alone.
//! - No living process holds its lock.
//!
//! A foreign part under the same name is left as it is, and the new part gets a tag in its name. A
//! part of the same transfer with another size or time holds an earlier version of the file. It
//! becomes a part of this version ([`crate::renew`]), or is started anew.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags, fstat, ftruncate, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::beneath::open_child;
use crate::commit::{clear, is_at, lock_file};
use crate::entry::Entry;
use crate::error::{Context, Error, Result};
use crate::hidden_names::{HiddenNames, PRIVATE};
use crate::interval_set::IntervalSet;
use crate::journal::{Header, Journal, JournalEntry, boot_id};
use crate::only_writer::mark_new;
use crate::own_file::{file_id, is_own, is_private};
use crate::part_file::{PartFile, open_part};
use crate::path::{RelPath, shown};
use crate::renew::renew;
use crate::small_file::create_hidden;
use crate::target_state::TargetState;

/// State of one pair of hidden names.
enum Slot {
    /// No journal exists.
    Empty,
    /// A locked, useless journal: incomplete, or without its part.
    Stale(OwnedFd),
    /// This transfer's journal and part, but of another version or hash tree of the file.
    Earlier(OwnedFd, Header, OwnedFd),
    /// This transfer's journal and part, ready to be continued.
    Ours(OwnedFd, Header, OwnedFd),
    /// This transfer's journal, locked by a living process.
    Busy,
    /// The journal of another sender or transfer, or a foreign file.
    Foreign,
}

/// What a search does with the part of another version of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherVersion {
    Leave,
    /// Makes it a part of this version ([`crate::renew`]).
    Renew,
    Remove,
}

/// Identifies a part by the sender, the transfer (both in `key`) and the path.
fn identity(key: &[u8; 32], path: &RelPath) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("wraith/1 part identity");
    hasher.update(key).update(path.as_bytes()).finalize().into()
}

/// Returns the pairs of hidden names, in the order in which they are searched for a part and, after
/// that, tried for a new one.
fn candidates(path: &RelPath, identity: &[u8; 32]) -> [HiddenNames; 2] {
    let tag = *identity.first_chunk().expect("an identity has 32 bytes");
    [None, Some(tag)].map(|tag| HiddenNames::of(path.file_name(), tag))
}

/// Returns the folder of the file at `path`. `None` if it does not exist.
fn existing_parent(target: &TargetState, path: &RelPath) -> Result<Option<Arc<OwnedFd>>> {
    match target.dirs.get(path.parent_bytes().unwrap_or_default()) {
        Err(Errno::NOENT) => Ok(None),
        done => done.context(path.as_bytes(), "find its part file").map(Some),
    }
}

/// See [`crate::TargetDir::resume`].
pub(crate) fn resume(
    target: &Arc<TargetState>,
    entry: &Entry,
    key: &[u8; 32],
    other: OtherVersion,
) -> Result<Option<PartFile>> {
    let Some(parent) = existing_parent(target, &entry.path)? else { return Ok(None) };
    // A preview removes nothing that it does not meet.
    if other != OtherVersion::Leave {
        remove_orphans(target, &entry.path, &parent);
    }
    let identity = identity(key, &entry.path);
    for names in candidates(&entry.path, &identity) {
        let slot = match find_part(&parent, &names, entry, &identity)? {
            Slot::Earlier(journal, header, part) if other != OtherVersion::Leave => {
                let journal = Journal::continued(journal, header);
                match other {
                    OtherVersion::Renew => renew(entry, &parent, &names, journal, &part)?,
                    _ => clear(&parent, &names, journal.into_fd(), &entry.path)?,
                }
                find_part(&parent, &names, entry, &identity)?
            }
            slot => slot,
        };
        match slot {
            Slot::Ours(journal, header, part) => {
                let journal = Journal::continued(journal, header);
                return resume_part(target, entry, parent, names, part, journal).map(Some);
            }
            Slot::Busy => return Err(Error::InUse { path: shown(entry.path.as_bytes()) }),
            // For example the pooled journals of a killed process.
            Slot::Stale(journal) => clear(&parent, &names, journal, &entry.path)?,
            // A new part takes the place of an earlier one.
            Slot::Empty | Slot::Foreign | Slot::Earlier(..) => {}
        }
    }
    Ok(None)
}

/// Removes the orphaned journals of the folder of `path`, the first time it is used.
fn remove_orphans(target: &TargetState, path: &RelPath, parent: &OwnedFd) {
    target.searched.search(path.parent_bytes().unwrap_or_default(), parent);
}

/// See [`crate::TargetDir::open_or_resume`].
pub(crate) fn open_or_resume(
    target: &Arc<TargetState>,
    entry: &Entry,
    key: &[u8; 32],
) -> Result<PartFile> {
    if let Some(part) = resume(target, entry, key, OtherVersion::Leave)? {
        return Ok(part);
    }
    let parent = target.parent(&entry.path)?;
    remove_orphans(target, &entry.path, &parent);
    let identity = identity(key, &entry.path);
    for names in candidates(&entry.path, &identity) {
        // Stale files have been cleared above.
        let is_free = match find_part(&parent, &names, entry, &identity)? {
            Slot::Empty => true,
            Slot::Earlier(journal, ..) => {
                clear(&parent, &names, journal, &entry.path)?;
                true
            }
            _ => false,
        };
        if is_free && let Some(journal) = new_journal(target, &parent, &names, &entry.path)? {
            return create_part(target, entry, parent, names, journal, identity);
        }
    }
    Err(Error::InUse { path: shown(entry.path.as_bytes()) })
}

/// Removes leftovers of the file at `path` under this `key`, and stale ones without an owner.
pub(crate) fn sweep(target: &Arc<TargetState>, entry: &Entry, key: &[u8; 32]) -> Result<()> {
    let path = &entry.path;
    let Some(parent) = existing_parent(target, path)? else { return Ok(()) };
    let identity = identity(key, path);
    for names in candidates(path, &identity) {
        match find_part(&parent, &names, entry, &identity)? {
            Slot::Empty | Slot::Busy | Slot::Foreign => {}
            Slot::Stale(journal) | Slot::Ours(journal, ..) | Slot::Earlier(journal, ..) => {
                clear(&parent, &names, journal, path)?;
            }
        }
    }
    Ok(())
}

/// Inspects one pair of names and locks the journal there.
fn find_part(
    parent: &Arc<OwnedFd>,
    names: &HiddenNames,
    entry: &Entry,
    identity: &[u8; 32],
) -> Result<Slot> {
    let path = entry.path.as_bytes();
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let journal = match open_child(parent.as_fd(), &names.journal, flags) {
        Ok(journal) => journal,
        Err(Errno::NOENT) => return Ok(Slot::Empty),
        // This user has no access to the folder itself.
        Err(Errno::ACCESS)
            if statat(parent, &names.journal, AtFlags::SYMLINK_NOFOLLOW).err()
                == Some(Errno::ACCESS) =>
        {
            return Err(Error::os(path, "look into its folder", Errno::ACCESS));
        }
        Err(Errno::LOOP | Errno::ACCESS | Errno::ISDIR | Errno::NXIO | Errno::PERM) => {
            return Ok(Slot::Foreign);
        }
        Err(errno) => return Err(Error::os(path, "open its journal", errno)),
    };
    if !is_private(&journal) {
        return Ok(Slot::Foreign);
    }
    let locked = lock_file(journal.as_fd()).is_ok();
    let header = Journal::read_header(&journal).context(path, "read its journal")?;
    let is_ours = header.is_some_and(|header| header.identity == *identity);
    let is_here = is_at(journal.as_fd(), parent.as_fd(), &names.journal);
    if !is_here && is_gone(parent, &names.journal) {
        // For example an orphan that another process has just removed.
        return Ok(Slot::Empty);
    }
    if !locked || !is_here {
        return Ok(if is_ours { Slot::Busy } else { Slot::Foreign });
    }
    let header = match header {
        None => return Ok(Slot::Stale(journal)),
        Some(_) if !is_ours => return Ok(Slot::Foreign),
        Some(header) => header,
    };
    let is_same =
        (header.size, header.mtime, header.tree) == (entry.size(), entry.mtime, entry.tree());
    match open_part(parent, &names.part) {
        Ok(part) if is_own(&part) && is_same && has_size(&part, header.size) => {
            Ok(Slot::Ours(journal, header, part))
        }
        Ok(part) if is_own(&part) => Ok(Slot::Earlier(journal, header, part)),
        Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS | Errno::ISDIR | Errno::NXIO) => {
            Ok(Slot::Stale(journal))
        }
        Err(errno) => Err(Error::os(path, "open its part", errno)),
    }
}

fn is_gone(parent: &OwnedFd, name: &[u8]) -> bool {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT)
}

fn has_size(fd: &OwnedFd, size: u64) -> bool {
    fstat(fd).is_ok_and(|stat| stat.st_size as u64 == size)
}

/// Returns a locked journal under its name, from the pool or new. `None` if another process created
/// it first.
fn new_journal(
    target: &TargetState,
    parent: &OwnedFd,
    names: &HiddenNames,
    path: &RelPath,
) -> Result<Option<OwnedFd>> {
    if let Some(journal) = target.journal_pool.take(parent, &names.journal) {
        return Ok(Some(journal));
    }
    match create_hidden(parent.as_fd(), &names.journal, PRIVATE) {
        // Before it was locked, another process may have taken it for an orphan.
        Ok(journal) if is_at(journal.as_fd(), parent.as_fd(), &names.journal) => Ok(Some(journal)),
        Ok(_) | Err(Errno::BUSY | Errno::EXIST) => Ok(None),
        Err(errno) => Err(Error::os(path.as_bytes(), "create its journal", errno)),
    }
}

/// Creates an empty part for a locked journal.
fn create_part(
    target: &Arc<TargetState>,
    entry: &Entry,
    parent: Arc<OwnedFd>,
    names: HiddenNames,
    journal: OwnedFd,
    identity: [u8; 32],
) -> Result<PartFile> {
    let path = entry.path.as_bytes();
    let made = make_part(&parent, &names.part, entry.size()).and_then(|part| {
        let id = file_id(&part)?;
        Ok((part, id))
    });
    let (part, id) = match made {
        Ok(made) => made,
        Err(errno) => {
            // Return the first error; ignore that of the clean-up, here and below.
            let _ = unlinkat(&parent, &names.journal, AtFlags::empty());
            return Err(Error::os(path, "create its part file", errno));
        }
    };
    let (size, mtime, tree) = (entry.size(), entry.mtime, entry.tree());
    let header = Header { size, mtime, tree, identity, boot_id: boot_id(), part: id };
    match Journal::begin(journal, header) {
        Ok(journal) => {
            let part = PartFile::over(target, entry, parent, names, part, journal);
            let is_all_zeros = entry.is_sparse() && part.is_untouched();
            part.lock().ever_claimed = is_all_zeros.then(IntervalSet::new);
            Ok(part)
        }
        Err((_journal, errno)) => {
            let _ = unlinkat(&parent, &names.part, AtFlags::empty());
            let _ = unlinkat(&parent, &names.journal, AtFlags::empty());
            Err(Error::os(path, "write its journal", errno))
        }
    }
}

/// Creates the part anew. Never opens an existing file: it could be a link, or another name of a
/// foreign file.
fn make_part(parent: &OwnedFd, name: &[u8], size: u64) -> rustix::io::Result<OwnedFd> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let part = openat(parent, name, flags, PRIVATE)?;
    ftruncate(&part, size).inspect_err(|_| {
        let _ = unlinkat(parent, name, AtFlags::empty());
    })?;
    mark_new(part.as_fd());
    Ok(part)
}

/// Replays the journal of an existing part.
fn resume_part(
    target: &Arc<TargetState>,
    entry: &Entry,
    parent: Arc<OwnedFd>,
    names: HiddenNames,
    part: OwnedFd,
    journal: Journal,
) -> Result<PartFile> {
    let id = file_id(&part).context(entry.path.as_bytes(), "inspect its part file")?;
    let is_current = journal.header().is_current(id);
    let file = PartFile::over(target, entry, parent, names, part, journal);
    let mut state = file.lock();
    let state_ref = &mut *state;
    let is_proven = is_current && state_ref.writer.is_as_we_left_it();
    let journal = state_ref.journal.as_mut().expect("it was just put there");
    let (have, root) = (&mut state_ref.have, &mut state_ref.root);
    let (holes, unproven) = (&mut state_ref.unhashed_holes, &mut state_ref.unproven);
    let earlier = &mut state_ref.earlier;
    let knows_zeros = entry.tree().knows_zeros();
    let replayed = journal.replay(|record| {
        let (chunks, cv) = match record {
            JournalEntry::Chunk { index, cv } => (index..index + 1, Some(cv)),
            JournalEntry::Hole { first, count } => (first..first + count, None),
            JournalEntry::Earlier { offset, len } => {
                earlier.insert(offset..offset + len);
                return true;
            }
        };
        if !is_proven {
            unproven.insert(chunks);
            return true;
        }
        match cv {
            Some(cv) => root.set(chunks.start, cv),
            None if knows_zeros => root.set_zeros(chunks.clone(), entry.size()),
            None => holes.insert(chunks.clone()),
        }
        have.insert(chunks);
        true
    });
    drop(state);
    replayed.context(entry.path.as_bytes(), "read its journal")?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orphans::SearchedFolders;
    use crate::target::TargetDir;

    #[test]
    fn a_new_journal_has_its_name_even_if_orphans_are_removed_meanwhile() {
        const JOURNALS: usize = 5000;
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let path = RelPath::parse(b"f").unwrap();
        let parent = target.0.parent(&path).unwrap();
        let names = HiddenNames::of(path.file_name(), None);
        std::thread::scope(|scope| {
            let journals = scope.spawn(|| {
                for _ in 0..JOURNALS {
                    if let Some(journal) = new_journal(&target.0, &parent, &names, &path).unwrap() {
                        assert!(is_at(journal.as_fd(), parent.as_fd(), &names.journal));
                        unlinkat(&parent, &names.journal, AtFlags::empty()).unwrap();
                    }
                }
            });
            while !journals.is_finished() {
                SearchedFolders::default().search(b"", &parent);
            }
        });
    }
}
