//! Connection IDs under their mask (SPEC §4.3): what routes a packet whose address is not known.

use wraith_crypto::MaskKey;
use zeroize::ZeroizeOnDrop;

use super::{CID_BYTES, PACKET_BYTES_MIN, sample};

/// The key that masks the connection IDs of packets to one endpoint, as told to every peer in the handshake.
#[derive(Clone, Debug, ZeroizeOnDrop)]
pub struct CidMask(MaskKey);

impl CidMask {
    /// The mask with this key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(MaskKey::new(key))
    }

    /// The connection ID of a packet. It is anything at all if the datagram is not a packet to this endpoint. `None` if
    /// it is too short for a packet. Changes nothing in `datagram`.
    #[must_use]
    pub fn unmask(&self, datagram: &[u8]) -> Option<[u8; CID_BYTES]> {
        if datagram.len() < PACKET_BYTES_MIN {
            return None;
        }
        let (cid, mask) = (datagram.first_chunk::<CID_BYTES>()?, self.0.mask(sample(datagram)?));
        Some(std::array::from_fn(|i| cid[i] ^ mask[i]))
    }
}
