//! A file that is complete and verified, and has no final name yet.
//!
//! Between the two its content is written through to the disk, of many files together: a name that is on the disk before its
//! content would show an empty or cut file after a power cut.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::part_file::PartFile;
use crate::path::RelPath;
use crate::small_file::UnnamedFile;
use crate::stable_storage::Asked;

/// See the module. Dropped without a name, a small file is gone and a part stays to be resumed.
#[derive(Debug)]
pub struct Unnamed(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    Small(UnnamedFile),
    Part(Arc<PartFile>),
}

impl Unnamed {
    /// A file that was made whole.
    pub(crate) fn small(file: UnnamedFile) -> Self {
        Self(Content::Small(file))
    }

    /// A part whose root is proven ([`PartFile::seal`]).
    pub fn part(part: Arc<PartFile>) -> Self {
        Self(Content::Part(part))
    }

    /// Its final path, unless that turns out to be taken.
    pub fn path(&self) -> &RelPath {
        match &self.0 {
            Content::Small(file) => file.path(),
            Content::Part(part) => part.path(),
        }
    }

    pub(crate) fn asked(&self) -> Asked {
        match &self.0 {
            Content::Small(_) => Asked::Together,
            // It was written over a long time, with other batches in between.
            Content::Part(_) => Asked::Itself,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Content::Small(file) => file.fd(),
            Content::Part(part) => part.fd(),
        }
    }
}
