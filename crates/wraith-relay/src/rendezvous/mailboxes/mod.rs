//! State of a rendezvous server without sockets or a clock: creators, joiners, and the frames
//! between them.
//!
//! A connection is *new* until its first frame. It is then a *creator*, which waits at a nameplate,
//! or a *joiner*, which joined one.
//!
//! Invariants:
//!
//! - Everything is bounded by the constants of this module, [`peers`] and [`nameplates`].
//! - A nameplate belongs to one creator at a time.
//! - A closed nameplate stays closed for a while, so that a late joiner gets the reason and does
//!   not meet another creator.
//! - Nothing is sent on a connection that has not sent a request.

mod nameplates;
mod peers;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wraith_discovery::rates::{RateLimit, RateLimiter, Source};
use wraith_discovery::rendezvous::{ClientFrame, ServerFrame, ServerRefusal};

use nameplates::Nameplates;
use peers::{Peers, Role};

/// Most joiners at a nameplate at once. Normally there is one; more are mistakes or attacks.
const MAX_JOINERS: usize = 8;
/// Most frames of a connection. A joiner needs three and retries twice a second while no creator
/// waits. A creator sends pings and answers. The limit suffices for joiners and creators, and stops
/// a flood.
const MAX_FRAMES: u32 = 20_000;
/// Most frames of a joiner after it has joined.
const MAX_JOINER_FRAMES: u32 = 8;

/// Rate limit of opens and joins per address. The burst suits a family behind one router or
/// repeated typing errors. After the burst, thirty per minute are allowed, so trying all nameplates
/// of three digits takes half an hour.
const RATE: RateLimit = RateLimit { burst: 30, refill: Duration::from_secs(2), addresses: 8192 };

/// ID of a connection; never reused.
pub type Id = u64;

/// An action of the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Send(Id, ServerFrame),
    /// Closes the connection after all earlier frames.
    Close(Id),
}

/// State of a server; see the module documentation.
#[derive(Debug)]
pub struct Mailboxes {
    peers: Peers,
    nameplates: Nameplates,
    rates: RateLimiter,
}

impl Mailboxes {
    /// Creates the state. Free nameplates are searched from the random number `seed` on.
    pub fn new(seed: u32) -> Self {
        let (peers, nameplates) = (Peers::default(), Nameplates::new(seed));
        Self { peers, nameplates, rates: RateLimiter::new(RATE) }
    }

    /// Adds a connection. Returns false if it must be closed at once.
    pub fn connected(&mut self, now: Instant, id: Id, seen: SocketAddr) -> bool {
        self.peers.connected(now, id, seen)
    }

    /// Handles a frame; `None` is a malformed one.
    pub fn frame(&mut self, now: Instant, id: Id, frame: Option<ClientFrame>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(id) else { return Vec::new() };
        peer.last_received = now;
        peer.frames += 1;
        if peer.frames > MAX_FRAMES {
            return vec![Action::Close(id)];
        }
        let (role, source) = (peer.role, Source::of(peer.seen.ip()));
        match (frame, role) {
            (Some(ClientFrame::Open { nameplate, exact }), Role::New | Role::Creator { .. }) => {
                if !self.rates.allow(source, now) {
                    return refuse(id, ServerRefusal::TooFast);
                }
                self.open(now, id, nameplate, exact)
            }
            (Some(ClientFrame::Join { nameplate, message }), Role::New | Role::Querying) => {
                if !self.rates.allow(source, now) {
                    return vec![Action::Send(id, ServerFrame::Refused(ServerRefusal::TooFast))];
                }
                self.join(now, id, nameplate, message)
            }
            (Some(ClientFrame::Send { joiner, message }), Role::Creator { nameplate }) => {
                let joiners = self.nameplates.get(nameplate).map_or(&[][..], |held| &held.joiners);
                let to = joiners.iter().find(|(theirs, _)| *theirs == joiner);
                let told = ServerFrame::Message { joiner: 0, message };
                to.map(|(_, to)| Action::Send(*to, told)).into_iter().collect()
            }
            (
                Some(ClientFrame::Send { message, .. }),
                Role::Joiner { nameplate, joiner, frames },
            ) => {
                if frames >= MAX_JOINER_FRAMES {
                    return vec![Action::Close(id)];
                }
                peer.role = Role::Joiner { nameplate, joiner, frames: frames + 1 };
                let creator = self.nameplates.get(nameplate).map(|held| held.creator);
                let told = ServerFrame::Message { joiner, message };
                creator.map(|to| Action::Send(to, told)).into_iter().collect()
            }
            (Some(ClientFrame::Close(why)), Role::Creator { nameplate }) => {
                let mut actions = self.close_nameplate(now, nameplate, ServerRefusal::after(why));
                actions.push(Action::Close(id));
                actions
            }
            (Some(ClientFrame::Ping), _) => vec![Action::Send(id, ServerFrame::Pong)],
            _ => refuse(id, ServerRefusal::Malformed),
        }
    }

    /// Removes a connection. Must be called for every connection that was added.
    pub fn disconnected(&mut self, now: Instant, id: Id) -> Vec<Action> {
        let Some(peer) = self.peers.disconnected(id) else { return Vec::new() };
        match peer.role {
            Role::New | Role::Querying => Vec::new(),
            Role::Creator { nameplate } => {
                self.close_nameplate(now, nameplate, ServerRefusal::Nobody)
            }
            Role::Joiner { nameplate, joiner, .. } => {
                let Some(held) = self.nameplates.get_mut(nameplate) else { return Vec::new() };
                held.joiners.retain(|(_, theirs)| *theirs != id);
                vec![Action::Send(held.creator, ServerFrame::Left { joiner })]
            }
        }
    }

    /// Reports whether no deadline is pending.
    pub fn is_idle(&self) -> bool {
        self.peers.is_empty() && self.nameplates.has_no_closed()
    }

    /// Applies the time limits. Call it about once a second.
    pub fn tick(&mut self, now: Instant) -> Vec<Action> {
        self.nameplates.tick(now);
        self.peers.overdue(now).map(Action::Close).collect()
    }

    fn open(&mut self, now: Instant, id: Id, wish: u32, exact: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(Role::Creator { nameplate }) = self.peers.get(id).map(|peer| peer.role) {
            if nameplate == wish {
                return refuse(id, ServerRefusal::Malformed);
            }
            actions = self.close_nameplate(now, nameplate, ServerRefusal::Nobody);
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
        // The creator's time starts now; limits of new connections and joiners do not apply to it.
        peer.since = now;
        self.nameplates.open(nameplate, id);
        actions.push(Action::Send(id, ServerFrame::Opened { nameplate, seen: peer.seen }));
        actions
    }

    fn join(&mut self, now: Instant, id: Id, nameplate: u32, message: Vec<u8>) -> Vec<Action> {
        let Some(peer) = self.peers.get_mut(id) else { return Vec::new() };
        let Some(held) = self.nameplates.get_mut(nameplate) else {
            // The time limit of retries starts with the first request.
            if peer.role == Role::New {
                peer.since = now;
            }
            peer.role = Role::Querying;
            let why = self.nameplates.refusal_for(nameplate);
            return vec![Action::Send(id, ServerFrame::Refused(why))];
        };
        if held.joiners.len() >= MAX_JOINERS {
            return vec![Action::Send(id, ServerFrame::Refused(ServerRefusal::Full))];
        }
        let joiner = held.add_joiner(id);
        peer.role = Role::Joiner { nameplate, joiner, frames: 0 };
        peer.since = now;
        vec![
            Action::Send(id, ServerFrame::Joined { seen: peer.seen }),
            Action::Send(held.creator, ServerFrame::Arrived { joiner, message }),
        ]
    }

    /// Closes a nameplate; its joiners are notified and disconnected.
    fn close_nameplate(&mut self, now: Instant, nameplate: u32, why: ServerRefusal) -> Vec<Action> {
        let Some(held) = self.nameplates.close(now, nameplate, why) else { return Vec::new() };
        if let Some(peer) = self.peers.get_mut(held.creator) {
            peer.role = Role::New;
            peer.since = now;
        }
        for (_, id) in &held.joiners {
            // Until the disconnection they must not reach the nameplate's next creator.
            if let Some(peer) = self.peers.get_mut(*id) {
                peer.role = Role::New;
            }
        }
        let joiners = held.joiners.into_iter();
        let last = match why {
            ServerRefusal::Nobody => ServerFrame::Left { joiner: 0 },
            why => ServerFrame::Refused(why),
        };
        joiners.flat_map(|(_, id)| [Action::Send(id, last.clone()), Action::Close(id)]).collect()
    }
}

fn refuse(id: Id, why: ServerRefusal) -> Vec<Action> {
    vec![Action::Send(id, ServerFrame::Refused(why)), Action::Close(id)]
}
