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

use super::Ways;
use super::seen::is_public;
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
enum Part {
    /// Probes this address from many sockets.
    Sockets(SocketAddrV4),
    /// Probes many ports of this address.
    Ports(Ipv4Addr),
}

/// The NAT behaviour that a list of addresses shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// All destinations see the same address.
    One(SocketAddrV4),
    /// Each destination sees another port.
    Drawn(Ipv4Addr),
}

impl Outside {
    fn of(addresses: &[SocketAddr]) -> Option<Self> {
        let v4 = |address: &SocketAddr| match address {
            SocketAddr::V4(v4) => Some(*v4).filter(is_public),
            SocketAddr::V6(_) => None,
        };
        let public: HashSet<_> = addresses.iter().filter_map(v4).collect();
        let mut ports: HashMap<Ipv4Addr, usize> = HashMap::new();
        public.iter().for_each(|address| *ports.entry(*address.ip()).or_default() += 1);
        let only = |address| (public.len() == 1).then_some(Self::One(address));
        let drawn = ports.into_iter().filter(|(_, count)| *count > 1).map(|(ip, _)| ip).min();
        drawn.map(Self::Drawn).or_else(|| only(*public.iter().next()?))
    }
}

impl Part {
    /// Returns our role, from the addresses that both sides exchanged; `None` if the method is
    /// useless here.
    fn of(told: &[SocketAddr], heard: &[SocketAddr]) -> Option<Self> {
        match (Outside::of(told)?, Outside::of(heard)?) {
            (Outside::Drawn(_), Outside::One(to)) => Some(Self::Sockets(to)),
            (Outside::One(_), Outside::Drawn(ip)) => Some(Self::Ports(ip)),
            _ => None,
        }
    }
}

/// Budget of a connection for this method.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// Bytes carried at the time of the last attempt.
    carried: u64,
}

impl Spent {
    /// Returns whether another attempt is justified for a connection that has carried so many
    /// bytes.
    fn is_worth_it(&self, carried: u64) -> bool {
        carried.saturating_sub(self.carried) >= WORTH_BYTES
    }
}

impl Ways {
    /// Tries the method for a relayed connection, after ordinary punching failed. `told` is the
    /// list that the peer has of our addresses, regardless of later observations.
    pub(super) async fn punch_many(
        &self,
        path: &PathHandle,
        told: &[SocketAddr],
        spent: &mut Spent,
        secret: [u8; 32],
        role: Role,
    ) {
        let stats = path.stats();
        let carried = stats.bytes_sent + stats.bytes_received;
        let part = Part::of(told, &path.peer_candidates());
        let begun = match part.filter(|_| spent.is_worth_it(carried)) {
            Some(Part::Ports(ip)) => self.ask_ports(path, secret, role, ip).await,
            Some(Part::Sockets(to)) => self.ask_from_sockets(path, secret, role, to).await,
            None => false,
        };
        if begun {
            spent.carried = carried;
        }
    }

    /// Our role if the other side's NAT varies its ports. Returns false if it could not start.
    async fn ask_ports(
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
            self.inner.node.routes().add_punched(best);
            if path.migrate_to(best).await.is_err() {
                debug!("a pair of ports carries no full packets");
            }
        }
        true
    }

    /// Our role if our own NAT varies its ports. Returns false if it could not start.
    async fn ask_from_sockets(
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
        let begun = self.endpoint().punch_by_port_guessing(secret, role, many).best().await.is_ok();
        let followed = async {
            while self.inner.node.route(&path.remote()).kind == PathKind::Relay {
                if events.next().await.is_err() {
                    return;
                }
            }
        };
        // The path of the connection shows later whether it succeeded. Until then, nothing else is
        // tried.
        if begun {
            let _ = timeout(FOLLOW_WAIT, followed).await;
        }
        self.inner.sockets.close(&opened, &path.remote());
        begun
    }

    /// Starts the task that closes idle sockets, unless it is running.
    fn close_when_silent(&self) {
        if self.inner.closes_sockets.swap(true, Ordering::AcqRel) {
            return;
        }
        let ways = self.unguarded();
        self.spawn(async move {
            loop {
                sleep(SILENCE / 4).await;
                if ways.inner.sockets.close_silent(SILENCE) == 0 {
                    return ways.inner.closes_sockets.store(false, Ordering::Release);
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
    fn nothing_is_tried_with_many_ports_before_it_is_worth_it() {
        let is_worth_it = |since, carried| Spent { carried: since }.is_worth_it(carried);
        assert!(!is_worth_it(0, WORTH_BYTES - 1) && is_worth_it(0, WORTH_BYTES));
        assert!(!is_worth_it(WORTH_BYTES, WORTH_BYTES + 1) && is_worth_it(9, 9 + WORTH_BYTES));
    }

    #[test]
    fn sides_agree_on_their_parts_and_have_none_where_it_is_of_no_use() {
        let home = addresses(&["192.168.1.2:5000", "198.51.100.7:5000", "[2001:db8::1]:5000"]);
        let drawn = addresses(&["10.0.0.2:6000", "203.0.113.9:40001", "203.0.113.9:61000"]);
        let (to, ip) = ("198.51.100.7:5000".parse().unwrap(), "203.0.113.9".parse().unwrap());
        assert_eq!(Part::of(&drawn, &home), Some(Part::Sockets(to)));
        assert_eq!(Part::of(&home, &drawn), Some(Part::Ports(ip)));
        let hidden = addresses(&["192.168.1.2:5000"]);
        let several = addresses(&["198.51.100.7:5000", "198.51.100.8:5000"]);
        for other in [&hidden, &several, &drawn, &Vec::new()] {
            assert_eq!(Part::of(&drawn, other), None, "{other:?}");
            assert_eq!(Part::of(other, &drawn), None, "{other:?}");
        }
        assert_eq!(Part::of(&home, &home), None);
    }

    #[test]
    fn what_is_seen_of_a_side_after_it_told_its_list_would_part_the_two() {
        let home = addresses(&["198.51.100.7:5000"]);
        let told = addresses(&["203.0.113.9:40001"]);
        let seen_since = addresses(&["203.0.113.9:40001", "203.0.113.9:61000"]);
        assert_eq!((Part::of(&told, &home), Part::of(&home, &told)), (None, None));
        assert!(matches!(Part::of(&seen_since, &home), Some(Part::Sockets(_))));
    }
}
