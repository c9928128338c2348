//! Client side of a relay, for two machines that cannot reach each other.
//!
//! ```text
//! endpoint ── I/O thread ── RelayMover ── UDP ─────────────▶ relay
//!                               │ state (bounded queues)       ▲
//! RelayClient ── commands ── task of the relay ── TLS ─────────┘
//! ```
//!
//! If a proxy is configured, both UDP and TLS pass through it. UDP needs an association, which not
//! every proxy offers ([`ConnectRelay::associate`]).
//!
//! One [`Relays`] belongs to one endpoint, as a [`MoverFactory`] among its movers.
//! [`Relays::connect`] returns a [`RelayClient`] for each relay. The waiting side registers a
//! mailbox (a name at which the relay finds it) and accepts handshakes as usual. The dialling side
//! requests a pair (a route between both clients) and connects to the resulting address.
//!
//! Invariant: addresses of pairs are of kind [`KIND`], and valid only for the endpoint whose
//! [`Relays`] made them.

mod config;
mod connect;
mod connection;
mod keep_alive;
mod mover;
mod proxy_association;
mod relay_task;
mod route;
mod shared_state;
mod status;
mod udp_path;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use wraith_transport::Addr;
use wraith_transport::mover::{AddressTable, DatagramMover, MoverFactory};

use crate::error::RelayError;
use crate::frame::Mailbox;
use crate::header::WireId;
use crate::tls::Pin;
use mover::RelayMover;
use relay_task::{Command, RelayTask};
use shared_state::SharedState;

pub use config::RelayConfig;
pub use connect::{ASSOCIATION_HEADER_MAX, Associating, ConnectRelay, UdpAssociation};
pub use status::{RelayTransport, Status};

/// Kind of an [`Addr::Custom`] that goes through a relay.
pub const KIND: u64 = u64::from_be_bytes(*b"\0\0\0relay");
/// Most commands that wait for a relay's task.
const COMMANDS_MAX: usize = 64;

/// All relays of one endpoint, to be added to its
/// [`Config::movers`](wraith_transport::Config::movers). Clones share the state.
#[derive(Clone, Debug)]
pub struct Relays(Arc<SharedState>);

impl Relays {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(SharedState::new()?)))
    }

    /// Connects to a relay. The connection is re-established whenever it breaks, until the client
    /// is dropped. Must be called in a tokio runtime that keeps running.
    ///
    /// # Errors
    /// The relay cannot be reached, has another key than the pinned one, or refuses.
    pub async fn connect(&self, config: RelayConfig) -> Result<RelayClient, RelayError> {
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (status, watched) = watch::channel(Status::default());
        let relay_task = RelayTask::new(config, Arc::clone(&self.0), status);
        let mut relay_task = relay_task.map_err(RelayError::Unreachable)?;
        let number = relay_task.number();
        let connection = relay_task.connect().await?;
        let pin = connection.pin;
        tokio::spawn(relay_task.run(connection, received));
        let mut status = watched;
        // The task publishes the session in its first step.
        let _ = status.wait_for(|status| status.pin.is_some()).await;
        Ok(RelayClient { shared: Arc::clone(&self.0), commands, status, number, pin })
    }
}

impl MoverFactory for Relays {
    fn kind(&self) -> u64 {
        KIND
    }

    fn bind(&self, names: AddressTable) -> io::Result<Box<dyn DatagramMover>> {
        Ok(Box::new(RelayMover::new(Arc::clone(&self.0), names)?))
    }
}

/// A connected relay. Dropping the last clone closes the connection and every pair.
#[derive(Clone, Debug)]
pub struct RelayClient {
    shared: Arc<SharedState>,
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    number: u32,
    pin: Pin,
}

impl RelayClient {
    /// Waits at the mailbox of `secret` from now on. Returns the mailbox's name; a peer that has
    /// the name can dial this client. The same secret gives the same name at every relay and after
    /// every restart. Use one secret per relay; otherwise relays can link the client.
    ///
    /// # Errors
    /// The relay refuses.
    pub async fn register(&self, secret: [u8; 32]) -> Result<Mailbox, RelayError> {
        self.request(|reply| Command::Register(secret, reply)).await
    }

    /// Stops waiting at `mailbox`.
    pub async fn unregister(&self, mailbox: Mailbox) {
        let _ = self.commands.send(Command::Unregister(mailbox)).await;
    }

    /// Returns an address by which this endpoint reaches the peer that waits at `mailbox`. Connect
    /// at once: a pair without traffic from both sides is closed after 20 s.
    ///
    /// # Errors
    /// No peer waits there, the relay refuses, or the connection to it is down.
    pub async fn dial(&self, mailbox: Mailbox) -> Result<Addr, RelayError> {
        let id = self.request(|reply| Command::Dial(mailbox, reply)).await?;
        Ok(self.addr(id))
    }

    /// Closes a pair. An address that does not belong to this relay is ignored.
    pub async fn hang_up(&self, address: &Addr) {
        if let Some(id) = self.pair_of(address) {
            self.shared.with_relay(self.number, |relay| relay.pairs.remove(&id));
            let _ = self.commands.send(Command::HangUp(id)).await;
        }
    }

    /// Ends the session at the relay, for every clone of this client: the relay then keeps nothing
    /// of it. Without this, the relay keeps pairs and mailboxes for 30 s, for a reconnection.
    pub async fn leave(&self) {
        let _ = self.request(Command::Leave).await;
    }

    /// Reports whether `address` belongs to this relay. Use it on a connection's remote address.
    pub fn owns(&self, address: &Addr) -> bool {
        self.pair_of(address).is_some()
    }

    /// Waits until the relay has lost the client's session and its pairs more than `sessions_lost`
    /// times, a count that [`Self::status`] reported earlier. Pends forever if that does not
    /// happen.
    pub async fn wait_for_session_loss(&self, sessions_lost: u64) {
        let mut status = self.status.clone();
        if status.wait_for(|status| status.sessions_lost > sessions_lost).await.is_err() {
            std::future::pending().await
        }
    }

    fn addr(&self, id: WireId) -> Addr {
        Addr::Custom { kind: KIND, bytes: shared_state::name(self.number, id).into() }
    }

    fn pair_of(&self, address: &Addr) -> Option<WireId> {
        let Addr::Custom { kind: KIND, bytes } = address else { return None };
        shared_state::parse_name(bytes).filter(|(relay, _)| *relay == self.number).map(|(_, id)| id)
    }

    async fn request<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, RelayError>>) -> Command,
    ) -> Result<T, RelayError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| RelayError::Down)?;
        // A command that is sent while the task ends can stay in the channel, which this client
        // keeps.
        tokio::select! {
            biased;
            answer = answer => answer.map_err(|_| RelayError::Down)?,
            () = self.commands.closed() => Err(RelayError::Down),
        }
    }

    /// Returns the relay's pin, to be stored and required the next time.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Returns the round-trip time to the relay, once it is known.
    pub fn rtt(&self) -> Option<Duration> {
        self.status.borrow().rtt
    }

    /// Returns this client's address as observed by the relay: that of the UDP socket if UDP works,
    /// else that of the TCP connection.
    pub fn observed(&self) -> Option<SocketAddr> {
        let status = self.status.borrow();
        status.observed_udp.or(status.observed_tcp)
    }

    /// Returns a receiver of the current status and its changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }
}
