//! Nameplates (the numbers in codes) of a server: the occupied, the closed and the free ones.
//!
//! Invariants: a nameplate belongs to one creator at a time. A closed nameplate is not reused for
//! [`CLOSED_LIFE`], and at most [`MAX_CLOSED`] are remembered.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use wraith_discovery::MAX_NAMEPLATE;
use wraith_discovery::rendezvous::{FIRST_CONTACT_NAMEPLATE, ServerRefusal};

use super::Id;

/// Most closed nameplates that are remembered, and for how long: a joiner may type that late.
pub const MAX_CLOSED: usize = 4096;
pub const CLOSED_LIFE: Duration = Duration::from_secs(10 * 60);

/// A nameplate with a waiting creator.
#[derive(Debug)]
pub struct Mailbox {
    pub creator: Id,
    pub joiners: Vec<(u32, Id)>,
    next_joiner: u32,
}

impl Mailbox {
    /// Adds a joiner and returns its number at this nameplate.
    pub fn add_joiner(&mut self, id: Id) -> u32 {
        let joiner = self.next_joiner;
        self.next_joiner = self.next_joiner.wrapping_add(1).max(1);
        self.joiners.push((joiner, id));
        joiner
    }
}

/// All nameplates of a server.
#[derive(Debug)]
pub struct Nameplates {
    pub(super) boxes: HashMap<u32, Mailbox>,
    pub(super) closed: HashMap<u32, ServerRefusal>,
    pub(super) closed_order: VecDeque<(Instant, u32)>,
    /// Start of the search for free nameplates.
    seed: u32,
}

impl Nameplates {
    pub fn new(seed: u32) -> Self {
        let (boxes, closed, closed_order) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { boxes, closed, closed_order, seed }
    }

    pub fn get(&self, nameplate: u32) -> Option<&Mailbox> {
        self.boxes.get(&nameplate)
    }

    pub fn get_mut(&mut self, nameplate: u32) -> Option<&mut Mailbox> {
        self.boxes.get_mut(&nameplate)
    }

    /// Returns the refusal for a nameplate without a creator.
    pub fn refusal_for(&self, nameplate: u32) -> ServerRefusal {
        self.closed.get(&nameplate).copied().unwrap_or(ServerRefusal::Nobody)
    }

    /// Assigns a free nameplate to `creator`.
    pub fn open(&mut self, nameplate: u32, creator: Id) {
        self.boxes.insert(nameplate, Mailbox { creator, joiners: Vec::new(), next_joiner: 1 });
    }

    /// Frees a nameplate and returns its state. The reason is remembered unless it is `Nobody`.
    pub fn close(&mut self, now: Instant, nameplate: u32, why: ServerRefusal) -> Option<Mailbox> {
        let held = self.boxes.remove(&nameplate)?;
        if why != ServerRefusal::Nobody && self.closed.insert(nameplate, why).is_none() {
            self.closed_order.push_back((now, nameplate));
            if self.closed_order.len() > MAX_CLOSED
                && let Some((_, oldest)) = self.closed_order.pop_front()
            {
                self.closed.remove(&oldest);
            }
        }
        Some(held)
    }

    pub fn has_no_closed(&self) -> bool {
        self.closed_order.is_empty()
    }

    /// Removes expired closed nameplates.
    pub fn tick(&mut self, now: Instant) {
        while let Some((closed, nameplate)) = self.closed_order.front() {
            if now.saturating_duration_since(*closed) < CLOSED_LIFE {
                break;
            }
            self.closed.remove(nameplate);
            self.closed_order.pop_front();
        }
    }

    /// Returns the requested nameplate, or else the next free one with the fewest digits.
    pub fn free(&mut self, wish: u32, exact: bool) -> Result<u32, ServerRefusal> {
        // A contact's topic has exactly one nameplate.
        let is_good =
            (1..=MAX_NAMEPLATE).contains(&wish) || (exact && wish >= FIRST_CONTACT_NAMEPLATE);
        if !is_good {
            return Err(ServerRefusal::Malformed);
        }
        let free = |nameplate: &u32| {
            !self.boxes.contains_key(nameplate) && !self.closed.contains_key(nameplate)
        };
        if free(&wish) {
            return Ok(wish);
        }
        if exact {
            return Err(ServerRefusal::Taken);
        }
        self.seed = self.seed.wrapping_add(1);
        // Three digits first, then more. Occupied and closed nameplates are bounded far below
        // 90,000, so the search succeeds.
        for (first, count) in [(1, 999), (1000, 9000), (10_000, 90_000)] {
            let start = self.seed % count;
            let found = (0..count).map(|n| first + (start + n) % count).find(free);
            if let Some(nameplate) = found {
                return Ok(nameplate);
            }
        }
        Err(ServerRefusal::Full)
    }
}
