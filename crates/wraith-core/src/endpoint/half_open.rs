//! Half-open handshakes of initiators with an access key: between the first datagram of H1 and H3
//! (SPEC §3.4).
//!
//! H1, H2 and H3 are the three handshake messages. Half-open handshakes are bounded in total and
//! per [`Source`]. The limits apply before any curve computation, which begins with the second
//! datagram of H1. For 5 s, a retransmitted H1 gets the identical H2. If there is room, a received
//! H1 is remembered ([`ReplayCache`]).
//!
//! While the responder is under load (SPEC §3.6), an initiator must return a cookie, which proves
//! its address. A proven initiator competes only with other proven ones, and evicts the unproven.
//! Invariant: unproven initiators occupy at most half of the half-open handshakes. At most
//! [`FRESH_PER_SECOND`] of their H1s are processed per second.
//!
//! A copy of an H1 is indistinguishable from the original, so the first to arrive is answered. The
//! same H1 from another address gets a handshake of its own, with another H2, until one of these
//! handshakes is complete. An initiator can complete a handshake only if it receives at the
//! handshake's address.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use wraith_crypto::aead::Suite;
use wraith_noise::{DatagramFingerprint, Mac1Datagram, PendingH1, Responder};

use super::replay_cache::{REPLAY_CACHE_MAX, ReplayCache};
use crate::door::DoorId;
use crate::source::Source;
use crate::token_bucket::TokenBucket;
use crate::{PathAddr, Time};

/// Time for which an identical H1 from the same address gets the identical H2.
const REPEAT_WINDOW: Duration = Duration::from_secs(5);
/// Lifetime of a half-open handshake. The initiator gives up earlier.
const LIFETIME: Duration = Duration::from_secs(15);
/// Maximum number of half-open handshakes per source, including recently refused ones. Handshakes
/// of hosts that share an address complete within a round trip.
const PER_SOURCE_MAX: usize = 16;
/// H1s without a cookie that are processed per second. Each needs two key agreements, an ephemeral
/// key and an encapsulation: 120 to 150 µs, so 6 to 8 % of a core. Beyond this rate, the responder
/// demands a cookie, which costs the initiator a round trip.
const FRESH_PER_SECOND: u64 = 512;
/// Burst of H1s without a cookie: half of the default maximum of half-open handshakes.
const FRESH_BURST: Duration = Duration::from_millis(250);
/// Maximum number of remembered refusals.
const REFUSED_MAX: usize = 256;
/// Age of an H1 from which a copy from another address is treated as a retransmission. It is
/// slightly less than the initiator's first retransmission interval (SPEC §3.4). An earlier copy is
/// a replay that need not be answered.
const COPY_AFTER: Duration = Duration::from_millis(200);
/// Maximum number of addresses with the same H1.
const COPIES_MAX: usize = 8;

struct HalfOpen {
    attempt: Attempt,
    stage: Stage,
}

/// Origin of a half-open handshake.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) remote: PathAddr,
    /// The door of its access key.
    pub(crate) door: DoorId,
    /// ID of the H1, the same for all retransmissions and every mac2.
    h1_id: [u8; 16],
    /// The initiator has proven with a cookie that it receives at `remote`.
    pub(crate) proven: bool,
    created: Time,
}

enum Stage {
    /// The first datagram of H1 was received.
    Begun(PendingH1),
    /// The second datagram was received, and H2 was sent.
    Answered(Box<AnsweredH1>),
}

pub(crate) struct AnsweredH1 {
    pub(crate) responder: Responder,
    pub(crate) suite: Suite,
    pub(crate) h2: [Vec<u8>; 2],
    /// Name of the second datagram of H1, to recognise its retransmission.
    pub(crate) second: DatagramFingerprint,
    pub(crate) at: Time,
}

/// Outcome of the second datagram of an H1.
pub(crate) enum SecondDatagram {
    /// H1 is complete. Its place is free until it is [inserted again](HalfOpens::insert_answered).
    Whole(Attempt, PendingH1),
    /// A retransmission; carries the second datagram of the earlier H2.
    Repeat(Vec<u8>),
}

/// A handshake completed by H3.
pub(crate) struct CompletedHandshake<T> {
    pub(crate) door: DoorId,
    pub(crate) suite: Suite,
    /// Time of H2.
    pub(crate) answered_at: Time,
    /// Length of the longest datagram of H1.
    pub(crate) h1_bytes_max: usize,
    /// Content of H3.
    pub(crate) said: T,
}

pub(crate) struct HalfOpens {
    /// Maximum number of half-open handshakes.
    max: usize,
    /// Half-open handshakes, oldest first.
    waiting: VecDeque<HalfOpen>,
    /// Handshakes that cost curve work in vain, oldest first. They count against the limit per
    /// source.
    refused: VecDeque<Refused>,
    /// Budget of H1s without a cookie.
    fresh: TokenBucket,
    seen: ReplayCache,
}

struct Refused {
    at: Time,
    source: Source,
    proven: bool,
}

/// Decision about the first datagram of an H1 with a valid access key.
pub(crate) enum H1Decision<'a> {
    New,
    /// A retransmission; its handshake waits for the second datagram.
    Waits,
    /// A retransmission; carries the first datagram of the earlier H2.
    Repeat(&'a [u8]),
    /// The initiator must send it again with a cookie. Nothing is remembered.
    AskForCookie,
    Silence,
}

impl HalfOpens {
    /// Creates an empty set with `max` places, at least one.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            waiting: VecDeque::new(),
            refused: VecDeque::new(),
            fresh: TokenBucket::new(FRESH_PER_SECOND, FRESH_BURST),
            seen: ReplayCache::new(REPLAY_CACHE_MAX),
        }
    }

    /// Decides about an H1 by its ID, and remembers it unless there is no room for its handshake
    /// now. `proven`: it carries a cookie that proves the address `from`.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        from: PathAddr,
        id: [u8; 16],
        proven: bool,
    ) -> H1Decision<'_> {
        self.expire(now);
        let seen = self.seen.has(&id);
        if seen {
            let known =
                self.waiting.iter().position(|h| h.attempt.h1_id == id && h.attempt.remote == from);
            if let Some(i) = known {
                let becomes_proven = proven
                    && !self.waiting[i].attempt.proven
                    && self.count(Source::of(from), true) < PER_SOURCE_MAX;
                let half_open = &mut self.waiting[i];
                half_open.attempt.proven |= becomes_proven;
                let Stage::Answered(answered) = &half_open.stage else { return H1Decision::Waits };
                let repeats = now - answered.at < REPEAT_WINDOW;
                return if repeats {
                    H1Decision::Repeat(&answered.h2[0])
                } else {
                    H1Decision::Silence
                };
            }
            if !self.may_be_overtaken(now, id) {
                return H1Decision::Silence;
            }
        }
        let source_is_full = self.count(Source::of(from), proven) >= PER_SOURCE_MAX;
        // Not remembered: its retransmission may find room.
        if proven && source_is_full {
            return H1Decision::Silence;
        }
        if !proven && (source_is_full || self.is_under_load(now)) {
            return H1Decision::AskForCookie;
        }
        if !seen {
            self.seen.note(id);
        }
        if proven && self.count(Source::of(from), false) >= PER_SOURCE_MAX {
            self.give_way_to_proven(Source::of(from));
        }
        H1Decision::New
    }

    /// Returns true if the H1s of unproven initiators are not processed now. Otherwise uses one
    /// unit of their budget.
    fn is_under_load(&mut self, now: Time) -> bool {
        self.waiting.len() >= self.max.div_ceil(2) || !self.fresh.take(now, 1)
    }

    /// Returns true if a known H1 may come from its true initiator, overtaken by a copy.
    fn may_be_overtaken(&self, now: Time, id: [u8; 16]) -> bool {
        let mut copies = self.waiting.iter().filter(|h| h.attempt.h1_id == id);
        let first = copies.next();
        first.is_some_and(|first| now - first.attempt.created >= COPY_AFTER)
            && 1 + copies.count() < COPIES_MAX
    }

    /// Removes the oldest unproven entry of `source`, half-open or refused.
    fn give_way_to_proven(&mut self, source: Source) {
        let is_unproven =
            |attempt: &Attempt| !attempt.proven && Source::of(attempt.remote) == source;
        if let Some(i) = self.waiting.iter().position(|h| is_unproven(&h.attempt)) {
            self.remove(i);
        } else if let Some(i) = self.refused.iter().position(|r| !r.proven && r.source == source) {
            self.refused.remove(i);
        }
    }

    /// Removes a handshake. Its initiator may retransmit and find room later.
    fn remove(&mut self, i: usize) {
        if let Some(HalfOpen { attempt, .. }) = self.waiting.remove(i) {
            self.seen.forget(&attempt.h1_id);
        }
    }

    /// Removes the handshakes that began at this door.
    pub(crate) fn close_door(&mut self, door: DoorId) {
        for i in (0..self.waiting.len()).rev() {
            if self.waiting[i].attempt.door == door {
                self.remove(i);
            }
        }
    }

    /// Returns the number of handshakes of `source`; with `proven`, only those of proven addresses.
    fn count(&self, source: Source, proven: bool) -> usize {
        let waiting = self.waiting.iter().map(|h| (Source::of(h.attempt.remote), h.attempt.proven));
        let refused = self.refused.iter().map(|refused| (refused.source, refused.proven));
        waiting.chain(refused).filter(|(of, shown)| *of == source && *shown >= proven).count()
    }

    /// Handles the second datagram of an H1 after the first from `from`.
    pub(crate) fn follow(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &Mac1Datagram<'_>,
    ) -> Option<SecondDatagram> {
        self.expire(now);
        let follows = |half_open: &HalfOpen| match &half_open.stage {
            _ if half_open.attempt.remote != from => false,
            Stage::Begun(first) => first.is_second_datagram(datagram),
            Stage::Answered(answered) => answered.second == datagram.fingerprint(),
        };
        let i = self.waiting.iter().position(follows)?;
        let HalfOpen { attempt, stage } = self.waiting.remove(i)?;
        match stage {
            Stage::Begun(first) => Some(SecondDatagram::Whole(attempt, first)),
            Stage::Answered(answered) => {
                let repeats = now - answered.at < REPEAT_WINDOW;
                let h2 = repeats.then(|| SecondDatagram::Repeat(answered.h2[1].clone()));
                self.waiting.insert(i, HalfOpen { attempt, stage: Stage::Answered(answered) });
                h2
            }
        }
    }

    /// Returns true if the ephemeral key with this ID was in no other authentic H1.
    pub(crate) fn is_new(&self, now: Time, ephemeral: &[u8; 16], attempt: &Attempt) -> bool {
        self.seen.is_new_ephemeral(now, ephemeral, &attempt.h1_id)
    }

    /// Returns true if the replay memory has dropped nothing so far.
    pub(crate) const fn remembers_every_h1(&self) -> bool {
        self.seen.is_complete()
    }

    /// Records that the H1 of `attempt`, with this ephemeral key, is authentic. Returns true for the
    /// first H1 with this key.
    pub(crate) fn on_authentic(
        &mut self,
        now: Time,
        ephemeral: [u8; 16],
        attempt: &Attempt,
    ) -> bool {
        self.seen.note_ephemeral(now, ephemeral, attempt.h1_id)
    }

    /// Refuses all copies of the authentic H1 with this ephemeral key.
    pub(crate) fn on_stale(&mut self, ephemeral: &[u8; 16]) {
        self.seen.refuse(ephemeral);
    }

    /// Handles an H1 that failed to open. Its first datagram may be a copy of an honest
    /// initiator's, with the true H1 still to come. The true one must not be treated as a replay,
    /// so the ID is forgotten unless another handshake has it.
    pub(crate) fn on_unauthentic(&mut self, now: Time, attempt: &Attempt) {
        self.on_refused(now, attempt.remote, attempt.proven);
        self.forget(attempt);
    }

    /// Handles a complete H1 that has no room any more. Its retransmission may find room.
    pub(crate) fn on_no_room(&mut self, attempt: &Attempt) {
        self.forget(attempt);
    }

    /// Forgets an H1, unless another handshake has it.
    fn forget(&mut self, attempt: &Attempt) {
        if !self.waiting.iter().any(|h| h.attempt.h1_id == attempt.h1_id) {
            self.seen.forget(&attempt.h1_id);
        }
    }

    /// Records an H1 that was judged new and cost work in vain.
    pub(crate) fn on_refused(&mut self, now: Time, from: PathAddr, proven: bool) {
        if self.refused.len() >= REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back(Refused { at: now, source: Source::of(from), proven });
    }

    /// Inserts the first datagram of an H1 that was judged new. It waits for the second.
    pub(crate) fn insert_begun(
        &mut self,
        now: Time,
        remote: PathAddr,
        door: DoorId,
        first: PendingH1,
        proven: bool,
    ) {
        let attempt = Attempt { remote, door, h1_id: first.id(), proven, created: now };
        self.insert(HalfOpen { attempt, stage: Stage::Begun(first) });
    }

    /// Inserts an answered H1. It waits for H3.
    pub(crate) fn insert_answered(&mut self, attempt: Attempt, answered: AnsweredH1) {
        self.insert(HalfOpen { attempt, stage: Stage::Answered(Box::new(answered)) });
    }

    fn insert(&mut self, half_open: HalfOpen) {
        while self.waiting.len() >= self.max {
            self.make_room();
        }
        // Oldest first: an answered handshake returns to its place.
        let created = half_open.attempt.created;
        let after = self.waiting.partition_point(|other| other.attempt.created <= created);
        self.waiting.insert(after, half_open);
    }

    /// Evicts one handshake: unproven ones before proven ones, and of these the oldest of the
    /// source with the most. So a source that begins many handshakes evicts its own.
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

    /// Finds the handshake that `try_h3` completes. Removes it and all others of the same H1.
    pub(crate) fn complete<T>(
        &mut self,
        now: Time,
        from: PathAddr,
        mut try_h3: impl FnMut(DoorId, &mut Responder) -> Option<T>,
    ) -> Option<CompletedHandshake<T>> {
        self.expire(now);
        let mut here = self.waiting.iter_mut().filter(|h| h.attempt.remote == from);
        let (id, completed) = here.find_map(|HalfOpen { attempt, stage }| {
            let Stage::Answered(answered) = stage else { return None };
            let door = attempt.door;
            let said = try_h3(door, &mut answered.responder)?;
            let AnsweredH1 { suite, at: answered_at, .. } = **answered;
            let h1_bytes_max = answered.responder.h1_bytes_max();
            let completed = CompletedHandshake { door, suite, answered_at, h1_bytes_max, said };
            Some((attempt.h1_id, completed))
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
