//! What would happen to each entry of an offer under a conflict policy: what a dry run and a list say.

use std::collections::HashSet;

use wraith_files::{Entry, Kind, OnConflict, RelPath};

use super::placement::{Fate, Placement};
use super::preview::{Conflicts, Preview, PreviewOutcome, Previewed};

/// What would happen to one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned<'a> {
    /// The entry, as it is offered.
    pub entry: &'a Entry,
    /// What would be done.
    pub action: Action,
    /// Where it would be found then; of what is skipped, where it would have been.
    pub path: RelPath,
}

/// What would be done about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is made.
    New,
    /// A part from an earlier connection is continued.
    Continue,
    /// It is here already, as far as size and time tell (or a folder is).
    Same,
    /// A file of its size is here. If that has other content, the conflict policy decides.
    Compare,
    /// It replaces what has its name.
    Overwrite,
    /// It gets another name.
    Rename,
    /// It is left out.
    Skip,
}

impl Preview {
    /// What would happen to every entry that was looked at.
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

/// Goes through the entries in their order.
struct Planner<'a> {
    conflicts: &'a Conflicts,
    placement: Placement,
    /// A folder that would take the place of something else: nothing is below it yet.
    fresh: Option<RelPath>,
    /// Names that folders before this one would get.
    taken: HashSet<RelPath>,
}

impl Planner<'_> {
    fn plan<'e>(&mut self, previewed: &'e Previewed) -> Planned<'e> {
        let (entry, offered) = (&previewed.entry, &previewed.entry.path);
        // A path that gets too long is told when it is received.
        let path = match self.placement.of(offered) {
            Ok(Fate::Goes(path)) => path,
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
            PreviewOutcome::SameSize if self.policy(offered) == OnConflict::Skip => Action::Skip,
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
            Action::Skip if is_folder => self.placement.set(offered.clone(), Fate::Skipped),
            Action::Rename if is_folder => {
                self.taken.insert(path.clone());
                self.placement.set(offered.clone(), Fate::Goes(path.clone()));
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

    /// Where nothing is replaced, whatever the policy.
    fn renamed(&self, offered: &RelPath) -> Action {
        if self.policy(offered) == OnConflict::Skip { Action::Skip } else { Action::Rename }
    }
}
