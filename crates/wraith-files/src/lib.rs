//! Files, as they are read, verified and written: everything of a transfer that touches a disk. Knows no network.
//!
//! Sending: [`Walk`] lists trees as [`Entry`]s; [`Found::open`] gives a [`SourceFile`] that is read chunk by chunk.
//! Receiving: `TargetDir` is the only door to the target directory. `TargetDir::write_small` makes small files whole or
//! not at all; a `PartFile` grows chunk by chunk, survives `kill -9`, and gets its name when its root is proven.
//!
//! What holds whatever a peer sends, whoever changes the tree meanwhile, and wherever the process is killed:
//! nothing outside the target directory is created, changed or read ([`RelPath`], and handles opened beneath the root);
//! no content stands under its final name that was not verified ([`chunk_cv`], [`RootBuilder`]); what was verified and
//! recorded is never fetched again.
#![forbid(unsafe_code)]

mod beneath;
mod chunks;
mod entry;
mod error;
mod hash;
mod path;
mod source;
mod walk;

pub use chunks::ChunkRanges;
pub use entry::{
    BadEntry, ENTRY_BYTES_MAX, Entry, FILE_BYTES_MAX, Kind, LINK_TARGET_BYTES_MAX, MODE_BITS, Mtime,
};
pub use error::{Error, Result};
pub use hash::{
    CHUNK_BYTES, Cv, Root, RootBuilder, chunk_count, chunk_cv, chunk_len, pieces_root, small_root,
    zero_chunk_cv,
};
pub use path::{
    COMPONENT_BYTES_MAX, DEPTH_MAX, PATH_BYTES_MAX, RelPath, UnsafeName, UnsafeReason, shown,
};
pub use source::{Run, Runs, SourceFile, Stamp};
pub use walk::{Found, SkipReason, Skipped, Walk, WalkSummary, root_name};
