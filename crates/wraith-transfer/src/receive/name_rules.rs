//! Which name an entry gets: the conflict policy of its path, and the objects that no entry may
//! replace.

use std::sync::Mutex;

use wraith_files::{Committed, Error, Existing, OnConflict, Outcome, RelPath, TargetDir};

use super::placement::Placed;
use super::preview::Conflicts;
use super::protected_objects::ProtectedObjects;
use crate::lock::lock;

/// Rules for the names of entries; see the module documentation.
pub(super) struct NameRules {
    conflicts: Conflicts,
    /// True if an object may be replaced.
    may_overwrite: bool,
    /// Objects that no entry may replace.
    protected: Mutex<ProtectedObjects>,
}

impl NameRules {
    pub(super) fn new(conflicts: Conflicts) -> Self {
        let may_overwrite = conflicts.may(OnConflict::Overwrite);
        Self { conflicts, may_overwrite, protected: Mutex::default() }
    }

    /// Returns true if an object may be replaced, or be a reason to skip an entry.
    pub(super) fn depend_on_earlier_names(&self) -> bool {
        self.may_overwrite || self.conflicts.may(OnConflict::Skip)
    }

    /// Returns the conflict policy of an entry. Without a name of its own, an entry replaces nothing
    /// and is not skipped: the object there may be another entry.
    pub(super) fn policy(&self, placed: &Placed) -> OnConflict {
        if placed.may_replace { self.conflicts.at(&placed.offered) } else { OnConflict::Rename }
    }

    /// Names an entry by its conflict policy, but never replaces an object of another entry.
    pub(super) fn place(
        &self,
        target: &TargetDir,
        placed: &Placed,
        name: impl FnOnce(OnConflict) -> Result<Committed, Error>,
    ) -> Result<Committed, Error> {
        if !self.may_overwrite {
            return name(self.policy(placed));
        }
        // Held during the naming: no other thread may replace the object before it is protected.
        let mut protected = lock(&self.protected);
        let policy = match self.policy(placed) {
            OnConflict::Overwrite if is_protected(target, &protected, &placed.entry.path) => {
                OnConflict::Rename
            }
            policy => policy,
        };
        let committed = name(policy)?;
        let is_own = committed.path == placed.entry.path
            && (placed.may_replace || committed.outcome != Outcome::AlreadyHere);
        if let Some(stamp) = committed.stamp.filter(|_| !is_own) {
            protected.protect(&stamp);
        }
        Ok(committed)
    }

    /// Calls `replace` unless an entry relies on the object at `path`.
    pub(super) fn replace<T>(
        &self,
        target: &TargetDir,
        path: &RelPath,
        replace: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let protected = lock(&self.protected);
        if is_protected(target, &protected, path) { Ok(None) } else { replace().map(Some) }
    }

    /// Protects the object at `path`, which an entry may turn out to rely on.
    pub(super) fn protect(&self, target: &TargetDir, path: &RelPath) {
        if self.may_overwrite {
            // Held during the inspection: no other thread may replace the object meanwhile.
            let mut protected = lock(&self.protected);
            if let Ok(Some(there)) = target.existing(path) {
                protected.protect(&there.stamp);
            }
        }
    }

    /// Returns why an entry got another name instead of its own.
    pub(super) fn reason_of_rename(&self, placed: &Placed) -> &'static str {
        match (placed.may_replace, self.conflicts.at(&placed.offered)) {
            (true, OnConflict::Overwrite) => {
                "a folder that is not empty, or a file that this transfer needs, has this name"
            }
            (false, OnConflict::Overwrite | OnConflict::Skip) => {
                "the name is taken by an object that did not have exactly this name before"
            }
            _ => "the name is taken",
        }
    }
}

/// Returns true if an entry relies on the object at `path`.
fn is_protected(target: &TargetDir, protected: &ProtectedObjects, path: &RelPath) -> bool {
    let is_protected = |there: Existing| protected.contains(&there.stamp);
    !protected.is_empty()
        && target.existing(path).is_ok_and(|there| there.is_some_and(is_protected))
}
