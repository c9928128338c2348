//! Handshakes a stranger began and did not finish: between our H2 and their H3 (SPEC §3.4).
//!
//! Bounded: the oldest gives way. A repeated H1 gets the identical H2 for 5 s, and every H1 that was seen is
//! remembered (as its mac1) for at least the time during which its clock would still be accepted.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use wraith_crypto::aead::Suite;
use wraith_noise::{InitiatorHello, Responder};

use crate::{PathAddr, Time};

/// An identical H1 from the same address gets the identical H2 for this long.
const REPEAT_WINDOW: Duration = Duration::from_secs(5);
/// A half-open handshake is forgotten after this long: the initiator has given up by then.
const LIFETIME: Duration = Duration::from_secs(15);
/// One generation of remembered values of mac1: twice the ±90 s for which a clock is accepted.
const SEEN_WINDOW: Duration = Duration::from_secs(180);
/// Gates in one generation (1 MiB); a flood of valid H1s shortens the memory instead of growing it.
const SEEN_MAX: usize = 1 << 16;
/// Half-open handshakes of one address at once.
const PER_ADDRESS_MAX: usize = 8;

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
        if self.seen.contains(&mac1) || self.seen_before.contains(&mac1) {
            let repeat = self
                .waiting
                .iter()
                .find(|h| h.h1_mac1 == mac1 && h.remote == from && now - h.created < REPEAT_WINDOW);
            return repeat.map_or(Verdict::Silence, |h| Verdict::Repeat(&h.h2));
        }
        // Not remembered: its repeat may find room.
        if self.waiting.iter().filter(|h| h.remote == from).count() >= PER_ADDRESS_MAX {
            return Verdict::Silence;
        }
        self.seen.insert(mac1);
        Verdict::New
    }

    pub(crate) fn insert(&mut self, half_open: HalfOpen, max: usize) {
        while self.waiting.len() >= max.max(1) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(half_open);
    }

    /// Finds the handshake that `try_h3` completes, and takes it out.
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
                return Some((half_open, done));
            }
        }
        None
    }

    fn expire(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|h| now - h.created >= LIFETIME) {
            self.waiting.pop_front();
        }
    }
}
