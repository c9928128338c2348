//! A complete and verified file that does not have its final name yet.
//!
//! Before it gets the name, its content is flushed to disk, together with many other files. A name
//! that reaches the disk before its content would show an empty or cut file after a power cut.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::part_file::PartFile;
use crate::path::RelPath;
use crate::small_file::UnnamedFile;
use crate::stable_storage::SyncScope;

/// A complete file without its name; see the module documentation. If dropped, a small file is
/// removed and a part stays for resumption.
#[derive(Debug)]
pub struct UncommittedFile(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    Small(UnnamedFile),
    Part(Arc<PartFile>),
}

impl UncommittedFile {
    /// Wraps a file that was created whole.
    pub(crate) fn small(file: UnnamedFile) -> Self {
        Self(Content::Small(file))
    }

    /// Wraps a part whose root is proven ([`PartFile::seal`]).
    pub fn part(part: Arc<PartFile>) -> Self {
        Self(Content::Part(part))
    }

    /// Returns the final path of the file, unless that path turns out to be taken.
    pub fn path(&self) -> &RelPath {
        match &self.0 {
            Content::Small(file) => file.path(),
            Content::Part(part) => part.path(),
        }
    }

    /// Returns the number of descriptors that it holds.
    pub fn descriptors(&self) -> usize {
        match &self.0 {
            Content::Small(file) => file.descriptors(),
            // The part, its journal, and its folder.
            Content::Part(_) => 3,
        }
    }

    pub(crate) fn sync_scope(&self) -> SyncScope {
        match &self.0 {
            Content::Small(_) => SyncScope::Batch,
            // A part is written over a long time, with other batches in between.
            Content::Part(_) => SyncScope::BatchAndFile,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Content::Small(file) => file.fd(),
            Content::Part(part) => part.fd(),
        }
    }
}
