//! Key schedule of the key phases of one direction: a chain of secrets (SPEC §3.5, §4.5).

use wraith_crypto::{PacketKey, Suite, kdf};
use zeroize::Zeroizing;

const NEXT: &str = "wraith/1 next packet secret";

/// Derives the packet keys of consecutive phases. Keeps only the secret of the next phase.
pub(super) struct Phases {
    suite: Suite,
    secret: Zeroizing<[u8; 32]>,
}

impl Phases {
    /// Starts the chain with `secret_0`.
    pub(super) fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        Self { suite, secret: Zeroizing::new(*secret) }
    }

    /// Returns the packet key of the next phase, starting with phase 0.
    pub(super) fn next_key(&mut self) -> PacketKey {
        let key = PacketKey::new(self.suite, &self.secret);
        *self.secret = kdf::derive(NEXT, &*self.secret);
        key
    }

    /// Skips a phase that the peer's [`Opener`](super::Opener) has derived ahead of time.
    pub(super) fn skip(&mut self) {
        *self.secret = kdf::derive(NEXT, &*self.secret);
    }

    /// Mixes the output of a ratchet into the secret of the next phase.
    pub(super) fn mix(&mut self, agreed: &[u8; 32]) {
        *self.secret =
            kdf::derive_parts("wraith/2 ratcheted packet secret", &[&*self.secret, agreed]);
    }
}

wraith_crypto::redacted_debug!(Phases, suite);
