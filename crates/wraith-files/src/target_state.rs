//! State shared by all files received into one target directory: directory handles, and data kept
//! until the end. [`crate::TargetDir`] is its public interface; part files hold a reference until
//! they are finished.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use crate::created_dirs::CreatedDirs;
use crate::dirs::Dirs;
use crate::error::{Context, Result};
use crate::journal_pool::JournalPool;
use crate::lock::lock;
use crate::modes::KeptModes;
use crate::orphans::SearchedFolders;
use crate::path::RelPath;
use crate::small_file::Linking;
use crate::stable_storage::StableStorage;
use crate::write::MetadataErrors;

/// State of one target directory; see the module documentation.
#[derive(Debug)]
pub(crate) struct TargetState {
    /// The root, open for reading, for calls that need that.
    pub(crate) root: OwnedFd,
    pub(crate) stable: StableStorage,
    pub(crate) modes: KeptModes,
    pub(crate) dirs: Dirs,
    pub(crate) linking: Linking,
    pub(crate) made: Mutex<CreatedDirs>,
    pub(crate) metadata_errors: Mutex<MetadataErrors>,
    pub(crate) journal_pool: JournalPool,
    pub(crate) searched: SearchedFolders,
    /// Largest size that a file is known to be able to have.
    pub(crate) size_tried: AtomicU64,
}

impl TargetState {
    /// Returns the parent directory of `path`, creating it if necessary.
    pub(crate) fn parent(&self, path: &RelPath) -> Result<Arc<OwnedFd>> {
        let parent = self.dirs.get_or_make(path.parent_bytes().unwrap_or_default());
        parent.context(path.as_bytes(), "open its folder")
    }

    pub(crate) fn add_metadata_errors(&self, metadata_errors: MetadataErrors) {
        if metadata_errors != MetadataErrors::default() {
            *lock(&self.metadata_errors) += metadata_errors;
        }
    }
}
