//! The receiving direction.

use wraith_crypto::{MaskKey, PacketKey, Suite, TAG_BYTES};
use zeroize::ZeroizeOnDrop;

use super::phase::Phases;
use super::{CID_BYTES, FORGERIES_MAX, HEADER_BYTES, NotOpened, PACKET_BYTES_MIN, sample};
use crate::DirectionKeys;
use crate::packet_number;
use crate::replay::ReplayWindow;

/// A packet that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its packet number. New: no packet is opened twice.
    pub pn: u64,
    /// Length of its frames, which begin at [`HEADER_BYTES`] of the datagram.
    pub payload_len: usize,
    /// Whether it is the first packet of a new key phase. The previous key is kept until
    /// [`Opener::forget_previous_phase`].
    pub new_phase: bool,
}

/// Opens the packets we receive on one connection.
///
/// Invariant: nothing here changes because of a packet whose tag does not verify, except the count of those.
#[derive(Debug)]
pub struct Opener {
    current: PacketKey,
    /// Derived ahead, so that a change of phase costs the packet that announces it nothing.
    next: PacketKey,
    previous: Option<PacketKey>,
    phases: Phases,
    phase: bool,
    pn_mask: MaskKey,
    cid: [u8; CID_BYTES],
    cid_mask: MaskKey,
    replay: ReplayWindow,
    /// Packets with our connection ID whose tag did not verify.
    pub(super) forgeries: u64,
}

/// All of its keys are.
impl ZeroizeOnDrop for Opener {}

impl Opener {
    /// For the peer's direction of a connection.
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

    /// Whether `datagram` carries the connection ID of this direction under its mask. Costs one AES block. Only
    /// [`Self::open`] tells whether it is authentic.
    #[must_use]
    pub fn recognises(&self, datagram: &[u8]) -> bool {
        let (Some(masked), Some(sample)) = (datagram.first_chunk(), sample(datagram)) else {
            return false;
        };
        datagram.len() >= PACKET_BYTES_MIN && self.is_ours(masked, &self.cid_mask.mask(sample))
    }

    /// Whether `masked` is our connection ID under `mask`.
    fn is_ours(&self, masked: &[u8; CID_BYTES], mask: &[u8; TAG_BYTES]) -> bool {
        let mask = u64::from_ne_bytes(*mask.first_chunk().expect("a mask has 16 bytes"));
        u64::from_ne_bytes(*masked) ^ mask == u64::from_ne_bytes(self.cid)
    }

    /// Opens the packet in `datagram`. On success its frames are `datagram[12..12 + payload_len]`, decrypted in place.
    ///
    /// # Errors
    /// [`NotOpened`] says why, and what is left of `datagram`.
    pub fn open(&mut self, datagram: &mut [u8]) -> Result<Opened, NotOpened> {
        let (header, pn, phase) = self.read_header(datagram).ok_or(NotOpened::Foreign)?;
        if !self.replay.is_new(pn) || self.forgeries >= FORGERIES_MAX {
            return Err(NotOpened::Unauthentic);
        }
        let new_phase = phase != self.phase && pn >= self.replay.next();
        let key = if phase == self.phase {
            &self.current
        } else if new_phase {
            &self.next
        } else {
            self.previous.as_ref().ok_or(NotOpened::Unauthentic)?
        };
        if key.open(pn, &header, &mut datagram[HEADER_BYTES..]).is_err() {
            self.forgeries += 1;
            return Err(NotOpened::Unauthentic);
        }

        self.replay.insert(pn);
        if new_phase {
            self.advance_phase();
        }
        let payload_len = datagram.len() - HEADER_BYTES - TAG_BYTES;
        Ok(Opened { pn, payload_len, new_phase })
    }

    /// The header as it was before protection, the packet number and the key phase. `None` if it is not of our packets.
    fn read_header(&self, datagram: &[u8]) -> Option<([u8; HEADER_BYTES], u64, bool)> {
        if datagram.len() < PACKET_BYTES_MIN {
            return None;
        }
        let (cid_mask, pn_mask) =
            MaskKey::mask_pair(&self.cid_mask, &self.pn_mask, sample(datagram)?);
        let mut header: [u8; HEADER_BYTES] = *datagram.first_chunk()?;
        if !self.is_ours(header.first_chunk()?, &cid_mask) {
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

    /// The next phase of the peer is the one behind a ratchet, with `agreed` in its keys (SPEC §4.6). Until then packets of the
    /// present one open as before; what would have been the next one never comes.
    pub fn ratchet(&mut self, agreed: &[u8; 32]) {
        // `next` was derived ahead: the secret that is left is that of the phase behind it.
        self.phases.mix(agreed);
        self.next = self.phases.next_key();
    }

    /// Drops the key of the previous phase: late packets sealed with it no longer open. Due 3 × PTO after
    /// [`Opened::new_phase`] (SPEC §4.5).
    pub fn forget_previous_phase(&mut self) {
        self.previous = None;
    }

    /// The key phase bit of packets opened with the present key.
    #[must_use]
    pub const fn phase(&self) -> bool {
        self.phase
    }
}
