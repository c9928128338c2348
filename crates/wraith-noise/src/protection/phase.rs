//! The chain of secrets behind the key phases of one direction (SPEC §3.5, §4.5).

use std::fmt;

use wraith_crypto::{PacketKey, Suite, kdf};
use zeroize::Zeroizing;

const NEXT: &str = "wraith/1 next packet secret";

/// Gives the packet keys of the phases, one after the other. Only the secret of the phase to come is kept.
pub(super) struct Phases {
    suite: Suite,
    secret: Zeroizing<[u8; 32]>,
}

impl Phases {
    /// Begins with `secret_0`.
    pub(super) fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        Self { suite, secret: Zeroizing::new(*secret) }
    }

    /// The packet key of the next phase, beginning with phase 0.
    pub(super) fn next_key(&mut self) -> PacketKey {
        let key = PacketKey::new(self.suite, &self.secret);
        *self.secret = kdf::derive(NEXT, &*self.secret);
        key
    }

    /// Leaves out a phase that the other side's [`Opener`](super::Opener) has derived ahead.
    pub(super) fn skip(&mut self) {
        *self.secret = kdf::derive(NEXT, &*self.secret);
    }

    /// What both sides agreed on becomes part of the secret to come.
    pub(super) fn mix(&mut self, agreed: &[u8; 32]) {
        *self.secret =
            kdf::derive_parts("wraith/2 ratcheted packet secret", &[&*self.secret, agreed]);
    }
}

impl fmt::Debug for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phases").field("suite", &self.suite).finish_non_exhaustive()
    }
}
