//! What two machines that cannot reach each other have of a relay.
//!
//! ```text
//! endpoint ── I/O thread ── RelayMover ── UDP ─────────────▶ relay
//!                               │ hub (bounded queues)         ▲
//! RelayClient ── commands ── task of the relay ── TLS ─────────┘
//! ```
//!
//! Where a proxy is in between, both go through it: UDP by an association, if it offers one ([`ConnectRelay::associate`]).
//!
//! One [`Relays`] belongs to one endpoint, as a [`Bind`] among its movers; [`Relays::connect`] gives a [`RelayClient`] for each
//! relay. Who waits registers a mailbox and accepts handshakes as always; who dials asks for a pair and connects to the address
//! that it gets.
//!
//! Invariant: addresses of pairs are those of [`KIND`], and good for the endpoint only whose [`Relays`] made them.

mod config;
mod connect;
mod held_association;
mod hub;
mod keep_alive;
mod link;
mod mover;
mod route;
mod session;
mod status;
mod udp_path;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use wraith_transport::Addr;
use wraith_transport::mover::{Bind, DatagramMover, Names};

use crate::error::RelayError;
use crate::frame::Mailbox;
use crate::header::WireId;
use crate::tls::Pin;
use hub::Hub;
use mover::RelayMover;
use session::{Command, Session};

pub use config::RelayConfig;
pub use connect::{ASSOCIATION_HEADER_MAX, Associating, ConnectRelay, UdpAssociation};
pub use status::{Status, Way};

/// The kind of [`Addr::Custom`] that goes through a relay.
pub const KIND: u64 = u64::from_be_bytes(*b"\0\0\0relay");
/// Commands that wait for the task of a relay.
const COMMANDS_MAX: usize = 64;

/// All relays of one endpoint, whose [`Config::movers`](wraith_transport::Config::movers) has it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Relays(Arc<Hub>);

impl Relays {
    /// None yet.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Hub::new()?)))
    }

    /// Connects to a relay. From then on the connection is made again whenever it breaks, until the client is dropped. Must be called
    /// in a tokio runtime, which has to go on.
    ///
    /// # Errors
    /// It cannot be reached, has another key than the pinned one, or refuses.
    pub async fn connect(&self, config: RelayConfig) -> Result<RelayClient, RelayError> {
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (status, watched) = watch::channel(Status::default());
        let session = Session::new(config, Arc::clone(&self.0), status);
        let mut session = session.map_err(RelayError::Unreachable)?;
        let number = session.number();
        let link = session.connect().await?;
        let pin = link.pin;
        tokio::spawn(session.run(link, received));
        let mut status = watched;
        // The task tells what it was told in its first step.
        let _ = status.wait_for(|status| status.pin.is_some()).await;
        Ok(RelayClient { hub: Arc::clone(&self.0), commands, status, number, pin })
    }
}

impl Bind for Relays {
    fn kind(&self) -> u64 {
        KIND
    }

    fn bind(&self, names: Names) -> io::Result<Box<dyn DatagramMover>> {
        Ok(Box::new(RelayMover::new(Arc::clone(&self.0), names)?))
    }
}

/// A relay that we are connected to. Dropping the last clone lets go of it, and of every pair that it has for us.
#[derive(Clone, Debug)]
pub struct RelayClient {
    hub: Arc<Hub>,
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Status>,
    number: u32,
    pin: Pin,
}

impl RelayClient {
    /// Waits at the mailbox of `secret` from now on: who knows its name, which is returned, can dial us there. The same secret has the
    /// same name at every relay and after every restart; use one for one relay, or relays can tell that it is the same client.
    ///
    /// # Errors
    /// The relay refuses.
    pub async fn register(&self, secret: [u8; 32]) -> Result<Mailbox, RelayError> {
        self.ask(|reply| Command::Register(secret, reply)).await
    }

    /// Waits there no longer.
    pub async fn unregister(&self, mailbox: Mailbox) {
        let _ = self.commands.send(Command::Unregister(mailbox)).await;
    }

    /// An address by which this endpoint reaches who waits at `mailbox`, to be connected to at once: a pair through which nothing comes
    /// from both sides is given up after 20 s.
    ///
    /// # Errors
    /// Nobody waits there, the relay refuses, or the connection to it is down.
    pub async fn dial(&self, mailbox: Mailbox) -> Result<Addr, RelayError> {
        let id = self.ask(|reply| Command::Dial(mailbox, reply)).await?;
        Ok(self.addr(id))
    }

    /// Lets go of a pair. Nothing happens if `address` is none of this relay's.
    pub async fn hang_up(&self, address: &Addr) {
        if let Some(id) = self.pair_of(address) {
            self.hub.with_relay(self.number, |relay| relay.pairs.remove(&id));
            let _ = self.commands.send(Command::HangUp(id)).await;
        }
    }

    /// Whether `address` is one of this relay's: what a connection says of its remote address.
    pub fn owns(&self, address: &Addr) -> bool {
        self.pair_of(address).is_some()
    }

    /// Waits until the relay has come back without our session, and so without its pairs, once more than the `sessions_lost` times that
    /// [`Self::status`] told before; for ever if that does not happen.
    pub async fn forgotten(&self, sessions_lost: u64) {
        let mut status = self.status.clone();
        if status.wait_for(|status| status.sessions_lost > sessions_lost).await.is_err() {
            std::future::pending().await
        }
    }

    fn addr(&self, id: WireId) -> Addr {
        Addr::Custom { kind: KIND, bytes: hub::name(self.number, id).into() }
    }

    fn pair_of(&self, address: &Addr) -> Option<WireId> {
        let Addr::Custom { kind: KIND, bytes } = address else { return None };
        hub::parse_name(bytes).filter(|(relay, _)| *relay == self.number).map(|(_, id)| id)
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, RelayError>>) -> Command,
    ) -> Result<T, RelayError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| RelayError::Down)?;
        answer.await.map_err(|_| RelayError::Down)?
    }

    /// What the relay is known by: to be remembered, and pinned the next time.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Round trip to the relay, once it is known.
    pub fn rtt(&self) -> Option<Duration> {
        self.status.borrow().rtt
    }

    /// Where the relay sees the socket that goes to it: by UDP if that gets through, else TCP.
    pub fn observed(&self) -> Option<SocketAddr> {
        let status = self.status.borrow();
        status.observed_udp.or(status.observed_tcp)
    }

    /// How it stands, now and whenever that changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }
}
