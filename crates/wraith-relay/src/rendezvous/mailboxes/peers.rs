//! Connections of a server: their number per address, their role, and its time limit.
//!
//! Invariant: an address has at most [`MAX_PER_SOURCE`] connections at once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wraith_discovery::rates::Source;

use super::Id;

/// Most connections per address: enough for an office behind one router, but not for a flood.
pub const MAX_PER_SOURCE: usize = 32;
/// Time limit of the first frame.
pub const FIRST_FRAME: Duration = Duration::from_secs(10);
/// Time limit of a joiner: three round trips between the peers' machines.
pub const JOINER_LIFE: Duration = Duration::from_secs(60);
/// Time limit of a joiner that retries without a creator.
pub const QUERYING_LIFE: Duration = Duration::from_secs(10 * 60);
/// Silence after which a creator is considered gone. Creators send three pings in this time.
pub const CREATOR_SILENCE: Duration = Duration::from_secs(90);
/// Longest connection of a creator.
pub const CREATOR_LIFE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub struct Peer {
    pub seen: SocketAddr,
    pub since: Instant,
    pub last_received: Instant,
    pub frames: u32,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    New,
    /// Has asked for an absent creator.
    Querying,
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
    /// Reports whether the time limit of its role is exceeded.
    fn is_overdue(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.since);
        let silence = now.saturating_duration_since(self.last_received);
        match self.role {
            Role::New => age > FIRST_FRAME,
            Role::Querying => age > QUERYING_LIFE || silence > FIRST_FRAME,
            Role::Joiner { .. } => age > JOINER_LIFE,
            Role::Creator { .. } => age > CREATOR_LIFE || silence > CREATOR_SILENCE,
        }
    }
}

/// All connections of a server.
#[derive(Debug, Default)]
pub struct Peers {
    peers: HashMap<Id, Peer>,
    per_source: HashMap<Source, usize>,
}

impl Peers {
    /// Adds a connection. Returns false if its address has too many.
    pub fn connected(&mut self, now: Instant, id: Id, seen: SocketAddr) -> bool {
        let count = self.per_source.entry(Source::of(seen.ip())).or_default();
        if *count >= MAX_PER_SOURCE {
            return false;
        }
        *count += 1;
        let peer = Peer { seen, since: now, last_received: now, frames: 0, role: Role::New };
        self.peers.insert(id, peer);
        true
    }

    /// Removes a connection and returns its state.
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

    /// Returns the connections that exceeded their time limits.
    pub fn overdue(&self, now: Instant) -> impl Iterator<Item = Id> + '_ {
        self.peers.iter().filter(move |(_, peer)| peer.is_overdue(now)).map(|(id, _)| *id)
    }

    #[cfg(test)]
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.peers.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.peers.is_empty() && self.per_source.is_empty()
    }
}
