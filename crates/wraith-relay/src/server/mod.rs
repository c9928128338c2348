//! The relay server. One TCP and UDP port connects two machines that cannot reach each other. A
//! second UDP port only reports the observed address of a socket.
//!
//! ```text
//! TCP ──▶ first byte ──0x16──▶ TLS: HELLO, then frames ──┐
//!                    └─0, 1──▶ rendezvous                ├──▶ table ──▶ UDP, or the other client's outbox ──▶ TLS
//! UDP ──▶ thread: header, id, tag ───────────────────────┘
//! ```
//!
//! The relay is blind: it forwards end-to-end sealed packets that it cannot read. It observes
//! clients' addresses, their pairing, and the volume and time of their traffic.
//!
//! Invariants:
//!
//! - Everything before authentication is bounded.
//! - Over UDP, a sender that is not a client gets no answer.
//! - Before an address is proved, it receives no more bytes than it sent.
//! - Forwarded packets go only to a proved address of a client. An observed address is reported
//!   only to that address.

mod admission;
mod certificate;
mod connection;
mod handshake_slots;
mod http;
mod metrics;
mod options;
mod other_port;
mod rate;
mod reflector;
mod shared;
mod table;
mod udp;
mod udp_queue;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};
use wraith_transport::mover::Udp;

use crate::budget::Budget;
use crate::error::StartError;
use crate::lock::lock;
use crate::random::Random;
use crate::rendezvous::Connections;
use crate::tls::{Pin, pin_of, server_config};
use admission::AdmissionControl;
use handshake_slots::{HandshakeSlot, HandshakeSlots};
use other_port::OtherPort;
use reflector::Reflector;
use shared::Shared;
use table::Table;

pub use metrics::Metrics;
pub use options::{Admission, Certificate, Limits, Options};
pub use shared::Timeouts;

/// First byte of every TLS connection: a handshake record (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 0x16;
/// Memory for datagrams queued for TLS connections, and for incomplete frames, in bytes.
const QUEUES_BYTES: usize = 64 << 20;
/// Interval of the expiry checks.
const TICK: Duration = Duration::from_secs(2);
/// Pause after the system ran out of file descriptors.
const PAUSE_WITHOUT_FILES: Duration = Duration::from_millis(20);
/// File descriptors needed besides connections.
const OTHER_FILES: usize = 32;
/// Attempts to find a free port: a port that is free for TCP may be taken for UDP.
const PORTS_TRIED: usize = 16;

/// A listening relay.
pub struct Server {
    listener: TcpListener,
    udp: Option<Udp>,
    metrics_listener: Option<TcpListener>,
    acceptor: TlsAcceptor,
    pin: Pin,
    shared: Arc<Shared>,
    rendezvous: Option<Arc<Connections>>,
    /// Most concurrent TCP connections.
    connections_max: usize,
    drain: Duration,
}

impl Server {
    /// Starts to listen. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// An address is not available, the certificate is unusable, or the system has no randomness.
    pub async fn bind(options: Options) -> Result<Self, StartError> {
        Self::bind_with(options, Timeouts::default()).await
    }

    /// Same as [`bind`](Self::bind), with explicit timeouts.
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind).
    pub async fn bind_with(options: Options, timeouts: Timeouts) -> Result<Self, StartError> {
        let (chain, key) = certificate::load(&options.certificate)?;
        let unusable = |error: rustls::Error| StartError::Certificate {
            path: match &options.certificate {
                Certificate::Files { chain, .. } => chain.clone(),
                Certificate::SelfSigned { folder } => folder.clone(),
            },
            why: error.to_string(),
        };
        let pin = pin_of(&chain[0]).map_err(unusable)?;
        let acceptor = TlsAcceptor::from(Arc::new(server_config(chain, key).map_err(unusable)?));
        let (listener, udp) =
            listen(options.listen, options.udp).await.map_err(StartError::Listen)?;
        let other = options.udp.then(|| bind_other(options.listen, options.other_port));
        let other = other.transpose().map_err(StartError::OtherPort)?;
        let metrics_listener = match options.metrics {
            Some(address) => Some(TcpListener::bind(address).await.map_err(StartError::Metrics)?),
            None => None,
        };
        let metrics = Arc::new(Metrics::default());
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let files = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES);
        let mut random = Random::new()?;
        let reflector = Reflector::new(&mut random);
        let table =
            Table::new(Instant::now(), options.limits.clone(), random, Arc::clone(&metrics));
        let shared = Shared {
            table: Mutex::new(table),
            admission_control: Mutex::new(AdmissionControl::new(options.admission)),
            udp_queue: udp_queue::UdpQueue::new()?,
            udp_port: udp.as_ref().map_or(0, |udp| udp.local_addr().port()),
            other_port: other.map(OtherPort::new),
            budget: Arc::new(Budget::new(QUEUES_BYTES)),
            metrics,
            reflector,
            log_addresses: options.log_addresses,
            timeouts,
        };
        let rendezvous = options.rendezvous.then(Connections::new).transpose()?.map(Arc::new);
        Ok(Self {
            listener,
            udp,
            metrics_listener,
            acceptor,
            pin,
            shared: Arc::new(shared),
            rendezvous,
            connections_max: files,
            drain: options.drain,
        })
    }

    /// Returns the listening address.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the second UDP port, if UDP is enabled.
    pub fn other_port(&self) -> Option<u16> {
        self.shared.other_port.as_ref().map(OtherPort::number)
    }

    /// Returns the address of the metrics, if enabled.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_listener.as_ref()?.local_addr().ok()
    }

    /// Returns the pin by which clients recognise the relay.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.shared.metrics)
    }

    /// Serves until `shutdown` completes. After that the relay drains: it continues until no pairs
    /// are left or the drain time is over. Drop ends the relay at once.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()> + Send) -> io::Result<()> {
        let _stop = StopOnDrop(Arc::clone(&self.shared));
        let udp = self
            .udp
            .take()
            .map(|udp| udp::start_udp_thread(udp, Arc::clone(&self.shared)))
            .transpose()?;
        let mut tasks = JoinSet::new();
        if let Some(listener) = self.metrics_listener.take() {
            tasks.spawn(http::serve_metrics(listener, self.shared.metrics.clone()));
        }
        if udp.is_some() {
            tasks.spawn(serve_second_port(Arc::clone(&self.shared)));
        }
        if let Some(rendezvous) = &self.rendezvous {
            let rendezvous = Arc::clone(rendezvous);
            tasks.spawn(async move { rendezvous.enforce_time_limits().await });
        }
        tokio::select! {
            () = self.accept_connections(&mut tasks, false) => {}
            () = shutdown => {}
        }
        info!("the relay drains");
        let signal = {
            let mut table = lock(&self.shared.table);
            table.drain(self.drain);
            table.drained()
        };
        let drained = timeout(self.drain, async {
            while lock(&self.shared.table).has_pairs() {
                signal.notified().await;
            }
        });
        tokio::select! {
            // Clients whose connection broke may still return to their pairs.
            () = self.accept_connections(&mut tasks, true) => {}
            in_time = drained => info!(in_time = in_time.is_ok(), "the relay ends"),
        }
        drop(_stop);
        if let Some(udp) = udp {
            let _ = tokio::task::spawn_blocking(move || udp.join()).await;
        }
        Ok(())
    }

    /// Accepts connections forever.
    async fn accept_connections(&self, tasks: &mut JoinSet<()>, draining: bool) {
        let handshake_slots = HandshakeSlots::default();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, from)) => self.accept(tasks, &handshake_slots, stream, from, draining),
                    // The client is gone already.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    // The system has no free file descriptors, and this takes a while to change.
                    Err(_) => sleep(PAUSE_WITHOUT_FILES).await,
                },
                Some(_) = tasks.join_next() => {}
                _ = tick.tick() => self.shared.tick(Instant::now()),
            }
        }
    }

    fn accept(
        &self,
        tasks: &mut JoinSet<()>,
        handshake_slots: &HandshakeSlots,
        stream: TcpStream,
        from: SocketAddr,
        draining: bool,
    ) {
        self.shared.metrics.connections.add(1);
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let slot = handshake_slots.take(from.ip()).filter(|_| tasks.len() < self.connections_max);
        let Some(slot) = slot else {
            self.shared.metrics.turned_away.add(1);
            debug!(from = self.shared.logged(from.ip()), "a connection is turned away");
            return;
        };
        let _ = stream.set_nodelay(true);
        let (shared, acceptor) = (Arc::clone(&self.shared), self.acceptor.clone());
        let rendezvous = self.rendezvous.clone().filter(|_| !draining);
        tasks.spawn(dispatch(shared, acceptor, rendezvous, stream, from, slot));
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Selects the protocol by the first byte of a connection.
async fn dispatch(
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    rendezvous: Option<Arc<Connections>>,
    stream: TcpStream,
    from: SocketAddr,
    slot: HandshakeSlot,
) {
    let mut first = [0];
    match timeout(shared.timeouts.handshake, stream.peek(&mut first)).await {
        Ok(Ok(1)) => {}
        _ => return,
    }
    match (first[0], rendezvous) {
        // Boxed, because the handshake state is large and short-lived.
        (TLS_HANDSHAKE, _) => {
            Box::pin(connection::serve_client(shared, acceptor, stream, from, slot)).await
        }
        (0 | 1, Some(rendezvous)) => {
            // The rendezvous has limits of its own.
            drop(slot);
            rendezvous.serve_connection(stream, from).await;
        }
        _ => {}
    }
}

/// Binds TCP, and UDP at the same port.
async fn listen(address: SocketAddr, with_udp: bool) -> io::Result<(TcpListener, Option<Udp>)> {
    for _ in 0..PORTS_TRIED {
        let listener = TcpListener::bind(address).await?;
        if !with_udp {
            return Ok((listener, None));
        }
        match Udp::bind(SocketAddr::new(address.ip(), listener.local_addr()?.port())) {
            Ok(udp) => return Ok((listener, Some(udp))),
            Err(error) if address.port() == 0 && error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AddrInUse.into())
}

/// Binds the second UDP port beside that of `listen`.
fn bind_other(listen: SocketAddr, wanted: Option<u16>) -> io::Result<Udp> {
    let bind = |port| Udp::bind(SocketAddr::new(listen.ip(), port));
    if let Some(port) = wanted {
        return bind(port);
    }
    let next = listen.port().checked_add(1).filter(|next| *next > 1);
    next.and_then(|next| bind(next).ok()).map_or_else(|| bind(0), Ok)
}

/// Serves the second port, if there is one, until it fails permanently.
async fn serve_second_port(shared: Arc<Shared>) {
    if let Some(port) = &shared.other_port
        && let Err(error) = port.answer_requests(&shared.reflector, &shared.metrics).await
    {
        debug!(%error, "the other port is not served any more");
    }
}

/// Stops the UDP thread however the relay ends.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.udp_queue.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn the_second_port_is_the_requested_one_or_the_next_free_one() {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = socket.local_addr().unwrap();
        let before = SocketAddr::new(taken.ip(), taken.port() - 1);
        let port = |listen, wanted| bind_other(listen, wanted).map(|udp| udp.local_addr().port());
        assert!(port(before, None).is_ok_and(|port| port != taken.port() && port != 0));
        assert!(port(before, Some(taken.port())).is_err());
        assert!(port(before, Some(0)).is_ok_and(|port| port != 0));
        let any = SocketAddr::new(taken.ip(), 0);
        assert!(port(any, None).is_ok_and(|port| port > 1));
        let last = SocketAddr::new(taken.ip(), u16::MAX);
        assert!(port(last, None).is_ok());
    }
}
