//! Checks the order of a manifest (SPEC §10.4): every path sorts after the previous one, and every
//! parent was listed before as a directory.
//!
//! The check keeps only the previous path and the directories above it. For a manifest of any
//! length, this proves that no path appears twice, and that nothing lies under a file, a link or an
//! unlisted directory.

use thiserror::Error;

/// How a path breaks the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutOfOrder {
    /// The path repeats, or belongs before the previous one.
    #[error("listed twice or out of order")]
    NotAbove,
    /// Its parent is not a directory of this manifest.
    #[error("its folder was not listed before it as a folder")]
    NoParent,
}

/// Checks paths one after the other. Keeps one path in memory.
#[derive(Debug, Default)]
pub struct ManifestOrder {
    previous: Vec<u8>,
    /// Lengths of the prefixes of `previous` that were listed as directories, ascending.
    dirs: Vec<usize>,
}

impl ManifestOrder {
    /// Accepts `path` if it follows the previous one. Its components must be joined by single
    /// slashes, as `RelPath` guarantees.
    pub fn check(&mut self, path: &[u8], is_dir: bool) -> Result<(), OutOfOrder> {
        if !self.previous.is_empty() && !is_above(path, &self.previous) {
            return Err(OutOfOrder::NotAbove);
        }
        let parent = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        while self.dirs.last().is_some_and(|&len| !is_inside(path, &self.previous[..len])) {
            self.dirs.pop();
        }
        if parent != self.dirs.last().copied().unwrap_or(0) {
            return Err(OutOfOrder::NoParent);
        }
        if is_dir {
            self.dirs.push(path.len());
        }
        self.previous.clear();
        self.previous.extend_from_slice(path);
        Ok(())
    }
}

/// Returns true if `path` lies under the directory `dir`.
fn is_inside(path: &[u8], dir: &[u8]) -> bool {
    path.len() > dir.len() && path[dir.len()] == b'/' && path.starts_with(dir)
}

/// Compares component by component, bytes as unsigned: a slash is below every other byte.
fn is_above(path: &[u8], other: &[u8]) -> bool {
    let key = |b: &u8| if *b == b'/' { 0 } else { u16::from(*b) + 1 };
    path.iter().map(key).gt(other.iter().map(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[(&str, bool)]) -> Result<(), OutOfOrder> {
        let mut order = ManifestOrder::default();
        entries.iter().try_for_each(|(path, is_dir)| order.check(path.as_bytes(), *is_dir))
    }
    const DIR: bool = true;
    const FILE: bool = false;

    #[test]
    fn a_tree_in_walk_order_passes() {
        let tree = [
            ("a", DIR),
            ("a/b", DIR),
            ("a/b/c", FILE),
            ("a/b.txt", FILE),
            ("a/c", DIR),
            ("a/c/d", FILE),
            ("a-b", FILE),
            ("b", FILE),
        ];
        assert_eq!(check(&tree), Ok(()));
    }

    #[test]
    fn a_path_cannot_come_twice() {
        assert_eq!(check(&[("a", FILE), ("a", FILE)]), Err(OutOfOrder::NotAbove));
        assert_eq!(check(&[("a", DIR), ("a/x", FILE), ("a", FILE)]), Err(OutOfOrder::NotAbove));
        assert_eq!(check(&[("b", FILE), ("a", FILE)]), Err(OutOfOrder::NotAbove));
    }

    #[test]
    fn nothing_lies_under_a_file_or_an_unlisted_folder() {
        assert_eq!(check(&[("a", FILE), ("a/b", FILE)]), Err(OutOfOrder::NoParent));
        assert_eq!(check(&[("a/b", FILE)]), Err(OutOfOrder::NoParent));
        assert_eq!(check(&[("a", DIR), ("a/b/c", FILE)]), Err(OutOfOrder::NoParent));
        assert_eq!(
            check(&[("a", DIR), ("a/b", DIR), ("a/c", FILE), ("a/c/d", FILE)]),
            Err(OutOfOrder::NoParent)
        );
        assert_eq!(check(&[("a", DIR), ("ab/c", FILE)]), Err(OutOfOrder::NoParent));
    }
}
