//! Keys of messages that have not arrived: MKSKIPPED of the specification. Each key has an age.
//!
//! Keys that were skipped together stay together in a batch of fixed size, because growing tables
//! would copy secrets. The header key of an ended chain is held as long as one of its batches.
//!
//! Invariants:
//! - At most [`SKIPPED_MAX`] keys and [`OLD_CHAINS_MAX`] old chains are held.
//! - No batch is empty.
//! - Each batch belongs to the current receiving chain or to an old one.

use std::collections::VecDeque;
use std::time::Duration;

use super::codec::{InvalidEncoding, Reader, Writer};
use super::keys::Secret;

/// Maximum number of missing messages in front of one that opens, in its chain and in the one
/// before.
pub const SKIP_MAX: u32 = 1000;
/// Maximum number of held keys of missing messages. Beyond it the oldest are evicted.
pub const SKIPPED_MAX: usize = 2000;
/// Lifetime of a missing message's key, by the time of
/// [`Ratchet::set_time`](super::Ratchet::set_time): a week.
pub const SKIPPED_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Lifetime of a missing message's key, in opened messages. The message that revealed the gap is
/// the first.
pub const SKIPPED_LIFETIME_MESSAGES: u64 = 10_000;
/// Maximum number of ended chains with missing messages. Each adds one header key to try on a
/// message.
pub const OLD_CHAINS_MAX: usize = 8;

/// Keys of consecutive messages of one chain.
struct SkippedRun {
    chain: u32,
    first: u32,
    time: Duration,
    received: u64,
    /// Number of keys that are present.
    held: usize,
    /// `None` once the message has arrived.
    keys: Box<[Option<Secret>]>,
}

impl SkippedRun {
    fn index(&self, chain: u32, number: u32) -> Option<usize> {
        let offset = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (self.chain == chain && offset < self.keys.len()).then_some(offset)
    }

    /// Wipes the first `count` held keys.
    fn drop_first(&mut self, count: usize) {
        for key in self.keys.iter_mut().filter(|key| key.is_some()).take(count) {
            *key = None;
            self.held -= 1;
        }
    }
}

/// An ended chain. Boxed: the key stays in place when the list moves.
struct OldChain {
    id: u32,
    header: Box<Secret>,
}

/// The keys, oldest batch first, and the two clocks that measure their age.
#[derive(Default)]
pub(super) struct SkippedKeys {
    batches: VecDeque<SkippedRun>,
    old_chains: VecDeque<OldChain>,
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
    pub(super) fn get(&self, chain: u32, number: u32) -> Option<&Secret> {
        self.batches
            .iter()
            .find_map(|batch| batch.index(chain, number).and_then(|at| batch.keys[at].as_ref()))
    }

    /// Wipes a used key.
    pub(super) fn remove(&mut self, chain: u32, number: u32) {
        let found = self.batches.iter_mut().enumerate().find_map(|(which, batch)| {
            let at = batch.index(chain, number)?;
            batch.keys[at].take()?;
            batch.held -= 1;
            Some((which, batch.held))
        });
        let Some((which, left)) = found else { return };
        self.held -= 1;
        if left == 0 {
            self.batches.remove(which);
            self.drop_chains();
        }
    }

    /// Adds the keys of message `first` and of those behind it. Evicts the oldest keys beyond the
    /// limit.
    pub(super) fn add(&mut self, chain: u32, first: u32, keys: Box<[Option<Secret>]>) {
        if keys.is_empty() {
            return;
        }
        let (time, received, held) = (self.time, self.received, keys.len());
        self.batches.push_back(SkippedRun { chain, first, time, received, held, keys });
        self.held += held;
        while self.held > SKIPPED_MAX {
            let excess = self.held - SKIPPED_MAX;
            let oldest = self.batches.front_mut().expect("what is held is in a batch");
            if oldest.held > excess {
                oldest.drop_first(excess);
                self.held = SKIPPED_MAX;
            } else {
                self.drop_oldest();
            }
        }
    }

    /// Ends the current chain. Its header key is held while a message of the chain is missing.
    pub(super) fn retire(&mut self, id: u32, header: Secret) {
        self.old_chains.push_back(OldChain { id, header: Box::new(header) });
        self.drop_chains();
    }

    /// Iterates over the header keys of ended chains, the latest first.
    pub(super) fn old_headers(&self) -> impl Iterator<Item = (u32, &Secret)> {
        self.old_chains.iter().rev().map(|chain| (chain.id, &*chain.header))
    }

    /// Counts an opened message.
    pub(super) fn count_received(&mut self) {
        self.received = self.received.saturating_add(1);
        self.drop_expired();
    }

    /// Advances the time to `time`; never moves it back.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = self.time.max(time);
        self.drop_expired();
    }

    /// Drops expired batches. The oldest is in front, so the first unexpired batch ends the search.
    fn drop_expired(&mut self) {
        while let Some(oldest) = self.batches.front()
            && (self.time.saturating_sub(oldest.time) >= SKIPPED_LIFETIME
                || self.received.saturating_sub(oldest.received) >= SKIPPED_LIFETIME_MESSAGES)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.batches.pop_front() {
            self.held -= oldest.held;
            self.drop_chains();
        }
    }

    /// Drops the chains without missing messages, and the oldest ones beyond the limit.
    fn drop_chains(&mut self) {
        let batches = &self.batches;
        self.old_chains.retain(|chain| batches.iter().any(|batch| batch.chain == chain.id));
        while self.old_chains.len() > OLD_CHAINS_MAX {
            let gone = self.old_chains.pop_front().expect("there are more than the bound");
            self.batches.retain(|batch| batch.chain != gone.id);
            self.held = self.batches.iter().map(|batch| batch.held).sum();
        }
    }

    /// Returns an upper bound of the length that [`Self::save`] writes.
    pub(super) fn saved_bytes(&self) -> usize {
        let slots: usize = self.batches.iter().map(|batch| batch.keys.len()).sum();
        64 + self.old_chains.len() * 36 + self.batches.len() * 64 + slots * 33
    }

    pub(super) fn save(&self, writer: &mut Writer) {
        write_time(writer, self.time);
        writer.u64(self.received).count(self.old_chains.len());
        for chain in &self.old_chains {
            writer.u32(chain.id).bytes(&chain.header[..]);
        }
        writer.count(self.batches.len());
        for batch in &self.batches {
            writer.u32(batch.chain).u32(batch.first);
            write_time(writer, batch.time);
            writer.u64(batch.received).count(batch.keys.len());
            for key in &batch.keys {
                writer.option(key.as_ref(), |writer, key| {
                    writer.bytes(&key[..]);
                });
            }
        }
    }

    pub(super) fn restore(
        reader: &mut Reader,
        current: Option<u32>,
    ) -> Result<Self, InvalidEncoding> {
        let mut this =
            Self { time: read_time(reader)?, received: reader.u64()?, ..Self::default() };
        for _ in 0..reader.count(OLD_CHAINS_MAX)? {
            this.old_chains
                .push_back(OldChain { id: reader.u32()?, header: Box::new(reader.secret()?) });
        }
        for _ in 0..reader.count(SKIPPED_MAX)? {
            let (chain, first) = (reader.u32()?, reader.u32()?);
            let (time, received) = (read_time(reader)?, reader.u64()?);
            let count = reader.count(SKIP_MAX as usize)?;
            let mut keys = Vec::with_capacity(count);
            for _ in 0..count {
                keys.push(reader.option(Reader::secret)?);
            }
            let (held, keys) = (keys.iter().flatten().count(), keys.into_boxed_slice());
            this.batches.push_back(SkippedRun { chain, first, time, received, held, keys });
        }
        this.held = this.batches.iter().map(|batch| batch.held).sum();
        let has_chain = |batch: &SkippedRun| {
            Some(batch.chain) == current || this.old_chains.iter().any(|old| old.id == batch.chain)
        };
        let is_used = |chain: &OldChain| {
            Some(chain.id) != current && this.batches.iter().any(|batch| batch.chain == chain.id)
        };
        let is_good = this.held <= SKIPPED_MAX
            && this.batches.iter().all(|batch| batch.held > 0 && has_chain(batch))
            && this.old_chains.iter().all(is_used);
        if is_good { Ok(this) } else { Err(InvalidEncoding) }
    }
}

fn write_time(writer: &mut Writer, time: Duration) {
    writer.u64(time.as_secs()).u32(time.subsec_nanos());
}

fn read_time(reader: &mut Reader) -> Result<Duration, InvalidEncoding> {
    let (seconds, nanos) = (reader.u64()?, reader.u32()?);
    if nanos < 1_000_000_000 { Ok(Duration::new(seconds, nanos)) } else { Err(InvalidEncoding) }
}
