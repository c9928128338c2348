//! The names that the target folders had before this transfer. Only an object under such a name may
//! be replaced, or be a reason to skip an entry.
//!
//! The names of a manifest differ, but a file system may treat some of them as one: it ignores case
//! or Unicode normalisation, cuts long names, or has a second, short name for each file. A name that
//! is taken may then belong to an earlier entry of the same transfer.
//!
//! Each folder is listed once, when its entry arrives and before anything is placed in it. An entry
//! whose exact name is not in the list never replaces an object: if its name is taken, it gets
//! another one. No rule of a file system needs to be known for that.
//!
//! Invariants:
//!
//! - A list has no name of an object that this transfer placed. An entry whose folder is not
//!   listed shares that folder with another entry only if the other entry has entered it before.
//! - At most one list per folder above the current entry is kept, because a manifest lists its tree
//!   depth first.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use wraith_files::{RelPath, TargetDir};

/// Maximum number of listed names, of 8 bytes each. Objects under further names are not replaced.
const NAMES_MAX: usize = 8 << 20;

/// Right of an entry to the object under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The name existed before this transfer: the conflict policy applies.
    Earlier,
    /// An object there belongs to another entry of this transfer.
    Foreign,
    /// The name was not listed. An object there belongs to another entry, or is listed under a name
    /// of an entry that may still come.
    Unlisted,
}

/// Names that each folder above the current entry had before the transfer.
#[derive(Debug, Default)]
pub(super) struct EarlierNames {
    hasher: RandomState,
    /// Deepest folder last.
    folders: Vec<(Vec<u8>, FolderNames)>,
}

#[derive(Debug)]
enum FolderNames {
    /// Nothing in this folder may be replaced. This transfer made it, or two entries share it.
    Own,
    Listed(ListedNames),
}

#[derive(Debug)]
struct ListedNames {
    /// Hashes of the names, sorted.
    names: Vec<u64>,
    /// Device and inode of the folders in here that entries have.
    entered: HashSet<(u64, u64)>,
}

impl EarlierNames {
    /// Lists the target.
    pub(super) fn of(target: &TargetDir) -> Self {
        let mut names = Self::default();
        names.list(target, b"");
        names
    }

    /// Enters the folder at `path`, the name of the last claim or a name beside it. Call it before
    /// anything is placed there. `is_earlier` is true if the folder existed before this transfer and
    /// no other entry has it.
    pub(super) fn enter(&mut self, target: &TargetDir, path: &RelPath, is_earlier: bool) {
        let id = id_of(target, path);
        if let FolderNames::Listed(listed) = self.parent_of(path) {
            listed.entered.extend(id);
        }
        if is_earlier {
            self.list(target, path.as_bytes());
        } else {
            self.folders.push((path.as_bytes().to_vec(), FolderNames::Own));
        }
    }

    /// Returns the right of the next entry to the object under its name.
    pub(super) fn claim(&mut self, target: &TargetDir, path: &RelPath, is_folder: bool) -> Claim {
        let hash = self.hasher.hash_one(path.file_name());
        let FolderNames::Listed(listed) = self.parent_of(path) else { return Claim::Foreign };
        if listed.names.binary_search(&hash).is_ok() {
            return Claim::Earlier;
        }
        let is_entered = || id_of(target, path).is_some_and(|id| listed.entered.contains(&id));
        match is_folder && !listed.entered.is_empty() && is_entered() {
            true => Claim::Foreign,
            false => Claim::Unlisted,
        }
    }

    fn list(&mut self, target: &TargetDir, path: &[u8]) {
        let room =
            NAMES_MAX.saturating_sub(self.folders.iter().map(|(_, names)| names.len()).sum());
        let mut names = Vec::new();
        // If the folder cannot be listed completely, nothing is replaced under the missing names.
        let _ = target.list(path, |name| {
            if names.len() < room {
                names.push(self.hasher.hash_one(name));
            }
        });
        names.sort_unstable();
        let listed = ListedNames { names, entered: HashSet::new() };
        self.folders.push((path.to_vec(), FolderNames::Listed(listed)));
    }

    /// Returns the names of the parent of `path`, and leaves the folders that do not contain it.
    fn parent_of(&mut self, path: &RelPath) -> &mut FolderNames {
        let parent = path.parent_bytes().unwrap_or_default();
        while self.folders.pop_if(|(folder, _)| folder != parent).is_some() {}
        if self.folders.is_empty() {
            self.folders.push((parent.to_vec(), FolderNames::Own));
        }
        &mut self.folders.last_mut().expect("it is not empty").1
    }
}

impl FolderNames {
    fn len(&self) -> usize {
        match self {
            Self::Own => 0,
            Self::Listed(listed) => listed.names.len(),
        }
    }
}

/// Returns the device and inode of the object at `path`.
fn id_of(target: &TargetDir, path: &RelPath) -> Option<(u64, u64)> {
    let there = target.existing(path).ok().flatten()?;
    Some((there.stamp.dev, there.stamp.ino))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::placement::tests::path;
    use super::*;

    #[test]
    fn only_names_from_before_the_transfer_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/file"), "").unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let mut names = EarlierNames::of(&target);
        assert_eq!(names.claim(&target, &path("a"), true), Claim::Earlier);
        names.enter(&target, &path("a"), true);
        assert_eq!(names.claim(&target, &path("a/FILE"), false), Claim::Unlisted);
        assert_eq!(names.claim(&target, &path("a/b"), true), Claim::Earlier);
        names.enter(&target, &path("a/b"), true);
        fs::write(dir.path().join("a/b/placed"), "").unwrap();
        assert_eq!(names.claim(&target, &path("a/b/placed"), false), Claim::Unlisted);
        assert_eq!(names.claim(&target, &path("a/file"), false), Claim::Earlier);
        fs::create_dir(dir.path().join("a/new")).unwrap();
        assert_eq!(names.claim(&target, &path("a/new"), true), Claim::Unlisted);
        names.enter(&target, &path("a/new"), false);
        assert_eq!(names.claim(&target, &path("a/new/x"), false), Claim::Foreign);
        assert_eq!(names.claim(&target, &path("b"), false), Claim::Unlisted);
        assert_eq!(names.folders.len(), 1, "only folders above the entry are kept");
    }

    #[test]
    fn a_folder_is_shared_only_after_its_own_entry_has_listed_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("long name")).unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let mut names = EarlierNames::of(&target);
        // A renaming stands for the second name of one folder.
        fs::rename(dir.path().join("long name"), dir.path().join("other spelling")).unwrap();
        let twin = path("other spelling");
        assert_eq!(names.claim(&target, &twin, true), Claim::Unlisted);
        fs::rename(dir.path().join("other spelling"), dir.path().join("long name")).unwrap();
        assert_eq!(names.claim(&target, &path("long name"), true), Claim::Earlier);
        names.enter(&target, &path("long name"), true);
        fs::rename(dir.path().join("long name"), dir.path().join("other spelling")).unwrap();
        assert_eq!(names.claim(&target, &twin, true), Claim::Foreign);
    }
}
