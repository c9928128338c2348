//! The names that the target folders had before this transfer. Only an object under such a name may
//! be replaced, or be a reason to skip an entry.
//!
//! The names of a manifest differ, but a file system may treat some of them as one: it ignores case
//! or Unicode normalisation, cuts long names, or has a second, short name for each file. A name that
//! is taken may then belong to an earlier entry of the same transfer.
//!
//! Each folder is listed once, when its entry arrives and before anything is placed in it. A listed
//! name belongs to the first entry that claims it. An entry without a listed name of its own never
//! replaces an object: if its name is taken, it gets another one. No rule of a file system needs to
//! be known for that. An incomplete list only costs a renaming.
//!
//! Invariant: at most one list per folder above the current entry is kept, because a manifest lists
//! its tree depth first.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use wraith_files::{RelPath, TargetDir};

/// Maximum number of listed names, of 17 bytes each. Objects under further names are not replaced.
const NAMES_MAX: usize = 4 << 20;

/// Right of an entry to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The name existed before this transfer and belongs to this entry: the conflict policy applies.
    Own,
    /// An object there belongs to another entry of this transfer.
    Foreign,
    /// The name was not listed. An object there belongs to another entry, or is listed under a name
    /// that nobody has claimed yet.
    Unlisted,
}

/// Names of the folders above the current entry; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct EarlierNames {
    hasher: RandomState,
    /// Deepest folder last.
    folders: Vec<(Vec<u8>, FolderNames)>,
}

#[derive(Debug)]
enum FolderNames {
    /// Everything in this folder is of this transfer, or is treated so.
    Ours,
    Listed(ListedNames),
}

#[derive(Debug, Default)]
struct ListedNames {
    /// Hashes of the folded name and of the name, sorted.
    names: Vec<(u64, u64)>,
    /// For each name, true if an entry has it.
    claimed: Vec<bool>,
    /// Folded names of the folders that this transfer has made here.
    made: HashSet<u64>,
}

impl EarlierNames {
    /// Lists the folder at `path`, which existed before this transfer. The empty path is the target.
    pub(super) fn list(&mut self, target: &TargetDir, path: &[u8]) {
        let room =
            NAMES_MAX.saturating_sub(self.folders.iter().map(|(_, names)| names.len()).sum());
        let mut names = Vec::new();
        let hasher = &self.hasher;
        // If the folder cannot be listed completely, nothing is replaced under the names that lack.
        let _ = target.list(path, |name| {
            if names.len() < room {
                names.push((hasher.hash_one(folded(name)), hasher.hash_one(name)));
            }
        });
        names.sort_unstable();
        let claimed = vec![false; names.len()];
        let listed = ListedNames { names, claimed, made: HashSet::new() };
        self.folders.push((path.to_vec(), FolderNames::Listed(listed)));
    }

    /// Enters the folder at `path`, which this transfer made or shares with another of its folders.
    pub(super) fn enter_own(&mut self, path: &RelPath) {
        let hash = self.hasher.hash_one(folded(path.file_name()));
        if let FolderNames::Listed(listed) = self.parent_of(path) {
            listed.made.insert(hash);
        }
        self.folders.push((path.as_bytes().to_vec(), FolderNames::Ours));
    }

    /// Claims the name of the next entry. `is_taken` returns true if an object has the name.
    pub(super) fn claim(&mut self, path: &RelPath, is_taken: impl FnOnce() -> bool) -> Claim {
        let name = path.file_name();
        let (fold, exact) = (self.hasher.hash_one(folded(name)), self.hasher.hash_one(name));
        match self.parent_of(path) {
            FolderNames::Ours => Claim::Foreign,
            FolderNames::Listed(listed) => listed.claim((fold, exact), is_taken),
        }
    }

    /// Returns the names of the parent of `path`, and leaves the folders that do not contain it.
    fn parent_of(&mut self, path: &RelPath) -> &mut FolderNames {
        let parent = path.parent_bytes().unwrap_or_default();
        while self.folders.pop_if(|(folder, _)| folder != parent).is_some() {}
        if self.folders.is_empty() {
            self.folders.push((parent.to_vec(), FolderNames::Ours));
        }
        &mut self.folders.last_mut().expect("it is not empty").1
    }
}

impl FolderNames {
    fn len(&self) -> usize {
        match self {
            Self::Ours => 0,
            Self::Listed(listed) => listed.names.len(),
        }
    }
}

impl ListedNames {
    fn claim(&mut self, (fold, exact): (u64, u64), is_taken: impl FnOnce() -> bool) -> Claim {
        let begin = self.names.partition_point(|(other, _)| *other < fold);
        let alike = self.names[begin..].iter().take_while(|(other, _)| *other == fold).count();
        let exact = self.names[begin..begin + alike].binary_search(&(fold, exact)).ok();
        let at = match exact {
            Some(at) => begin + at,
            // The name may be another spelling of a listed one.
            None if alike == 1 && is_taken() => begin,
            None if self.made.contains(&fold) => return Claim::Foreign,
            None => return Claim::Unlisted,
        };
        match std::mem::replace(&mut self.claimed[at], true) {
            false => Claim::Own,
            true => Claim::Foreign,
        }
    }
}

/// Returns a form of the name that ignores case.
fn folded(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn path(path: &str) -> RelPath {
        RelPath::parse(path.as_bytes()).unwrap()
    }

    fn claim(names: &mut EarlierNames, name: &str, is_taken: bool) -> Claim {
        names.claim(&path(name), || is_taken)
    }

    #[test]
    fn a_listed_name_belongs_to_the_first_entry_that_claims_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["Photo", "film", "FILM"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let target = TargetDir::open(dir.path()).unwrap();
        let mut names = EarlierNames::default();
        names.list(&target, b"");
        assert_eq!(
            claim(&mut names, "photo", false),
            Claim::Unlisted,
            "the target tells them apart"
        );
        assert_eq!(claim(&mut names, "PHOTO", true), Claim::Own, "the target takes both for one");
        assert_eq!(claim(&mut names, "Photo", true), Claim::Foreign);
        assert_eq!(claim(&mut names, "PHOTO~1", true), Claim::Unlisted);
        assert_eq!(claim(&mut names, "film", true), Claim::Own);
        assert_eq!(claim(&mut names, "FILM", true), Claim::Own);
        assert_eq!(claim(&mut names, "Film", true), Claim::Unlisted, "which of both is unknown");
    }

    #[test]
    fn nothing_in_a_folder_of_this_transfer_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let mut names = EarlierNames::default();
        names.list(&target, b"");
        assert_eq!(claim(&mut names, "a", true), Claim::Own);
        names.list(&target, b"a");
        assert_eq!(claim(&mut names, "a/b", true), Claim::Own);
        names.enter_own(&path("a/b"));
        assert_eq!(claim(&mut names, "a/b/c", true), Claim::Foreign);
        assert_eq!(claim(&mut names, "a/new", false), Claim::Unlisted);
        names.enter_own(&path("a/new"));
        assert_eq!(claim(&mut names, "a/NEW", true), Claim::Foreign, "another spelling of it");
        assert_eq!(claim(&mut names, "b", true), Claim::Unlisted);
        assert_eq!(names.folders.len(), 1);
    }
}
