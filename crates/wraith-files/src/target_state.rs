//! What everything that is received into one target directory shares: the handles of its directories, and what is kept until the
//! end. [`crate::TargetDir`] is the door to it; part files hold on to it until they are finished.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use crate::created_dirs::CreatedDirs;
use crate::dirs::Dirs;
use crate::error::{Context, Result};
use crate::journal_pool::JournalPool;
use crate::lock::lock;
use crate::modes::KeptModes;
use crate::path::RelPath;
use crate::small_file::Linking;
use crate::stable_storage::StableStorage;
use crate::write::MetadataErrors;

/// See the module.
#[derive(Debug)]
pub(crate) struct TargetState {
    /// The root, open for reading, for calls that want that.
    pub(crate) root: OwnedFd,
    pub(crate) stable: StableStorage,
    pub(crate) modes: KeptModes,
    pub(crate) dirs: Dirs,
    pub(crate) linking: Linking,
    pub(crate) made: Mutex<CreatedDirs>,
    pub(crate) metadata_errors: Mutex<MetadataErrors>,
    pub(crate) journal_pool: JournalPool,
}

impl TargetState {
    /// The directory `path` is in; made if it is missing.
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
