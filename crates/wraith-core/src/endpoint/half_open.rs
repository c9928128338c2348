//! Handshakes somebody who was invited began and did not finish: between the first datagram of H1 and H3 (SPEC §3.4).
//!
//! Bounded in all, and for each [`Source`]; all of that is judged before any curve work, which begins when the second datagram
//! is there. A repeated H1 gets the identical H2 for 5 s, and every H1 that was seen is remembered ([`Seen`]) for the time during
//! which its clock would still be accepted, as long as there is room.
//!
//! Under load (SPEC §3.6) only who shows a cookie, and so that it receives where it says, gets further. Whoever did goes before
//! who did not: it is counted among its like only, and pushes out the others. Invariant: who has shown nothing takes at most
//! half of the places and [`FRESH_PER_SECOND`] curve computations a second.
//!
//! Nobody can tell a copy of H1 from the original, so the first to arrive is answered. Who repeats the same H1 from
//! another address while nobody has completed the handshake gets one of its own, with another H2: to complete it takes
//! having received there.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use wraith_crypto::aead::Suite;
use wraith_noise::{DatagramName, FirstDatagram, Gated, Responder};

use super::seen::{SEEN_MAX, Seen};
use super::source::Source;
use crate::token_bucket::TokenBucket;
use crate::{PathAddr, Time};

/// An identical H1 from the same address gets the identical H2 for this long.
const REPEAT_WINDOW: Duration = Duration::from_secs(5);
/// A half-open handshake is forgotten after this long: the initiator has given up by then.
const LIFETIME: Duration = Duration::from_secs(15);
/// Half-open handshakes of one source at once, those refused lately included: whoever shares an address is done within a
/// round trip.
const PER_SOURCE_MAX: usize = 16;
/// H1s a second that are read although they show no cookie. Each costs two key agreements, an ephemeral key and an encapsulation, 120 to 150 µs: 6 to 8 % of
/// a core. More newcomers than that in a second are asked for a round trip.
const FRESH_PER_SECOND: u64 = 512;
/// As many at once as half of the places by default.
const FRESH_BURST: Duration = Duration::from_millis(250);
/// Refused handshakes that are remembered.
const REFUSED_MAX: usize = 256;
/// A copy of an H1 from elsewhere counts as somebody's repeat after this long: a little less than the initiator's first
/// repeat comes (SPEC §3.4). What comes earlier is a replay that need not be answered.
const COPY_AFTER: Duration = Duration::from_millis(200);
/// Addresses that may take part with the same H1.
const COPIES_MAX: usize = 8;

struct HalfOpen {
    attempt: Attempt,
    stage: Stage,
}

/// Whose handshake it is.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) remote: PathAddr,
    /// What names the H1, however often it was sent, and with what mac2.
    h1_id: [u8; 16],
    /// The initiator has shown that it receives at `remote`.
    pub(crate) proven: bool,
    created: Time,
}

enum Stage {
    /// The first datagram of H1 came.
    Begun(FirstDatagram),
    /// The second one came, too.
    Answered(Box<Answered>),
}

pub(crate) struct Answered {
    pub(crate) responder: Responder,
    pub(crate) suite: Suite,
    pub(crate) h2: [Vec<u8>; 2],
    /// The second datagram of H1, to tell a repeat.
    pub(crate) second: DatagramName,
    pub(crate) at: Time,
}

/// What the second datagram of an H1 makes.
pub(crate) enum Followed {
    /// H1 is complete. Its place is free until it is [taken again](HalfOpens::insert_answered).
    Whole(Attempt, FirstDatagram),
    /// It was answered with this before.
    Repeat(Vec<u8>),
}

/// A handshake that H3 ended.
pub(crate) struct Completed<T> {
    pub(crate) suite: Suite,
    /// When H2 was said.
    pub(crate) answered_at: Time,
    /// What H3 said.
    pub(crate) said: T,
}

pub(crate) struct HalfOpens {
    /// Places in all.
    max: usize,
    /// Oldest first.
    waiting: VecDeque<HalfOpen>,
    /// Handshakes that cost curve work for nothing, oldest first: they count as if they waited.
    refused: VecDeque<Refused>,
    /// H1s that may be read without a cookie.
    fresh: TokenBucket,
    seen: Seen,
}

struct Refused {
    at: Time,
    source: Source,
    proven: bool,
}

/// What to do with the first datagram of an H1 that came through a door.
pub(crate) enum Verdict<'a> {
    New,
    /// It is here already.
    Waits,
    /// It was answered with this, the first datagram of H2.
    Repeat(&'a [u8]),
    /// It may come again with a cookie. Nothing of it is remembered.
    AskForCookie,
    Silence,
}

impl HalfOpens {
    /// With `max` places, one at least.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            waiting: VecDeque::new(),
            refused: VecDeque::new(),
            fresh: TokenBucket::new(FRESH_PER_SECOND, FRESH_BURST),
            seen: Seen::new(SEEN_MAX),
        }
    }

    /// Judges an H1 by what names it, and remembers it unless there is no room for its handshake now. `proven`: it shows
    /// that its sender receives at `from`.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        from: PathAddr,
        id: [u8; 16],
        proven: bool,
    ) -> Verdict<'_> {
        self.expire(now);
        let seen = self.seen.has(now, &id);
        if seen {
            let known =
                self.waiting.iter().position(|h| h.attempt.h1_id == id && h.attempt.remote == from);
            if let Some(i) = known {
                let becomes_proven = proven
                    && !self.waiting[i].attempt.proven
                    && self.count(Source::of(from), true) < PER_SOURCE_MAX;
                let half_open = &mut self.waiting[i];
                half_open.attempt.proven |= becomes_proven;
                let Stage::Answered(answered) = &half_open.stage else { return Verdict::Waits };
                let repeats = now - answered.at < REPEAT_WINDOW;
                return if repeats { Verdict::Repeat(&answered.h2[0]) } else { Verdict::Silence };
            }
            if !self.may_be_overtaken(now, id) {
                return Verdict::Silence;
            }
        }
        let source_is_full = self.count(Source::of(from), proven) >= PER_SOURCE_MAX;
        // Not remembered: its repeat may find room.
        if proven && source_is_full {
            return Verdict::Silence;
        }
        if !proven && (source_is_full || self.is_under_load(now)) {
            return Verdict::AskForCookie;
        }
        if !seen {
            self.seen.note(now, id);
        }
        if proven && self.count(Source::of(from), false) >= PER_SOURCE_MAX {
            self.give_way_to_proven(Source::of(from));
        }
        Verdict::New
    }

    /// True if whoever has shown nothing gets nothing more now; else it takes its share of what costs.
    fn is_under_load(&mut self, now: Time) -> bool {
        self.waiting.len() >= self.max.div_ceil(2) || !self.fresh.take(now, 1)
    }

    /// True if an H1 that was seen may come from an initiator whose own was overtaken by a copy.
    fn may_be_overtaken(&self, now: Time, id: [u8; 16]) -> bool {
        let mut copies = self.waiting.iter().filter(|h| h.attempt.h1_id == id);
        let first = copies.next();
        first.is_some_and(|first| now - first.attempt.created >= COPY_AFTER)
            && 1 + copies.count() < COPIES_MAX
    }

    /// The oldest one of `source` that has shown nothing, waiting or refused, counts no more.
    fn give_way_to_proven(&mut self, source: Source) {
        let is_unproven =
            |attempt: &Attempt| !attempt.proven && Source::of(attempt.remote) == source;
        if let Some(i) = self.waiting.iter().position(|h| is_unproven(&h.attempt)) {
            self.remove(i);
        } else if let Some(i) = self.refused.iter().position(|r| !r.proven && r.source == source) {
            self.refused.remove(i);
        }
    }

    /// Takes one out whose initiator repeats it, and may find room then.
    fn remove(&mut self, i: usize) {
        if let Some(HalfOpen { attempt, .. }) = self.waiting.remove(i) {
            self.seen.forget(&attempt.h1_id);
        }
    }

    /// Handshakes of `source`; `proven`: only those that have shown where they come from.
    fn count(&self, source: Source, proven: bool) -> usize {
        let waiting = self.waiting.iter().map(|h| (Source::of(h.attempt.remote), h.attempt.proven));
        let refused = self.refused.iter().map(|refused| (refused.source, refused.proven));
        waiting.chain(refused).filter(|(of, shown)| *of == source && *shown >= proven).count()
    }

    /// Takes the second datagram of an H1 whose first one came from `from`.
    pub(crate) fn follow(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &Gated<'_>,
    ) -> Option<Followed> {
        self.expire(now);
        let follows = |half_open: &HalfOpen| match &half_open.stage {
            _ if half_open.attempt.remote != from => false,
            Stage::Begun(first) => first.is_followed_by(datagram),
            Stage::Answered(answered) => answered.second == datagram.name(),
        };
        let i = self.waiting.iter().position(follows)?;
        let HalfOpen { attempt, stage } = self.waiting.remove(i)?;
        match stage {
            Stage::Begun(first) => Some(Followed::Whole(attempt, first)),
            Stage::Answered(answered) => {
                let repeats = now - answered.at < REPEAT_WINDOW;
                let h2 = repeats.then(|| Followed::Repeat(answered.h2[1].clone()));
                self.waiting.insert(i, HalfOpen { attempt, stage: Stage::Answered(answered) });
                h2
            }
        }
    }

    /// Whether the ephemeral key of an H1, which this names, was in no other authentic H1.
    pub(crate) fn is_new(&mut self, now: Time, ephemeral: &[u8; 16], attempt: &Attempt) -> bool {
        self.seen.is_new_ephemeral(now, ephemeral, &attempt.h1_id)
    }

    /// The H1 of `attempt`, with this ephemeral key, is authentic.
    pub(crate) fn on_authentic(&mut self, now: Time, ephemeral: [u8; 16], attempt: &Attempt) {
        self.seen.note_ephemeral(now, ephemeral, attempt.h1_id);
    }

    /// An H1 did not open. Its first datagram may be a copy of somebody's whose own will come, so that is not taken for a replay; unless
    /// another H1 with it is under way.
    pub(crate) fn on_unauthentic(&mut self, now: Time, attempt: &Attempt) {
        self.on_refused(now, attempt.remote, attempt.proven);
        if !self.waiting.iter().any(|h| h.attempt.h1_id == attempt.h1_id) {
            self.seen.forget(&attempt.h1_id);
        }
    }

    /// An H1 that was judged new cost work, and nothing came of it.
    pub(crate) fn on_refused(&mut self, now: Time, from: PathAddr, proven: bool) {
        if self.refused.len() >= REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back(Refused { at: now, source: Source::of(from), proven });
    }

    /// The first datagram of an H1 that was judged new waits for the second.
    pub(crate) fn insert_begun(
        &mut self,
        now: Time,
        remote: PathAddr,
        first: FirstDatagram,
        proven: bool,
    ) {
        let attempt = Attempt { remote, h1_id: first.id(), proven, created: now };
        self.insert(HalfOpen { attempt, stage: Stage::Begun(first) });
    }

    /// A whole H1 was answered, and waits for H3.
    pub(crate) fn insert_answered(&mut self, attempt: Attempt, answered: Answered) {
        self.insert(HalfOpen { attempt, stage: Stage::Answered(Box::new(answered)) });
    }

    fn insert(&mut self, half_open: HalfOpen) {
        while self.waiting.len() >= self.max {
            self.make_room();
        }
        // One that is answered takes its place again: oldest first.
        let created = half_open.attempt.created;
        let after = self.waiting.partition_point(|other| other.attempt.created <= created);
        self.waiting.insert(after, half_open);
    }

    /// One that has shown nothing gives way before those that have; of its like the oldest of the source that has most: who
    /// begins many pushes out its own.
    fn make_room(&mut self) {
        let proven = self.waiting.iter().all(|h| h.attempt.proven);
        let mut counts: HashMap<Source, usize> = HashMap::new();
        let attempts = self.waiting.iter().map(|h| &h.attempt);
        for attempt in attempts.filter(|attempt| attempt.proven == proven) {
            *counts.entry(Source::of(attempt.remote)).or_default() += 1;
        }
        let most = counts.values().copied().max();
        let heaviest = |HalfOpen { attempt, .. }: &HalfOpen| {
            attempt.proven == proven && counts.get(&Source::of(attempt.remote)).copied() == most
        };
        if let Some(oldest) = self.waiting.iter().position(heaviest) {
            self.remove(oldest);
        }
    }

    /// Finds the handshake that `try_h3` completes, and takes it out with those that the same H1 began elsewhere.
    pub(crate) fn complete<T>(
        &mut self,
        now: Time,
        from: PathAddr,
        mut try_h3: impl FnMut(&mut Responder) -> Option<T>,
    ) -> Option<Completed<T>> {
        self.expire(now);
        let mut here = self.waiting.iter_mut().filter(|h| h.attempt.remote == from);
        let (id, completed) = here.find_map(|HalfOpen { attempt, stage }| {
            let Stage::Answered(answered) = stage else { return None };
            let said = try_h3(&mut answered.responder)?;
            let Answered { suite, at: answered_at, .. } = **answered;
            Some((attempt.h1_id, Completed { suite, answered_at, said }))
        })?;
        self.waiting.retain(|h| h.attempt.h1_id != id);
        Some(completed)
    }

    fn expire(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|h| now - h.attempt.created >= LIFETIME) {
            self.waiting.pop_front();
        }
        while self.refused.front().is_some_and(|refused| now - refused.at >= LIFETIME) {
            self.refused.pop_front();
        }
    }
}
