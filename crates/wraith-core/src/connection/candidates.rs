//! Candidate addresses (frame CANDIDATES, SPEC §5) and exported secrets (SPEC §3.5). Two peers need
//! both to find another path.
//!
//! Invariant: only the newest list of the peer is kept, at most [`CANDIDATES_MAX`] addresses. The
//! list is reported at most once per round of events, so a peer that changes it in every packet
//! costs no memory.

use std::net::SocketAddr;
use std::sync::Arc;

use wraith_crypto::{Wiped, kdf};

use super::Connection;
use crate::event::Event;
use crate::frame::{CANDIDATES_MAX, CandidatesFrame, FrameWriter, SentFrame, SentFrames};
use crate::punch::is_target;

/// Derives secrets shared by both sides of a connection. Wiped when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Exporter(Arc<Wiped<[u8; 32]>>);

impl Exporter {
    /// Returns 32 bytes that only the two sides can compute, from the same `context`.
    #[must_use]
    pub fn secret(&self, context: &[u8]) -> [u8; 32] {
        kdf::keyed(&self.0, context)
    }
}

#[derive(Debug, Default)]
pub(super) struct Candidates {
    ours: Vec<SocketAddr>,
    sequence: u64,
    /// This side's list is to be sent.
    pub(super) due: bool,
    peers: Vec<SocketAddr>,
    peers_sequence: Option<u64>,
    /// The peer's list has changed and has not been reported yet.
    news: bool,
}

impl Connection {
    /// Sends the peer further addresses of this side, the first 16 of `addresses`. They replace the
    /// previous list.
    pub fn set_candidates(&mut self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let candidates = &mut self.candidates;
        candidates.ours = addresses.into_iter().take(CANDIDATES_MAX).collect();
        candidates.sequence += 1;
        candidates.due = true;
    }

    /// Returns the further addresses that the peer claims for itself. They are unverified.
    pub fn peer_candidates(&self) -> &[SocketAddr] {
        &self.candidates.peers
    }

    /// Returns 32 bytes that only the two sides of this connection can compute, from the same
    /// `context`. Returns `None` before [`Event::Connected`].
    pub fn export_secret(&self, context: &[u8]) -> Option<[u8; 32]> {
        self.exporter.as_ref().map(|exporter| exporter.secret(context))
    }

    /// Returns the source of [`Self::export_secret`].
    pub fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// Cold: runs only when the list changes or was lost.
    #[cold]
    pub(super) fn write_candidates(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) {
        let Candidates { ours, sequence, due, .. } = &mut self.candidates;
        if out.candidates(*sequence, ours) {
            sent.push(SentFrame::Candidates(*sequence));
            *due = false;
        }
    }

    pub(super) fn on_candidates_lost(&mut self, sequence: u64) {
        self.candidates.due |= sequence == self.candidates.sequence;
    }

    pub(super) fn on_candidates(&mut self, frame: &CandidatesFrame<'_>) {
        let candidates = &mut self.candidates;
        if candidates.peers_sequence.is_some_and(|newest| newest >= frame.sequence) {
            return;
        }
        candidates.peers_sequence = Some(frame.sequence);
        let addresses: Vec<_> = frame.addresses().filter(|address| is_target(*address)).collect();
        if addresses != candidates.peers {
            candidates.peers = addresses;
            candidates.news = true;
        }
    }

    pub(super) fn poll_candidates(&mut self) -> Option<Event> {
        let news = std::mem::take(&mut self.candidates.news);
        news.then(|| Event::PeerCandidates(self.candidates.peers.clone()))
    }

    pub(super) fn set_exporter(&mut self, exporter: &[u8; 32]) {
        let mut wiped = Wiped::new([0; 32]);
        wiped.copy_from_slice(exporter);
        self.exporter = Some(Exporter(Arc::new(wiped)));
    }
}
