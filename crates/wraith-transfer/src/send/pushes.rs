//! Small files sent along with the offer, before they are requested, to a receiver that accepts in
//! advance (SPEC §10.6).
//!
//! Invariant: a file is either pushed or sent as an answer to a Want, never both.

use std::collections::HashMap;

use wraith_files::{Root, WalkEntry};

use super::announced::Announced;
use super::plan::Planned;
use crate::limits::PUSH_BYTES_MAX;
use crate::record::{RECORD_BODY_BYTES_MAX, WHOLE_HEADER_BYTES};

/// Files to push, with their numbers in the manifest.
pub(super) type ToPush = Vec<(u32, WalkEntry)>;

/// Pushed files of a connection.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    /// Entries below this number are decided.
    decided: u64,
    /// Roots of the pushed files that are not decided.
    roots: HashMap<u32, Root>,
}

impl Pushes {
    /// Claims `entry`, which has this root, for a push. Returns false if the receiver has already
    /// decided about it.
    pub(super) fn claim(&mut self, entry: u32, root: Root) -> bool {
        let is_open = u64::from(entry) >= self.decided;
        if is_open {
            self.roots.insert(entry, root);
        }
        is_open
    }

    /// Returns the root of an undecided file that was pushed.
    pub(super) fn root_of(&self, entry: u32) -> Option<Root> {
        self.roots.get(&entry).copied()
    }

    /// Marks the entries below `upto` as decided.
    pub(super) fn decided(&mut self, upto: u64) {
        self.decided = upto;
        self.roots.retain(|&entry, _| u64::from(entry) >= upto);
    }
}

/// Selects the files to push while the manifest is written.
#[derive(Debug)]
pub(super) struct PushSelection {
    left: u64,
    files: ToPush,
}

impl PushSelection {
    /// Creates a selection for a receiver that accepts records of this many bytes.
    pub(super) fn new(asked: Option<u64>) -> Self {
        Self { left: asked.unwrap_or(0).min(PUSH_BYTES_MAX), files: Vec::new() }
    }

    pub(super) fn consider(&mut self, number: u32, announced: &Announced) {
        let Some(bytes) = announced.file_bytes() else { return };
        let record = bytes.saturating_add(WHOLE_HEADER_BYTES as u64);
        if bytes <= RECORD_BODY_BYTES_MAX as u64 && record <= self.left {
            self.left -= record;
            self.files.push((number, announced.found.clone()));
        }
    }

    pub(super) fn into_files(self) -> ToPush {
        self.files
    }
}
