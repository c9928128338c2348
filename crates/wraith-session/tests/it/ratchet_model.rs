//! A model of a receiving side: which messages of a ratchet must open, and the errors of the
//! others. It follows the table of limits in `docs/SESSIONS.md`, not the code.

use std::collections::BTreeSet;
use std::time::Duration;

use wraith_session::ratchet::*;

/// A message: its chain, from 1, and its number in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub chain: u32,
    pub number: u32,
}

/// The required result of a genuine message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Opens,
    /// The message never opened, and its key is gone.
    TooOld,
    /// The message was opened. It may also count as too old if keys of its chain were dropped.
    Replayed {
        or_too_old: bool,
    },
    /// The chain is no longer recognized.
    Unauthentic,
}

impl Expected {
    pub fn allows(self, error: &DecryptError) -> bool {
        match self {
            Self::Opens => false,
            Self::TooOld => *error == DecryptError::TooOld,
            Self::Replayed { or_too_old } => {
                *error == DecryptError::Replayed || or_too_old && *error == DecryptError::TooOld
            }
            Self::Unauthentic => *error == DecryptError::Unauthentic,
        }
    }
}

/// A missing message that must still open.
struct Missing {
    at: Position,
    received: u64,
    time: Duration,
}

/// What one side received from the other.
#[derive(Default)]
pub struct Receiver {
    /// The latest chain with an opened message; 0 if there is none.
    chain: u32,
    /// Behind the highest opened number of that chain.
    next: u32,
    /// The oldest first.
    missing: Vec<Missing>,
    /// All messages that opened.
    opened: BTreeSet<Position>,
    /// Chains that lost keys.
    dropped: BTreeSet<u32>,
    /// Ended chains with held keys.
    ended: BTreeSet<u32>,
    /// Ended chains that are recognized although no key of them is held.
    forgotten: BTreeSet<u32>,
    complete: BTreeSet<u32>,
    received: u64,
    time: Duration,
}

impl Receiver {
    /// Returns a side that has opened one message, the only one of chain 1.
    pub fn with_one_message() -> Self {
        let opened = BTreeSet::from([Position { chain: 1, number: 0 }]);
        Self { chain: 1, next: 1, opened, ..Self::default() }
    }

    /// Returns the latest chain with an opened message.
    pub fn latest_chain(&self) -> u32 {
        self.chain
    }

    pub fn missing(&self) -> usize {
        self.missing.len()
    }

    pub fn expects(&self, at: Position) -> Expected {
        let is_newer = at.chain > self.chain || at.chain == self.chain && at.number >= self.next;
        if is_newer || self.missing.iter().any(|missing| missing.at == at) {
            return Expected::Opens;
        }
        let is_recognized = at.chain == self.chain
            || self.missing.iter().any(|missing| missing.at.chain == at.chain)
            || self.forgotten.contains(&at.chain)
            || self.complete.contains(&at.chain);
        match (is_recognized, self.opened.contains(&at)) {
            (false, _) => Expected::Unauthentic,
            (true, true) => Expected::Replayed { or_too_old: self.dropped.contains(&at.chain) },
            (true, false) => Expected::TooOld,
        }
    }

    /// Counts a message that opened. `previous_len` is the length of the chain before its chain.
    pub fn opened(&mut self, at: Position, previous_len: u32) {
        if let Some(found) = self.missing.iter().position(|missing| missing.at == at) {
            self.missing.remove(found);
        } else {
            if at.chain > self.chain {
                self.reveal_gap(self.chain, self.next, previous_len);
                self.ended.extend((self.chain > 0).then_some(self.chain));
                (self.chain, self.next) = (at.chain, 0);
            }
            self.reveal_gap(at.chain, self.next, at.number);
            self.next = at.number + 1;
        }
        assert!(self.opened.insert(at), "{at:?} opened twice");
        self.received += 1;
        self.forget();
    }

    pub fn set_time(&mut self, time: Duration) {
        self.time = time;
        self.forget();
    }

    fn reveal_gap(&mut self, chain: u32, from: u32, to: u32) {
        let first = from.max(to.saturating_sub(SKIP_MAX));
        if first > from {
            self.dropped.insert(chain);
        }
        let (received, time) = (self.received, self.time);
        let missing =
            (first..to).map(|number| Missing { at: Position { chain, number }, received, time });
        self.missing.extend(missing);
    }

    /// Applies all limits.
    fn forget(&mut self) {
        let excess = self.missing.len().saturating_sub(SKIPPED_MAX);
        let mut chains: Vec<u32> = self.missing.iter().map(|missing| missing.at.chain).collect();
        chains.dedup();
        chains.retain(|chain| *chain != self.chain);
        let chains = &chains[..chains.len().saturating_sub(MISSING_CHAINS_MAX)];
        let mut index = 0;
        let (received, time, dropped) = (self.received, self.time, &mut self.dropped);
        self.missing.retain(|missing| {
            index += 1;
            let is_kept = index > excess
                && !chains.contains(&missing.at.chain)
                && received - missing.received < SKIPPED_LIFETIME_MESSAGES
                && time - missing.time < SKIPPED_LIFETIME;
            if !is_kept {
                dropped.insert(missing.at.chain);
            }
            is_kept
        });
        self.classify_ended_chains();
    }

    /// Moves ended chains without keys to the forgotten or the complete ones.
    fn classify_ended_chains(&mut self) {
        let missing = &self.missing;
        let without_keys = |chain: &u32| missing.iter().all(|missing| missing.at.chain != *chain);
        for chain in self.ended.extract_if(.., without_keys) {
            match self.dropped.contains(&chain) {
                true => self.forgotten.insert(chain),
                false => self.complete.insert(chain),
            };
        }
        for (chains, limit) in
            [(&mut self.forgotten, FORGOTTEN_CHAINS_MAX), (&mut self.complete, COMPLETE_CHAINS_MAX)]
        {
            while chains.len() > limit {
                chains.pop_first();
            }
        }
    }
}
