//! Determines the path of each manifest entry: its own name, a path below a renamed folder, or no
//! path.
//!
//! Invariant: at most one placement per folder above the current entry is remembered, however many
//! folders are renamed. A manifest lists its tree depth first, so no others are needed.

use wraith_files::{Entry, RelPath, UnsafeName};

/// Placement of a folder and of everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FolderPlacement {
    /// The folder has this path.
    At(RelPath),
    /// Another object has its name, and the policy keeps the other object.
    Skipped,
    /// The user has not accepted it.
    Refused,
}

/// An entry with its path in the target.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The entry, with its path in the target unless that path is taken.
    pub(crate) entry: Entry,
    /// Its path in the manifest.
    pub(crate) offered: RelPath,
    /// True if the conflict policy applies to the object under this name.
    pub(crate) may_replace: bool,
}

/// Placements of folders; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Folders above the current entry that are not simply under their own names, deepest last.
    above: Vec<(RelPath, FolderPlacement)>,
}

impl Placement {
    /// Returns the placement of the next manifest entry. Fails if its path would be too long.
    pub(super) fn of(&mut self, offered: &RelPath) -> Result<FolderPlacement, UnsafeName> {
        while let Some((folder, fate)) = self.above.last() {
            let Some(rest) = below(offered, folder) else {
                self.above.pop();
                continue;
            };
            return match fate {
                FolderPlacement::At(place) => place.join(rest).map(FolderPlacement::At),
                nowhere => Ok(nowhere.clone()),
            };
        }
        Ok(FolderPlacement::At(offered.clone()))
    }

    /// Sets the placement of the folder passed last to [`Self::of`], and so of everything below it.
    pub(super) fn set(&mut self, folder: RelPath, fate: FolderPlacement) {
        self.above.push((folder, fate));
    }
}

/// Returns the part of `path` below `folder`.
fn below<'p>(path: &'p RelPath, folder: &RelPath) -> Option<&'p [u8]> {
    path.as_bytes().strip_prefix(folder.as_bytes())?.strip_prefix(b"/")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::receive) fn path(path: &str) -> RelPath {
        RelPath::parse(path.as_bytes()).unwrap()
    }

    #[test]
    fn everything_below_a_folder_goes_where_it_goes_and_nothing_else_does() {
        let mut placement = Placement::default();
        let goes = |to: &str| Ok(FolderPlacement::At(path(to)));
        assert_eq!(placement.of(&path("a")), goes("a"));
        placement.set(path("a"), FolderPlacement::At(path("a (1)")));
        assert_eq!(placement.of(&path("a/b")), goes("a (1)/b"));
        placement.set(path("a/b"), FolderPlacement::At(path("a (1)/b (1)")));
        assert_eq!(placement.of(&path("a/b/c")), goes("a (1)/b (1)/c"));
        assert_eq!(placement.of(&path("a/bc")), goes("a (1)/bc"));
        placement.set(path("a/bc"), FolderPlacement::Skipped);
        assert_eq!(placement.of(&path("a/bc/d/e")), Ok(FolderPlacement::Skipped));
        assert_eq!(placement.of(&path("ab")), goes("ab"));
        assert!(placement.above.is_empty());
    }

    #[test]
    fn a_path_that_a_rename_makes_too_long_is_reported() {
        let mut placement = Placement::default();
        placement.set(path("a"), FolderPlacement::At(path("a (1)")));
        let long = format!("a/{}", ["x".repeat(255).as_str(); 16].join("/"));
        assert!(placement.of(&path(&long[..4095])).is_err());
    }
}
