//! Hole punching if one side's NAT maps each destination to another port. The side behind that NAT
//! probes from many sockets, and the other side probes many ports of that NAT.
//!
//! Both sides decide independently, from the addresses that they exchanged. Invariant: a side
//! starts an attempt only after the connection has carried [`WORTH_BYTES`], in both directions
//! together, since the last attempt. A peer could name the address of a third party, to have it
//! flooded with probes. Because of the invariant, it gains no more than by sending the same traffic
//! to that address itself.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::debug;
use wraith_transport::{PORT_GUESSES_MAX, PathHandle, PortGuessing, Role};

use super::SocketPaths;
use super::observed::is_public;
use crate::route::PathKind;

/// Bytes that the connection must have carried since the last attempt. [`PORT_GUESSES_MAX`] probes
/// and as many replies, of at most 160 bytes, are a third of it.
const WORTH_BYTES: u64 = 256 << 10;
/// How long to wait for the other side, which moves the connection.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);
/// A socket that received nothing for this long is closed; a live connection receives more often.
const SILENCE: Duration = Duration::from_secs(60);

/// The role of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PunchRole {
    /// Probes this address from many sockets.
    Sockets(SocketAddrV4),
    /// Probes many ports of this address.
    Ports(Ipv4Addr),
}

/// The NAT behaviour that a list of addresses shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NatMapping {
    /// All destinations see the same address.
    Stable(SocketAddrV4),
    /// Each destination sees another port.
    PerDestination(Ipv4Addr),
}

impl NatMapping {
    fn of(addresses: &[SocketAddr]) -> Option<Self> {
        let v4 = |address: &SocketAddr| match address {
            SocketAddr::V4(v4) => Some(*v4).filter(is_public),
            SocketAddr::V6(_) => None,
        };
        let public: HashSet<_> = addresses.iter().filter_map(v4).collect();
        let mut ports: HashMap<Ipv4Addr, usize> = HashMap::new();
        public.iter().for_each(|address| *ports.entry(*address.ip()).or_default() += 1);
        let only = |address| (public.len() == 1).then_some(Self::Stable(address));
        let drawn = ports.into_iter().filter(|(_, count)| *count > 1).map(|(ip, _)| ip).min();
        drawn.map(Self::PerDestination).or_else(|| only(*public.iter().next()?))
    }
}

impl PunchRole {
    /// Returns our role, from the addresses that both sides exchanged; `None` if the method is
    /// useless here.
    fn of(sent: &[SocketAddr], received: &[SocketAddr]) -> Option<Self> {
        match (NatMapping::of(sent)?, NatMapping::of(received)?) {
            (NatMapping::PerDestination(_), NatMapping::Stable(to)) => Some(Self::Sockets(to)),
            (NatMapping::Stable(_), NatMapping::PerDestination(ip)) => Some(Self::Ports(ip)),
            _ => None,
        }
    }
}

/// Budget of a connection for this method.
#[derive(Debug, Default)]
pub(super) struct ProbeBudget {
    /// Bytes carried at the time of the last attempt.
    carried: u64,
}

impl ProbeBudget {
    /// Returns whether another attempt is justified for a connection that has carried so many
    /// bytes.
    fn is_worth_it(&self, carried: u64) -> bool {
        carried.saturating_sub(self.carried) >= WORTH_BYTES
    }
}

impl SocketPaths {
    /// Tries the method for a relayed connection, after ordinary punching failed. `sent` is the
    /// list that the peer has of our addresses, regardless of later observations.
    pub(super) async fn punch_symmetric(
        &self,
        path: &PathHandle,
        sent: &[SocketAddr],
        budget: &mut ProbeBudget,
        secret: [u8; 32],
        role: Role,
    ) {
        let stats = path.stats();
        let carried = stats.bytes_sent + stats.bytes_received;
        let role_here = PunchRole::of(sent, &path.peer_candidates());
        let started = match role_here.filter(|_| budget.is_worth_it(carried)) {
            Some(PunchRole::Ports(ip)) => self.probe_ports(path, secret, role, ip).await,
            Some(PunchRole::Sockets(to)) => self.probe_from_sockets(path, secret, role, to).await,
            None => false,
        };
        if started {
            budget.carried = carried;
        }
    }

    /// Our role if the other side's NAT varies its ports. Returns false if it could not start.
    async fn probe_ports(
        &self,
        path: &PathHandle,
        secret: [u8; 32],
        role: Role,
        ip: Ipv4Addr,
    ) -> bool {
        let mut punch =
            self.endpoint().punch_by_port_guessing(secret, role, PortGuessing::Ports(ip));
        let Ok(best) = punch.best().await else { return false };
        if let Some(best) = best {
            self.inner.core.routes.add_punched(best);
            if path.migrate_to(best).await.is_err() {
                debug!("a pair of ports carries no full packets");
            }
        }
        true
    }

    /// Our role if our own NAT varies its ports. Returns false if it could not start.
    async fn probe_from_sockets(
        &self,
        path: &PathHandle,
        secret: [u8; 32],
        role: Role,
        to: SocketAddrV4,
    ) -> bool {
        let mut events = path.events();
        let opened = self.inner.sockets.open(PORT_GUESSES_MAX, to);
        if opened.is_empty() {
            return false;
        }
        self.close_when_silent();
        let many = PortGuessing::Sockets(opened.clone());
        let started =
            self.endpoint().punch_by_port_guessing(secret, role, many).best().await.is_ok();
        let followed = async {
            while self.inner.core.routes.route(&path.remote()).kind == PathKind::Relay {
                if events.next().await.is_err() {
                    return;
                }
            }
        };
        // The path of the connection shows later whether it succeeded. Until then, nothing else is
        // tried.
        if started {
            let _ = timeout(FOLLOW_WAIT, followed).await;
        }
        self.inner.sockets.close(&opened, &path.remote());
        started
    }

    /// Starts the task that closes idle sockets, unless it is running.
    fn close_when_silent(&self) {
        if self.inner.closes_sockets.swap(true, Ordering::AcqRel) {
            return;
        }
        let all = self.of_all_roles();
        let paths = all.clone();
        all.spawn(async move {
            loop {
                sleep(SILENCE / 4).await;
                if paths.inner.sockets.close_silent(SILENCE) == 0 {
                    return paths.inner.closes_sockets.store(false, Ordering::Release);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn symmetric_punching_waits_for_enough_carried_bytes() {
        let is_worth_it = |since, carried| ProbeBudget { carried: since }.is_worth_it(carried);
        assert!(!is_worth_it(0, WORTH_BYTES - 1) && is_worth_it(0, WORTH_BYTES));
        assert!(!is_worth_it(WORTH_BYTES, WORTH_BYTES + 1) && is_worth_it(9, 9 + WORTH_BYTES));
    }

    #[test]
    fn both_sides_derive_matching_roles_or_none() {
        let home = addresses(&["192.168.1.2:5000", "198.51.100.7:5000", "[2001:db8::1]:5000"]);
        let drawn = addresses(&["10.0.0.2:6000", "203.0.113.9:40001", "203.0.113.9:61000"]);
        let (to, ip) = ("198.51.100.7:5000".parse().unwrap(), "203.0.113.9".parse().unwrap());
        assert_eq!(PunchRole::of(&drawn, &home), Some(PunchRole::Sockets(to)));
        assert_eq!(PunchRole::of(&home, &drawn), Some(PunchRole::Ports(ip)));
        let hidden = addresses(&["192.168.1.2:5000"]);
        let several = addresses(&["198.51.100.7:5000", "198.51.100.8:5000"]);
        for other in [&hidden, &several, &drawn, &Vec::new()] {
            assert_eq!(PunchRole::of(&drawn, other), None, "{other:?}");
            assert_eq!(PunchRole::of(other, &drawn), None, "{other:?}");
        }
        assert_eq!(PunchRole::of(&home, &home), None);
    }

    #[test]
    fn roles_follow_from_the_sent_addresses_and_not_from_later_observations() {
        let home = addresses(&["198.51.100.7:5000"]);
        let sent = addresses(&["203.0.113.9:40001"]);
        let seen_since = addresses(&["203.0.113.9:40001", "203.0.113.9:61000"]);
        assert_eq!((PunchRole::of(&sent, &home), PunchRole::of(&home, &sent)), (None, None));
        assert!(matches!(PunchRole::of(&seen_since, &home), Some(PunchRole::Sockets(_))));
    }
}
