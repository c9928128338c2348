//! Ephemeral keys that were made before they are needed: to find one whose representative exists takes several tries, and no
//! handshake should wait for it (SPEC §3.2).

use rand_core::CryptoRng;
use wraith_noise::EphemeralKey;

/// Keys kept ready: as many handshakes as begin at once, as a rule.
const READY: usize = 8;

/// Invariant: a key is given out once.
#[derive(Default)]
pub(crate) struct Ephemerals(Vec<EphemeralKey>);

impl Ephemerals {
    /// A key nobody had; made now if none is ready.
    pub(crate) fn take(&mut self, rng: &mut impl CryptoRng) -> EphemeralKey {
        self.0.pop().unwrap_or_else(|| EphemeralKey::generate(rng))
    }

    /// Makes one key ready. False if there are enough.
    pub(crate) fn prepare(&mut self, rng: &mut impl CryptoRng) -> bool {
        let is_short = self.0.len() < READY;
        if is_short {
            self.0.push(EphemeralKey::generate(rng));
        }
        is_short
    }
}
