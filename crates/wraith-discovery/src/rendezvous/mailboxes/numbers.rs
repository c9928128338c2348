//! The numbers of a server: who waits at which, which were closed and why, and which are free.
//!
//! Invariants: a number belongs to one holder at a time; a number that was closed is not given out for [`CLOSED_LIFE`], and at
//! most [`MAX_CLOSED`] are remembered.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::Id;
use crate::MAX_NUMBER;
use crate::contact::FIRST_NUMBER as FIRST_PAIR_NUMBER;
use crate::rendezvous::frame::No;

/// Closed numbers that are remembered, and for how long: as long as somebody may take to type.
pub const MAX_CLOSED: usize = 4096;
pub const CLOSED_LIFE: Duration = Duration::from_secs(10 * 60);

/// A number at which somebody waits.
#[derive(Debug)]
pub struct Mailbox {
    pub holder: Id,
    pub guests: Vec<(u32, Id)>,
    next_guest: u32,
}

impl Mailbox {
    /// One more guest; what it is called here.
    pub fn add_guest(&mut self, id: Id) -> u32 {
        let guest = self.next_guest;
        self.next_guest = self.next_guest.wrapping_add(1).max(1);
        self.guests.push((guest, id));
        guest
    }
}

/// See the module.
#[derive(Debug)]
pub struct Numbers {
    pub(super) boxes: HashMap<u32, Mailbox>,
    pub(super) closed: HashMap<u32, No>,
    pub(super) closed_order: VecDeque<(Instant, u32)>,
    /// Free numbers are searched from here on.
    seed: u32,
}

impl Numbers {
    pub fn new(seed: u32) -> Self {
        let (boxes, closed, closed_order) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { boxes, closed, closed_order, seed }
    }

    pub fn get(&self, number: u32) -> Option<&Mailbox> {
        self.boxes.get(&number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Mailbox> {
        self.boxes.get_mut(&number)
    }

    /// Why nobody waits at a number.
    pub fn why_empty(&self, number: u32) -> No {
        self.closed.get(&number).copied().unwrap_or(No::Nobody)
    }

    /// `holder` waits at a number, which is free.
    pub fn open(&mut self, number: u32, holder: Id) {
        self.boxes.insert(number, Mailbox { holder, guests: Vec::new(), next_guest: 1 });
    }

    /// Nobody waits there any more; what was there. Unless it is `Nobody`, the reason is remembered.
    pub fn close(&mut self, now: Instant, number: u32, why: No) -> Option<Mailbox> {
        let held = self.boxes.remove(&number)?;
        if why != No::Nobody && self.closed.insert(number, why).is_none() {
            self.closed_order.push_back((now, number));
            if self.closed_order.len() > MAX_CLOSED
                && let Some((_, oldest)) = self.closed_order.pop_front()
            {
                self.closed.remove(&oldest);
            }
        }
        Some(held)
    }

    /// Forgets closed numbers whose time is over.
    pub fn tick(&mut self, now: Instant) {
        while let Some((closed, number)) = self.closed_order.front() {
            if now.saturating_duration_since(*closed) < CLOSED_LIFE {
                break;
            }
            self.closed.remove(number);
            self.closed_order.pop_front();
        }
    }

    /// The wish, else the next free number with as few digits as there are.
    pub fn free(&mut self, wish: u32, exact: bool) -> Result<u32, No> {
        // Of the numbers of pairs each has only one that will do.
        let is_good = (1..=MAX_NUMBER).contains(&wish) || (exact && wish >= FIRST_PAIR_NUMBER);
        if !is_good {
            return Err(No::Senseless);
        }
        let free =
            |number: &u32| !self.boxes.contains_key(number) && !self.closed.contains_key(number);
        if free(&wish) {
            return Ok(wish);
        }
        if exact {
            return Err(No::Taken);
        }
        self.seed = self.seed.wrapping_add(1);
        // Numbers of three digits, and of more when those are taken. Boxes and closed numbers are bounded far below the
        // numbers of five digits, so the search ends.
        for (first, count) in [(1, 999), (1000, 9000), (10_000, 90_000)] {
            let start = self.seed % count;
            let found = (0..count).map(|n| first + (start + n) % count).find(free);
            if let Some(number) = found {
                return Ok(number);
            }
        }
        Err(No::Full)
    }
}
