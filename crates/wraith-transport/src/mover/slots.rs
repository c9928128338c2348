//! The memory datagrams are received into, and opened in.

use wraith_core::{Ecn, PathAddr};

/// Bytes of one receive buffer: any datagram, or any run of them that the kernel merged. Smaller ones would cut runs short.
pub const RECV_BUFFER_BYTES: usize = 64 * 1024;
/// Receive buffers of one batch: full ones stay within the L2 cache.
pub(crate) const SLOTS: usize = 8;

/// The receive buffers of an I/O thread, each for one datagram or a run of them from one peer.
#[derive(Debug)]
pub struct RecvSlots {
    pub(super) bytes: Box<[u8]>,
    pub(super) received: [Option<Received>; SLOTS],
}

/// What lies in one receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Who sent it.
    pub from: PathAddr,
    /// ECN codepoint of all of it, if the network told.
    pub ecn: Option<Ecn>,
    /// Bytes in total.
    pub len: usize,
    /// Size of every datagram but the last, which may be shorter.
    pub stride: usize,
}

impl RecvSlots {
    /// Empty buffers.
    #[expect(clippy::new_without_default, reason = "half a mebibyte is not made by default")]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; SLOTS * RECV_BUFFER_BYTES].into_boxed_slice(),
            received: [None; SLOTS],
        }
    }

    /// Number of buffers.
    pub fn len(&self) -> usize {
        SLOTS
    }

    /// Never: there are always [`len`](Self::len) buffers, whatever lies in them.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The memory of buffer `slot`, [`RECV_BUFFER_BYTES`] long.
    pub fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.bytes[slot * RECV_BUFFER_BYTES..][..RECV_BUFFER_BYTES]
    }

    /// Says what was received into buffer `slot`. Slots are filled in order, from 0.
    pub fn set(&mut self, slot: usize, received: Received) {
        debug_assert!(received.len <= RECV_BUFFER_BYTES);
        self.received[slot] = Some(received);
    }

    /// What was received into buffer `slot`.
    pub fn received(&self, slot: usize) -> Option<Received> {
        self.received[slot]
    }

    /// The first `filled` buffers: sender, ECN codepoint, and the datagrams one by one.
    pub fn filled(
        &mut self,
        filled: usize,
    ) -> impl Iterator<Item = (PathAddr, Option<Ecn>, impl Iterator<Item = &mut [u8]>)> {
        let buffers = self.bytes.chunks_exact_mut(RECV_BUFFER_BYTES);
        self.received.iter().take(filled).flatten().zip(buffers).map(|(received, buffer)| {
            let Received { from, ecn, len, stride } = *received;
            (from, ecn, buffer[..len].chunks_mut(stride.max(1)))
        })
    }
}
