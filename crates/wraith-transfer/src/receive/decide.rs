//! What to do about one manifest entry: compare it with the disk, and want it, want a part of it, or not.

use wraith_core::RangeSet;
use wraith_files::{Entry, Existing, Kind, OnConflict, chunk_count};

use super::Receiving;
use super::incoming::Due;
use super::marks::FileIdentity;
use crate::error::TransferError;
use crate::events::{Event, FileStatus};

/// What is done about a file.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It is wanted.
    Want(Due),
    /// It is here from an earlier connection, or left alone.
    Pass(FileStatus),
}
