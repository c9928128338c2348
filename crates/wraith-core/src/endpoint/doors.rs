//! The doors of an endpoint: for whom there is one may begin a handshake with it, and nobody else (SPEC §3.1).
//!
//! Invariant: a datagram of a stranger costs one hash, and one short one for each of [`FREE_DOORS`]; what further doors cost is
//! bounded in a second, and nothing is ever answered.

use std::time::Duration;

use wraith_noise::{DoorKey, H1_BYTES, H1Gate};

use crate::Time;
use crate::token_bucket::TokenBucket;

/// Doors that a datagram is tried at without being counted: more than a listener has contacts, as a rule. About 80 ns each.
const FREE_DOORS: usize = 32;
/// Trials a second beyond these, 2 % of a core: a listener with a thousand contacts hears newcomers while 260 random datagrams a
/// second arrive, and one of them in a hundred while 26,000 do.
const PER_SECOND: u64 = 1 << 18;
/// Trials saved up.
const BURST: Duration = Duration::from_millis(125);

pub(crate) struct Doors {
    keys: Vec<DoorKey>,
    trials: TokenBucket,
}

impl Doors {
    pub(crate) const fn new(keys: Vec<DoorKey>) -> Self {
        Self { keys, trials: TokenBucket::new(PER_SECOND, BURST) }
    }

    /// Other keys from now on.
    pub(crate) fn change(&mut self, keys: Vec<DoorKey>) {
        self.keys = keys;
    }

    /// The key that the sender of `datagram` has, if that may be the first of an H1.
    pub(crate) fn opened_by(&mut self, now: Time, datagram: &[u8]) -> Option<&DoorKey> {
        // What has another length is tried at no door, so it costs none of the trials.
        if self.keys.is_empty() || !H1_BYTES.contains(&datagram.len()) {
            return None;
        }
        let dear = self.keys.len().saturating_sub(FREE_DOORS);
        if dear > 0 && !self.trials.take(now, dear) {
            return None;
        }
        let gate = H1Gate::of(datagram)?;
        self.keys.iter().find(|key| key.opens(&gate))
    }
}

#[cfg(test)]
mod tests {
    use wraith_crypto::SecretIdentity;

    use super::*;

    #[test]
    fn datagrams_of_another_length_cost_no_trial() {
        let peer = SecretIdentity::from_seed([1; 32]).node_id();
        let keys = (0..=u8::MAX).map(|n| DoorKey::of_ticket(&[n; 16], peer)).collect();
        let mut doors = Doors::new(keys);
        let left =
            |doors: &mut Doors| (0..).take_while(|_| doors.trials.take(Time::ZERO, 256)).count();
        for datagram in [vec![0; 50], vec![0; 699], vec![0; 1201]] {
            for _ in 0..1000 {
                assert!(doors.opened_by(Time::ZERO, &datagram).is_none());
            }
        }
        assert!(doors.opened_by(Time::ZERO, &[0; 700]).is_none());
        let spent = PER_SECOND / 8 - 256 * left(&mut doors) as u64;
        assert_eq!(spent / 256, 1, "one was tried");
    }
}
