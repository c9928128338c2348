//! Disk access of a transfer: reads, verifies and writes files. This crate does no networking.
//!
//! - Sending: [`Walk`] lists trees as [`Entry`] values. [`WalkEntry::open`] returns a
//!   [`SourceFile`], which is read chunk by chunk.
//! - Receiving: All access to the target directory is through [`TargetDir`].
//!   [`TargetDir::write_small`] writes a small file whole or not at all. A [`PartFile`] grows chunk
//!   by chunk and survives `kill -9`. It gets its final name once its root, the hash of the whole
//!   file, is proven.
//!
//! Invariants, against any peer, any concurrent change of the tree, and a kill at any point:
//!
//! - Nothing outside the target directory is created, changed or read ([`RelPath`], and handles
//!   opened beneath the root).
//! - Unverified content never has its final name ([`Tree`], [`RootBuilder`]).
//! - A chunk that was verified and recorded is never fetched again.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use wraith_files::{CommitOptions, TargetDir, Walk, small_root};
//!
//! let target = TargetDir::open("inbox".as_ref())?;
//! for found in Walk::new(&["photos"])? {
//!     let found = found?;
//!     if found.entry.size() > 0 {
//!         let source = found.open()?;
//!         let mut content = vec![0; source.size() as usize];
//!         source.read_chunk(0, &mut content)?;
//!         println!("{:?}", small_root(&content));
//!         target.write_small(&found.entry, &[&content], CommitOptions::default())?;
//!     }
//! }
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod beneath;
mod change;
mod claim;
mod commit;
mod compare;
mod content_defined_chunking;
mod created_dirs;
mod delta_match;
mod descriptors;
mod dirs;
mod earlier_content;
mod entry;
mod error;
mod folder_token;
mod folders;
mod hash;
mod hidden_names;
mod interval_set;
mod journal;
mod journal_pool;
mod lock;
mod modes;
mod only_writer;
mod orphans;
mod own_file;
mod part_file;
mod path;
mod read;
mod recheck;
mod renew;
mod resume;
mod root_builder;
mod runs;
mod seal;
mod size_limit;
mod small_file;
mod source;
mod stable_storage;
mod stream;
mod target;
mod target_state;
mod tree;
mod uncommitted_file;
mod unfinished;
mod walk;
mod watch;
mod write;

pub use change::Change;
pub use commit::{CommitOptions, Committed, OnConflict, Outcome};
pub use content_defined_chunking::{
    Cutter, PIECE_AVERAGE_MAX, PIECE_AVERAGE_MIN, Piece, PieceHash, PieceSize, piece_hash,
};
pub use delta_match::{Assembler, MatchedPiece, NewPiece, OldPieces, unused};
pub use descriptors::descriptor_share;
pub use earlier_content::{EarlierContent, OldContent};
pub use entry::{
    BadEntry, ENTRY_BYTES_MAX, Entry, FILE_BYTES_MAX, Kind, LINK_TARGET_BYTES_MAX, MODE_BITS, Mtime,
};
pub use error::{Error, Result, plain};
pub use folders::FolderId;
pub use hash::{CHUNK_BYTES, Cv, Root, chunk_count, chunk_len, slices_root, small_root};
pub use interval_set::IntervalSet;
pub use journal::boot_id;
pub use part_file::PartFile;
pub use path::{
    COMPONENT_BYTES_MAX, DEPTH_MAX, PATH_BYTES_MAX, RelPath, UnsafeName, UnsafeReason, shown,
};
pub use root_builder::RootBuilder;
pub use runs::{Run, RunCursor, Runs, sparse_file_root};
pub use source::{SourceFile, Stamp};
pub use stream::StreamFile;
pub use target::{Existing, ExistingKind, TargetDir};
pub use tree::{POSITION_FREE_BYTES_MIN, Tree};
pub use uncommitted_file::UncommittedFile;
pub use unfinished::{UnfinishedFile, unfinished_files};
pub use walk::{SkipReason, Skipped, Walk, WalkEntry, WalkSummary, root_name, root_path};
pub use watch::FolderWatch;
pub use write::MetadataErrors;

/// The README example, compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
