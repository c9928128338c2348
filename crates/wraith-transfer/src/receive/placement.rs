//! Where the entries of a manifest go: under their own names, or below the other name that a folder of theirs got, or nowhere.
//!
//! Invariant: a manifest goes through its tree depth first, so what is remembered is one place for each folder above the entry at
//! hand, however many folders have other names.

use wraith_files::{Entry, RelPath, UnsafeName};

/// What becomes of a folder, and of everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is here, under this name.
    Goes(RelPath),
    /// Something else has its name, which the policy leaves alone.
    Skipped,
    /// Nobody has accepted it.
    Refused,
}

/// An entry on its way to its place.
#[derive(Debug)]
pub(crate) struct Placed {
    /// With the path under which it comes here, unless that is taken.
    pub(crate) entry: Entry,
    /// Its path in the manifest.
    pub(crate) offered: RelPath,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Folders above the entry at hand that do not simply stand under their own names, the deepest last.
    above: Vec<(RelPath, Fate)>,
}

impl Placement {
    /// Where the next entry of the manifest goes. An error if its path there would be too long.
    pub(super) fn of(&mut self, offered: &RelPath) -> Result<Fate, UnsafeName> {
        while let Some((folder, fate)) = self.above.last() {
            let Some(rest) = below(offered, folder) else {
                self.above.pop();
                continue;
            };
            return match fate {
                Fate::Goes(place) => place.join(rest).map(Fate::Goes),
                nowhere => Ok(nowhere.clone()),
            };
        }
        Ok(Fate::Goes(offered.clone()))
    }

    /// What becomes of the folder that was asked about last, and so of all below it.
    pub(super) fn set(&mut self, folder: RelPath, fate: Fate) {
        self.above.push((folder, fate));
    }
}

/// What is left of `path` below `folder`.
fn below<'p>(path: &'p RelPath, folder: &RelPath) -> Option<&'p [u8]> {
    path.as_bytes().strip_prefix(folder.as_bytes())?.strip_prefix(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> RelPath {
        RelPath::parse(path.as_bytes()).unwrap()
    }

    #[test]
    fn everything_below_a_folder_goes_where_it_goes_and_nothing_else_does() {
        let mut placement = Placement::default();
        let goes = |to: &str| Ok(Fate::Goes(path(to)));
        assert_eq!(placement.of(&path("a")), goes("a"));
        placement.set(path("a"), Fate::Goes(path("a (1)")));
        assert_eq!(placement.of(&path("a/b")), goes("a (1)/b"));
        placement.set(path("a/b"), Fate::Goes(path("a (1)/b (1)")));
        assert_eq!(placement.of(&path("a/b/c")), goes("a (1)/b (1)/c"));
        assert_eq!(placement.of(&path("a/bc")), goes("a (1)/bc"));
        placement.set(path("a/bc"), Fate::Skipped);
        assert_eq!(placement.of(&path("a/bc/d/e")), Ok(Fate::Skipped));
        assert_eq!(placement.of(&path("ab")), goes("ab"));
        assert!(placement.above.is_empty());
    }

    #[test]
    fn a_path_that_another_name_makes_too_long_is_told() {
        let mut placement = Placement::default();
        placement.set(path("a"), Fate::Goes(path("a (1)")));
        let long = format!("a/{}", ["x".repeat(255).as_str(); 16].join("/"));
        assert!(placement.of(&path(&long[..4095])).is_err());
    }
}
