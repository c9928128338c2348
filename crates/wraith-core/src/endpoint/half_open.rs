//! Handshakes a stranger began and did not finish: between our H2 and their H3 (SPEC §3.4).
//!
//! Bounded in all, and for each [`Source`]; all of that is judged before any curve work. A repeated H1 gets the identical
//! H2 for 5 s, and every H1 that was seen is remembered (as its mac1) for at least the time during which its clock would
//! still be accepted.
//!
//! Nobody can tell a copy of H1 from the original, so the first to arrive is answered. Who repeats the same H1 from
//! another address while nobody has completed the handshake gets one of its own, with another H2: to complete it takes
//! having received there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use wraith_crypto::aead::Suite;
use wraith_noise::{InitiatorHello, Responder};

use super::source::Source;
use crate::{PathAddr, Time};

/// An identical H1 from the same address gets the identical H2 for this long.
const REPEAT_WINDOW: Duration = Duration::from_secs(5);
/// A half-open handshake is forgotten after this long: the initiator has given up by then.
const LIFETIME: Duration = Duration::from_secs(15);
/// One generation of remembered values of mac1: twice the ±90 s for which a clock is accepted.
const SEEN_WINDOW: Duration = Duration::from_secs(180);
/// Gates in one generation (1 MiB); a flood of valid H1s shortens the memory instead of growing it.
const SEEN_MAX: usize = 1 << 16;
/// Half-open handshakes of one source at once, those refused lately included: whoever shares an address is done within a
/// round trip.
const PER_SOURCE_MAX: usize = 16;
/// Refused handshakes that are remembered.
const REFUSED_MAX: usize = 256;
/// A copy of an H1 from elsewhere counts as somebody's repeat after this long: a little less than the initiator's first
/// repeat comes (SPEC §3.4). What comes earlier is a replay that need not be answered.
const COPY_AFTER: Duration = Duration::from_millis(200);
/// Addresses that may take part with the same H1.
const COPIES_MAX: usize = 8;

pub(crate) struct HalfOpen {
    pub(crate) responder: Responder,
    pub(crate) hello: InitiatorHello,
    pub(crate) suite: Suite,
    pub(crate) own_cid: [u8; 8],
    pub(crate) remote: PathAddr,
    pub(crate) h1_mac1: [u8; 16],
    pub(crate) h2: Vec<u8>,
    pub(crate) created: Time,
}

#[derive(Default)]
pub(crate) struct HalfOpens {
    /// Oldest first.
    waiting: VecDeque<HalfOpen>,
    /// Handshakes that cost curve work for nothing, oldest first: they count as if they waited.
    refused: VecDeque<(Time, Source)>,
    seen: HashSet<[u8; 16]>,
    seen_before: HashSet<[u8; 16]>,
    seen_since: Time,
}

/// What to do with an H1 whose mac1 is right.
pub(crate) enum Verdict<'a> {
    New,
    Repeat(&'a [u8]),
    Silence,
}

impl HalfOpens {
    /// Judges an H1 by its mac1, and remembers it unless there is no room for its handshake now.
    pub(crate) fn judge(&mut self, now: Time, from: PathAddr, mac1: [u8; 16]) -> Verdict<'_> {
        self.expire(now);
        if now - self.seen_since >= SEEN_WINDOW || self.seen.len() >= SEEN_MAX {
            self.seen_before = std::mem::take(&mut self.seen);
            self.seen_since = now;
        }
        let seen = self.seen.contains(&mac1) || self.seen_before.contains(&mac1);
        if seen {
            let known = self.waiting.iter().position(|h| h.h1_mac1 == mac1 && h.remote == from);
            if let Some(i) = known {
                let half_open = &self.waiting[i];
                let repeats = now - half_open.created < REPEAT_WINDOW;
                return if repeats { Verdict::Repeat(&half_open.h2) } else { Verdict::Silence };
            }
            if !self.may_be_overtaken(now, mac1) {
                return Verdict::Silence;
            }
        }
        // Not remembered: its repeat may find room.
        if self.count(Source::of(from)) >= PER_SOURCE_MAX {
            return Verdict::Silence;
        }
        if !seen {
            self.seen.insert(mac1);
        }
        Verdict::New
    }

    /// True if an H1 that was seen may come from an initiator whose own was overtaken by a copy.
    fn may_be_overtaken(&self, now: Time, mac1: [u8; 16]) -> bool {
        let mut copies = self.waiting.iter().filter(|h| h.h1_mac1 == mac1);
        let first = copies.next();
        first.is_some_and(|first| now - first.created >= COPY_AFTER)
            && 1 + copies.count() < COPIES_MAX
    }

    fn count(&self, source: Source) -> usize {
        let waiting = self.waiting.iter().filter(|h| Source::of(h.remote) == source).count();
        waiting + self.refused.iter().filter(|(_, refused)| *refused == source).count()
    }

    /// An H1 that was judged new did not open, or nothing could be agreed on.
    pub(crate) fn on_refused(&mut self, now: Time, from: PathAddr) {
        if self.refused.len() >= REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back((now, Source::of(from)));
    }

    pub(crate) fn insert(&mut self, half_open: HalfOpen, max: usize) {
        while self.waiting.len() >= max.max(1) {
            self.make_room();
        }
        self.waiting.push_back(half_open);
    }

    /// The oldest handshake of the source that has most gives way: who begins many pushes out its own.
    fn make_room(&mut self) {
        let mut counts: HashMap<Source, usize> = HashMap::new();
        for half_open in &self.waiting {
            *counts.entry(Source::of(half_open.remote)).or_default() += 1;
        }
        let most = counts.values().copied().max();
        let heaviest = |h: &HalfOpen| counts.get(&Source::of(h.remote)).copied() == most;
        if let Some(oldest) = self.waiting.iter().position(heaviest) {
            let gone = self.waiting.remove(oldest);
            // Its initiator repeats it, and may find room then.
            if let Some(HalfOpen { h1_mac1, .. }) = gone {
                self.seen.remove(&h1_mac1);
                self.seen_before.remove(&h1_mac1);
            }
        }
    }

    /// Finds the handshake that `try_h3` completes, and takes it out with those that the same H1 began elsewhere.
    pub(crate) fn complete<T>(
        &mut self,
        now: Time,
        from: PathAddr,
        mut try_h3: impl FnMut(&mut HalfOpen) -> Option<T>,
    ) -> Option<(HalfOpen, T)> {
        self.expire(now);
        for i in 0..self.waiting.len() {
            let half_open = &mut self.waiting[i];
            if half_open.remote != from {
                continue;
            }
            if let Some(done) = try_h3(half_open) {
                let half_open = self.waiting.remove(i).expect("index is in range");
                self.waiting.retain(|h| h.h1_mac1 != half_open.h1_mac1);
                return Some((half_open, done));
            }
        }
        None
    }

    fn expire(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|h| now - h.created >= LIFETIME) {
            self.waiting.pop_front();
        }
        while self.refused.front().is_some_and(|(at, _)| now - *at >= LIFETIME) {
            self.refused.pop_front();
        }
    }
}
