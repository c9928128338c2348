//! Key schedule: from Noise's `Split()` to the keys of both directions (SPEC §3.5).

use wraith_crypto::kdf;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Length of a connection ID in bytes.
pub const CID_BYTES: usize = 8;

/// Result of a handshake: the keys for [`crate::Sealer`] and [`crate::Opener`]. Wiped when dropped.
#[derive(Clone, Debug, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SessionKeys {
    /// Keys of the packets that this side sends.
    pub send: DirectionKeys,
    /// Keys of the packets that this side receives.
    pub recv: DirectionKeys,
    /// Secret from which both sides derive further shared secrets.
    pub exporter: [u8; 32],
}

impl SessionKeys {
    /// Derives all keys from the Noise keys of this side's sending direction and of the peer's.
    pub(crate) fn new(send: &[u8; 32], recv: &[u8; 32]) -> Self {
        // Both sides need the same order, whichever of them started the handshake.
        let [low, high] = if send < recv { [send, recv] } else { [recv, send] };
        let exporter = kdf::derive_parts("wraith/1 exporter", &[low, high]);
        Self { send: DirectionKeys::new(send), recv: DirectionKeys::new(recv), exporter }
    }
}

/// Keys of one direction of a connection. Only its two ends have any of them. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct DirectionKeys {
    /// `secret_0`: the packet secret of key phase 0.
    pub secret: [u8; 32],
    /// Key of the mask over packet numbers.
    pub pn_mask: [u8; 32],
    /// The connection ID.
    pub cid: [u8; CID_BYTES],
    /// Key of the mask over the connection ID.
    pub cid_mask: [u8; 32],
}

impl DirectionKeys {
    fn new(k: &[u8; 32]) -> Self {
        let cid = Zeroizing::new(kdf::derive("wraith/1 connection ID", k));
        Self {
            secret: kdf::derive("wraith/1 packet secret", k),
            pn_mask: kdf::derive("wraith/1 packet number mask", k),
            cid: *cid.first_chunk().expect("32 bytes hold 8"),
            cid_mask: kdf::derive("wraith/1 connection ID mask", k),
        }
    }
}

wraith_crypto::redacted_debug!(DirectionKeys);
