//! The nameplates of a server: who waits at which, which were closed and why, and which are free.
//!
//! Invariants: a nameplate belongs to one creator at a time; a nameplate that was closed is not given out for [`CLOSED_LIFE`], and at
//! most [`MAX_CLOSED`] are remembered.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::super::FIRST_CONTACT_NAMEPLATE;
use super::super::frame::No;
use super::Id;
use crate::place::MAX_NAMEPLATE;

/// Closed nameplates that are remembered, and for how long: as long as somebody may take to type.
pub const MAX_CLOSED: usize = 4096;
pub const CLOSED_LIFE: Duration = Duration::from_secs(10 * 60);

/// A nameplate at which somebody waits.
#[derive(Debug)]
pub struct Mailbox {
    pub creator: Id,
    pub joiners: Vec<(u32, Id)>,
    next_joiner: u32,
}

impl Mailbox {
    /// One more joiner; what it is called here.
    pub fn add_joiner(&mut self, id: Id) -> u32 {
        let joiner = self.next_joiner;
        self.next_joiner = self.next_joiner.wrapping_add(1).max(1);
        self.joiners.push((joiner, id));
        joiner
    }
}

/// See the module.
#[derive(Debug)]
pub struct Nameplates {
    pub(super) boxes: HashMap<u32, Mailbox>,
    pub(super) closed: HashMap<u32, No>,
    pub(super) closed_order: VecDeque<(Instant, u32)>,
    /// Free nameplates are searched from here on.
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

    /// Why nobody waits at a nameplate.
    pub fn why_empty(&self, nameplate: u32) -> No {
        self.closed.get(&nameplate).copied().unwrap_or(No::Nobody)
    }

    /// `creator` waits at a nameplate, which is free.
    pub fn open(&mut self, nameplate: u32, creator: Id) {
        self.boxes.insert(nameplate, Mailbox { creator, joiners: Vec::new(), next_joiner: 1 });
    }

    /// Nobody waits there any more; what was there. Unless it is `Nobody`, the reason is remembered.
    pub fn close(&mut self, now: Instant, nameplate: u32, why: No) -> Option<Mailbox> {
        let held = self.boxes.remove(&nameplate)?;
        if why != No::Nobody && self.closed.insert(nameplate, why).is_none() {
            self.closed_order.push_back((now, nameplate));
            if self.closed_order.len() > MAX_CLOSED
                && let Some((_, oldest)) = self.closed_order.pop_front()
            {
                self.closed.remove(&oldest);
            }
        }
        Some(held)
    }

    pub fn are_none_closed(&self) -> bool {
        self.closed_order.is_empty()
    }

    /// Forgets closed nameplates whose time is over.
    pub fn tick(&mut self, now: Instant) {
        while let Some((closed, nameplate)) = self.closed_order.front() {
            if now.saturating_duration_since(*closed) < CLOSED_LIFE {
                break;
            }
            self.closed.remove(nameplate);
            self.closed_order.pop_front();
        }
    }

    /// The wish, else the next free nameplate with as few digits as there are.
    pub fn free(&mut self, wish: u32, exact: bool) -> Result<u32, No> {
        // Of the nameplates of pairs each has only one that will do.
        let is_good =
            (1..=MAX_NAMEPLATE).contains(&wish) || (exact && wish >= FIRST_CONTACT_NAMEPLATE);
        if !is_good {
            return Err(No::Senseless);
        }
        let free = |nameplate: &u32| {
            !self.boxes.contains_key(nameplate) && !self.closed.contains_key(nameplate)
        };
        if free(&wish) {
            return Ok(wish);
        }
        if exact {
            return Err(No::Taken);
        }
        self.seed = self.seed.wrapping_add(1);
        // Nameplates of three digits, and of more when those are taken. Boxes and closed nameplates are bounded far below the
        // nameplates of five digits, so the search ends.
        for (first, count) in [(1, 999), (1000, 9000), (10_000, 90_000)] {
            let start = self.seed % count;
            let found = (0..count).map(|n| first + (start + n) % count).find(free);
            if let Some(nameplate) = found {
                return Ok(nameplate);
            }
        }
        Err(No::Full)
    }
}
