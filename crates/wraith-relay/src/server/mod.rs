//! A relay: one port, TCP and UDP, through which two machines that cannot reach each other do; and a second one, UDP, that only says
//! who asks where it is seen.
//!
//! ```text
//! TCP ──▶ first byte ──0x16──▶ TLS: HELLO, then frames ──┐
//!                    └─0, 1──▶ rendezvous                ├──▶ table ──▶ UDP, or the other client's outbox ──▶ TLS
//! UDP ──▶ thread: header, id, tag ───────────────────────┘
//! ```
//!
//! It is blind: what it passes on is sealed from end to end, and it understands nothing of it. It learns addresses of clients, which
//! of them are a pair, and how much they send when.
//!
//! Invariants: everything is bounded before it is proved who asks; UDP from strangers gets no answer; nobody is sent more than it sent;
//! what is passed on goes only where a client has shown that it receives, and what is said of where somebody is seen only back to there.

mod admission;
mod certificate;
mod connection;
mod http;
mod metrics;
mod options;
mod other_port;
mod places;
mod rate;
mod reflector;
mod shared;
mod table;
mod udp;

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
use wraith_discovery::rendezvous::Connections;
use wraith_transport::mover::Udp;

use crate::budget::Budget;
use crate::error::StartError;
use crate::random::Random;
use crate::tls::{Pin, pin_of, server_config};
use admission::Gate;
use other_port::OtherPort;
use places::{Place, Places};
use reflector::Reflector;
use shared::{Shared, lock};
use table::Table;

pub use metrics::{Counter, Metrics};
pub use options::{Admission, Certificate, Limits, Options};
pub use shared::Timeouts;

/// First byte of every TLS connection: a record of the handshake (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 0x16;
/// Memory for datagrams that wait for TLS connections, and for parts of them that came.
const QUEUES_BYTES: usize = 64 << 20;
/// How often it is looked for those that are gone.
const TICK: Duration = Duration::from_secs(2);
/// How often it is looked, while the relay drains, whether there are pairs.
const DRAIN_TICK: Duration = Duration::from_millis(200);
/// Pause when the system gives no more files.
const PAUSE_WITHOUT_FILES: Duration = Duration::from_millis(20);
/// Files this process needs besides connections.
const OTHER_FILES: usize = 32;
/// Ports tried where any will do: one that TCP has may be taken in UDP.
const PORTS_TRIED: usize = 16;

/// A relay that listens.
pub struct Server {
    listener: TcpListener,
    udp: Option<Udp>,
    metrics_listener: Option<TcpListener>,
    acceptor: TlsAcceptor,
    pin: Pin,
    shared: Arc<Shared>,
    rendezvous: Option<Arc<Connections>>,
    /// TCP connections at once.
    connections_max: usize,
    drain: Duration,
}

impl Server {
    /// Listens. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// An address cannot be had, the certificate cannot be used, or the system has no randomness.
    pub async fn bind(options: Options) -> Result<Self, StartError> {
        Self::bind_with(options, Timeouts::default()).await
    }

    /// Listens, with other times than usual.
    ///
    /// # Errors
    /// As of [`bind`](Self::bind).
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
            gate: Mutex::new(Gate::new(options.admission)),
            port: udp::Port::new()?,
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

    /// Where it listens.
    ///
    /// # Errors
    /// Of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The second UDP port, if there is UDP.
    pub fn other_port(&self) -> Option<u16> {
        self.shared.other_port.as_ref().map(OtherPort::number)
    }

    /// Where its figures are, if anywhere.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_listener.as_ref()?.local_addr().ok()
    }

    /// What clients know it by.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.shared.metrics)
    }

    /// Serves until `shutdown` is done, and then until there are no pairs or the time for that is over. Dropping this ends it at once.
    ///
    /// # Errors
    /// The system gives no thread.
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()> + Send) -> io::Result<()> {
        let _stop = StopOnDrop(Arc::clone(&self.shared));
        let udp =
            self.udp.take().map(|udp| udp::start(udp, Arc::clone(&self.shared))).transpose()?;
        let mut tasks = JoinSet::new();
        if let Some(listener) = self.metrics_listener.take() {
            tasks.spawn(http::serve(listener, self.shared.metrics.clone()));
        }
        if udp.is_some() {
            tasks.spawn(other_port::serve(Arc::clone(&self.shared)));
        }
        if let Some(rendezvous) = &self.rendezvous {
            let rendezvous = Arc::clone(rendezvous);
            tasks.spawn(async move { rendezvous.keep_time().await });
        }
        tokio::select! {
            () = self.serve(&mut tasks, false) => {}
            () = shutdown => {}
        }
        info!("the relay drains");
        lock(&self.shared.table).drain(self.drain);
        let drained = async {
            while lock(&self.shared.table).has_pairs() {
                sleep(DRAIN_TICK).await;
            }
        };
        let drained = timeout(self.drain, drained);
        tokio::select! {
            // Clients whose connection broke may still come back to their pairs.
            () = self.serve(&mut tasks, true) => {}
            in_time = drained => info!(in_time = in_time.is_ok(), "the relay ends"),
        }
        drop(_stop);
        if let Some(udp) = udp {
            let _ = tokio::task::spawn_blocking(move || udp.join()).await;
        }
        Ok(())
    }

    /// Accepts connections for ever.
    async fn serve(&self, tasks: &mut JoinSet<()>, draining: bool) {
        let places = Places::default();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, from)) => self.accept(tasks, &places, stream, from, draining),
                    // This one is gone already.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    // The system has no more files, which takes a while to change.
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
        places: &Places,
        stream: TcpStream,
        from: SocketAddr,
        draining: bool,
    ) {
        self.shared.metrics.connections.add(1);
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let place = places.take(from.ip()).filter(|_| tasks.len() < self.connections_max);
        let Some(place) = place else {
            self.shared.metrics.turned_away.add(1);
            debug!(from = self.shared.logged(from.ip()), "a connection is turned away");
            return;
        };
        let _ = stream.set_nodelay(true);
        let (shared, acceptor) = (Arc::clone(&self.shared), self.acceptor.clone());
        let rendezvous = self.rendezvous.clone().filter(|_| !draining);
        tasks.spawn(dispatch(shared, acceptor, rendezvous, stream, from, place));
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Looks at the first byte of a connection, and has it served by who understands it.
async fn dispatch(
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    rendezvous: Option<Arc<Connections>>,
    stream: TcpStream,
    from: SocketAddr,
    place: Place,
) {
    let mut first = [0];
    match timeout(shared.timeouts.handshake, stream.peek(&mut first)).await {
        Ok(Ok(1)) => {}
        _ => return,
    }
    match (first[0], rendezvous) {
        // The state of a client that is here is small; that of a handshake is not, and is gone once it is done.
        (TLS_HANDSHAKE, _) => {
            Box::pin(connection::serve(shared, acceptor, stream, from, place)).await
        }
        (0 | 1, Some(rendezvous)) => {
            // It has bounds of its own.
            drop(place);
            rendezvous.serve(stream, from).await;
        }
        _ => {}
    }
}

/// TCP, and UDP at the same port.
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

/// The second UDP port beside that of `listen`.
fn bind_other(listen: SocketAddr, wanted: Option<u16>) -> io::Result<Udp> {
    let bind = |port| Udp::bind(SocketAddr::new(listen.ip(), port));
    if let Some(port) = wanted {
        return bind(port);
    }
    let next = listen.port().checked_add(1).filter(|next| *next > 1);
    next.and_then(|next| bind(next).ok()).map_or_else(|| bind(0), Ok)
}

/// However a relay ends, its thread does too.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.port.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn the_other_port_is_the_next_one_or_any_if_that_is_taken_and_the_wanted_one_or_none() {
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
