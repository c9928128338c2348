//! What the two sides of a connection tell each other for another path: their addresses (CANDIDATES, SPEC §5), and a secret that
//! both can compute and nobody else (SPEC §3.5).
//!
//! Invariant: of the peer only its newest list is kept, [`CANDIDATES_MAX`] addresses, and told at most once in each round of events,
//! so a peer that changes it in every packet costs no memory.

use std::net::SocketAddr;
use std::sync::Arc;

use wraith_crypto::{Wiped, kdf};

use super::Connection;
use crate::event::Event;
use crate::frame::{CANDIDATES_MAX, CandidatesFrame, FrameWriter, SentFrame, SentFrames};
use crate::punch::is_target;

/// Makes secrets that both sides of a connection share. Wiped when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Exporter(Arc<Wiped<[u8; 32]>>);

impl Exporter {
    /// 32 bytes that both sides compute from the same `context`, and nobody else can.
    #[must_use]
    pub fn secret(&self, context: &[u8]) -> [u8; 32] {
        kdf::keyed(&self.0, context)
    }
}

#[derive(Debug, Default)]
pub(super) struct Candidates {
    ours: Vec<SocketAddr>,
    sequence: u64,
    /// Ours are to be sent.
    pub(super) due: bool,
    peers: Vec<SocketAddr>,
    peers_sequence: Option<u64>,
    /// The application has not been told of the peer's.
    news: bool,
}

impl Connection {
    /// Tells the peer where else we may be reached, the first 16 of `addresses`; takes the place of what was told before.
    pub fn set_candidates(&mut self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let candidates = &mut self.candidates;
        candidates.ours = addresses.into_iter().take(CANDIDATES_MAX).collect();
        candidates.sequence += 1;
        candidates.due = true;
    }

    /// Where else the peer says it may be reached. It is the peer's word: nothing is known about them.
    pub fn peer_candidates(&self) -> &[SocketAddr] {
        &self.candidates.peers
    }

    /// 32 bytes that both sides of this connection compute from the same `context`, and nobody else can. `None` before
    /// [`Event::Connected`].
    pub fn export_secret(&self, context: &[u8]) -> Option<[u8; 32]> {
        self.exporter.as_ref().map(|exporter| exporter.secret(context))
    }

    /// What [`Self::export_secret`] is made with.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// Cold: when the list changes, or was lost.
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
