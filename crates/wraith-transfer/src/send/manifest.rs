//! The manifest at the sender: walks the tree, numbers the entries, announces them to the plan, and
//! streams them (SPEC §10.4).
//!
//! The walk is not kept: the plan bounds the memory for any size of the tree. Entries that exceed
//! the limits of the offer or would break the order of the manifest are skipped and reported.

use std::sync::mpsc::Sender;

use bytes::Bytes;
use wraith_files::{Kind, Tree, WalkEntry};
use wraith_transport::SendStream;

use super::announced::Announced;
use super::offered::Offered;
use super::options::SendOptions;
use super::peer::Peer;
use super::pushes::{PushSelection, ToPush};
use super::survey::walk;
use crate::error::TransferError;
use crate::limits::{ENTRIES_MAX, ENTRY_BYTES_MAX};
use crate::manifest_order::ManifestOrder;
use crate::message::Offer;
use crate::offer_limits::OfferLimits;

/// Bytes of manifest written at once, at first. A distant receiver can thus start on a few entries
/// early.
const BATCH_BYTES_FIRST: usize = 1024;

/// Bytes of manifest written at once, later.
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Walks the tree and streams it. Sends the files to push to `chosen`.
pub(super) fn write(
    peer: &Peer<'_>,
    offered: &Offered<'_>,
    options: &SendOptions,
    (offer, stream): (&Offer, SendStream),
    choice: PushSelection,
    chosen: Sender<ToPush>,
) -> Result<(), TransferError> {
    let mut writer = ManifestWriter {
        peer,
        offered,
        stream,
        order: ManifestOrder::default(),
        limits: OfferLimits::of(offer),
        hasher: blake3::Hasher::new(),
        entries: 0,
        bytes: Vec::new(),
        announced: Vec::new(),
        to_push: Some((choice, chosen)),
        flush_at: BATCH_BYTES_FIRST,
    };
    let cancelled = options.cancel.clone();
    for item in walk(&options.paths)?.stop_when(move || cancelled.is_cancelled()) {
        match item {
            Ok(found) => writer.add(found)?,
            Err(skipped) => {
                offered.leave_out(&skipped.path, &skipped.what(), skipped.is_special());
            }
        }
        if peer.session.is_over() {
            return Ok(());
        }
    }
    if peer.session.is_over() { Ok(()) } else { writer.finish() }
}

struct ManifestWriter<'a> {
    peer: &'a Peer<'a>,
    offered: &'a Offered<'a>,
    stream: SendStream,
    order: ManifestOrder,
    limits: OfferLimits,
    hasher: blake3::Hasher,
    entries: u64,
    /// Encoded entries that are not written yet.
    bytes: Vec<u8>,
    /// The entries in `bytes`.
    announced: Vec<Announced>,
    /// Selection of the files to push, and the channel to the worker that sends them. `None` once
    /// the first entries are written.
    to_push: Option<(PushSelection, Sender<ToPush>)>,
    flush_at: usize,
}

impl ManifestWriter<'_> {
    fn add(&mut self, mut found: WalkEntry) -> Result<(), TransferError> {
        if let Kind::File { sparse: Some(tree), .. } = &mut found.entry.kind
            && !self.peer.position_free
        {
            *tree = Tree::Blake3;
        }
        let entry = &found.entry;
        let is_dir = matches!(entry.kind, Kind::Dir);
        if self.entries >= ENTRIES_MAX || !self.limits.admit(entry.size()) {
            self.offered.leave_out(
                &entry.path.display(),
                &"appeared after the offer was made",
                false,
            );
            return Ok(());
        }
        if let Err(error) = self.order.check(entry.path.as_bytes(), is_dir) {
            self.offered.leave_out(&entry.path.display(), &error, false);
            return Ok(());
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        entry.encode(&mut self.bytes);
        let len = self.bytes.len() - start - 4;
        debug_assert!(len <= ENTRY_BYTES_MAX);
        self.bytes[start..start + 4].copy_from_slice(&(len as u32).to_be_bytes());
        self.hasher.update(&self.bytes[start..]);
        let number = self.entries as u32;
        self.offered.listed(number, entry);
        let announced = Announced { found };
        if let Some((choice, _)) = &mut self.to_push {
            choice.consider(number, &announced);
        }
        self.announced.push(announced);
        self.entries += 1;
        if self.bytes.len() >= self.flush_at {
            self.flush_at = (2 * self.flush_at).min(BATCH_BYTES_MAX);
            return self.flush();
        }
        Ok(())
    }

    /// Announces the buffered entries to the plan, then sends them to the receiver.
    fn flush(&mut self) -> Result<(), TransferError> {
        let session = self.peer.session;
        if !self.offered.serving.announce(std::mem::take(&mut self.announced)) {
            return Ok(());
        }
        if let Some((choice, chosen)) = self.to_push.take() {
            // If the session is over, the receiving worker is gone.
            let _ = chosen.send(choice.into_files());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let written = session.wait(self.stream.write_chunks([bytes]));
        written.map_err(|error| session.write_failed(error))
    }

    fn finish(mut self) -> Result<(), TransferError> {
        let hash = *self.hasher.finalize().as_bytes();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&self.entries.to_be_bytes());
        self.bytes.extend_from_slice(&hash);
        self.bytes.extend_from_slice(&self.offered.left_out().to_be_bytes());
        // Set before the trailer is written: the receipt may arrive right after it.
        self.offered.serving.with(|serving| serving.end_manifest(hash));
        self.flush()?;
        let finished = self.stream.finish();
        finished.map_err(|error| self.peer.session.write_failed(error))
    }
}
