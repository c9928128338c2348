//! A pool of precomputed ephemeral keys. Only some keys have an Elligator representative (an
//! encoding that looks like random bytes). Finding one takes several tries, and no handshake should
//! wait for them (SPEC §3.2).

use wraith_noise::EphemeralKey;

use crate::secret_rng::SecretRng;

/// Number of keys kept ready: usually as many as handshakes begin at once.
const READY: usize = 8;

/// A pool of keys. Invariant: each key is used once.
#[derive(Default)]
#[allow(
    clippy::vec_box,
    reason = "boxed, so that growing the vector and popping a key leave no copy of a secret"
)]
pub(crate) struct EphemeralKeyPool(Vec<Box<EphemeralKey>>);

impl EphemeralKeyPool {
    /// Returns an unused key, generated now if none is ready.
    pub(crate) fn take(&mut self, secrets: &mut SecretRng) -> Box<EphemeralKey> {
        self.0.pop().unwrap_or_else(|| generate(secrets))
    }

    /// Generates one key. Returns false if enough keys are ready.
    pub(crate) fn prepare(&mut self, secrets: &mut SecretRng) -> bool {
        let is_short = self.0.len() < READY;
        if is_short {
            self.0.push(generate(secrets));
        }
        is_short
    }
}

fn generate(secrets: &mut SecretRng) -> Box<EphemeralKey> {
    Box::new(EphemeralKey::generate(&mut *secrets.draw()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::secret_rng::Entropy;

    #[test]
    fn keys_are_drawn_ahead_up_to_a_few_and_each_is_given_out_once() {
        let mut rng = SecretRng::new([1; 32], Entropy::default());
        let mut ephemerals = EphemeralKeyPool::default();
        let mut given = HashSet::new();
        for taken in [0, 1, READY, 3 * READY] {
            let prepared = (0..100).take_while(|_| ephemerals.prepare(&mut rng)).count();
            assert!(prepared <= READY && ephemerals.0.len() == READY);
            let ready: HashSet<_> = ephemerals.0.iter().map(|key| *key.secret()).collect();
            for i in 0..taken {
                let key = ephemerals.take(&mut rng);
                assert_eq!(ready.contains(key.secret()), i < READY, "drawn ahead first");
                assert!(given.insert(*key.secret()));
            }
        }
    }
}
