//! Test support: nodes that meet on this machine only, test content, and waits with time limits.

#[path = "../../../../wraith-cli/tests/it/support/lan.rs"]
mod lan;
mod process;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith::state::StateDir;
use wraith::{Event, Events, Lan, Node, NodeBuilder, Observer, Offer, Payload, Ticket};
use wraith_relay::rendezvous::Server;

pub use lan::own_network;
pub use process::{alone_in_a_process, threads};
pub use wire::Wire;

/// Longer than any operation of these tests, so that a hanging test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time within which the other side must be notified of an end; shorter than any protocol timeout.
pub const SOON: Duration = Duration::from_secs(5);
/// Loopback, on a port chosen by the system.
pub const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Returns the output, or fails the test after [`PATIENCE`].
#[track_caller]
pub fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let at = std::panic::Location::caller();
    async move {
        match timeout(PATIENCE, future).await {
            Ok(output) => output,
            Err(_) => panic!("nothing came of this in time: {at}"),
        }
    }
}

/// Returns the output, or fails the test after [`SOON`].
#[track_caller]
pub fn soon<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let at = std::panic::Location::caller();
    async move {
        match timeout(SOON, future).await {
            Ok(output) => output,
            Err(_) => panic!("nothing came of this soon enough: {at}"),
        }
    }
}

/// A node without meeting places, found by addresses only.
pub fn nowhere() -> NodeBuilder {
    Node::builder().lan(Lan::Off)
}

pub fn node() -> Node {
    nowhere().build().unwrap()
}

/// A node on the local network, which is loopback. Call [`lan_alone`] first.
pub fn lan_node() -> Node {
    Node::builder().lan(Lan::With(LOOPBACK.ip())).build().unwrap()
}

/// A node that meets peers at this server.
pub fn node_at(server: SocketAddr) -> Node {
    nowhere().rendezvous(&server.to_string()).build().unwrap()
}

/// A node with its state in `folder`.
pub fn node_in(folder: &Path) -> Node {
    nowhere().state(StateDir::in_folder(folder)).build().unwrap()
}

/// Starts a rendezvous server that runs as long as `tasks`.
pub async fn server(tasks: &mut JoinSet<()>) -> SocketAddr {
    let server = Server::bind(LOOPBACK).await.unwrap();
    let address = server.local_addr().unwrap();
    tasks.spawn(async move { server.run().await.unwrap() });
    address
}

/// Starts an offer by ticket, on loopback.
pub async fn offered(node: &Node, what: impl Into<Payload>) -> (Offer, Ticket) {
    let offer = within(node.offer(what).by_ticket().bind_to(LOOPBACK).start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    (offer, ticket)
}

/// Returns incompressible bytes derived from `seed`.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

/// Writes a file of noise and returns its bytes.
pub fn file(path: &Path, seed: u64, len: usize) -> Vec<u8> {
    let bytes = noise(seed, len);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, &bytes).unwrap();
    bytes
}

/// A writer that stores its bytes for later.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the first value that `find` extracts from an event; fails at the end of the stream.
pub async fn event<T>(events: &mut Events, mut find: impl FnMut(&Event) -> Option<T>) -> T {
    let mut before = Vec::new();
    loop {
        match within(events.next()).await {
            Some(event) => match find(&event) {
                Some(found) => return found,
                None => before.push(event),
            },
            None => panic!("the stream ended without it: {before:?}"),
        }
    }
}

/// An observer that records all events in order.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Vec<Event>>);

impl Heard {
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Heard {
    fn event(&self, _receiver: Option<u64>, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// Polls until `condition` holds, for conditions without an event.
pub async fn until(mut condition: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while !condition() {
        looks.tick().await;
    }
}

/// Waits until the port of an ended sender is free again: its socket is closed a moment after it
/// reports its end.
pub async fn free_again(ticket: &Ticket) {
    let address = ticket.addresses()[0];
    within(until(|| std::net::UdpSocket::bind(address).is_ok())).await;
}
