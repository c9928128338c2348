//! Kinds of network paths to a peer, with their names for people and scripts.
//!
//! The peer's address shows the kind, with one exception: it does not show whether hole punching
//! opened a NAT. So a node records the punched addresses ([`Routes`]).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wraith_transport::Addr;
use wraith_transport::mover::SocketPool;

/// Maximum number of addresses in each list of [`Routes`]. Larger than the number of connections of
/// a node.
const KNOWN_MAX: usize = 256;

/// Kind of network path to a peer.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Within this machine.
    Loopback,
    /// A private network.
    Lan,
    /// The internet, without an intermediary.
    Direct,
    /// A relay, which cannot read the traffic.
    Relay,
    /// A datagram transport supplied by the application.
    Custom,
}

impl PathKind {
    /// Returns the name for people and scripts, in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Lan => "lan",
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Custom => "custom",
        }
    }
}

/// How a path was established.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOrigin {
    /// Both programs run on one machine.
    SameMachine,
    /// Both machines have private addresses of one network.
    SameNetwork,
    /// Over IPv6.
    Ipv6,
    /// The address was dialled as it is: no NAT, or one that forwards the port.
    Address,
    /// Both sides opened their NATs by hole punching.
    Punched,
    /// Through a relay.
    Relay,
    /// By the application's own transport.
    Custom,
}

impl PathOrigin {
    /// Returns the name for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SameMachine => "same-machine",
            Self::SameNetwork => "same-network",
            Self::Ipv6 => "ipv6",
            Self::Address => "address",
            Self::Punched => "punched",
            Self::Relay => "relay",
            Self::Custom => "custom",
        }
    }
}

/// The network path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The kind of path.
    pub kind: PathKind,
    /// How the path was established.
    pub origin: PathOrigin,
}

impl Route {
    fn of(remote: &Addr, is_punched: bool) -> Self {
        let kind = path_kind(remote);
        let origin = match (kind, remote.ip()) {
            _ if SocketPool::remote(remote).is_some() => PathOrigin::Punched,
            (PathKind::Loopback, _) => PathOrigin::SameMachine,
            (PathKind::Relay, _) => PathOrigin::Relay,
            (PathKind::Custom, _) => PathOrigin::Custom,
            _ if is_punched => PathOrigin::Punched,
            (PathKind::Lan, _) => PathOrigin::SameNetwork,
            (_, Some(at)) if at.ip().to_canonical().is_ipv6() => PathOrigin::Ipv6,
            _ => PathOrigin::Address,
        };
        Self { kind, origin }
    }
}

/// Formats the path for people, as in "connected to … at … (direct, through NATs)".
impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.name())?;
        match self.origin {
            PathOrigin::Ipv6 => f.write_str(", IPv6"),
            PathOrigin::Punched => f.write_str(", through NATs"),
            _ => Ok(()),
        }
    }
}

/// Returns the kind of path that leads to an address.
pub fn path_kind(remote: &Addr) -> PathKind {
    let remote = match remote {
        Addr::Custom { kind: wraith_relay::KIND, .. } => return PathKind::Relay,
        other => other.ip().or_else(|| SocketPool::remote(other).map(SocketAddr::V4)),
    };
    let Some(remote) = remote else { return PathKind::Custom };
    let private = match remote.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_loopback() => return PathKind::Loopback,
        IpAddr::V6(ip) if ip.is_loopback() => return PathKind::Loopback,
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    if private { PathKind::Lan } else { PathKind::Direct }
}

/// Path facts that an address does not show: addresses reached by hole punching, and the relay
/// behind an address. Each list keeps the most recent entries.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    punched: Mutex<VecDeque<SocketAddr>>,
    relays: Mutex<VecDeque<(Addr, String)>>,
}

impl Routes {
    /// Records that hole punching succeeded for this address.
    pub fn add_punched(&self, remote: SocketAddr) {
        add(&mut lock(&self.punched), remote, |known| *known == remote);
    }

    /// Records the name of the relay behind this address.
    pub fn add_relay(&self, remote: Addr, name: String) {
        let is_known = |(known, _): &(Addr, String)| *known == remote;
        let entry = (remote.clone(), name);
        add(&mut lock(&self.relays), entry, is_known);
    }

    /// Returns the path that leads to `remote`.
    pub fn route(&self, remote: &Addr) -> Route {
        let is_punched = remote.ip().is_some_and(|remote| lock(&self.punched).contains(&remote));
        Route::of(remote, is_punched)
    }

    /// Formats `remote` for people and scripts: an IP address and port, or those of the relay.
    pub fn shown(&self, remote: &Addr) -> String {
        let relays = lock(&self.relays);
        let relay = relays.iter().find(|(known, _)| known == remote);
        let by_socket = || SocketPool::remote(remote).map(|remote| remote.to_string());
        let relay = relay.map(|(_, name)| name.clone());
        relay.or_else(by_socket).unwrap_or_else(|| remote.to_string())
    }
}

/// Appends an entry; evicts the oldest if the list is full.
fn add<T>(all: &mut VecDeque<T>, new: T, is_known: impl Fn(&T) -> bool) {
    all.retain(|known| !is_known(known));
    if all.len() == KNOWN_MAX {
        all.pop_front();
    }
    all.push_back(new);
}

/// Ignores poisoning: the lists are consistent at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> Addr {
        Addr::Ip(text.parse().unwrap())
    }

    #[test]
    fn addresses_are_classified_by_kind_and_origin() {
        let routes = Routes::default();
        for (text, kind, how) in [
            ("127.0.0.1:1", "loopback", "same-machine"),
            ("[::ffff:192.168.1.1]:1", "lan", "same-network"),
            ("[fd00::1]:1", "lan", "same-network"),
            ("[2001:db8::1]:1", "direct", "ipv6"),
            ("192.0.2.1:1", "direct", "address"),
        ] {
            let route = routes.route(&addr(text));
            assert_eq!((route.kind.name(), route.origin.name()), (kind, how), "{text}");
        }
        let custom = Addr::Custom { kind: 7, bytes: Box::default() };
        assert_eq!(routes.route(&custom).to_string(), "custom");
    }

    #[test]
    fn punched_addresses_are_remembered_up_to_the_limit() {
        let routes = Routes::default();
        for port in 1..=KNOWN_MAX as u16 + 1 {
            routes.add_punched(SocketAddr::from(([192, 0, 2, 1], port)));
        }
        let how = |text| routes.route(&addr(text)).origin;
        assert_eq!(
            (how("192.0.2.1:1"), how("192.0.2.1:2")),
            (PathOrigin::Address, PathOrigin::Punched)
        );
        assert_eq!(routes.route(&addr("192.0.2.1:2")).to_string(), "direct, through NATs");
        assert_eq!(routes.punched.lock().unwrap().len(), KNOWN_MAX);
    }

    #[test]
    fn an_address_at_a_relay_is_shown_as_the_relay() {
        let routes = Routes::default();
        let pair = |n| Addr::Custom { kind: wraith_relay::KIND, bytes: Box::new([n]) };
        routes.add_relay(pair(1), "relay.example:443".to_owned());
        assert_eq!(routes.route(&pair(1)).to_string(), "relay");
        assert_eq!(routes.shown(&pair(1)), "relay.example:443");
        assert_ne!(routes.shown(&pair(2)), "relay.example:443");
        assert_eq!(routes.shown(&addr("192.0.2.1:1")), "192.0.2.1:1");
    }
}
