//! Random sizes of the first packets, and random moments of MTU probes (SPEC §7). Fixed ones would
//! identify the protocol, although every byte looks random.
//!
//! Invariant: the cost is bounded by [`DRAWN_PACKETS`] packets of each side.

use std::ops::RangeInclusive;

use rand_core::Rng;

use super::Connection;
use crate::frame::FrameWriter;
use crate::mtud::INITIAL_JITTER;

/// Number of first packets of each side whose sizes are drawn, because those of the frames would
/// identify the protocol.
const DRAWN_PACKETS: u64 = 20;
/// A full packet among them is smaller by up to a quarter of the path MTU. This is the divisor.
const DRAWN_CUT_DIVISOR: usize = 4;
/// Any other packet among them gets up to this many bytes of PADDING if it is ack-eliciting.
const DRAWN_PADDING_MAX: usize = 512;
/// The same for packets of ACKs only. On a path back with a hundredth of the rate, more would delay
/// them by half a second.
const DRAWN_ACK_PADDING_MAX: usize = 64;
/// Most ack-eliciting packets before the first MTU probe. It is below the initial window, so large
/// packets follow after one round trip.
const PACKETS_BEFORE_PROBE_MAX: u64 = 8;
/// Range of ack-eliciting packets between two probes. The pacer delays data by a probe's size; data in
/// between keeps the delays apart.
const PACKETS_BETWEEN_PROBES: RangeInclusive<u64> = 2..=9;

impl Connection {
    /// Returns true while the sizes of packets are drawn.
    pub(super) fn has_drawn_sizes(&self) -> bool {
        self.stats.packets_sent < DRAWN_PACKETS
    }

    /// Draws the number of packets before the next MTU probe.
    pub(super) fn draw_next_mtu_probe(&mut self) {
        let (first, last) = (PACKETS_BETWEEN_PROBES.start(), PACKETS_BETWEEN_PROBES.end());
        self.packets_before_mtu_probe = first + self.rng.next_u64() % (last - first + 1);
    }

    /// Draws the size of a full packet among the first ones. Frames that cannot be split get the
    /// whole MTU.
    #[cold]
    pub(super) fn draw_full_size(&mut self, mtu: usize) -> usize {
        if !self.datagrams.is_empty() || self.ratchet.due {
            return mtu;
        }
        mtu - self.rng.next_u32() as usize % (mtu / DRAWN_CUT_DIVISOR)
    }

    /// Pads one of the first packets. Returns the bytes of PADDING.
    #[cold]
    pub(super) fn pad(&mut self, out: &mut FrameWriter<'_>, eliciting: bool) -> usize {
        let most = if eliciting { DRAWN_PADDING_MAX } else { DRAWN_ACK_PADDING_MAX };
        let room = out.remaining().min(most);
        let bytes = self.rng.next_u32() as usize % (room + 1);
        out.padding(bytes);
        bytes
    }
}

/// Draws the initial size of full packets, if the search may raise it.
pub(super) fn draw_initial_mtu(initial: u16, max: u16, rng: &mut impl Rng) -> u16 {
    let cut = if max > initial { rng.next_u32() % (u32::from(INITIAL_JITTER) + 1) } else { 0 };
    initial.saturating_sub(cut as u16)
}

/// Draws the number of packets before the first MTU probe.
pub(super) fn draw_first_mtu_probe(rng: &mut impl Rng) -> u64 {
    1 + rng.next_u64() % PACKETS_BEFORE_PROBE_MAX
}
