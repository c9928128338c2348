//! The receiving direction.

use wraith_crypto::{MaskKey, PacketKey, Suite, TAG_BYTES, Unauthentic};
use zeroize::ZeroizeOnDrop;

use super::phase::Phases;
use super::{CID_BYTES, FORGERIES_MAX, HEADER_BYTES, PACKET_BYTES_MIN, sample};
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
    own_cid: [u8; CID_BYTES],
    replay: ReplayWindow,
    /// Packets with our connection ID whose tag did not verify.
    pub(super) forgeries: u64,
}

/// All of its keys are.
impl ZeroizeOnDrop for Opener {}

impl Opener {
    /// For the peer's direction of a connection: `secret` and `pn_mask` are the receiving ones of [`crate::SessionKeys`],
    /// `own_cid` is what our hello said.
    #[must_use]
    pub fn new(
        suite: Suite,
        secret: &[u8; 32],
        pn_mask: [u8; 32],
        own_cid: [u8; CID_BYTES],
    ) -> Self {
        let mut phases = Phases::new(suite, secret);
        Self {
            current: phases.next_key(),
            next: phases.next_key(),
            previous: None,
            phases,
            phase: false,
            pn_mask: MaskKey::new(pn_mask),
            own_cid,
            replay: ReplayWindow::new(),
            forgeries: 0,
        }
    }

    /// Opens the packet in `datagram`, whose connection ID under the mask is `unmasked_cid` (from
    /// [`super::CidMask::unmask`]). On success its frames are `datagram[12..12 + payload_len]`, decrypted in place.
    ///
    /// # Errors
    /// [`Unauthentic`], in two cases that differ in what is left of `datagram`:
    /// - It is not a packet to this connection (another connection ID, too short) or was received before: `datagram` is
    ///   untouched and may be tried as something else.
    /// - It claims to be one, knowing our 64-bit connection ID under its mask, but the tag does not verify: the header is
    ///   untouched, the rest is unspecified. Nothing else can pass for such a packet but by an accident of 2^-64.
    pub fn open(
        &mut self,
        unmasked_cid: [u8; CID_BYTES],
        datagram: &mut [u8],
    ) -> Result<Opened, Unauthentic> {
        if unmasked_cid != self.own_cid || datagram.len() < PACKET_BYTES_MIN {
            return Err(Unauthentic);
        }
        let (header, pn, phase) = self.read_header(datagram).ok_or(Unauthentic)?;
        if !self.replay.is_new(pn) || self.forgeries >= FORGERIES_MAX {
            return Err(Unauthentic);
        }
        let new_phase = phase != self.phase && pn >= self.replay.next();
        let key = if phase == self.phase {
            &self.current
        } else if new_phase {
            &self.next
        } else {
            self.previous.as_ref().ok_or(Unauthentic)?
        };
        if let Err(unauthentic) = key.open(pn, &header, &mut datagram[HEADER_BYTES..]) {
            self.forgeries += 1;
            return Err(unauthentic);
        }

        self.replay.insert(pn);
        if new_phase {
            self.advance_phase();
        }
        let payload_len = datagram.len() - HEADER_BYTES - TAG_BYTES;
        Ok(Opened { pn, payload_len, new_phase })
    }

    /// The header as it was before protection, the packet number and the key phase.
    fn read_header(&self, datagram: &[u8]) -> Option<([u8; HEADER_BYTES], u64, bool)> {
        let mask = self.pn_mask.mask(sample(datagram)?);
        let mut header: [u8; HEADER_BYTES] = *datagram.first_chunk()?;
        header[..CID_BYTES].copy_from_slice(&self.own_cid);
        for i in CID_BYTES..HEADER_BYTES {
            header[i] ^= mask[i];
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
