//! Keys of messages that have not arrived: MKSKIPPED of the specification. Each key has an age.
//!
//! Keys that were skipped together stay together in a run of fixed size, because growing tables
//! would copy secrets.
//!
//! The header key of an ended chain recognizes its messages. There are three kinds of ended chains,
//! and of each kind the oldest are dropped beyond a limit:
//!
//! | chains | limit | a message of them that has no key |
//! |---|---|---|
//! | with held keys | [`MISSING_CHAINS_MAX`]; beyond it the oldest chain becomes a forgotten one | too old, or replayed |
//! | forgotten: all keys were used or dropped | [`FORGOTTEN_CHAINS_MAX`] | too old, or replayed |
//! | complete: all keys were used | [`COMPLETE_CHAINS_MAX`] | replayed |
//!
//! Invariants:
//! - At most [`SKIPPED_MAX`] keys are held, in at most [`PLACES_MAX`] places.
//! - No run is empty.
//! - Runs are in order of their age: first those of the ended chains, the oldest chain first, then
//!   those of the current chain.

use std::collections::VecDeque;
use std::time::Duration;

use super::error::DecryptError;
use super::keys::Secret;
use crate::codec::{InvalidEncoding, Reader, Writer};

/// Maximum number of keys that are kept of a gap: those of the latest messages in it. A message may
/// reveal two gaps, in its chain and at the end of the one before.
pub const SKIP_MAX: u32 = 1000;
/// Maximum number of held keys of missing messages. Beyond it the oldest are evicted.
pub const SKIPPED_MAX: usize = 2000;
/// Lifetime of a missing message's key, by the time of
/// [`Ratchet::set_time`](super::Ratchet::set_time): a week.
pub const SKIPPED_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Lifetime of a missing message's key, in opened messages. The message that revealed the gap is
/// the first.
pub const SKIPPED_LIFETIME_MESSAGES: u64 = 10_000;
/// Maximum number of ended chains (the peer's messages between two turns) with held keys. Beyond it
/// the keys of the oldest are dropped.
pub const MISSING_CHAINS_MAX: usize = 256;
/// Number of further ended chains, with dropped keys, that are recognized. Their missing messages
/// are refused as [`DecryptError::TooOld`], those of earlier chains as
/// [`DecryptError::Unauthentic`].
pub const FORGOTTEN_CHAINS_MAX: usize = 256;
/// Number of ended chains without missing messages that are recognized. Their messages are refused
/// as [`DecryptError::Replayed`], those of earlier chains as [`DecryptError::Unauthentic`].
pub const COMPLETE_CHAINS_MAX: usize = 16;
/// Maximum number of places for keys. An empty place belongs to a message that opened less than a
/// lifetime ago, or to a dropped key of the oldest run.
const PLACES_MAX: usize = SKIPPED_MAX + SKIPPED_LIFETIME_MESSAGES as usize + SKIP_MAX as usize;
/// Maximum number of ended chains.
const ENDED_CHAINS_MAX: usize = MISSING_CHAINS_MAX + FORGOTTEN_CHAINS_MAX + COMPLETE_CHAINS_MAX;

/// A receiving chain that is recognized.
#[derive(Clone, Copy)]
pub(super) enum KnownChain {
    Current,
    /// Position among the ended chains.
    Ended(usize),
}

/// Keys of consecutive messages of one chain.
struct SkippedRun {
    first: u32,
    time: Duration,
    received: u64,
    /// Number of keys that are present.
    held: usize,
    /// `None` once the message has arrived.
    keys: Box<[Option<Secret>]>,
}

impl SkippedRun {
    fn index(&self, number: u32) -> Option<usize> {
        let offset = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (offset < self.keys.len()).then_some(offset)
    }

    fn end(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.keys.len()).unwrap_or(u32::MAX))
    }
}

/// The keys of one chain.
#[derive(Default)]
struct ChainKeys {
    runs: VecDeque<SkippedRun>,
    /// The keys of messages below this number may have been dropped; 0 if no key was.
    dropped_below: u32,
}

impl ChainKeys {
    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn held(&self) -> usize {
        self.runs.iter().map(|run| run.held).sum()
    }

    /// Returns the key of a skipped message.
    fn get(&self, number: u32) -> Result<&Secret, DecryptError> {
        let find = |run: &SkippedRun| run.index(number);
        let key = self.runs.iter().find_map(|run| run.keys[find(run)?].as_ref());
        key.ok_or(match number < self.dropped_below {
            true => DecryptError::TooOld,
            false => DecryptError::Replayed,
        })
    }

    /// Wipes a used key.
    fn remove(&mut self, number: u32) {
        for at in 0..self.runs.len() {
            let run = &mut self.runs[at];
            if let Some(offset) = run.index(number)
                && run.keys[offset].take().is_some()
            {
                run.held -= 1;
                if run.held == 0 {
                    self.runs.remove(at);
                }
                return;
            }
        }
    }

    /// Drops all keys. Returns their number.
    fn drop_all(&mut self) -> usize {
        let held = self.held();
        while !self.is_empty() {
            self.drop_first(SKIPPED_MAX);
        }
        held
    }

    /// Drops at most `count` of the oldest keys, all from the first run. Returns their number.
    fn drop_first(&mut self, count: usize) -> usize {
        let Some(run) = self.runs.front_mut() else { return 0 };
        if run.held <= count {
            let (held, end) = (run.held, run.end());
            self.runs.pop_front();
            self.dropped_below = self.dropped_below.max(end);
            return held;
        }
        let mut dropped = 0;
        for (key, number) in run.keys.iter_mut().zip(run.first..) {
            if dropped == count {
                break;
            }
            if key.take().is_some() {
                dropped += 1;
                self.dropped_below = self.dropped_below.max(number.saturating_add(1));
            }
        }
        run.held -= dropped;
        dropped
    }
}

/// A chain that was followed by another. Boxed: the key stays in place when the list moves.
struct EndedChain {
    header: Box<Secret>,
    /// Number of messages, by the peer's statement.
    len: u32,
    keys: ChainKeys,
}

/// The keys of all known chains, and the two clocks that measure their age.
#[derive(Default)]
pub(super) struct SkippedKeys {
    current: ChainKeys,
    /// The oldest first.
    ended: VecDeque<EndedChain>,
    held: usize,
    time: Duration,
    received: u64,
}

impl SkippedKeys {
    /// Returns the number of held keys.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns the key of a skipped message, until [`Self::remove`].
    ///
    /// # Errors
    /// [`DecryptError::Replayed`], [`DecryptError::TooOld`]; [`DecryptError::Violation`] if the
    /// chain ended before this number.
    pub(super) fn get(&self, chain: KnownChain, number: u32) -> Result<&Secret, DecryptError> {
        match chain {
            KnownChain::Current => self.current.get(number),
            KnownChain::Ended(at) if number >= self.ended[at].len => Err(DecryptError::Violation),
            KnownChain::Ended(at) => self.ended[at].keys.get(number),
        }
    }

    /// Wipes a used key.
    pub(super) fn remove(&mut self, chain: KnownChain, number: u32) {
        let keys = match chain {
            KnownChain::Current => &mut self.current,
            KnownChain::Ended(at) => &mut self.ended[at].keys,
        };
        let before = keys.held();
        keys.remove(number);
        self.held -= before - keys.held();
        self.drop_chains();
    }

    /// Adds the keys of message `first` of the current chain and of those behind it. `is_cut` if
    /// keys before `first` are dropped. Evicts the oldest keys beyond the limit.
    pub(super) fn add(&mut self, first: u32, keys: Box<[Option<Secret>]>, is_cut: bool) {
        if is_cut {
            self.current.dropped_below = first;
        }
        if keys.is_empty() {
            return;
        }
        let (time, received, held) = (self.time, self.received, keys.len());
        self.current.runs.push_back(SkippedRun { first, time, received, held, keys });
        self.held += held;
        while self.held > SKIPPED_MAX {
            self.drop_oldest(self.held - SKIPPED_MAX);
        }
        // Only a tampered state has so many places that keys expire too late.
        while self.places() > PLACES_MAX {
            self.drop_oldest(SKIPPED_MAX);
        }
        self.drop_chains();
    }

    /// Returns the number of places for keys.
    fn places(&self) -> usize {
        let runs = self.ended.iter().flat_map(|chain| &chain.keys.runs);
        runs.chain(&self.current.runs).map(|run| run.keys.len()).sum()
    }

    /// Ends the current chain of `len` messages.
    pub(super) fn end_chain(&mut self, header: Secret, len: u32) {
        let keys = std::mem::take(&mut self.current);
        self.ended.push_back(EndedChain { header: Box::new(header), len, keys });
        self.drop_chains();
    }

    /// Iterates over the header keys of ended chains, the latest first.
    pub(super) fn ended_headers(&self) -> impl Iterator<Item = (KnownChain, &Secret)> {
        let all = self.ended.iter().enumerate().rev();
        all.map(|(at, chain)| (KnownChain::Ended(at), &*chain.header))
    }

    /// Counts an opened message.
    pub(super) fn count_received(&mut self) {
        self.received = self.received.saturating_add(1);
        self.drop_expired();
    }

    /// Returns the time, as set by the caller.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// Advances the time to `time`; never moves it back.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = self.time.max(time);
        self.drop_expired();
    }

    /// Drops expired runs. The first unexpired run ends the search.
    fn drop_expired(&mut self) {
        let (time, received) = (self.time, self.received);
        let is_expired = |run: &SkippedRun| {
            time.saturating_sub(run.time) >= SKIPPED_LIFETIME
                || received.saturating_sub(run.received) >= SKIPPED_LIFETIME_MESSAGES
        };
        let before = self.held;
        while self.oldest().and_then(|keys| keys.runs.front()).is_some_and(is_expired) {
            self.drop_oldest(SKIPPED_MAX);
        }
        if self.held < before {
            self.drop_chains();
        }
    }

    /// Returns the chain with the oldest keys.
    fn oldest(&mut self) -> Option<&mut ChainKeys> {
        if self.held == 0 {
            return None;
        }
        let ended = self.ended.iter_mut().map(|chain| &mut chain.keys);
        ended.chain([&mut self.current]).find(|keys| !keys.is_empty())
    }

    /// Drops at most `count` keys of the oldest run.
    fn drop_oldest(&mut self, count: usize) {
        let dropped = self.oldest().map_or(0, |keys| keys.drop_first(count));
        self.held -= dropped;
    }

    /// Keeps the latest chains of each kind.
    fn drop_chains(&mut self) {
        let (mut missing, mut forgotten, mut complete) =
            (MISSING_CHAINS_MAX, FORGOTTEN_CHAINS_MAX, COMPLETE_CHAINS_MAX);
        for at in (0..self.ended.len()).rev() {
            let keys = &mut self.ended[at].keys;
            if !keys.is_empty() && missing == 0 {
                self.held -= keys.drop_all();
            }
            if keys.is_empty() {
                keys.runs = VecDeque::new();
            }
            let left = match (keys.is_empty(), keys.dropped_below > 0) {
                (false, _) => &mut missing,
                (true, true) => &mut forgotten,
                (true, false) => &mut complete,
            };
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => drop(self.ended.remove(at)),
            }
        }
    }

    /// Returns an upper bound of the length that [`Self::save`] writes.
    pub(super) fn saved_bytes(&self) -> usize {
        let keys = self.ended.iter().map(|chain| chain.keys.saved_bytes());
        64 + 36 * self.ended.len() + keys.sum::<usize>() + self.current.saved_bytes()
    }

    pub(super) fn save(&self, writer: &mut Writer) {
        write_time(writer, self.time);
        writer.u64(self.received);
        self.current.save(writer);
        writer.count(self.ended.len());
        for chain in &self.ended {
            writer.bytes(&chain.header[..]).u32(chain.len);
            chain.keys.save(writer);
        }
    }

    pub(super) fn restore(reader: &mut Reader) -> Result<Self, InvalidEncoding> {
        let mut this =
            Self { time: read_time(reader)?, received: reader.u64()?, ..Self::default() };
        this.current = ChainKeys::restore(reader)?;
        for _ in 0..reader.count(ENDED_CHAINS_MAX)? {
            let (header, len) = (Box::new(reader.secret()?), reader.u32()?);
            let keys = ChainKeys::restore(reader)?;
            this.ended.push_back(EndedChain { header, len, keys });
        }
        this.held = this.ended.iter().map(|chain| chain.keys.held()).sum();
        this.held += this.current.held();
        let (held, chains) = (this.held, this.ended.len());
        this.drop_chains();
        let is_good = held <= SKIPPED_MAX
            && this.places() <= PLACES_MAX
            && (held, chains) == (this.held, this.ended.len());
        if is_good { Ok(this) } else { Err(InvalidEncoding) }
    }
}

impl ChainKeys {
    fn saved_bytes(&self) -> usize {
        8 + self.runs.iter().map(|run| 28 + run.keys.len() + 32 * run.held).sum::<usize>()
    }

    fn save(&self, writer: &mut Writer) {
        writer.u32(self.dropped_below).count(self.runs.len());
        for run in &self.runs {
            writer.u32(run.first);
            write_time(writer, run.time);
            writer.u64(run.received).count(run.keys.len());
            for key in &run.keys {
                writer.option(key.as_ref(), |writer, key| {
                    writer.bytes(&key[..]);
                });
            }
        }
    }

    fn restore(reader: &mut Reader) -> Result<Self, InvalidEncoding> {
        let mut this = Self { dropped_below: reader.u32()?, runs: VecDeque::new() };
        for _ in 0..reader.count(SKIPPED_MAX)? {
            let (first, time, received) = (reader.u32()?, read_time(reader)?, reader.u64()?);
            let count = reader.count(SKIP_MAX as usize)?;
            let mut keys = Vec::with_capacity(count);
            for _ in 0..count {
                keys.push(reader.option(Reader::secret)?);
            }
            let (held, keys) = (keys.iter().flatten().count(), keys.into_boxed_slice());
            if held == 0 {
                return Err(InvalidEncoding);
            }
            this.runs.push_back(SkippedRun { first, time, received, held, keys });
        }
        Ok(this)
    }
}

fn write_time(writer: &mut Writer, time: Duration) {
    writer.u64(time.as_secs()).u32(time.subsec_nanos());
}

fn read_time(reader: &mut Reader) -> Result<Duration, InvalidEncoding> {
    let (seconds, nanos) = (reader.u64()?, reader.u32()?);
    if nanos < 1_000_000_000 { Ok(Duration::new(seconds, nanos)) } else { Err(InvalidEncoding) }
}
