//! Walks the offered tree, for the counts of an offer and for its manifest.

use std::path::PathBuf;

use wraith_files::{Walk, WalkSummary};

use super::source::StreamSource;
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::role::Role;

/// Walks the tree for the counts of an offer.
pub(super) fn survey(paths: &[PathBuf], cancel: &Cancel) -> Result<WalkSummary, TransferError> {
    let cancelled = cancel.clone();
    let mut walk = walk(paths)?.stop_when(move || cancelled.is_cancelled());
    walk.by_ref().for_each(drop);
    if cancel.is_cancelled() {
        return Err(TransferError::Cancelled { role: Role::Sender });
    }
    Ok(*walk.summary())
}

/// Starts a walk of the tree.
pub(super) fn walk(paths: &[PathBuf]) -> Result<Walk, TransferError> {
    Walk::new(paths).map_err(|error| TransferError::Other { what: format!("cannot send {error}") })
}

/// Returns the counts for the offer of a byte stream.
pub(super) fn summary_of(source: &StreamSource) -> WalkSummary {
    let bytes = source.size().unwrap_or(0);
    WalkSummary { files: 1, bytes, largest: bytes, ..WalkSummary::default() }
}
