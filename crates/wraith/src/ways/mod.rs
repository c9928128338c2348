//! What leads to a socket of ours: the addresses of this machine, a port of the router, relays. One [`Ways`] for each socket that
//! somebody dials, from the first ticket that names it to the end.
//!
//! Invariant: nothing is asked of a router or a relay for a socket that is bound to one particular address: who wants that has said
//! by which way others are to come.

pub(crate) mod addresses;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use wraith_portmap::{PortMapping, Status};
use wraith_transport::Endpoint;

use self::addresses::{reachable, with_seen};
use crate::node::Node;

/// How long a ticket that somebody waits for waits for a router. One that grants ports does so within milliseconds, or, by UPnP,
/// after the second over which devices spread their answers.
const ROUTER_WAIT: Duration = Duration::from_millis(1500);

/// Which ways a node may use to reach others and be reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaySettings {
    /// Ask the router for a port.
    pub port_mapping: bool,
}

/// See the module. Clones are handles of the same.
#[derive(Clone, Debug)]
pub(crate) struct Ways(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bound: SocketAddr,
    mapping: Mutex<Option<PortMapping>>,
}

impl Ways {
    /// Begins to open ways to `endpoint`.
    pub fn new(node: &Node, endpoint: &Endpoint) -> Self {
        let bound = endpoint.local_addr();
        let asks = node.way_settings().port_mapping && bound.ip().is_unspecified();
        let port = NonZeroU16::new(bound.port()).filter(|_| asks);
        let _entered = node.runtime().enter();
        let mapping = Mutex::new(port.map(PortMapping::request));
        Self(Arc::new(Inner { bound, mapping }))
    }

    /// Where it can be dialled, the most useful first; `seen` is the address at which a server saw us, which is good when the router
    /// in between forwards the port.
    pub fn addresses(&self, seen: Option<IpAddr>) -> Vec<SocketAddr> {
        let bound = self.0.bound;
        let seen = seen.filter(|_| bound.ip().is_unspecified());
        let addresses =
            with_seen(reachable(bound), seen.map(|ip| SocketAddr::new(ip, bound.port())));
        with_seen(addresses, self.mapped())
    }

    /// Where the router leads others to us.
    fn mapped(&self) -> Option<SocketAddr> {
        self.mapping(|mapping| mapping.status().borrow().external())
    }

    fn mapping<T>(&self, of: impl FnOnce(&PortMapping) -> Option<T>) -> Option<T> {
        self.0.mapping.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(of)
    }

    /// Waits a little for what goes into a ticket that is printed once.
    pub async fn settled(&self) {
        if let Some(mut status) = self.mapping(|mapping| Some(mapping.status())) {
            let answered = status.wait_for(|status| *status != Status::Asking);
            // A router that does not answer has no part in the ticket.
            drop(timeout(ROUTER_WAIT, answered).await);
        }
    }

    /// Gives back what was asked for.
    pub async fn close(&self) {
        let mapping = self.0.mapping.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mapping) = mapping {
            mapping.release().await;
        }
    }
}
