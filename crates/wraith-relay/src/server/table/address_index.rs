//! Clients by their bound UDP address.
//!
//! Invariant: a datagram is tried against one client if its address is bound, and otherwise against
//! at most [`TRIALS_MAX`] clients with the same IP address. The cost of a datagram therefore does
//! not depend on the number of sessions.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Most clients that may have sent a datagram from an unknown port of their IP address: the default
/// limit of clients per address.
pub const TRIALS_MAX: usize = 64;

/// Numbers of clients; see the module documentation.
#[derive(Debug, Default)]
pub struct AddressIndex {
    bound: HashMap<SocketAddr, usize>,
    by_ip: HashMap<IpAddr, Vec<usize>>,
}

impl AddressIndex {
    /// Adds a client. The last client bound at an address is tried first.
    pub fn insert(&mut self, address: SocketAddr, number: usize) {
        self.bound.insert(address, number);
        let clients = self.by_ip.entry(address.ip()).or_default();
        if !clients.contains(&number) {
            clients.push(number);
        }
    }

    /// Removes a client from its bound address.
    pub fn remove(&mut self, address: SocketAddr, number: usize) {
        if self.bound.get(&address) == Some(&number) {
            self.bound.remove(&address);
        }
        if let Some(clients) = self.by_ip.get_mut(&address.ip()) {
            clients.retain(|of| *of != number);
            if clients.is_empty() {
                self.by_ip.remove(&address.ip());
            }
        }
    }

    /// Returns the client bound at an address.
    pub fn bound_at(&self, address: SocketAddr) -> Option<usize> {
        self.bound.get(&address).copied()
    }

    /// Returns the clients that may have sent from another port of their IP address, the last bound
    /// first.
    pub fn near(&self, ip: IpAddr) -> impl Iterator<Item = usize> {
        self.by_ip.get(&ip).into_iter().flat_map(|all| all.iter().rev()).copied().take(TRIALS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_bounded_however_many_clients_share_an_address() {
        let mut index = AddressIndex::default();
        let at = |port| SocketAddr::from(([192, 0, 2, 1], port));
        for number in 0..1000 {
            index.insert(at(number), usize::from(number));
            index.insert(SocketAddr::from(([198, 51, 100, 1], number)), usize::from(number) + 1000);
        }
        assert_eq!(index.bound_at(at(7)), Some(7));
        assert_eq!(index.bound_at(at(1000)), None);
        assert_eq!(index.near(at(0).ip()).count(), TRIALS_MAX);
        assert_eq!(index.near([192, 0, 2, 2].into()).count(), 0);
        index.insert(at(7), 8);
        index.remove(at(7), 7);
        assert_eq!(index.bound_at(at(7)), Some(8), "the last one bound there remains");
        for number in 0..1000 {
            index.remove(at(number), usize::from(number));
            index.remove(at(7), 8);
            index.remove(SocketAddr::from(([198, 51, 100, 1], number)), usize::from(number) + 1000);
        }
        assert!(index.bound.is_empty() && index.by_ip.is_empty());
    }
}
