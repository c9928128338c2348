//! The part of an earlier version of a file. If the sender's file changed between two runs, the part
//! of the first run stays beside the new one, as an old copy: content that is still equal is not
//! fetched again.
//!
//! Invariant: there is at most one for each sender, transfer and path. Its content is only compared
//! and never trusted, so it needs no journal.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, fstatvfs, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::entry::Entry;
use crate::error::{Context, Result};
use crate::hash::chunk_count;
use crate::hidden_names::{HiddenNames, previous_part_name};
use crate::journal::{Journal, JournalEntry};
use crate::part_file::{is_own, is_own_file, open_part};
use crate::path::RelPath;
use crate::source::{SourceFile, Stamp};
use crate::target::{Existing, ExistingKind};
use crate::target_state::TargetState;

/// A part with fewer chunks (1 MiB) is not kept.
const CHUNKS_MIN: u64 = 4;

/// The name of the previous part of the file at `path`.
fn name_of(path: &RelPath, identity: &[u8; 32]) -> Vec<u8> {
    previous_part_name(path.file_name(), *identity.first_chunk().expect("an identity has 32 bytes"))
}

/// Makes the part under `names` the previous part of `entry`, if it holds enough and the disk has
/// space for both. The caller has locked its `journal`, and removes what is still there.
pub(crate) fn keep(
    target: &TargetState,
    parent: &OwnedFd,
    names: &HiddenNames,
    journal: &mut Journal,
    entry: &Entry,
) -> Result<()> {
    let header = journal.header();
    let (name, chunks) = (name_of(&entry.path, &header.identity), chunk_count(header.size));
    let mut held = 0;
    let counted = journal.replay(|record| {
        held += u64::from(matches!(record, JournalEntry::Chunk { .. }));
        true
    });
    counted.context(entry.path.as_bytes(), "read its journal")?;
    // An earlier one was the source of this part, so it holds more than a part that has just begun.
    let has_earlier = statat(parent, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let is_worth_it = held >= CHUNKS_MIN && (!has_earlier || held >= chunks / 2);
    let has_space = fstatvfs(&target.root)
        .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) > entry.size());
    if is_worth_it && has_space && open_part(parent, &names.part).is_ok_and(|part| is_own(&part)) {
        // Without it, everything is fetched again.
        let _ = renameat(parent, &names.part, parent, &name);
    }
    Ok(())
}

/// See [`crate::TargetDir::previous_part`].
pub(crate) fn find(target: &TargetState, path: &RelPath, identity: &[u8; 32]) -> Option<Existing> {
    let parent = target.dirs.get(path.parent_bytes().unwrap_or_default()).ok()?;
    let stat = statat(parent, name_of(path, identity), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let stamp = Stamp::of(&stat);
    is_own_file(&stat).then_some(Existing { kind: ExistingKind::File, stamp })
}

/// See [`crate::TargetDir::open_previous_part`].
pub(crate) fn open(
    target: &TargetState,
    path: &RelPath,
    identity: &[u8; 32],
    existing: &Existing,
) -> Result<SourceFile> {
    let name = name_of(path, identity);
    let hidden = match path.parent_bytes() {
        Some(parent) => [parent, &name].join(&b'/'),
        None => name,
    };
    SourceFile::open(target.dirs.beneath(), &hidden, path, &existing.stamp)
}

/// See [`crate::TargetDir::remove_previous_part`].
pub(crate) fn remove(target: &TargetState, path: &RelPath, identity: &[u8; 32]) -> Result<()> {
    let parent = target.dirs.get(path.parent_bytes().unwrap_or_default());
    let name = name_of(path, identity);
    match parent.and_then(|parent| unlinkat(parent.as_fd(), &name, AtFlags::empty())) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).context(path.as_bytes(), "remove the part of its earlier version"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::entry::{Kind, Mtime};
    use crate::hash::CHUNK_BYTES;
    use crate::target::TargetDir;
    use crate::tree::Tree;

    const KEY: [u8; 32] = [1; 32];
    const CHUNKS: u64 = 9;

    /// A version of the file `f`.
    fn version(seconds: i64) -> Entry {
        Entry {
            path: RelPath::parse(b"f").unwrap(),
            kind: Kind::File { size: CHUNKS * CHUNK_BYTES as u64, sparse: None },
            mode: 0o644,
            mtime: Mtime { s: seconds, ns: 0 },
        }
    }

    /// Leaves a part of a version with this many chunks.
    fn leave_part(target: &TargetDir, seconds: i64, chunks: u64) {
        let part = target.open_or_resume(&version(seconds), &KEY).unwrap();
        let bytes = vec![seconds as u8; CHUNK_BYTES];
        for index in 0..chunks {
            let cv = Tree::Blake3.chunk_cv(index, &[&bytes]);
            part.write_chunk(index, &[&bytes], cv).unwrap();
        }
    }

    /// Returns the first byte of the previous part.
    fn kept(target: &TargetDir, seconds: i64) -> Option<u8> {
        let entry = version(seconds);
        assert!(target.resume_or_keep(&entry, &KEY).unwrap().is_none());
        let previous = target.previous_part(&entry, &KEY)?;
        let mut first = [0];
        let file = target.open_previous_part(&entry, &KEY, &previous).unwrap();
        file.read_at(0, &mut first).unwrap();
        Some(first[0])
    }

    fn names(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn the_part_of_an_earlier_version_is_kept_if_it_is_worth_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        leave_part(&target, 1, CHUNKS_MIN - 1);
        assert_eq!(kept(&target, 2), None);
        leave_part(&target, 2, CHUNKS_MIN);
        assert_eq!(kept(&target, 3), Some(2));
        // One that has just begun does not replace it, one that has got far does.
        leave_part(&target, 3, CHUNKS / 2 - 1);
        assert_eq!(kept(&target, 4), Some(2));
        leave_part(&target, 4, CHUNKS / 2);
        assert_eq!(kept(&target, 5), Some(4));
        assert_eq!(names(dir.path()), 1);
        assert!(target.previous_part(&version(5), &[2; 32]).is_none(), "of another sender");
        target.remove_previous_part(&version(5), &KEY).unwrap();
        assert_eq!(names(dir.path()), 0);
    }

    #[test]
    fn a_part_with_another_name_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        leave_part(&target, 1, CHUNKS);
        fs::hard_link(dir.path().join(".f.wraith-part"), dir.path().join("mine")).unwrap();
        assert_eq!(kept(&target, 2), None);
        assert_eq!(names(dir.path()), 1);
    }

    #[test]
    fn a_sweep_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        leave_part(&target, 1, CHUNKS);
        assert_eq!(kept(&target, 2), Some(1));
        target.sweep(&version(2), &KEY).unwrap();
        assert_eq!(names(dir.path()), 0);
    }
}
