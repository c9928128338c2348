//! Recently received first handshake messages (H1): a replay gets no answer (SPEC §3.4). The cache
//! holds the ID of each H1, and the ephemeral key of each authentic H1. A known ephemeral key is
//! recognised in any encoding.
//!
//! There are two generations. When the younger generation is full or old, the older one is
//! discarded and a new one begins. Invariant: neither generation holds more than the maximum number
//! of IDs or of keys. A flood of H1s therefore shortens the time for which an H1 is remembered, and
//! does not enlarge the cache.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::Time;

/// Lifetime of one generation: twice the accepted clock difference of ±90 s.
const WINDOW: Duration = Duration::from_secs(180);
/// Maximum size of one generation: the capacity of a hash table with 2^16 slots. IDs then take 1.1
/// MB and keys 2.2 MB, so both generations take at most 6.5 MB, and half a generation more while
/// its tables grow.
pub(super) const REPLAY_CACHE_MAX: usize = 7 << 13;

/// ID of an H1: [`PendingH1::id`](wraith_noise::PendingH1::id).
type Id = [u8; 16];
/// ID of an ephemeral key:
/// [`PendingH1::ephemeral_id`](wraith_noise::PendingH1::ephemeral_id).
type EphemeralId = [u8; 16];

pub(super) struct ReplayCache {
    max: usize,
    young: Generation,
    old: Generation,
    /// Start of the younger generation.
    since: Time,
}

#[derive(Default)]
struct Generation {
    ids: HashSet<Id>,
    /// Each key with the ID of its H1.
    ephemerals: HashMap<EphemeralId, Id>,
}

impl Generation {
    fn len(&self) -> usize {
        self.ids.len().max(self.ephemerals.len())
    }
}

impl ReplayCache {
    /// Creates a memory of at most `max` H1s and `max` keys in each generation.
    pub(super) fn new(max: usize) -> Self {
        let [young, old] = [Generation::default(), Generation::default()];
        Self { max, young, old, since: Time::ZERO }
    }

    /// Returns true if this H1 was received.
    pub(super) fn has(&mut self, now: Time, id: &Id) -> bool {
        self.rotate(now);
        self.young.ids.contains(id) || self.old.ids.contains(id)
    }

    /// Records this H1 as received now.
    pub(super) fn note(&mut self, now: Time, id: Id) {
        self.rotate(now);
        self.young.ids.insert(id);
    }

    /// Forgets this H1, so that it may come again. Its ephemeral key stays bound to it.
    pub(super) fn forget(&mut self, id: &Id) {
        for generation in [&mut self.young, &mut self.old] {
            generation.ids.remove(id);
        }
    }

    /// Returns true if the ephemeral key was in no other authentic H1.
    pub(super) fn is_new_ephemeral(&mut self, now: Time, key: &EphemeralId, id: &Id) -> bool {
        self.rotate(now);
        let known = [&self.young, &self.old].into_iter().find_map(|of| of.ephemerals.get(key));
        known.is_none_or(|of| of == id)
    }

    /// Records the ephemeral key of an authentic H1. Only its true sender can have created that H1.
    pub(super) fn note_ephemeral(&mut self, now: Time, key: EphemeralId, id: Id) {
        self.rotate(now);
        self.young.ephemerals.insert(key, id);
    }

    /// Makes room for one more entry in the younger generation.
    fn rotate(&mut self, now: Time) {
        if now - self.since >= WINDOW || self.young.len() >= self.max {
            self.old = std::mem::take(&mut self.young);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 8;
    const START: Time = Time::from_nanos(1_000_000_000_000);

    fn id(number: u8) -> Id {
        [number; 16]
    }

    fn seen() -> ReplayCache {
        let mut seen = ReplayCache::new(MAX);
        seen.rotate(START);
        seen
    }

    /// Receives an authentic H1 with this key. Returns true if the key is new.
    fn comes(seen: &mut ReplayCache, now: Time, key: EphemeralId, id: Id) -> bool {
        let is_new = seen.is_new_ephemeral(now, &key, &id);
        if is_new {
            seen.note_ephemeral(now, key, id);
        }
        is_new
    }

    #[test]
    fn an_h1_is_known_for_three_minutes_at_least_and_hardly_more_than_six() {
        let knows = |seen: &mut ReplayCache, now| {
            let has = seen.has(now, &id(1));
            assert_eq!(comes(seen, now, id(2), id(3)), !has);
            has
        };
        let noted = |noted| {
            let mut seen = seen();
            seen.note(noted, id(1));
            assert!(comes(&mut seen, noted, id(2), id(1)));
            seen
        };
        for after in [0, 90, 179] {
            let at = START + Duration::from_secs(after);
            assert!(knows(&mut noted(at), at + WINDOW - Duration::from_nanos(1)));
            let mut seen = noted(at);
            seen.rotate(START + WINDOW);
            assert!(!knows(&mut seen, START + 2 * WINDOW));
        }
    }

    #[test]
    fn a_key_belongs_to_the_h1_it_came_with() {
        let mut seen = seen();
        assert!(comes(&mut seen, START, id(1), id(10)));
        assert!(comes(&mut seen, START, id(1), id(10)), "a copy of it");
        assert!(!comes(&mut seen, START, id(1), id(11)));
        assert!(comes(&mut seen, START, id(2), id(11)));
    }

    #[test]
    fn an_h1_that_is_forgotten_may_come_again_and_its_key_in_no_other() {
        let mut seen = seen();
        seen.note(START, id(10));
        assert!(comes(&mut seen, START, id(1), id(10)));
        seen.forget(&id(10));
        assert!(!seen.has(START, &id(10)));
        assert!(comes(&mut seen, START, id(1), id(10)));
        assert!(!comes(&mut seen, START, id(1), id(11)));
    }

    #[test]
    fn neither_generation_holds_more_than_the_maximum_of_either() {
        type Flood = fn(&mut ReplayCache, u8);
        let floods: [Flood; 3] = [
            |seen, n| seen.note(START, id(n)),
            |seen, n| assert!(comes(seen, START, id(n), id(n))),
            // Handshakes that evict each other.
            |seen, n| {
                seen.note(START, id(n));
                assert!(comes(seen, START, id(n), id(n)));
                seen.forget(&id(n));
            },
        ];
        for flood in floods {
            let mut seen = seen();
            for n in 0..200 {
                flood(&mut seen, n);
                for generation in [&seen.young, &seen.old] {
                    assert!(generation.ids.len() <= MAX && generation.ephemerals.len() <= MAX);
                }
            }
        }
    }

    #[test]
    fn a_flood_leaves_at_least_the_last_ones_up_to_the_maximum() {
        let mut seen = seen();
        for n in 0..100 {
            seen.note(START, id(n));
            for last in n.saturating_sub(MAX as u8 - 1)..=n {
                assert!(seen.has(START, &id(last)), "{last} after {n}");
            }
        }
    }
}
