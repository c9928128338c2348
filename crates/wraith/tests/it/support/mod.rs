//! Test support: nodes that meet on this machine only, test content, and waits with time limits.

#[path = "../../../../wraith-cli/tests/it/support/lan.rs"]
mod lan;
#[path = "../../../../wraith-cli/tests/it/support/noise.rs"]
mod noise;
mod process;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith::state::{Contact, StateDir, StateError};
use wraith::{
    Connection, Event, Events, Lan, Node, NodeBuilder, NodeId, Observer, Offer, Payload, Ticket,
};
use wraith_relay::rendezvous::Server;

pub use lan::{OwnNetwork, own_network};
pub use noise::noise;
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
    in_time(PATIENCE, future)
}

/// Returns the output, or fails the test after [`SOON`].
#[track_caller]
pub fn soon<F: Future>(future: F) -> impl Future<Output = F::Output> {
    in_time(SOON, future)
}

#[track_caller]
fn in_time<F: Future>(limit: Duration, future: F) -> impl Future<Output = F::Output> {
    let at = std::panic::Location::caller();
    async move {
        match timeout(limit, future).await {
            Ok(output) => output,
            Err(_) => panic!("nothing came of this within {limit:?}: {at}"),
        }
    }
}

/// Adds a contact to `node` under this name, with its address if that is known.
pub fn know(node: &Node, name: &str, id: NodeId, at: Option<SocketAddr>) -> Contact {
    let changed = node.contacts().change(|book| -> Result<_, StateError> {
        book.add(&name.parse().unwrap(), id)?;
        if let Some(at) = at {
            book.set_addresses(id, &[at.into()]);
        }
        Ok(book.with(id).unwrap().clone())
    });
    changed.unwrap()
}

/// Sends some words over a connection, and checks that they arrive.
pub async fn carries(from: &Connection, to: &Connection) {
    let (mut send, _) = within(from.open_stream()).await.unwrap();
    within(send.write_all(b"still here")).await.unwrap();
    send.finish().unwrap();
    let (_, mut receive) = within(to.accept_stream()).await.unwrap();
    let mut got = String::new();
    within(receive.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "still here");
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

/// Makes a network for this test, with a rendezvous server that runs as long as the tasks.
pub async fn network_with_server() -> (OwnNetwork, JoinSet<()>, SocketAddr) {
    let network = own_network();
    let mut tasks = JoinSet::new();
    let server = server(&mut tasks).await;
    (network, tasks, server)
}

/// Offers a file `film` of `len` bytes by ticket, on loopback. Returns its folder, too.
pub async fn film_offered(len: usize) -> (TempDir, Offer, Ticket) {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, len);
    let (offer, ticket) = offered(&node(), folder.path().join("film")).await;
    (folder, offer, ticket)
}

/// Starts an offer by ticket, on loopback.
pub async fn offered(node: &Node, what: impl Into<Payload>) -> (Offer, Ticket) {
    let offer = within(node.offer(what).by_ticket().bind_to(LOOPBACK).start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    (offer, ticket)
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
