//! Nodes that meet on this machine alone, content to move, and waits that end.

mod process;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith::state::StateDir;
use wraith::{Event, Events, Lan, Node, NodeBuilder, Observer, Offer, Payload, Ticket};
use wraith_discovery::rendezvous::Server;

pub use process::{alone_in_a_process, lan_alone, threads};

/// Longer than anything here takes, so that a test that hangs fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How soon the other side must hear that somebody left: no time limit of a protocol is as short.
pub const SOON: Duration = Duration::from_secs(5);
/// Any port of loopback.
pub const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// The outcome, or the test fails.
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

/// The outcome, which must come soon.
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

/// A node that meets nobody and is found by addresses only.
pub fn nowhere() -> NodeBuilder {
    Node::builder().lan(Lan::Off)
}

pub fn node() -> Node {
    nowhere().build().unwrap()
}

/// A node on the local network, which is loopback. Take [`lan_alone`] first.
pub fn lan_node() -> Node {
    Node::builder().lan(Lan::With(LOOPBACK.ip())).build().unwrap()
}

/// A node that meets others at this server.
pub fn node_at(server: SocketAddr) -> Node {
    nowhere().rendezvous(&server.to_string()).build().unwrap()
}

/// A node that remembers in `folder`.
pub fn node_in(folder: &Path) -> Node {
    nowhere().state(StateDir::in_folder(folder)).build().unwrap()
}

/// A rendezvous server for as long as the tasks are there.
pub async fn server(tasks: &mut JoinSet<()>) -> SocketAddr {
    let server = Server::bind(LOOPBACK).await.unwrap();
    let address = server.local_addr().unwrap();
    tasks.spawn(async move { server.run().await.unwrap() });
    address
}

/// An offer by ticket, on loopback.
pub async fn offered(node: &Node, what: impl Into<Payload>) -> (Offer, Ticket) {
    let offer = within(node.offer(what).by_ticket().bind_to(LOOPBACK).start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    (offer, ticket)
}

/// Bytes that depend on `seed` and cannot be compressed.
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

/// Whatever is written to it, readable later.
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

/// The next event that this finds something in; fails at the end of the stream.
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

/// Everything that is told from now on, in order.
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

/// Waits until `condition` holds, for what nothing tells of.
pub async fn until(mut condition: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while !condition() {
        looks.tick().await;
    }
}

/// Waits until the port of a sender that has ended can be had again: its socket is closed a moment after it says that it has ended.
pub async fn free_again(ticket: &Ticket) {
    let address = ticket.addresses()[0];
    within(until(|| std::net::UdpSocket::bind(address).is_ok())).await;
}
