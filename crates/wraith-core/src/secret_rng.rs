//! Random numbers for secrets: ephemeral keys, KEM seeds and ratchet shares.
//!
//! Invariants:
//!
//! - Each draw replaces the key by a hash of itself, so the state reveals nothing about earlier
//!   draws.
//! - Each draw mixes in the system's entropy, if available, so the state reveals nothing about
//!   later draws.
//!
//! Therefore an attacker that reads an endpoint's memory does not get the keys of finished
//! handshakes. If the system's entropy is available, it does not get the shares of the next ratchet
//! either.

use std::fmt;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::{Wiped, kdf};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Source of fresh randomness. The default has none, so that everything follows from an endpoint's
/// seed.
#[derive(Clone, Default)]
pub struct Entropy(Option<Arc<dyn Fn() -> [u8; 32] + Send + Sync>>);

impl Entropy {
    /// Wraps `draw`, which returns 32 bytes of system randomness. It is called once per handshake
    /// and once per ratchet.
    pub fn new(draw: impl Fn() -> [u8; 32] + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(draw)))
    }

    fn draw(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.as_ref().map_or([0; 32], |draw| draw()))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entropy").field("is_fresh", &self.0.is_some()).finish()
    }
}

/// A forward-secret generator (see the module head). Wiped when dropped.
pub(crate) struct SecretRng {
    key: Zeroizing<[u8; 32]>,
    entropy: Entropy,
}

impl SecretRng {
    pub(crate) fn new(seed: [u8; 32], entropy: Entropy) -> Self {
        Self { key: Zeroizing::new(seed), entropy }
    }

    /// Returns a generator for the secrets of one handshake or one ratchet. It is wiped when
    /// dropped.
    pub(crate) fn draw(&mut self) -> Wiped<ChaCha20Rng> {
        Wiped::new(ChaCha20Rng::from_seed(self.next("wraith/2 random numbers for one use")))
    }

    /// Returns an independent generator for a connection.
    pub(crate) fn child(&mut self) -> Self {
        Self::new(self.next("wraith/2 random numbers of a connection"), self.entropy.clone())
    }

    fn next(&mut self, context: &'static str) -> [u8; 32] {
        let fresh = self.entropy.draw();
        let parts = [&self.key[..], &fresh[..]];
        let next = kdf::derive_parts(context, &parts);
        *self.key = kdf::derive_parts("wraith/2 random numbers from now on", &parts);
        next
    }
}

impl ZeroizeOnDrop for SecretRng {}

impl fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRng").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    use rand_core::Rng;

    use super::*;

    fn drawn(rng: &mut SecretRng) -> [u8; 32] {
        let mut bytes = [0; 32];
        rng.draw().fill_bytes(&mut bytes);
        bytes
    }

    fn copy(rng: &SecretRng) -> SecretRng {
        SecretRng::new(*rng.key, rng.entropy.clone())
    }

    #[test]
    fn without_entropy_everything_follows_from_the_seed() {
        let [mut a, mut b] = [(); 2].map(|()| SecretRng::new([1; 32], Entropy::default()));
        for _ in 0..3 {
            assert_eq!(drawn(&mut a), drawn(&mut b));
        }
        assert_eq!(drawn(&mut a.child()), drawn(&mut b.child()));
        assert_ne!(drawn(&mut a.child()), drawn(&mut a.child()));
    }

    #[test]
    fn a_copied_generator_diverges_with_entropy() {
        let count = AtomicU8::new(0);
        let entropy = Entropy::new(move || [count.fetch_add(1, Relaxed); 32]);
        let mut rng = SecretRng::new([1; 32], entropy);
        let mut stolen = copy(&rng);
        assert_ne!(drawn(&mut rng), drawn(&mut stolen));
        assert_ne!(drawn(&mut rng.child()), drawn(&mut stolen.child()));
    }

    /// The key from before a draw must not remain in the state.
    #[test]
    fn a_draw_replaces_the_key() {
        let mut rng = SecretRng::new([1; 32], Entropy::default());
        let before = *rng.key;
        let first = drawn(&mut rng);
        assert_ne!(*rng.key, before);
        assert_ne!(drawn(&mut rng), first);
    }
}
