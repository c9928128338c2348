//! Where others see our socket: relays, inside what only they and we can read, and nodes of the DHT, in the clear.
//!
//! Several are asked, because a NAT that shows each of them another port is one that cannot be told a port by which everybody may come;
//! what they say is no more than candidates, which are tried.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use wraith_dht::SeenQuestion;

use super::{Ways, lock};

/// What is known for so long is asked again before it is told to a peer: mappings of NATs live for 30 s and more.
const FRESH: Duration = Duration::from_secs(20);
/// Nodes of the DHT that are asked.
const NODES: usize = 3;
/// Addresses that are kept.
const SEEN_MAX: usize = 4;

/// Where others see us.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    addresses: Vec<SocketAddr>,
    asked: Option<Instant>,
}

impl Seen {
    pub fn all(&self) -> Vec<SocketAddr> {
        lock(&self.0).addresses.clone()
    }
}

impl Ways {
    /// [`Self::see`] in the background.
    pub fn see_soon(&self) {
        let ways = self.unguarded();
        self.spawn(async move { ways.see().await });
    }

    /// Asks where we are seen, unless that was just done.
    pub async fn see(&self) {
        let asked = lock(&self.inner.seen.0).asked;
        if asked.is_none_or(|asked| asked.elapsed() > FRESH) {
            self.see_anew().await;
        }
    }

    pub(super) async fn see_anew(&self) {
        if !self.allows_direct() || !self.inner.endpoint.local_addr().ip().is_unspecified() {
            return;
        }
        lock(&self.inner.seen.0).asked = Some(Instant::now());
        let mut asking = JoinSet::new();
        for client in self.inner.relays.clients() {
            let status = client.status().borrow().clone();
            let (Some(secret), Some(of)) = (status.observe, status.udp) else { continue };
            let endpoint = self.inner.endpoint.clone();
            asking.spawn(async move { endpoint.observe(secret, of).await.ok() });
        }
        for node in self.inner.node.dht_nodes(NODES).await {
            let (endpoint, question) = (self.inner.endpoint.clone(), SeenQuestion::new());
            asking.spawn(async move {
                let question = question.ok()?;
                let answer = endpoint.exchange(node.into(), question.datagram()).await.ok()?;
                question.seen_at(&answer).map(SocketAddr::V4)
            });
        }
        if asking.is_empty() {
            // As soon as there is somebody to ask, it is worth it.
            lock(&self.inner.seen.0).asked = None;
        }
        let mut addresses = Vec::new();
        while let Some(seen) = asking.join_next().await {
            if let Ok(Some(seen)) = seen {
                addresses.push(SocketAddr::new(seen.ip().to_canonical(), seen.port()));
            }
        }
        if addresses.is_empty() {
            return;
        }
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(SEEN_MAX);
        let mut known = lock(&self.inner.seen.0);
        if known.addresses != addresses {
            known.addresses = addresses;
            drop(known);
            self.has_changed();
        }
    }
}
