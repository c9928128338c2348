//! UDP as a carrier: its ways are the addresses at which peers reach a socket. They come from this
//! machine, from the router and from hosts that see the socket.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use wraith_discovery::{BoxFuture, Way};
use wraith_portmap::PortMapping;
use wraith_transport::Addr;

use super::addresses::{guess, reachable, with_seen};
use super::lock;
use super::observed::ObservedAddresses;
use crate::carrier::{Carrier, ResolveError};

/// The UDP carrier of a socket.
#[derive(Debug)]
pub(super) struct IpCarrier {
    bound: SocketAddr,
    pub mapping: Mutex<Option<PortMapping>>,
    pub observed: ObservedAddresses,
}

impl IpCarrier {
    pub fn new(bound: SocketAddr) -> Self {
        Self { bound, mapping: Mutex::default(), observed: ObservedAddresses::default() }
    }

    /// Returns the addresses for dialling us, the most useful first. `seen` is our IP address as
    /// seen by a server; it is usable if the router forwards the port.
    pub fn addresses(&self, seen: Option<IpAddr>) -> Vec<SocketAddr> {
        let own = reachable(self.bound);
        if !self.bound.ip().is_unspecified() {
            return own;
        }
        let mapped = lock(&self.mapping).as_ref().and_then(|map| map.status().borrow().external());
        let mut all: Vec<_> = mapped.into_iter().chain(self.observed.all()).collect();
        all.extend(seen.and_then(|ip| guess(own.iter().chain(&all), ip, self.bound.port())));
        with_seen(own, all)
    }
}

impl Carrier for IpCarrier {
    fn kind(&self) -> u16 {
        Way::IP
    }

    fn own_ways(&self, seen: Option<IpAddr>) -> Vec<Way> {
        self.addresses(seen).into_iter().map(Way::Ip).collect()
    }

    fn resolve<'a>(&'a self, way: &'a Way) -> BoxFuture<'a, Result<Addr, ResolveError>> {
        let no_address = || ResolveError::Final("it is not an IP address".to_owned());
        Box::pin(std::future::ready(way.ip().map(Addr::Ip).ok_or_else(no_address)))
    }

    fn is_direct(&self) -> bool {
        true
    }
}
