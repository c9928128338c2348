//! Predicts the action for each entry of an offer under a conflict policy, for dry runs and
//! listings.

use std::collections::HashSet;

use wraith_files::{Entry, Kind, OnConflict, RelPath};

use super::placement::{FolderPlacement, Placement};
use super::preview::{Conflicts, Preview, PreviewOutcome, Previewed};

/// Predicted action for one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned<'a> {
    /// The entry as offered.
    pub entry: &'a Entry,
    /// The action.
    pub action: Action,
    /// The resulting path; for a skipped entry, the path it would have had.
    pub path: RelPath,
}

/// Action for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create it.
    New,
    /// Continue a part from an earlier connection.
    Continue,
    /// Keep it: an entry of the same size and time is present (or a folder).
    Same,
    /// Compare it: a file of its size is present. If the content differs, the conflict policy
    /// decides.
    Compare,
    /// Replace the object that has its name.
    Overwrite,
    /// Give it another name.
    Rename,
    /// Skip it.
    Skip,
}

impl Preview {
    /// Returns the predicted action for every previewed entry.
    pub fn planned(&self, conflicts: &Conflicts) -> Vec<Planned<'_>> {
        let mut planner = Planner {
            conflicts,
            placement: Placement::default(),
            fresh: None,
            taken: HashSet::new(),
        };
        self.entries.iter().map(|previewed| planner.plan(previewed)).collect()
    }
}

/// Processes the entries in their order.
struct Planner<'a> {
    conflicts: &'a Conflicts,
    placement: Placement,
    /// A folder that would replace another object: nothing is below it yet.
    fresh: Option<RelPath>,
    /// Names that earlier folders would get.
    taken: HashSet<RelPath>,
}

impl Planner<'_> {
    fn plan<'e>(&mut self, previewed: &'e Previewed) -> Planned<'e> {
        let (entry, offered) = (&previewed.entry, &previewed.entry.path);
        // A path that becomes too long is reported when it is received.
        let path = match self.placement.of(offered) {
            Ok(FolderPlacement::At(path)) => path,
            _ => return Planned { entry, action: Action::Skip, path: offered.clone() },
        };
        let starts =
            |folder: &RelPath| offered.components().zip(folder.components()).all(|(a, b)| a == b);
        if self
            .fresh
            .as_ref()
            .is_some_and(|folder| folder.depth() < offered.depth() && starts(folder))
        {
            return Planned { entry, action: Action::New, path };
        }
        let mut action = match previewed.outcome {
            PreviewOutcome::New => Action::New,
            PreviewOutcome::Continues(_) => Action::Continue,
            PreviewOutcome::Same => Action::Same,
            PreviewOutcome::SameSize => Action::Compare,
            PreviewOutcome::Differs => self.conflicting(offered),
            PreviewOutcome::Irreplaceable => self.renamed(offered),
        };
        let (mut copy, is_folder) = (previewed.copy.clone(), entry.kind == Kind::Dir);
        if self.taken.contains(&path) {
            action = self.renamed(offered);
            copy = (1..).map_while(|n| path.copy(n).ok()).find(|copy| !self.taken.contains(copy));
        }
        let path = match (action, copy) {
            (Action::Rename, Some(copy)) => copy,
            _ => path,
        };
        match action {
            Action::Skip if is_folder => {
                self.placement.set(offered.clone(), FolderPlacement::Skipped)
            }
            Action::Rename if is_folder => {
                self.taken.insert(path.clone());
                self.placement.set(offered.clone(), FolderPlacement::At(path.clone()));
            }
            Action::Overwrite if is_folder => self.fresh = Some(offered.clone()),
            _ => {}
        }
        Planned { entry, action, path }
    }

    fn policy(&self, offered: &RelPath) -> OnConflict {
        self.conflicts.at(offered)
    }

    fn conflicting(&self, offered: &RelPath) -> Action {
        match self.policy(offered) {
            OnConflict::Skip => Action::Skip,
            OnConflict::Overwrite => Action::Overwrite,
            OnConflict::Rename => Action::Rename,
        }
    }

    /// Returns the action where nothing may be replaced, under any policy.
    fn renamed(&self, offered: &RelPath) -> Action {
        if self.policy(offered) == OnConflict::Skip { Action::Skip } else { Action::Rename }
    }
}
