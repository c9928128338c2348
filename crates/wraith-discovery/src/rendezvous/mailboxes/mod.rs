//! The state of a rendezvous server, without sockets or a clock: who waits at which nameplate, and who is told what.
//!
//! A connection is *new* until its first frame, then a *creator*, who waits at a nameplate, or a *joiner*, who joined one.
//!
//! Invariants: everything is bounded by the constants here, in [`peers`] and in [`nameplates`]; a nameplate belongs to one creator at
//! a time; a nameplate that was closed stays closed for a while, so that who comes late learns why and does not meet somebody
//! else; nothing is sent to a connection that did not ask.

mod nameplates;
mod peers;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::frame::{ClientFrame, No, ServerFrame};
use crate::rates::{Limit, Rates, Source};
use nameplates::Nameplates;
use peers::{Peers, Role};

/// Joiners at one nameplate at once. One is the rule; the others are mistakes or attacks.
const MAX_JOINERS: usize = 8;
/// Frames of a connection in all: a joiner needs three, and asks twice a second while nobody waits there; a creator pings
/// and answers. Enough for either, and the end of one that only makes noise.
const MAX_FRAMES: u32 = 20_000;
/// Frames of a joiner that has joined.
const MAX_JOINER_FRAMES: u32 = 8;

/// Nameplates one address may open and join: at once, for a family behind one router or a person who mistypes, and then thirty
/// a minute, so that trying all nameplates of three digits takes half an hour.
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
    nameplates: Nameplates,
    rates: Rates,
}

impl Mailboxes {
    /// `seed` is any random number; nameplates are handed out from it on when a wish cannot be met.
    pub fn new(seed: u32) -> Self {
        let (peers, nameplates) = (Peers::default(), Nameplates::new(seed));
        Self { peers, nameplates, rates: Rates::new(RATE) }
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
            (Some(ClientFrame::Open { nameplate, exact }), Role::New | Role::Creator { .. }) => {
                if !self.rates.allow(source, now) {
                    return refuse(id, No::TooFast);
                }
                self.open(now, id, nameplate, exact)
            }
            (Some(ClientFrame::Join { nameplate, message }), Role::New | Role::Asking) => {
                if !self.rates.allow(source, now) {
                    return vec![Action::Send(id, ServerFrame::No(No::TooFast))];
                }
                self.join(now, id, nameplate, message)
            }
            (Some(ClientFrame::Tell { joiner, message }), Role::Creator { nameplate }) => {
                let joiners = self.nameplates.get(nameplate).map_or(&[][..], |held| &held.joiners);
                let to = joiners.iter().find(|(theirs, _)| *theirs == joiner);
                let told = ServerFrame::Told { joiner: 0, message };
                to.map(|(_, to)| Action::Send(*to, told)).into_iter().collect()
            }
            (
                Some(ClientFrame::Tell { message, .. }),
                Role::Joiner { nameplate, joiner, frames },
            ) => {
                if frames >= MAX_JOINER_FRAMES {
                    return vec![Action::Close(id)];
                }
                peer.role = Role::Joiner { nameplate, joiner, frames: frames + 1 };
                let creator = self.nameplates.get(nameplate).map(|held| held.creator);
                let told = ServerFrame::Told { joiner, message };
                creator.map(|to| Action::Send(to, told)).into_iter().collect()
            }
            (Some(ClientFrame::Close(why)), Role::Creator { nameplate }) => {
                let mut actions = self.vacate(now, nameplate, No::after(why));
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
            Role::Creator { nameplate } => self.vacate(now, nameplate, No::Nobody),
            Role::Joiner { nameplate, joiner, .. } => {
                let Some(held) = self.nameplates.get_mut(nameplate) else { return Vec::new() };
                held.joiners.retain(|(_, theirs)| *theirs != id);
                vec![Action::Send(held.creator, ServerFrame::Left { joiner })]
            }
        }
    }

    /// Whether there is nothing that time could change.
    pub fn is_at_rest(&self) -> bool {
        self.peers.is_empty() && self.nameplates.are_none_closed()
    }

    /// Ends what has taken too long. To be called about once a second.
    pub fn tick(&mut self, now: Instant) -> Vec<Action> {
        self.nameplates.tick(now);
        self.peers.late(now).map(Action::Close).collect()
    }

    fn open(&mut self, now: Instant, id: Id, wish: u32, exact: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(Role::Creator { nameplate }) = self.peers.get(id).map(|peer| peer.role) {
            if nameplate == wish {
                return refuse(id, No::Senseless);
            }
            actions = self.vacate(now, nameplate, No::Nobody);
        }
        let nameplate = match self.nameplates.free(wish, exact) {
            Ok(nameplate) => nameplate,
            Err(why) => {
                actions.extend(refuse(id, why));
                return actions;
            }
        };
        let Some(peer) = self.peers.get_mut(id) else { return actions };
        peer.role = Role::Creator { nameplate };
        // The time begins now: what a joiner or a new connection may take is no measure for a creator.
        peer.since = now;
        self.nameplates.open(nameplate, id);
        actions.push(Action::Send(id, ServerFrame::Opened { nameplate, seen: peer.seen }));
        actions
    }

    fn join(&mut self, now: Instant, id: Id, nameplate: u32, message: Vec<u8>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(id) else { return Vec::new() };
        let Some(held) = self.nameplates.get_mut(nameplate) else {
            // Only the first question begins the time that asking may take.
            if peer.role == Role::New {
                peer.since = now;
            }
            peer.role = Role::Asking;
            let why = self.nameplates.why_empty(nameplate);
            return vec![Action::Send(id, ServerFrame::No(why))];
        };
        if held.joiners.len() >= MAX_JOINERS {
            return vec![Action::Send(id, ServerFrame::No(No::Full))];
        }
        let joiner = held.add_joiner(id);
        peer.role = Role::Joiner { nameplate, joiner, frames: 0 };
        peer.since = now;
        vec![
            Action::Send(id, ServerFrame::Joined { seen: peer.seen }),
            Action::Send(held.creator, ServerFrame::Arrived { joiner, message }),
        ]
    }

    /// The creator of a nameplate is gone: its joiners are told and sent away.
    fn vacate(&mut self, now: Instant, nameplate: u32, why: No) -> Vec<Action> {
        let Some(held) = self.nameplates.close(now, nameplate, why) else { return Vec::new() };
        if let Some(peer) = self.peers.get_mut(held.creator) {
            peer.role = Role::New;
            peer.since = now;
        }
        for (_, id) in &held.joiners {
            // They are about to be sent away; until then they must not talk to whoever opens the nameplate next.
            if let Some(peer) = self.peers.get_mut(*id) {
                peer.role = Role::New;
            }
        }
        let joiners = held.joiners.into_iter();
        let last = match why {
            No::Nobody => ServerFrame::Left { joiner: 0 },
            why => ServerFrame::No(why),
        };
        joiners.flat_map(|(_, id)| [Action::Send(id, last.clone()), Action::Close(id)]).collect()
    }
}

fn refuse(id: Id, why: No) -> Vec<Action> {
    vec![Action::Send(id, ServerFrame::No(why)), Action::Close(id)]
}
