//! Remembers nodes that answered. With them, the next operation starts close to its target, and the
//! next run of the program needs no bootstrap nodes.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use crate::id::{Id, distance};

/// Most remembered nodes: those of the last forty lookups. A query of known nodes asks nodes that a lookup has
/// found.
const MAX_NODES: usize = 1024;
/// Most nodes exported for the next run. Most of them are still online a day later.
const MAX_EXPORTED: usize = 64;

/// Bounded memory of responsive nodes.
#[derive(Debug, Default)]
pub struct NodeCache {
    /// The most recent answer first.
    answered: VecDeque<(Id, SocketAddrV4)>,
}

impl NodeCache {
    /// Records an answer of this node.
    pub fn record_answer(&mut self, id: Id, address: SocketAddrV4) {
        self.remove(address);
        self.answered.push_front((id, address));
        self.answered.truncate(MAX_NODES);
    }

    /// Removes a node that did not answer.
    pub fn remove(&mut self, address: SocketAddrV4) {
        self.answered.retain(|(_, known)| *known != address);
    }

    /// Returns the `count` nodes closest to a target.
    pub fn closest(&self, target: &Id, count: usize) -> Vec<(Id, SocketAddrV4)> {
        let mut nodes: Vec<_> = self.answered.iter().copied().collect();
        nodes.sort_unstable_by_key(|(id, _)| distance(id, target));
        nodes.truncate(count);
        nodes
    }

    /// Reports whether any node is remembered.
    pub fn has_any(&self) -> bool {
        !self.answered.is_empty()
    }

    /// Returns the addresses of the nodes with the most recent answers.
    pub fn most_recent(&self) -> Vec<SocketAddrV4> {
        self.answered.iter().take(MAX_EXPORTED).map(|(_, address)| *address).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, n)
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_the_newest() {
        let mut nodes = NodeCache::default();
        (0..4000).for_each(|n: u16| nodes.record_answer([n.to_be_bytes()[1]; 20], address(n)));
        assert_eq!(nodes.answered.len(), MAX_NODES);
        assert_eq!(nodes.most_recent()[0], address(3999));
        assert_eq!(nodes.most_recent().len(), MAX_EXPORTED);
        nodes.remove(address(3999));
        assert_eq!(nodes.most_recent()[0], address(3998));
    }

    #[test]
    fn nodes_are_cached_once_and_sorted_by_distance() {
        let mut nodes = NodeCache::default();
        for n in [5, 3, 9, 3] {
            nodes.record_answer([n as u8; 20], address(n));
        }
        let closest: Vec<_> = nodes.closest(&[2; 20], 2).into_iter().map(|(_, a)| a).collect();
        assert_eq!(closest, [address(3), address(5)]);
        assert_eq!(nodes.answered.len(), 3);
    }
}
