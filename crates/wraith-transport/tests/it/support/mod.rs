//! Two endpoints on the loopback interface, and bytes that identify their position.

mod pattern;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use wraith_transport::{
    AccessKey, Addr, Config, Connection, Endpoint, EndpointConfig, NodeId, RecvStream,
    SecretIdentity, block_on, block_on_timeout,
};

use pattern::PIECE;
pub use pattern::Pattern;

/// Time limit of a hanging test.
pub const HANG: Duration = Duration::from_secs(120);

pub const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub fn config(seed: u8) -> EndpointConfig {
    EndpointConfig::open(SecretIdentity::from_seed([seed; 32]))
}

pub fn node_id(seed: u8) -> NodeId {
    SecretIdentity::from_seed([seed; 32]).node_id()
}

/// Returns the public access key of identity `seed`.
pub fn access_key(seed: u8) -> AccessKey {
    AccessKey::public(node_id(seed))
}

/// Returns an endpoint with identity `seed` on `ip`.
pub fn endpoint(seed: u8, ip: IpAddr) -> Endpoint {
    Endpoint::bind(Config::new(config(seed)).bind((ip, 0))).unwrap()
}

/// Runs a future that must complete.
pub fn run<F: Future>(future: F) -> F::Output {
    block_on_timeout(future, HANG).expect("hangs")
}

/// Both sides of a connection between two endpoints. The endpoints must be kept to accept more.
pub struct ConnectedPair {
    pub client_endpoint: Endpoint,
    pub server_endpoint: Endpoint,
    pub client: Connection,
    pub server: Connection,
}

pub fn pair(ip: IpAddr) -> ConnectedPair {
    pair_of(endpoint(1, ip), endpoint(2, ip))
}

/// Connects endpoint 1 to endpoint 2 at `address`. Returns both ends.
pub fn connect(
    client: &Endpoint,
    server: &Endpoint,
    address: impl Into<Addr>,
) -> (Connection, Connection) {
    let connection = run(client.connect([address], node_id(2), &access_key(2))).unwrap();
    (connection, run(server.accept()).unwrap())
}

pub fn pair_of(client_endpoint: Endpoint, server_endpoint: Endpoint) -> ConnectedPair {
    let address = server_endpoint.local_addr();
    let (client, server) = connect(&client_endpoint, &server_endpoint, address);
    ConnectedPair { client_endpoint, server_endpoint, client, server }
}

/// Echoes every stream of `connection` until it ends, on a separate thread.
pub fn echo(connection: Connection) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        while let Ok((mut send, mut recv)) = run(connection.accept_stream()) {
            thread::spawn(move || {
                block_on(async {
                    while let Ok(Some(chunk)) = recv.read_chunk().await {
                        if send.write_all(&chunk).await.is_err() {
                            return;
                        }
                    }
                    let _ = send.finish();
                    let _ = send.acked().await;
                });
            });
        }
    })
}

impl Pattern {
    /// Checks the stream against the pattern to its end. Returns the number of bytes.
    pub async fn verify(&self, recv: &mut RecvStream) -> u64 {
        let mut offset = 0;
        while let Some(chunk) = recv.read_chunk().await.unwrap() {
            for piece in chunk.chunks(PIECE) {
                assert!(self.slice(offset, piece.len()) == *piece, "wrong bytes near {offset}");
                offset += piece.len() as u64;
            }
        }
        offset
    }

    /// Writes `len` bytes of the pattern.
    pub async fn write(
        &self,
        send: &mut wraith_transport::SendStream,
        len: u64,
    ) -> Result<(), wraith_transport::WriteError> {
        let mut offset = 0;
        while offset < len {
            let piece = (len - offset).min(PIECE as u64);
            send.write_chunks([self.slice(offset, piece as usize)]).await?;
            offset += piece;
        }
        Ok(())
    }
}

/// Returns an address without a listener.
pub fn dead_address() -> SocketAddr {
    let socket = std::net::UdpSocket::bind((V4, 0)).unwrap();
    socket.local_addr().unwrap()
}
