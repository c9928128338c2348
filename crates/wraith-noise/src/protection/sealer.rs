//! The sending direction of packet protection.

use wraith_crypto::{MaskKey, PacketKey, Suite, TAG_BYTES};
use zeroize::ZeroizeOnDrop;

use super::phase::Phases;
use super::{CID_BYTES, HEADER_BYTES, KEY_PACKETS_MAX, PACKET_BYTES_MIN};
use crate::DirectionKeys;
use crate::packet_number;

/// Seals the packets sent on one connection.
///
/// Invariant: packet numbers only grow, so no nonce is used twice under a key. Every call checks
/// this, because the damage of a repeated nonce cannot be undone.
#[derive(Debug)]
pub struct Sealer {
    key: PacketKey,
    phases: Phases,
    phase: bool,
    pub(super) packets_in_phase: u64,
    /// The least unused packet number.
    next_pn: u64,
    pn_mask: MaskKey,
    cid: [u8; CID_BYTES],
    cid_mask: MaskKey,
}

/// Every key in it wipes itself.
impl ZeroizeOnDrop for Sealer {}

impl Sealer {
    /// Creates the sealer for this side's direction of a connection.
    #[must_use]
    pub fn new(suite: Suite, keys: &DirectionKeys) -> Self {
        let mut phases = Phases::new(suite, &keys.secret);
        Self {
            key: phases.next_key(),
            phases,
            phase: false,
            packets_in_phase: 0,
            next_pn: 0,
            pn_mask: MaskKey::new(keys.pn_mask),
            cid: keys.cid,
            cid_mask: MaskKey::new(keys.cid_mask),
        }
    }

    /// Seals a packet in place. `datagram` is 12 bytes of room for the header ‖ frames ‖ 16 bytes
    /// of room for the tag. The call fills in the header, encrypts the frames, writes the tag and
    /// masks the header.
    ///
    /// # Panics
    /// If `datagram` is shorter than [`PACKET_BYTES_MIN`], if `pn` is not larger than every earlier
    /// one, or if the key has sealed [`KEY_PACKETS_MAX`] packets. All three are errors of the
    /// caller, never of the peer.
    pub fn seal(&mut self, pn: u64, datagram: &mut [u8]) {
        self.seal_from(pn, datagram, &[]);
    }

    /// Seals like [`Self::seal`], with the last frames read from `tail` without a prior copy. The
    /// room for them, in front of the tag's room in `datagram`, may hold any bytes.
    ///
    /// # Panics
    /// Like [`Self::seal`], and if `tail` is longer than that room.
    pub fn seal_from(&mut self, pn: u64, datagram: &mut [u8], tail: &[u8]) {
        assert!(datagram.len() >= PACKET_BYTES_MIN, "a packet has frames");
        assert!(pn >= self.next_pn, "packet number {pn} was used already");
        assert!(self.packets_in_phase < KEY_PACKETS_MAX, "the key has reached its limit");
        self.next_pn = pn + 1;
        self.packets_in_phase += 1;

        let mut header = [0; HEADER_BYTES];
        header[..CID_BYTES].copy_from_slice(&self.cid);
        header[CID_BYTES..].copy_from_slice(&packet_number::truncate(pn, self.phase));

        let (front, sealed) = datagram.split_at_mut(HEADER_BYTES);
        let (frames, tag_room) = sealed.split_at_mut(sealed.len() - TAG_BYTES);
        let filled = frames.len() - tail.len();
        let tag = self.key.seal_from(pn, &header, frames, filled, tail);
        tag_room.copy_from_slice(&tag);

        let (cid_mask, pn_mask) = MaskKey::mask_pair(&self.cid_mask, &self.pn_mask, &tag);
        for (i, byte) in front.iter_mut().enumerate() {
            *byte = header[i] ^ if i < CID_BYTES { cid_mask[i] } else { pn_mask[i] };
        }
    }

    /// Returns the number of packets sealed with the current key.
    #[must_use]
    pub const fn packets_in_phase(&self) -> u64 {
        self.packets_in_phase
    }

    /// Moves to the next key phase. Allowed once a packet of the current phase has been
    /// acknowledged (SPEC §4.5).
    pub fn advance_phase(&mut self) {
        self.key = self.phases.next_key();
        self.phase = !self.phase;
        self.packets_in_phase = 0;
    }

    /// Mixes `agreed` into the keys of the phase that the next [`Self::advance_phase`] starts (SPEC
    /// §4.6).
    pub fn ratchet(&mut self, agreed: &[u8; 32]) {
        self.phases.skip();
        self.phases.mix(agreed);
    }

    /// Returns the key phase bit of packets sealed now.
    #[must_use]
    pub const fn phase(&self) -> bool {
        self.phase
    }
}
