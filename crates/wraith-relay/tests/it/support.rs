//! A relay, endpoints that use it, and bytes that encode their position.

#[path = "../../../wraith-transport/tests/it/support/pattern.rs"]
mod pattern;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wraith_relay::{
    Mailbox, Metrics, Options, Pin, RelayClient, RelayConfig, RelayTransport, Relays, Server,
    StartError, Status, Timeouts,
};
use wraith_transport::{
    AccessKey, Addr, Config, Connection, Endpoint, EndpointConfig, NodeId, SecretIdentity,
};

use pattern::{PIECE, Pattern};

/// Timeout of a test that hangs.
pub const HANG: Duration = Duration::from_secs(60);

/// Returns the key of an accept filter that admits every peer.
pub fn access_key(peer: NodeId) -> AccessKey {
    AccessKey::public(peer)
}

/// Runs a future that must complete.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("hangs")
}

/// Polls for a condition that no event reports.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    within(wait).await;
}

/// A test relay.
pub struct Relay {
    pub address: SocketAddr,
    pub pin: Pin,
    pub metrics: Arc<Metrics>,
    pub metrics_address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    folder: Option<TempDir>,
}

impl Relay {
    /// Starts a relay with options modified by `change`.
    pub async fn start(change: impl FnOnce(&mut Options)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), (Ipv4Addr::LOCALHOST, 0).into(), change).await
    }

    /// Starts a relay with its certificate in `folder`.
    pub async fn start_in(
        folder: TempDir,
        listen: SocketAddr,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let mut options = Options::new(listen, folder.path());
        change(&mut options);
        Self::start_with(folder, options, Timeouts::default()).await
    }

    pub async fn start_with(folder: TempDir, options: Options, timeouts: Timeouts) -> Self {
        // A killed relay releases its port only after its threads have ended.
        let server = within(async {
            loop {
                match Server::bind_with(options.clone(), timeouts).await {
                    Err(StartError::Listen(_)) => tokio::task::yield_now().await,
                    bound => break bound.unwrap(),
                }
            }
        });
        let server = server.await;
        let (address, pin, metrics) =
            (server.local_addr().unwrap(), *server.pin(), server.metrics());
        let metrics_address = server.metrics_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            server.run_until(stopped).await.unwrap();
        });
        let (stop, task, folder) = (Some(stop), Some(task), Some(folder));
        Self { address, pin, metrics, metrics_address, stop, task, folder }
    }

    /// Asks the relay to stop; it drains.
    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the relay has ended.
    pub async fn ended(&mut self) {
        within(self.task.take().expect("it ends once")).await.unwrap();
    }

    /// Aborts the relay like a crash. Returns its folder.
    pub async fn kill(mut self) -> TempDir {
        let task = self.task.take().expect("it ends once");
        task.abort();
        let _ = task.await;
        self.folder.take().expect("it has one")
    }

    /// Returns the configuration with which clients reach the relay.
    pub fn config(&self) -> RelayConfig {
        let mut config = RelayConfig::new(self.address.ip().to_string(), self.address.port());
        config.pin = Some(self.pin);
        config
    }

    /// Connects two clients of this relay.
    pub async fn pair(&self, transport: RelayTransport) -> RelayedPair {
        RelayedPair::new([self.config(), self.config()], [transport; 2]).await
    }
}

/// An endpoint and its relays.
pub struct TestEndpoint {
    pub endpoint: Endpoint,
    pub relays: Relays,
    pub node_id: NodeId,
}

impl TestEndpoint {
    pub fn new(seed: u8) -> Self {
        let identity = SecretIdentity::from_seed([seed; 32]);
        let node_id = identity.node_id();
        let relays = Relays::new().unwrap();
        let mut config = Config::new(EndpointConfig::open(identity)).bind((Ipv4Addr::LOCALHOST, 0));
        config.movers.push(Arc::new(relays.clone()));
        Self { endpoint: Endpoint::bind(config).unwrap(), relays, node_id }
    }

    /// Connects to the relay of `config` and waits until datagrams use `transport`.
    pub async fn connect_to(&self, config: RelayConfig, transport: RelayTransport) -> RelayClient {
        let client = self.relays.connect(config).await.unwrap();
        wait_for_status(&client, |status| status.transport == transport).await;
        client
    }
}

/// Waits until the status of `client` matches `wanted`.
pub async fn wait_for_status(client: &RelayClient, wanted: impl FnMut(&Status) -> bool) -> Status {
    within(client.status().wait_for(wanted)).await.unwrap().clone()
}

/// Two endpoints with a connection through a relay.
pub struct RelayedPair {
    pub waiting: TestEndpoint,
    pub dialling: TestEndpoint,
    pub waiting_client: RelayClient,
    pub dialling_client: RelayClient,
    pub mailbox: Mailbox,
    pub address: Addr,
    pub a: Connection,
    pub b: Connection,
}

impl RelayedPair {
    /// Connects two clients with these configurations.
    pub async fn new(configs: [RelayConfig; 2], transports: [RelayTransport; 2]) -> Self {
        Self::numbered(configs, transports, 1).await
    }

    /// Same as [`RelayedPair::new`], with separate identities per `number`.
    pub async fn numbered(
        [dials, waits]: [RelayConfig; 2],
        transports: [RelayTransport; 2],
        number: u8,
    ) -> Self {
        let (dialling, waiting) =
            (TestEndpoint::new(2 * number), TestEndpoint::new(2 * number + 1));
        let dialling_client = dialling.connect_to(dials, transports[0]).await;
        let waiting_client = waiting.connect_to(waits, transports[1]).await;
        let mailbox = waiting_client.register([number; 32]).await.unwrap();
        let address = dialling_client.dial(mailbox).await.unwrap();
        let (a, b) = within(connect(&dialling, &waiting, &address)).await;
        Self { waiting, dialling, waiting_client, dialling_client, mailbox, address, a, b }
    }
}

/// Connects `dialling` to `waiting` at `address`. Returns both ends.
pub async fn connect(
    dialling: &TestEndpoint,
    waiting: &TestEndpoint,
    address: &Addr,
) -> (Connection, Connection) {
    let a = dialling
        .endpoint
        .connect([address], waiting.node_id, &access_key(waiting.node_id))
        .await
        .unwrap();
    assert_eq!(a.remote(), *address);
    (a, waiting.endpoint.accept().await.unwrap())
}

/// Sends `len` bytes from one side to the other and verifies every byte.
pub async fn send(from: &Connection, to: &Connection, len: u64) {
    let (writer, reader) = (write(from.clone(), len), read(to.clone()));
    let (writer, reader) = (tokio::spawn(writer), tokio::spawn(reader));
    assert_eq!(within(reader).await.unwrap(), len);
    within(writer).await.unwrap();
}

async fn write(connection: Connection, len: u64) {
    let (pattern, mut offset) = (Pattern::new(1), 0);
    let (mut send, _recv) = connection.open_stream().await.unwrap();
    while offset < len {
        let piece = (len - offset).min(PIECE as u64);
        send.write_chunks([pattern.slice(offset, piece as usize)]).await.unwrap();
        offset += piece;
    }
    send.finish().unwrap();
    send.acked().await.unwrap();
}

async fn read(connection: Connection) -> u64 {
    let (pattern, mut offset) = (Pattern::new(1), 0);
    let (_send, mut recv) = connection.accept_stream().await.unwrap();
    while let Some(chunk) = recv.read_chunk().await.unwrap() {
        for piece in chunk.chunks(PIECE) {
            assert!(pattern.slice(offset, piece.len()) == *piece, "wrong bytes near {offset}");
            offset += piece.len() as u64;
        }
    }
    offset
}
