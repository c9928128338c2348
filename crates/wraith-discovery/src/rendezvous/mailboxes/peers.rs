//! The connections of a server: how many one address has, what each is, and how long it may be that.
//!
//! Invariant: of one address there are at most [`MAX_PER_SOURCE`], counted from the connection to its end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::Id;
use crate::rates::Source;

/// Connections of one address at once: an office behind one router, but not a flood.
pub const MAX_PER_SOURCE: usize = 32;
/// A connection says what it wants within this time.
pub const FIRST_FRAME: Duration = Duration::from_secs(10);
/// A joiner has finished within this time: three round trips, by people's machines.
pub const JOINER_LIFE: Duration = Duration::from_secs(60);
/// A joiner that nobody waits for may ask again for this long.
pub const ASKING_LIFE: Duration = Duration::from_secs(10 * 60);
/// A creator that is silent for this long is gone; creators ping three times as often.
pub const CREATOR_SILENCE: Duration = Duration::from_secs(90);
/// No creator stays longer than this, whatever it sends.
pub const CREATOR_LIFE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub struct Peer {
    pub seen: SocketAddr,
    pub since: Instant,
    pub heard: Instant,
    pub frames: u32,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    New,
    /// Has asked for somebody who was not there.
    Asking,
    Creator {
        nameplate: u32,
    },
    Joiner {
        nameplate: u32,
        joiner: u32,
        frames: u32,
    },
}

impl Peer {
    /// Whether it has taken too long, or been silent for too long, for what it is.
    fn is_late(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.since);
        let silence = now.saturating_duration_since(self.heard);
        match self.role {
            Role::New => age > FIRST_FRAME,
            Role::Asking => age > ASKING_LIFE || silence > FIRST_FRAME,
            Role::Joiner { .. } => age > JOINER_LIFE,
            Role::Creator { .. } => age > CREATOR_LIFE || silence > CREATOR_SILENCE,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Peers {
    peers: HashMap<Id, Peer>,
    per_source: HashMap<Source, usize>,
}

impl Peers {
    /// A connection came. False if its address has enough of them.
    pub fn connected(&mut self, now: Instant, id: Id, seen: SocketAddr) -> bool {
        let count = self.per_source.entry(Source::of(seen.ip())).or_default();
        if *count >= MAX_PER_SOURCE {
            return false;
        }
        *count += 1;
        let peer = Peer { seen, since: now, heard: now, frames: 0, role: Role::New };
        self.peers.insert(id, peer);
        true
    }

    /// A connection is gone; what it was.
    pub fn disconnected(&mut self, id: Id) -> Option<Peer> {
        let peer = self.peers.remove(&id)?;
        let source = Source::of(peer.seen.ip());
        if let Some(count) = self.per_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.per_source.remove(&source);
            }
        }
        Some(peer)
    }

    pub fn get(&self, id: Id) -> Option<&Peer> {
        self.peers.get(&id)
    }

    pub fn get_mut(&mut self, id: Id) -> Option<&mut Peer> {
        self.peers.get_mut(&id)
    }

    /// Those whose time is over.
    pub fn late(&self, now: Instant) -> impl Iterator<Item = Id> + '_ {
        self.peers.iter().filter(move |(_, peer)| peer.is_late(now)).map(|(id, _)| *id)
    }

    #[cfg(test)]
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.peers.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.peers.is_empty() && self.per_source.is_empty()
    }
}
