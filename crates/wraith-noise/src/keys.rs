//! From Noise's `Split()` to the secrets of the two directions (SPEC §3.5).

use std::fmt;

use wraith_crypto::kdf;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What a finished handshake leaves: everything [`crate::Sealer`] and [`crate::Opener`] need beyond the hellos. Wiped when
/// dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SessionKeys {
    /// `secret_0` of what we send.
    pub send_secret: [u8; 32],
    /// `secret_0` of what we receive.
    pub recv_secret: [u8; 32],
    /// Masks the packet numbers we send.
    pub send_pn_mask: [u8; 32],
    /// Masks the packet numbers we receive.
    pub recv_pn_mask: [u8; 32],
}

impl SessionKeys {
    /// From the Noise keys of our direction and of the peer's.
    pub(crate) fn new(send: &[u8; 32], recv: &[u8; 32]) -> Self {
        Self {
            send_secret: kdf::derive("wraith/1 packet secret", send),
            recv_secret: kdf::derive("wraith/1 packet secret", recv),
            send_pn_mask: kdf::derive("wraith/1 packet number mask", send),
            recv_pn_mask: kdf::derive("wraith/1 packet number mask", recv),
        }
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKeys").finish_non_exhaustive()
    }
}
