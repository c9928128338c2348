//! Routing table: the connections known at a source address, on which a datagram is tried first.
//!
//! A connection is listed under its initial address and the addresses from which authentic packets
//! came. Invariant: a connection has at most [`ADDRESSES_MAX`] addresses here, and its current
//! address is never evicted. So a peer that keeps changing addresses costs no more than one that
//! migrates rarely.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::PathAddr;
use crate::event::ConnectionHandle;

/// Addresses per connection: the one in use, the one left, the one being validated, and a spare.
const ADDRESSES_MAX: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Routes {
    connections: HashMap<PathAddr, SmallVec<[ConnectionHandle; 1]>>,
    /// The addresses of each connection, oldest first.
    addresses: HashMap<ConnectionHandle, SmallVec<[PathAddr; 1]>>,
}

impl Routes {
    /// Returns the connections known at `address`, in order of their addition.
    pub(crate) fn at(&self, address: PathAddr) -> &[ConnectionHandle] {
        self.connections.get(&address).map_or(&[], |handles| handles)
    }

    /// Adds an address at which a connection receives. `in_use` is the address it sends to.
    pub(crate) fn add(&mut self, address: PathAddr, handle: ConnectionHandle, in_use: PathAddr) {
        let addresses = self.addresses.entry(handle).or_default();
        if addresses.contains(&address) {
            return;
        }
        if addresses.len() == ADDRESSES_MAX {
            let oldest = addresses.iter().position(|known| *known != in_use);
            let gone = addresses.remove(oldest.expect("at most one of the addresses is in use"));
            Self::remove(&mut self.connections, gone, handle);
        }
        addresses.push(address);
        self.connections.entry(address).or_default().push(handle);
    }

    /// Removes a connection.
    pub(crate) fn forget(&mut self, handle: ConnectionHandle) {
        for address in self.addresses.remove(&handle).into_iter().flatten() {
            Self::remove(&mut self.connections, address, handle);
        }
    }

    fn remove(
        connections: &mut HashMap<PathAddr, SmallVec<[ConnectionHandle; 1]>>,
        address: PathAddr,
        handle: ConnectionHandle,
    ) {
        if let Some(handles) = connections.get_mut(&address) {
            handles.retain(|known| *known != handle);
            if handles.is_empty() {
                connections.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const ONE: ConnectionHandle = ConnectionHandle(1);
    const OTHER: ConnectionHandle = ConnectionHandle(2);

    fn address(number: u32) -> PathAddr {
        PathAddr::Via(NonZeroU32::new(number).expect("not zero"))
    }

    #[test]
    fn connections_of_one_address_stand_there_together() {
        let mut routes = Routes::default();
        for handle in [ONE, OTHER, ONE] {
            routes.add(address(1), handle, address(1));
        }
        assert_eq!(routes.at(address(1)), [ONE, OTHER]);
        routes.forget(ONE);
        assert_eq!(routes.at(address(1)), [OTHER]);
        assert_eq!(routes.at(address(2)), []);
    }

    #[test]
    fn changing_addresses_keep_the_one_in_use_and_the_newest() {
        let mut routes = Routes::default();
        (1..100).for_each(|number| routes.add(address(number), ONE, address(1)));
        let kept: Vec<u32> = (1..100).filter(|n| !routes.at(address(*n)).is_empty()).collect();
        assert_eq!(kept, [1, 97, 98, 99]);
        assert_eq!(routes.connections.len(), ADDRESSES_MAX);
        routes.forget(ONE);
        assert!(routes.connections.is_empty() && routes.addresses.is_empty());
    }
}
