//! The state of a rendezvous server, without sockets or a clock: who waits at which number, and who is told what.
//!
//! A connection is *new* until its first frame, then a *holder*, who waits at a number, or a *guest*, who joined one.
//!
//! Invariants: everything is bounded by the constants here, in [`peers`] and in [`numbers`]; a number belongs to one holder at
//! a time; a number that was closed stays closed for a while, so that who comes late learns why and does not meet somebody
//! else; nothing is sent to a connection that did not ask.

mod numbers;
mod peers;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::frame::{ClientFrame, No, ServerFrame};
use crate::rates::{Limit, Rates, Source};
use numbers::Numbers;
use peers::{Peers, Role};

/// Guests at one number at once. One is the rule; the others are mistakes or attacks.
const MAX_GUESTS: usize = 8;
/// Frames of a connection in all: a guest needs three, and asks twice a second while nobody waits there; a holder pings
/// and answers. Enough for either, and the end of one that only makes noise.
const MAX_FRAMES: u32 = 20_000;
/// Frames of a guest that has joined.
const MAX_GUEST_FRAMES: u32 = 8;

/// Numbers one address may open and join: at once, for a family behind one router or a person who mistypes, and then thirty
/// a minute, so that trying all numbers of three digits takes half an hour.
const RATE: Limit = Limit { burst: 30, refill: Duration::from_secs(2), addresses: 8192 };

/// Names a connection; never used twice.
pub type Id = u64;

/// What the server is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Send(Id, ServerFrame),
    /// After what was sent before.
    Close(Id),
}

/// See the module.
#[derive(Debug)]
pub struct Mailboxes {
    peers: Peers,
    numbers: Numbers,
    rates: Rates,
}

impl Mailboxes {
    /// `seed` is any random number; numbers are handed out from it on when a wish cannot be met.
    pub fn new(seed: u32) -> Self {
        let (peers, numbers) = (Peers::default(), Numbers::new(seed));
        Self { peers, numbers, rates: Rates::new(RATE) }
    }

    /// A connection came. False if it must go again at once.
    pub fn connected(&mut self, now: Instant, id: Id, seen: SocketAddr) -> bool {
        self.peers.connected(now, id, seen)
    }

    /// A frame came. `None` is one that makes no sense.
    pub fn frame(&mut self, now: Instant, id: Id, frame: Option<ClientFrame>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(id) else { return Vec::new() };
        peer.heard = now;
        peer.frames += 1;
        if peer.frames > MAX_FRAMES {
            return vec![Action::Close(id)];
        }
        let (role, source) = (peer.role, Source::of(peer.seen.ip()));
        match (frame, role) {
            (Some(ClientFrame::Open { number, exact }), Role::New | Role::Holder { .. }) => {
                if !self.rates.allow(source, now) {
                    return refuse(id, No::TooFast);
                }
                self.open(now, id, number, exact)
            }
            (Some(ClientFrame::Join { number, message }), Role::New | Role::Asking) => {
                if !self.rates.allow(source, now) {
                    return vec![Action::Send(id, ServerFrame::No(No::TooFast))];
                }
                self.join(now, id, number, message)
            }
            (Some(ClientFrame::Tell { guest, message }), Role::Holder { number }) => {
                let guests = self.numbers.get(number).map_or(&[][..], |held| &held.guests);
                let to = guests.iter().find(|(theirs, _)| *theirs == guest);
                let told = ServerFrame::Told { guest: 0, message };
                to.map(|(_, to)| Action::Send(*to, told)).into_iter().collect()
            }
            (Some(ClientFrame::Tell { message, .. }), Role::Guest { number, guest, frames }) => {
                if frames >= MAX_GUEST_FRAMES {
                    return vec![Action::Close(id)];
                }
                peer.role = Role::Guest { number, guest, frames: frames + 1 };
                let holder = self.numbers.get(number).map(|held| held.holder);
                let told = ServerFrame::Told { guest, message };
                holder.map(|to| Action::Send(to, told)).into_iter().collect()
            }
            (Some(ClientFrame::Close(why)), Role::Holder { number }) => {
                let mut actions = self.vacate(now, number, No::after(why));
                actions.push(Action::Close(id));
                actions
            }
            (Some(ClientFrame::Ping), _) => vec![Action::Send(id, ServerFrame::Pong)],
            _ => refuse(id, No::Senseless),
        }
    }

    /// A connection is gone, for whatever reason. Must be called for every one that came.
    pub fn disconnected(&mut self, now: Instant, id: Id) -> Vec<Action> {
        let Some(peer) = self.peers.disconnected(id) else { return Vec::new() };
        match peer.role {
            Role::New | Role::Asking => Vec::new(),
            Role::Holder { number } => self.vacate(now, number, No::Nobody),
            Role::Guest { number, guest, .. } => {
                let Some(held) = self.numbers.get_mut(number) else { return Vec::new() };
                held.guests.retain(|(_, theirs)| *theirs != id);
                vec![Action::Send(held.holder, ServerFrame::Left { guest })]
            }
        }
    }

    /// Ends what has taken too long. To be called about once a second.
    pub fn tick(&mut self, now: Instant) -> Vec<Action> {
        self.numbers.tick(now);
        self.peers.late(now).map(Action::Close).collect()
    }

    fn open(&mut self, now: Instant, id: Id, wish: u32, exact: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(Role::Holder { number }) = self.peers.get(id).map(|peer| peer.role) {
            if number == wish {
                return refuse(id, No::Senseless);
            }
            actions = self.vacate(now, number, No::Nobody);
        }
        let number = match self.numbers.free(wish, exact) {
            Ok(number) => number,
            Err(why) => {
                actions.extend(refuse(id, why));
                return actions;
            }
        };
        let Some(peer) = self.peers.get_mut(id) else { return actions };
        peer.role = Role::Holder { number };
        // The time begins now: what a guest or a new connection may take is no measure for a holder.
        peer.since = now;
        self.numbers.open(number, id);
        actions.push(Action::Send(id, ServerFrame::Opened { number, seen: peer.seen }));
        actions
    }

    fn join(&mut self, now: Instant, id: Id, number: u32, message: Vec<u8>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(id) else { return Vec::new() };
        let Some(held) = self.numbers.get_mut(number) else {
            // Only the first question begins the time that asking may take.
            if peer.role == Role::New {
                peer.since = now;
            }
            peer.role = Role::Asking;
            let why = self.numbers.why_empty(number);
            return vec![Action::Send(id, ServerFrame::No(why))];
        };
        if held.guests.len() >= MAX_GUESTS {
            return vec![Action::Send(id, ServerFrame::No(No::Full))];
        }
        let guest = held.add_guest(id);
        peer.role = Role::Guest { number, guest, frames: 0 };
        peer.since = now;
        vec![
            Action::Send(id, ServerFrame::Joined { seen: peer.seen }),
            Action::Send(held.holder, ServerFrame::Guest { guest, message }),
        ]
    }

    /// The holder of a number is gone: its guests are told and sent away.
    fn vacate(&mut self, now: Instant, number: u32, why: No) -> Vec<Action> {
        let Some(held) = self.numbers.close(now, number, why) else { return Vec::new() };
        if let Some(peer) = self.peers.get_mut(held.holder) {
            peer.role = Role::New;
            peer.since = now;
        }
        for (_, id) in &held.guests {
            // They are about to be sent away; until then they must not talk to whoever opens the number next.
            if let Some(peer) = self.peers.get_mut(*id) {
                peer.role = Role::New;
            }
        }
        let guests = held.guests.into_iter();
        let last = match why {
            No::Nobody => ServerFrame::Left { guest: 0 },
            why => ServerFrame::No(why),
        };
        guests.flat_map(|(_, id)| [Action::Send(id, last.clone()), Action::Close(id)]).collect()
    }
}

fn refuse(id: Id, why: No) -> Vec<Action> {
    vec![Action::Send(id, ServerFrame::No(why)), Action::Close(id)]
}
