//! By which way datagrams reach a peer, in the words that people and scripts are told.
//!
//! Most of it can be read off the peer's address. That a NAT was got through by punching cannot, so a node remembers at which
//! addresses it was ([`Punched`]).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use wraith_transport::Addr;

/// Punched addresses that a node remembers: more than it has connections.
const PUNCHED_MAX: usize = 256;

/// What kind of path leads to a peer.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Within this machine.
    Loopback,
    /// A private network.
    Lan,
    /// The internet, without anybody in between.
    Direct,
    /// A relay carries what it cannot read.
    Relay,
    /// A mover of datagrams that the application brought.
    Custom,
}

impl PathKind {
    /// In one word, for people and scripts.
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

/// How a path came about.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Both programs are on one machine.
    SameMachine,
    /// Both machines have private addresses of one network.
    SameNetwork,
    /// Over IPv6.
    Ipv6,
    /// The address can be dialled as it is: no NAT is in front of it, or one that lets through.
    Address,
    /// Both sides opened their NATs for each other.
    Punched,
    /// Through a relay.
    Relay,
    /// As the application wanted.
    Custom,
}

impl How {
    /// For scripts.
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

/// Which way leads to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Of which kind it is.
    pub kind: PathKind,
    /// How it came about.
    pub how: How,
}

impl Route {
    fn of(remote: &Addr, is_punched: bool) -> Self {
        let kind = path_kind(remote);
        let how = match (kind, remote.ip()) {
            (PathKind::Loopback, _) => How::SameMachine,
            (PathKind::Relay, _) => How::Relay,
            (PathKind::Custom, _) => How::Custom,
            _ if is_punched => How::Punched,
            (PathKind::Lan, _) => How::SameNetwork,
            (_, Some(at)) if at.ip().to_canonical().is_ipv6() => How::Ipv6,
            _ => How::Address,
        };
        Self { kind, how }
    }
}

/// For people, as in "connected to … at … (direct, punched)".
impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.name())?;
        match self.how {
            How::Ipv6 => f.write_str(", IPv6"),
            How::Punched => f.write_str(", through NATs"),
            _ => Ok(()),
        }
    }
}

/// What kind of path leads to an address.
pub fn path_kind(remote: &Addr) -> PathKind {
    let Some(remote) = remote.ip() else { return PathKind::Custom };
    let private = match remote.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_loopback() => return PathKind::Loopback,
        IpAddr::V6(ip) if ip.is_loopback() => return PathKind::Loopback,
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    if private { PathKind::Lan } else { PathKind::Direct }
}

/// Addresses at which NATs were got through, the last ones.
#[derive(Debug, Default)]
pub(crate) struct Punched(Mutex<VecDeque<SocketAddr>>);

impl Punched {
    pub fn add(&self, remote: SocketAddr) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| *known != remote);
        if all.len() == PUNCHED_MAX {
            all.pop_front();
        }
        all.push_back(remote);
    }

    /// Which way leads to `remote`.
    pub fn route(&self, remote: &Addr) -> Route {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_punched = remote.ip().is_some_and(|remote| all.contains(&remote));
        Route::of(remote, is_punched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> Addr {
        Addr::Ip(text.parse().unwrap())
    }

    #[test]
    fn paths_are_told_apart() {
        let punched = Punched::default();
        for (text, kind, how) in [
            ("127.0.0.1:1", "loopback", "same-machine"),
            ("[::ffff:192.168.1.1]:1", "lan", "same-network"),
            ("[fd00::1]:1", "lan", "same-network"),
            ("[2001:db8::1]:1", "direct", "ipv6"),
            ("192.0.2.1:1", "direct", "address"),
        ] {
            let route = punched.route(&addr(text));
            assert_eq!((route.kind.name(), route.how.name()), (kind, how), "{text}");
        }
        let custom = Addr::Custom { kind: 7, bytes: Box::default() };
        assert_eq!(punched.route(&custom).to_string(), "custom");
    }

    #[test]
    fn what_was_punched_is_told_of_the_last_addresses() {
        let punched = Punched::default();
        for port in 1..=PUNCHED_MAX as u16 + 1 {
            punched.add(SocketAddr::from(([192, 0, 2, 1], port)));
        }
        let how = |text| punched.route(&addr(text)).how;
        assert_eq!((how("192.0.2.1:1"), how("192.0.2.1:2")), (How::Address, How::Punched));
        assert_eq!(punched.route(&addr("192.0.2.1:2")).to_string(), "direct, through NATs");
        assert_eq!(punched.0.lock().unwrap().len(), PUNCHED_MAX);
    }
}
