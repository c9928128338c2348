//! Nodes that answered, so that the next operation begins near its target, and the next run without bootstrap nodes.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use crate::id::{Id, distance};

/// Nodes that are remembered: those of the last forty lookups. A glance asks those that a lookup has found.
const MAX_NODES: usize = 1024;
/// Nodes that are given out for the next run. Most of them are still there a day later.
const MAX_GIVEN: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Who answered last comes first.
    answered: VecDeque<(Id, SocketAddrV4)>,
}

impl Nodes {
    /// This node has answered.
    pub fn answered(&mut self, id: Id, address: SocketAddrV4) {
        self.forget(address);
        self.answered.push_front((id, address));
        self.answered.truncate(MAX_NODES);
    }

    /// It has not, when it was asked.
    pub fn forget(&mut self, address: SocketAddrV4) {
        self.answered.retain(|(_, known)| *known != address);
    }

    /// The `count` closest to a target.
    pub fn closest(&self, target: &Id, count: usize) -> Vec<(Id, SocketAddrV4)> {
        let mut nodes: Vec<_> = self.answered.iter().copied().collect();
        nodes.sort_unstable_by_key(|(id, _)| distance(id, target));
        nodes.truncate(count);
        nodes
    }

    /// Somebody is known.
    pub fn has_any(&self) -> bool {
        !self.answered.is_empty()
    }

    /// The addresses of those that answered last.
    pub fn good(&self) -> Vec<SocketAddrV4> {
        self.answered.iter().take(MAX_GIVEN).map(|(_, address)| *address).collect()
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
    fn the_memory_is_bounded_and_who_answered_last_stays() {
        let mut nodes = Nodes::default();
        (0..4000).for_each(|n: u16| nodes.answered([n.to_be_bytes()[1]; 20], address(n)));
        assert_eq!(nodes.answered.len(), MAX_NODES);
        assert_eq!(nodes.good()[0], address(3999));
        assert_eq!(nodes.good().len(), MAX_GIVEN);
        nodes.forget(address(3999));
        assert_eq!(nodes.good()[0], address(3998));
    }

    #[test]
    fn a_node_is_remembered_once_and_the_closest_are_given() {
        let mut nodes = Nodes::default();
        for n in [5, 3, 9, 3] {
            nodes.answered([n as u8; 20], address(n));
        }
        let closest: Vec<_> = nodes.closest(&[2; 20], 2).into_iter().map(|(_, a)| a).collect();
        assert_eq!(closest, [address(3), address(5)]);
        assert_eq!(nodes.answered.len(), 3);
    }
}
