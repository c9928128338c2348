//! Objects of the target that entries of this transfer rely on, so that no other entry replaces
//! them: replacement names after a conflict, and earlier objects that have an entry's content
//! already.
//!
//! Objects are recognised by size and times, because inode numbers follow from the path on some file
//! systems. If another object matches by chance, an entry only gets another name.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use wraith_files::{Mtime, Stamp};

/// Hashes of the size and times of the objects that no entry may replace.
#[derive(Debug, Default)]
pub(super) struct ProtectedObjects {
    hasher: RandomState,
    objects: HashSet<u64>,
}

impl ProtectedObjects {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn protect(&mut self, stamp: &Stamp) {
        let hash = self.hash(stamp);
        self.objects.insert(hash);
    }

    pub(super) fn contains(&self, stamp: &Stamp) -> bool {
        self.objects.contains(&self.hash(stamp))
    }

    fn hash(&self, stamp: &Stamp) -> u64 {
        let time = |time: Mtime| (time.s, time.ns);
        self.hasher.hash_one((stamp.size, time(stamp.mtime), time(stamp.ctime)))
    }
}
