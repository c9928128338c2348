//! Keys of messages that have not come (yet): MKSKIPPED of the specification, with an age.
//!
//! Keys that were skipped together stay together, in a batch that is as large as it will ever be: secrets are not copied
//! by growing tables. The header keys of chains that are over are kept for as long as a batch of theirs is.
//!
//! Invariants: at most [`SKIPPED_MAX`] keys and [`OLD_CHAINS_MAX`] old chains are held; no batch is empty; each batch is of the
//! current receiving chain or of an old one.

use std::collections::VecDeque;
use std::time::Duration;

use super::codec::{BadBytes, Reader, Writer};
use super::keys::Secret;

/// How many messages may be missing in front of one that opens, in its chain and in the one before.
pub const SKIP_MAX: u32 = 1000;
/// How many keys of missing messages are held. Beyond, the oldest go first.
pub const SKIPPED_MAX: usize = 2000;
/// How long the key of a missing message is held, by the time of [`Ratchet::set_time`](super::Ratchet::set_time): a week.
pub const SKIPPED_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// After how many messages that opened the key of a missing one is forgotten. The one that showed it missing is the first.
pub const SKIPPED_LIFETIME_MESSAGES: u64 = 10_000;
/// Of how many chains that are over missing messages can still come. Each is one more key to try on a message.
pub const OLD_CHAINS_MAX: usize = 8;

/// Keys of consecutive messages of one chain.
struct Batch {
    chain: u32,
    first: u32,
    time: Duration,
    received: u64,
    /// How many keys there are.
    held: usize,
    /// `None` where the message has come.
    keys: Box<[Option<Secret>]>,
}

impl Batch {
    fn index(&self, chain: u32, number: u32) -> Option<usize> {
        let offset = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (self.chain == chain && offset < self.keys.len()).then_some(offset)
    }

    /// Wipes the keys of the first `count` that are held.
    fn drop_first(&mut self, count: usize) {
        for key in self.keys.iter_mut().filter(|key| key.is_some()).take(count) {
            *key = None;
            self.held -= 1;
        }
    }
}

/// A chain that is over. The key does not move when the list does.
struct OldChain {
    id: u32,
    header: Box<Secret>,
}

/// The keys, oldest batch first, and what their age is measured by.
#[derive(Default)]
pub(super) struct SkippedKeys {
    batches: VecDeque<Batch>,
    old_chains: VecDeque<OldChain>,
    held: usize,
    time: Duration,
    received: u64,
}

impl SkippedKeys {
    /// How many keys are held.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The key of a message that was skipped, until [`Self::remove`].
    pub(super) fn get(&self, chain: u32, number: u32) -> Option<&Secret> {
        self.batches
            .iter()
            .find_map(|batch| batch.index(chain, number).and_then(|at| batch.keys[at].as_ref()))
    }

    /// Wipes a key that has been used.
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

    /// Takes in the keys of `first` and those behind it. The oldest make place.
    pub(super) fn add(&mut self, chain: u32, first: u32, keys: Box<[Option<Secret>]>) {
        if keys.is_empty() {
            return;
        }
        let (time, received, held) = (self.time, self.received, keys.len());
        self.batches.push_back(Batch { chain, first, time, received, held, keys });
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

    /// The current chain is over: its header key is held as long as needed.
    pub(super) fn retire(&mut self, id: u32, header: Secret) {
        self.old_chains.push_back(OldChain { id, header: Box::new(header) });
        self.drop_chains();
    }

    /// Header keys of chains that are over, the latest first.
    pub(super) fn old_headers(&self) -> impl Iterator<Item = (u32, &Secret)> {
        self.old_chains.iter().rev().map(|chain| (chain.id, &*chain.header))
    }

    /// A message opened.
    pub(super) fn count_received(&mut self) {
        self.received = self.received.saturating_add(1);
        self.drop_expired();
    }

    /// The time is `time`, or later.
    pub(super) fn set_time(&mut self, time: Duration) {
        self.time = self.time.max(time);
        self.drop_expired();
    }

    /// The oldest batch is in front, so nothing behind one that stays has expired.
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

    /// Forgets the chains of which nothing is missing any more, and the oldest if there are too many.
    fn drop_chains(&mut self) {
        let batches = &self.batches;
        self.old_chains.retain(|chain| batches.iter().any(|batch| batch.chain == chain.id));
        while self.old_chains.len() > OLD_CHAINS_MAX {
            let gone = self.old_chains.pop_front().expect("there are more than the bound");
            self.batches.retain(|batch| batch.chain != gone.id);
            self.held = self.batches.iter().map(|batch| batch.held).sum();
        }
    }

    /// Upper bound of what [`Self::save`] writes.
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

    pub(super) fn restore(reader: &mut Reader, current: Option<u32>) -> Result<Self, BadBytes> {
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
            this.batches.push_back(Batch { chain, first, time, received, held, keys });
        }
        this.held = this.batches.iter().map(|batch| batch.held).sum();
        let has_chain = |batch: &Batch| {
            Some(batch.chain) == current || this.old_chains.iter().any(|old| old.id == batch.chain)
        };
        let is_used = |chain: &OldChain| {
            Some(chain.id) != current && this.batches.iter().any(|batch| batch.chain == chain.id)
        };
        let is_good = this.held <= SKIPPED_MAX
            && this.batches.iter().all(|batch| batch.held > 0 && has_chain(batch))
            && this.old_chains.iter().all(is_used);
        if is_good { Ok(this) } else { Err(BadBytes) }
    }
}

fn write_time(writer: &mut Writer, time: Duration) {
    writer.u64(time.as_secs()).u32(time.subsec_nanos());
}

fn read_time(reader: &mut Reader) -> Result<Duration, BadBytes> {
    let (seconds, nanos) = (reader.u64()?, reader.u32()?);
    if nanos < 1_000_000_000 { Ok(Duration::new(seconds, nanos)) } else { Err(BadBytes) }
}
