//! Receive buffers. Datagrams are decrypted in place, within these buffers.

use wraith_core::{Ecn, PathAddr};

/// Bytes of one receive buffer: any datagram, or any run merged by the kernel. A smaller buffer
/// would truncate runs.
pub const RECV_BUFFER_BYTES: usize = 64 * 1024;
/// Receive buffers of one batch: together they fit into the L2 cache.
pub(crate) const SLOTS: usize = 8;

/// The receive buffers of an I/O thread, each for one datagram or a run of datagrams from one peer.
#[derive(Debug)]
pub struct RecvSlots {
    pub(super) bytes: Box<[u8]>,
    pub(super) received: [Option<Received>; SLOTS],
}

/// Content of one receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Sender.
    pub from: PathAddr,
    /// ECN codepoint of all datagrams, if the network reported it.
    pub ecn: Option<Ecn>,
    /// Total number of bytes.
    pub len: usize,
    /// Size of every datagram but the last, which may be shorter.
    pub stride: usize,
}

impl RecvSlots {
    /// Creates empty buffers.
    #[expect(clippy::new_without_default, reason = "half a mebibyte is not made by default")]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; SLOTS * RECV_BUFFER_BYTES].into_boxed_slice(),
            received: [None; SLOTS],
        }
    }

    /// Returns the number of buffers.
    pub fn len(&self) -> usize {
        SLOTS
    }

    /// Always false: there are always [`len`](Self::len) buffers, filled or not.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the memory of buffer `slot`, [`RECV_BUFFER_BYTES`] long.
    pub fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.bytes[slot * RECV_BUFFER_BYTES..][..RECV_BUFFER_BYTES]
    }

    /// Sets the content of buffer `slot`. Slots are filled in order, from 0.
    pub fn set(&mut self, slot: usize, received: Received) {
        debug_assert!(received.len <= RECV_BUFFER_BYTES);
        self.received[slot] = Some(received);
    }

    /// Returns the content of buffer `slot`.
    pub fn received(&self, slot: usize) -> Option<Received> {
        self.received[slot]
    }

    /// Iterates over the first `filled` buffers: sender, ECN codepoint, and the single datagrams.
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
