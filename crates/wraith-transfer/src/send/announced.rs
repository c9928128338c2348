//! An entry of the manifest, as workers see it.

use wraith_files::{Kind, Tree, WalkEntry};

use super::plan::Planned;
use crate::roots::FileId;

/// An announced entry, with the data that workers need to send it.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) found: WalkEntry,
}

impl Announced {
    /// Returns the path in the manifest, escaped for a terminal.
    pub(crate) fn shown(&self) -> impl std::fmt::Display + '_ {
        self.found.entry.path.display()
    }

    /// Returns the identity of a listed file.
    pub(super) fn file_id(&self) -> FileId<'_> {
        let path = self.found.entry.path.as_bytes();
        FileId { entry: path, path, tree: self.tree(), stamp: self.found.stamp() }
    }

    pub(crate) fn name(&self) -> String {
        self.shown().to_string()
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.found.entry.is_sparse()
    }
}

impl Planned for Announced {
    fn file_bytes(&self) -> Option<u64> {
        match self.found.entry.kind {
            Kind::File { size, .. } => Some(size),
            _ => None,
        }
    }

    fn tree(&self) -> Tree {
        self.found.entry.tree()
    }

    fn path_bytes(&self) -> usize {
        self.found.entry.path.as_bytes().len()
    }
}
