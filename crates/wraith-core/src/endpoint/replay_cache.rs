//! Recently received first handshake messages (H1): a replay gets no answer (SPEC §3.4). The cache
//! holds the ID of each H1, and the ephemeral key of each authentic H1. A known ephemeral key is
//! recognised in any encoding.
//!
//! There are two generations. When the younger generation is full, the older one is discarded and a
//! new one begins. Invariant: neither generation holds more than the maximum number of IDs or of
//! keys. No entry is dropped for its age, so the cache depends on no clock. It is complete until it
//! drops the first generation with entries.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::Time;

/// Maximum size of one generation: the capacity of a hash table with 2^16 slots. IDs then take 1.1
/// MB and keys 2.7 MB, so both generations take at most 7.6 MB, and half a generation more while
/// its tables grow.
pub(super) const REPLAY_CACHE_MAX: usize = 7 << 13;
/// Time for which an authentic H1 that was evicted before its H3 may come again. The initiator
/// repeats it for 10 s.
const RETURN_WINDOW: Duration = Duration::from_secs(15);

/// ID of an H1: [`PendingH1::id`](wraith_noise::PendingH1::id).
type Id = [u8; 16];
/// ID of an ephemeral key:
/// [`PendingH1::ephemeral_id`](wraith_noise::PendingH1::ephemeral_id).
type EphemeralId = [u8; 16];

pub(super) struct ReplayCache {
    max: usize,
    young: Generation,
    old: Generation,
    is_complete: bool,
}

#[derive(Default)]
struct Generation {
    ids: HashSet<Id>,
    /// Each key with the ID of its H1 and the time of its first arrival.
    ephemerals: HashMap<EphemeralId, (Id, Time)>,
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
        Self { max, young, old, is_complete: true }
    }

    /// Returns true if no entry was dropped since the start.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns true if this H1 was received.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.young.ids.contains(id) || self.old.ids.contains(id)
    }

    /// Records this H1 as received.
    pub(super) fn note(&mut self, id: Id) {
        self.make_room();
        self.young.ids.insert(id);
    }

    /// Forgets this H1, so that it may come again. Its ephemeral key stays bound to it.
    pub(super) fn forget(&mut self, id: &Id) {
        for generation in [&mut self.young, &mut self.old] {
            generation.ids.remove(id);
        }
    }

    /// Returns true if the ephemeral key was in no other authentic H1, and in this one not long
    /// ago.
    pub(super) fn is_new_ephemeral(&self, now: Time, key: &EphemeralId, id: &Id) -> bool {
        self.known(key).is_none_or(|(of, at)| of == id && now - *at < RETURN_WINDOW)
    }

    /// Records the ephemeral key of an authentic H1. Only its true sender can have created that H1.
    /// Returns false if the key was recorded before.
    pub(super) fn note_ephemeral(&mut self, now: Time, key: EphemeralId, id: Id) -> bool {
        let is_new = self.known(&key).is_none();
        if is_new {
            self.make_room();
            self.young.ephemerals.insert(key, (id, now));
        }
        is_new
    }

    /// Makes a recorded key [not new](Self::is_new_ephemeral) for every H1.
    pub(super) fn refuse(&mut self, key: &EphemeralId) {
        for generation in [&mut self.young, &mut self.old] {
            if let Some((id, _)) = generation.ephemerals.get_mut(key) {
                // No H1 has this ID: it is a hash.
                *id = Id::default();
            }
        }
    }

    fn known(&self, key: &EphemeralId) -> Option<&(Id, Time)> {
        [&self.young, &self.old].into_iter().find_map(|of| of.ephemerals.get(key))
    }

    /// Makes room for one more entry in the younger generation.
    fn make_room(&mut self) {
        if self.young.len() >= self.max {
            let dropped = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.is_complete &= dropped.len() == 0;
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
        ReplayCache::new(MAX)
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
    fn an_h1_is_known_at_any_later_time() {
        let mut seen = seen();
        seen.note(id(1));
        assert!(comes(&mut seen, START, id(2), id(1)));
        assert!(
            seen.has(&id(1))
                && !comes(&mut seen, START + Duration::from_secs(1 << 32), id(2), id(3))
        );
        assert!(seen.is_complete());
    }

    #[test]
    fn an_evicted_h1_may_return_only_while_its_initiator_repeats_it() {
        let mut seen = seen();
        assert!(comes(&mut seen, START, id(1), id(10)));
        let last = START + RETURN_WINDOW - Duration::from_nanos(1);
        assert!(comes(&mut seen, last, id(1), id(10)));
        assert!(!comes(&mut seen, START + RETURN_WINDOW, id(1), id(10)));
    }

    #[test]
    fn the_memory_is_complete_until_it_drops_an_entry() {
        let mut seen = seen();
        for n in 0..2 * MAX as u8 {
            seen.note(id(n));
            assert!(seen.is_complete());
        }
        seen.note(id(200));
        assert!(!seen.is_complete() && !seen.has(&id(0)));
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
        seen.note(id(10));
        assert!(comes(&mut seen, START, id(1), id(10)));
        seen.forget(&id(10));
        assert!(!seen.has(&id(10)));
        assert!(comes(&mut seen, START, id(1), id(10)));
        assert!(!comes(&mut seen, START, id(1), id(11)));
    }

    #[test]
    fn neither_generation_holds_more_than_the_maximum_of_either() {
        type Flood = fn(&mut ReplayCache, u8);
        let floods: [Flood; 3] = [
            |seen, n| seen.note(id(n)),
            |seen, n| assert!(comes(seen, START, id(n), id(n))),
            // Handshakes that evict each other.
            |seen, n| {
                seen.note(id(n));
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
            seen.note(id(n));
            for last in n.saturating_sub(MAX as u8 - 1)..=n {
                assert!(seen.has(&id(last)), "{last} after {n}");
            }
        }
    }
}
