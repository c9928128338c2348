//! The receiving direction of packet protection.

use wraith_crypto::{MaskKey, PacketKey, Suite, TAG_BYTES};
use zeroize::ZeroizeOnDrop;

use super::phase::Phases;
use super::{CID_BYTES, FORGERIES_MAX, HEADER_BYTES, PACKET_BYTES_MIN, PacketOpenError, sample};
use crate::DirectionKeys;
use crate::packet_number;
use crate::replay::ReplayWindow;

/// Description of an opened packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its packet number. No packet number is opened twice.
    pub pn: u64,
    /// Length of its frames, which begin at [`HEADER_BYTES`] of the datagram.
    pub payload_len: usize,
    /// Whether it is the first packet of a new key phase. The previous key is kept until
    /// [`Opener::forget_previous_phase`].
    pub new_phase: bool,
}

/// Opens the packets received on one connection.
///
/// Invariant: a packet whose tag does not verify changes nothing but the count of such packets.
#[derive(Debug)]
pub struct Opener {
    current: PacketKey,
    /// Derived ahead of time, so that the packet that starts a new phase costs no more than others.
    next: PacketKey,
    previous: Option<PacketKey>,
    phases: Phases,
    phase: bool,
    pn_mask: MaskKey,
    cid: [u8; CID_BYTES],
    cid_mask: MaskKey,
    replay: ReplayWindow,
    /// Packets with this connection's ID whose tag did not verify.
    pub(super) forgeries: u64,
}

/// Every key in it wipes itself.
impl ZeroizeOnDrop for Opener {}

impl Opener {
    /// Creates the opener for the peer's direction of a connection.
    #[must_use]
    pub fn new(suite: Suite, keys: &DirectionKeys) -> Self {
        let mut phases = Phases::new(suite, &keys.secret);
        Self {
            current: phases.next_key(),
            next: phases.next_key(),
            previous: None,
            phases,
            phase: false,
            pn_mask: MaskKey::new(keys.pn_mask),
            cid: keys.cid,
            cid_mask: MaskKey::new(keys.cid_mask),
            replay: ReplayWindow::new(),
            forgeries: 0,
        }
    }

    /// Returns whether `datagram` carries the masked connection ID of this direction. Costs one AES
    /// block. Only [`Self::open`] checks authenticity.
    #[must_use]
    pub fn has_connection_id(&self, datagram: &[u8]) -> bool {
        let (Some(masked), Some(sample)) = (datagram.first_chunk(), sample(datagram)) else {
            return false;
        };
        datagram.len() >= PACKET_BYTES_MIN
            && self.has_masked_cid(masked, &self.cid_mask.mask(sample))
    }

    /// Returns whether `masked` is this connection's ID under `mask`.
    fn has_masked_cid(&self, masked: &[u8; CID_BYTES], mask: &[u8; TAG_BYTES]) -> bool {
        let mask = u64::from_ne_bytes(*mask.first_chunk().expect("a mask has 16 bytes"));
        u64::from_ne_bytes(*masked) ^ mask == u64::from_ne_bytes(self.cid)
    }

    /// Opens the packet in `datagram`. On success its frames are `datagram[12..12 + payload_len]`,
    /// decrypted in place.
    ///
    /// # Errors
    /// [`PacketOpenError`] gives the reason, and the state in which `datagram` is left.
    pub fn open(&mut self, datagram: &mut [u8]) -> Result<Opened, PacketOpenError> {
        let (header, pn, phase) =
            self.read_header(datagram).ok_or(PacketOpenError::OtherConnection)?;
        if !self.replay.is_new(pn) || self.forgeries >= FORGERIES_MAX {
            return Err(PacketOpenError::Unauthentic);
        }
        let new_phase = phase != self.phase && pn >= self.replay.next();
        let key = if phase == self.phase {
            &self.current
        } else if new_phase {
            &self.next
        } else {
            self.previous.as_ref().ok_or(PacketOpenError::Unauthentic)?
        };
        if key.open(pn, &header, &mut datagram[HEADER_BYTES..]).is_err() {
            self.forgeries += 1;
            return Err(PacketOpenError::Unauthentic);
        }

        self.replay.insert(pn);
        if new_phase {
            self.advance_phase();
        }
        let payload_len = datagram.len() - HEADER_BYTES - TAG_BYTES;
        Ok(Opened { pn, payload_len, new_phase })
    }

    /// Returns the header without its protection, the packet number and the key phase. `None` if
    /// the datagram is not a packet of this connection.
    fn read_header(&self, datagram: &[u8]) -> Option<([u8; HEADER_BYTES], u64, bool)> {
        if datagram.len() < PACKET_BYTES_MIN {
            return None;
        }
        let (cid_mask, pn_mask) =
            MaskKey::mask_pair(&self.cid_mask, &self.pn_mask, sample(datagram)?);
        let mut header: [u8; HEADER_BYTES] = *datagram.first_chunk()?;
        if !self.has_masked_cid(header.first_chunk()?, &cid_mask) {
            return None;
        }
        header[..CID_BYTES].copy_from_slice(&self.cid);
        for i in CID_BYTES..HEADER_BYTES {
            header[i] ^= pn_mask[i];
        }
        let (pn, phase) = packet_number::expand(*header.last_chunk()?, self.replay.next());
        Some((header, pn, phase))
    }

    fn advance_phase(&mut self) {
        let next = self.phases.next_key();
        let current = std::mem::replace(&mut self.next, next);
        self.previous = Some(std::mem::replace(&mut self.current, current));
        self.phase = !self.phase;
    }

    /// Mixes `agreed` into the keys of the peer's next phase (SPEC §4.6). Packets of the current
    /// phase still open; the next phase as derived before is discarded.
    pub fn ratchet(&mut self, agreed: &[u8; 32]) {
        // `next` was derived ahead, so the remaining secret belongs to the phase after it.
        self.phases.mix(agreed);
        self.next = self.phases.next_key();
    }

    /// Drops the key of the previous phase: late packets sealed with it no longer open. Due 3 × PTO
    /// after [`Opened::new_phase`] (SPEC §4.5).
    pub fn forget_previous_phase(&mut self) {
        self.previous = None;
    }

    /// Returns the key phase bit of packets opened with the current key.
    #[must_use]
    pub const fn phase(&self) -> bool {
        self.phase
    }
}
