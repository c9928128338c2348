//! Which H1s came lately, so that a replay gets silence (SPEC §3.4): what names each, and the ephemeral key in it, whatever bits that
//! was encoded with.
//!
//! Two generations, of which the older one is forgotten when the younger one is full or old. Invariant: neither holds more than the
//! maximum, of names or of keys, so a flood of H1s makes the memory short and not large.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::Time;

/// One generation: twice the ±90 s for which a clock is accepted.
const WINDOW: Duration = Duration::from_secs(180);
/// Of one generation: as many as a hash table with 2^16 places takes. Names are then 1.1 MB and keys 2.2 MB, so all is at most 6.5 MB,
/// and half of a generation more while its tables grow.
pub(super) const SEEN_MAX: usize = 7 << 13;

/// What names an H1: [`FirstDatagram::id`](wraith_noise::FirstDatagram::id).
type Id = [u8; 16];
/// What names an ephemeral key: [`FirstDatagram::ephemeral_id`](wraith_noise::FirstDatagram::ephemeral_id).
type EphemeralId = [u8; 16];

pub(super) struct Seen {
    max: usize,
    young: Generation,
    old: Generation,
    /// When the time of the young one began.
    since: Time,
}

#[derive(Default)]
struct Generation {
    ids: HashSet<Id>,
    /// Each with the H1 that it was in.
    ephemerals: HashMap<EphemeralId, Id>,
}

impl Generation {
    fn len(&self) -> usize {
        self.ids.len().max(self.ephemerals.len())
    }
}

impl Seen {
    /// With at most `max` H1s, and `max` keys, in each of two generations.
    pub(super) fn new(max: usize) -> Self {
        let [young, old] = [Generation::default(), Generation::default()];
        Self { max, young, old, since: Time::ZERO }
    }

    /// Whether this H1 came.
    pub(super) fn has(&mut self, now: Time, id: &Id) -> bool {
        self.rotate(now);
        self.young.ids.contains(id) || self.old.ids.contains(id)
    }

    /// This H1 came now.
    pub(super) fn note(&mut self, now: Time, id: Id) {
        self.rotate(now);
        self.young.ids.insert(id);
    }

    /// This H1 may come again as if it never had. Its ephemeral key stays known as that of this H1, and of no other.
    pub(super) fn forget(&mut self, id: &Id) {
        for generation in [&mut self.young, &mut self.old] {
            generation.ids.remove(id);
        }
    }

    /// Whether an ephemeral key was in no other authentic H1 than this one.
    pub(super) fn is_new_ephemeral(&mut self, now: Time, key: &EphemeralId, id: &Id) -> bool {
        self.rotate(now);
        let known = [&self.young, &self.old].into_iter().find_map(|of| of.ephemerals.get(key));
        known.is_none_or(|of| of == id)
    }

    /// An ephemeral key was in this H1, which was authentic: nobody else can have made that.
    pub(super) fn note_ephemeral(&mut self, now: Time, key: EphemeralId, id: Id) {
        self.rotate(now);
        self.young.ephemerals.insert(key, id);
    }

    /// There is room for one more in the young generation then.
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

    fn seen() -> Seen {
        let mut seen = Seen::new(MAX);
        seen.rotate(START);
        seen
    }

    /// An authentic H1 with this key comes. Whether the key is new.
    fn comes(seen: &mut Seen, now: Time, key: EphemeralId, id: Id) -> bool {
        let is_new = seen.is_new_ephemeral(now, &key, &id);
        if is_new {
            seen.note_ephemeral(now, key, id);
        }
        is_new
    }

    #[test]
    fn an_h1_is_known_for_three_minutes_at_least_and_hardly_more_than_six() {
        let knows = |seen: &mut Seen, now| {
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
        type Flood = fn(&mut Seen, u8);
        let floods: [Flood; 3] = [
            |seen, n| seen.note(START, id(n)),
            |seen, n| assert!(comes(seen, START, id(n), id(n))),
            // Handshakes that push each other out.
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
