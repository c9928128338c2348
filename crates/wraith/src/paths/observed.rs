//! Our observed addresses: the source addresses of this machine as relays see them (encrypted), and
//! as DHT nodes see them (in the clear).
//!
//! Several servers are asked, and relays at both of their ports. If the servers see different
//! ports, our NAT has no port that all peers could use. The answers are only candidates: the peer
//! tries them.

use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use wraith_dht::AddressQuery;
use wraith_transport::{Endpoint, is_target};

use super::addresses::reachable;
use super::{SocketPaths, lock};

/// Maximum age of an observation that is sent to a peer without a new query. NAT mappings live for
/// 30 s or more.
const FRESH: Duration = Duration::from_secs(20);
/// How long to wait for the addresses of bootstrap nodes.
const RESOLVE_WAIT: Duration = Duration::from_secs(2);
/// How long to wait for further answers after the first one; some nodes are silent.
const OTHERS_WAIT: Duration = Duration::from_millis(300);
/// Additional time, beyond the round trip, for the answer of a relay's other port; both ports share
/// a path.
const PORT_WAIT: Duration = Duration::from_millis(50);
/// Refresh interval of a side that may be called: behind a NAT (`NAT_REFRESH`) and elsewhere
/// (`IDLE_REFRESH`), because networks change.
const NAT_REFRESH: Duration = Duration::from_secs(25);
const IDLE_REFRESH: Duration = Duration::from_secs(300);
/// Number of relays that are asked at both their ports.
const RELAYS_BY_BOTH: usize = 2;
/// Number of DHT nodes that are asked.
const NODES: usize = 3;
/// Maximum number of addresses kept per address family: the last ones, from which a NAT with
/// sequential ports continues.
const SEEN_MAX: usize = 4;

/// Our observed addresses.
#[derive(Debug, Default)]
pub(super) struct ObservedAddresses {
    addresses: Mutex<Vec<SocketAddr>>,
    /// Time of the last query. Locked during a query, so that concurrent callers wait for its
    /// answers.
    asked: AsyncMutex<Option<Instant>>,
    /// A task keeps them current.
    is_kept_fresh: AtomicBool,
}

impl ObservedAddresses {
    pub fn all(&self) -> Vec<SocketAddr> {
        lock(&self.addresses).clone()
    }
}

impl SocketPaths {
    /// Queries our observed addresses, unless that was just done. Takes at most 3 s, and
    /// [`OTHERS_WAIT`] more than the first answer.
    pub async fn observe(&self) {
        self.observe_if_older(FRESH).await;
    }

    /// Keeps the observations current for a side that may be called at any time. Behind a NAT, the
    /// traffic also keeps the mapping alive.
    pub fn keep_observed_fresh(&self) {
        if self.inner.ip.observed.is_kept_fresh.swap(true, Ordering::AcqRel) {
            return;
        }
        let all = self.of_all_roles();
        let paths = all.clone();
        all.spawn(async move {
            loop {
                paths.observe().await;
                let own = reachable(paths.endpoint().local_addr());
                let behind_nat =
                    paths.inner.ip.observed.all().iter().any(|seen| !own.contains(seen));
                sleep(if behind_nat { NAT_REFRESH } else { IDLE_REFRESH }).await;
            }
        });
    }

    pub(super) async fn observe_again(&self) {
        self.observe_if_older(Duration::ZERO).await;
    }

    async fn observe_if_older(&self, age: Duration) {
        if !self.allows_direct() || !self.inner.endpoint.local_addr().ip().is_unspecified() {
            return;
        }
        let mut asked = self.inner.ip.observed.asked.lock().await;
        if asked.is_some_and(|asked| asked.elapsed() < age) {
            return;
        }
        let mut asking = self.query_servers().await;
        if asking.is_empty() {
            // Query as soon as there is a server to ask.
            *asked = None;
            return;
        }
        let addresses = answers(&mut asking).await;
        // Set only now: if this future is dropped earlier, the next caller must query again.
        *asked = Some(Instant::now());
        let mut known = lock(&self.inner.ip.observed.addresses);
        if !addresses.is_empty() && *known != addresses {
            *known = addresses;
            drop(known);
            self.notify_changed();
        }
    }

    /// Queries relays and DHT nodes.
    async fn query_servers(&self) -> JoinSet<Vec<SocketAddr>> {
        let mut asking = JoinSet::new();
        for (number, client) in self.inner.relays.clients().into_iter().enumerate() {
            let status = client.status().borrow().clone();
            let (Some(secret), Some(of)) = (status.observe, status.udp) else { continue };
            let endpoint = self.inner.endpoint.clone();
            // A few ports are enough; more queries would leave no room for punches.
            let other = status.udp_other.filter(|_| number < RELAYS_BY_BOTH);
            asking.spawn(async move { query_relay(&endpoint, secret, of, other).await });
        }
        // Without a network, the names of the bootstrap nodes are not resolved for a long time.
        let nodes = timeout(RESOLVE_WAIT, self.inner.core.dht_nodes(NODES)).await;
        for node in nodes.unwrap_or_default() {
            let (endpoint, question) = (self.inner.endpoint.clone(), AddressQuery::new());
            asking.spawn(async move {
                let seen = async {
                    let question = question.ok()?;
                    let answer = endpoint.exchange(node.into(), question.datagram()).await.ok()?;
                    question.observed_address(&answer).filter(is_public).map(SocketAddr::V4)
                };
                seen.await.into_iter().collect()
            });
        }
        asking
    }
}

/// Queries both ports of a relay in parallel. If one port does not answer, the wait is no longer
/// than the other may need.
async fn query_relay(
    endpoint: &Endpoint,
    secret: [u8; 32],
    of: SocketAddr,
    other: Option<SocketAddr>,
) -> Vec<SocketAddr> {
    let mut asking = JoinSet::new();
    for port in other.into_iter().chain([of]) {
        let endpoint = endpoint.clone();
        asking.spawn(async move { endpoint.observe(secret, port).await.ok() });
    }
    first_answers(asking).await
}

/// Returns the first answer, and those that arrive within the same time again plus [`PORT_WAIT`].
async fn first_answers(mut asking: JoinSet<Option<SocketAddr>>) -> Vec<SocketAddr> {
    let begun = Instant::now();
    let mut seen = Vec::new();
    while let Some(answer) = asking.join_next().await {
        if let Ok(Some(answer)) = answer {
            seen.push(answer);
            break;
        }
    }
    let more = async {
        while let Some(answer) = asking.join_next().await {
            seen.extend(answer.ok().flatten());
        }
    };
    let _ = timeout(begun.elapsed() + PORT_WAIT, more).await;
    seen
}

/// Returns whether a DHT node could really see a host at this address. A malicious answer must not
/// direct a peer to a multicast group or a private network.
pub(super) fn is_public(seen: &SocketAddrV4) -> bool {
    let [a, b, ..] = seen.ip().octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_local = seen.ip().is_private() || seen.ip().is_link_local() || seen.ip().is_loopback();
    is_target((*seen).into()) && !is_local && !is_shared
}

/// Collects the answers, each address once, with the ports of an address in ascending order: the
/// order in which a sequential NAT assigns them.
async fn answers(asking: &mut JoinSet<Vec<SocketAddr>>) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    let mut deadline: Option<Instant> = None;
    loop {
        let next = match deadline {
            Some(deadline) => timeout_at(deadline, asking.join_next()).await.unwrap_or(None),
            None => asking.join_next().await,
        };
        match next {
            Some(Ok(seen)) if !seen.is_empty() => {
                let canonical =
                    |seen: SocketAddr| SocketAddr::new(seen.ip().to_canonical(), seen.port());
                addresses.extend(seen.into_iter().map(canonical));
                deadline.get_or_insert_with(|| Instant::now() + OTHERS_WAIT);
            }
            Some(_) => {}
            None => break,
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    let (v4, v6): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv4);
    let last = |seen: Vec<SocketAddr>| seen.into_iter().rev().take(SEEN_MAX).rev();
    last(v4).chain(last(v6)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_addresses_from_the_dht_are_public_unicast_only() {
        for no in ["239.1.1.1:9", "10.0.0.1:9", "100.64.0.1:9", "127.0.0.1:9", "192.0.2.1:0"] {
            assert!(!is_public(&no.parse().unwrap()), "{no}");
        }
        assert!(is_public(&"192.0.2.1:9".parse().unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_not_awaited_after_the_first_answers() {
        let address = |port| vec![SocketAddr::from(([192, 0, 2, 1], port))];
        let mut asking = JoinSet::new();
        for (millis, seen) in [(3000, vec![]), (90, address(7)), (40, vec![]), (200, address(6))] {
            asking.spawn(async move {
                sleep(Duration::from_millis(millis)).await;
                seen
            });
        }
        let begun = Instant::now();
        assert_eq!(answers(&mut asking).await, [address(6), address(7)].concat());
        assert_eq!(begun.elapsed(), Duration::from_millis(90) + OTHERS_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_ports_of_a_sequential_nat_are_kept_for_each_family() {
        let mut asking = JoinSet::new();
        let v6: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
        for port in [5, 3, 9, 7, 4, 8] {
            asking.spawn(async move { vec![SocketAddr::from(([192, 0, 2, 1], port)), v6] });
        }
        let ports: Vec<_> = answers(&mut asking).await.iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [5, 7, 8, 9, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_relay_port_delays_the_answer_by_at_most_one_round_trip() {
        let mut asking = JoinSet::new();
        let seen = SocketAddr::from(([192, 0, 2, 1], 7));
        for (millis, seen) in [(2750, None), (40, Some(seen))] {
            asking.spawn(async move {
                sleep(Duration::from_millis(millis)).await;
                seen
            });
        }
        let begun = Instant::now();
        assert_eq!(first_answers(asking).await, [seen]);
        assert_eq!(begun.elapsed(), Duration::from_millis(80) + PORT_WAIT);
    }
}
