//! The task of one relay: its TLS connection, which it re-establishes after a loss, the pending
//! requests, and the UDP binding.
//!
//! If only the TLS connection reaches the relay (through a proxy), UDP uses an association with
//! that proxy, if the proxy grants it. The association is validated and abandoned like any other
//! UDP path. In this case nothing is sent to the relay's own address.
//!
//! Invariants:
//!
//! - A session continues over a new connection with its pairs if the relay still has it.
//! - Mailboxes are registered again on every new connection.
//! - Every request gets a reply, or [`RelayError::Down`].

mod frames;
mod udp;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout};
use tracing::debug;
use wraith_discovery::{Backoff, SuspensionWatch, sleep_or_wake};

use self::udp::UdpKeys;
use super::config::RelayConfig;
use super::connection::{RelayConnection, drive_frames, handshake, leave, outbox, read_welcome};
use super::keep_alive::KeepAlive;
use super::proxy_association::ProxyAssociation;
use super::route::Route;
use super::shared_state::SharedState;
use super::status::{RelayTransport, Status};
use super::udp_path::UdpPath;
use crate::error::RelayError;
use crate::frame::{ClientFrame, Mailbox, Proof, Refusal, VERSION, mailbox_of};
use crate::header::WireId;
use crate::proof::resumption;
use crate::random::Random;

/// Time limit for the TLS handshake from the first packet, and again from there to WELCOME.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// First pause between connection attempts: within the relay's grace period.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause, for a relay that is down or refuses for a while.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Pauses between connection attempts. They grow to a quarter of the time since the loss, so a
/// relay that was down for a while is missed for little longer than that.
const BACKOFF: Backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE).with_growth(1.25).with_jitter();

/// A command from a handle.
#[derive(Debug)]
pub enum Command {
    /// Wait at the mailbox of this secret, now and after every reconnection.
    Register([u8; 32], Reply<Mailbox>),
    /// Stop waiting at a mailbox.
    Unregister(Mailbox),
    /// Make a pair.
    Dial(Mailbox, Reply<WireId>),
    /// Close a pair.
    HangUp(WireId),
    /// End the session and the task.
    Leave(Reply<()>),
}

/// Channel for the reply to a command.
pub type Reply<T> = oneshot::Sender<Result<T, RelayError>>;

/// State of one relay's task.
pub struct RelayTask {
    config: RelayConfig,
    shared: Arc<SharedState>,
    number: u32,
    notify: Arc<Notify>,
    status: watch::Sender<Status>,
    random: Random,
    /// Whether the relay asked for an identity.
    shows_identity: bool,
    /// Session to resume: its ID and secret.
    resume: Option<(u64, [u8; 32])>,
    mailboxes: Vec<[u8; 32]>,
    registering: HashMap<Mailbox, Vec<Reply<Mailbox>>>,
    dialling: HashMap<u32, Reply<WireId>>,
    next_request: u32,
    udp: UdpPath,
    /// UDP route to the relay, as stored in the shared state.
    route: Option<Route>,
}

impl RelayTask {
    pub fn new(
        config: RelayConfig,
        shared: Arc<SharedState>,
        status: watch::Sender<Status>,
    ) -> io::Result<Self> {
        let random = Random::new()?;
        let notify = Arc::new(Notify::new());
        let number = shared.add_relay(outbox(), Arc::clone(&notify));
        Ok(Self {
            config,
            shared,
            number,
            notify,
            status,
            random,
            shows_identity: false,
            resume: None,
            mailboxes: Vec::new(),
            registering: HashMap::new(),
            dialling: HashMap::new(),
            next_request: 0,
            udp: UdpPath::new(None),
            route: None,
        })
    }

    /// Returns the number by which the shared state knows this relay.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Connects once, and again if the relay asks for the identity.
    pub async fn connect(&mut self) -> Result<RelayConnection, RelayError> {
        let connected = self.connect_once().await;
        let is_asked = matches!(connected, Err(RelayError::Refused(Refusal::Identity)));
        if !is_asked || self.shows_identity || self.config.identity.is_none() {
            return connected;
        }
        self.shows_identity = true;
        self.connect_once().await
    }

    async fn connect_once(&mut self) -> Result<RelayConnection, RelayError> {
        let (frame_stream, udp, pin, exporter) = timeout(CONNECT_TIMEOUT, handshake(&self.config))
            .await
            .map_err(|_| RelayError::Timeout)??;
        let (mut frame_stream, outbox) = (frame_stream, outbox());
        let proof = match (&self.config.token, &self.config.identity) {
            (Some(token), _) => Proof::of_token(token, &exporter),
            (None, Some(identity)) if self.shows_identity => {
                Proof::of_identity(identity, &exporter)
            }
            (None, _) => Proof::None,
        };
        let resume = self.resume.map(|(session, secret)| (session, resumption(&secret, &exporter)));
        outbox.push_control(|out| {
            ClientFrame::Hello { version: VERSION, resume, proof }.encode(out);
        });
        // Trust on first use: later connections must show the same key, because the client sends
        // its identity and its mailboxes' secrets over them.
        self.config.pin = Some(pin);
        let welcome = timeout(CONNECT_TIMEOUT, read_welcome(&mut frame_stream, &outbox)).await;
        let (welcome, early) = welcome.map_err(|_| RelayError::Timeout)??;
        let udp = udp.filter(|_| self.config.udp && welcome.udp_port != 0);
        let udp = udp.map(|ip| SocketAddr::new(ip, welcome.udp_port));
        Ok(RelayConnection { frame_stream, outbox, welcome, early, udp, pin })
    }

    /// Serves one connection after the other, starting with `first`, until no handle is left.
    pub async fn run(mut self, first: RelayConnection, mut commands: mpsc::Receiver<Command>) {
        let mut connection = Some(first);
        let mut association = ProxyAssociation::default();
        let (mut backoff, mut pause) = (BACKOFF, Duration::ZERO);
        loop {
            if let Some(connection) = connection.take() {
                match self.serve_connection(connection, &mut association, &mut commands).await {
                    ConnectionEnd::Left => break,
                    ConnectionEnd::Lost(error) => {
                        debug!(%error, "the connection to a relay is lost")
                    }
                }
                self.on_disconnected();
                pause = backoff.failed(Instant::now());
            }
            if !self.wait_for_retry(pause, &mut commands).await {
                break;
            }
            match self.connect().await {
                Ok(new) => {
                    backoff.succeeded(Instant::now());
                    connection = Some(new);
                }
                Err(error) => {
                    debug!(%error, "relay reconnection failed");
                    pause = match error {
                        RelayError::Refused(Refusal::TooOften) => LONGEST_PAUSE,
                        _ => backoff.failed(Instant::now()),
                    };
                    self.status.send_modify(|status| status.error = Some(error.to_string()));
                }
            }
        }
    }

    /// Waits before the next attempt and rejects requests meanwhile. Returns false if no handle is
    /// left.
    async fn wait_for_retry(
        &mut self,
        pause: Duration,
        commands: &mut mpsc::Receiver<Command>,
    ) -> bool {
        let mut due = std::pin::pin!(sleep_or_wake(pause));
        loop {
            tokio::select! {
                () = &mut due => return true,
                command = commands.recv() => match command {
                    None => return false,
                    // Registered on the next connection, which sends the reply.
                    Some(Command::Register(secret, reply)) => self.add_registration(secret, reply),
                    Some(Command::Unregister(mailbox)) => self.remove_registration(&mailbox),
                    Some(Command::Dial(_, reply)) => drop(reply.send(Err(RelayError::Down))),
                    Some(Command::HangUp(_)) => {}
                    Some(Command::Leave(_)) => return false,
                },
            }
        }
    }

    /// Handles a lost connection: pending requests fail, and TLS is down.
    fn on_disconnected(&mut self) {
        for (_, reply) in self.dialling.drain() {
            let _ = reply.send(Err(RelayError::Down));
        }
        self.shared.with_relay(self.number, |relay| relay.outbox.close());
        self.status.send_modify(|status| status.transport = RelayTransport::Down);
    }

    fn add_registration(&mut self, secret: [u8; 32], reply: Reply<Mailbox>) {
        if !self.mailboxes.contains(&secret) {
            self.mailboxes.push(secret);
        }
        self.registering.entry(mailbox_of(&secret)).or_default().push(reply);
    }

    fn remove_registration(&mut self, mailbox: &Mailbox) {
        self.mailboxes.retain(|secret| mailbox_of(secret) != *mailbox);
        self.registering.remove(mailbox);
    }

    /// Applies the WELCOME of a new connection.
    fn apply_welcome(&mut self, connection: &RelayConnection, association: &mut ProxyAssociation) {
        let RelayConnection { outbox, welcome, udp, pin, .. } = connection;
        let is_lost = self.resume.is_some() && !welcome.resumed;
        self.resume = Some((welcome.session, welcome.secret));
        let has_mover = self.shared.lock().has_mover;
        let RelayConfig { connect, host, udp: is_wanted, .. } = &self.config;
        let by_proxy = *is_wanted && has_mover && udp.is_none() && welcome.udp_port != 0;
        association.start(by_proxy.then_some((connect, host, welcome.udp_port)));
        // A proved route stays proved for the resumed session.
        let proved = |route: Route| {
            self.route.filter(|of| welcome.resumed && of.to() == route.to()).unwrap_or(route)
        };
        self.route = udp.map(Route::direct).or_else(|| association.route().map(proved));
        let now = self.route.filter(|_| has_mover).map(|_| Instant::now());
        if welcome.resumed {
            self.udp.reconnected(now)
        } else {
            self.udp = UdpPath::new(now)
        }
        self.shared.with_relay(self.number, |relay| {
            relay.outbox = Arc::clone(outbox);
            relay.start_session(welcome, self.route);
        });
        outbox.push_control(|out| {
            self.mailboxes.iter().for_each(|secret| ClientFrame::Register(*secret).encode(out));
        });
        self.status.send_modify(|status| {
            *status = Status {
                transport: RelayTransport::Tls,
                draining: false,
                rtt: status.rtt,
                observed_tcp: Some(welcome.observed),
                observed_udp: None,
                udp: *udp,
                udp_other: udp
                    .filter(|_| welcome.other_port != 0)
                    .map(|udp| SocketAddr::new(udp.ip(), welcome.other_port)),
                observe: Some(welcome.observe),
                clock_difference: None,
                pin: Some(*pin),
                sessions_lost: status.sessions_lost + u64::from(is_lost),
                error: None,
            };
        });
    }

    async fn serve_connection(
        &mut self,
        connection: RelayConnection,
        association: &mut ProxyAssociation,
        commands: &mut mpsc::Receiver<Command>,
    ) -> ConnectionEnd {
        self.apply_welcome(&connection, association);
        let RelayConnection { mut frame_stream, outbox, welcome, early, .. } = connection;
        let keys = UdpKeys::new(&welcome);
        let mut keep_alive = KeepAlive::new(Instant::now());
        for frame in early {
            if let Err(error) = self.on_frame(&mut keep_alive, &frame) {
                return ConnectionEnd::Lost(error);
            }
        }
        let notify = Arc::clone(&self.notify);
        let mut suspension = SuspensionWatch::new();
        loop {
            let ping_due = keep_alive.due();
            let due = self.udp.timeout().map_or(ping_due, |udp_due| udp_due.min(ping_due));
            tokio::select! {
                change = association.changed() => {
                    let action = self.on_association(change, association, Instant::now());
                    self.perform(&keys, association, &outbox, action);
                }
                error = drive_frames(&mut frame_stream, &outbox, |frame| self.on_frame(&mut keep_alive, frame)) => {
                    return ConnectionEnd::Lost(error);
                }
                command = commands.recv() => match command {
                    Some(Command::Leave(reply)) => {
                        leave(&mut frame_stream, &outbox).await;
                        let _ = reply.send(Ok(()));
                        return ConnectionEnd::Left;
                    }
                    Some(command) => self.on_command(&outbox, command),
                    None => {
                        leave(&mut frame_stream, &outbox).await;
                        return ConnectionEnd::Left;
                    }
                },
                () = notify.notified() => self.on_notified(&keys, association, &outbox),
                // The relay or a NAT may have dropped the connection meanwhile.
                () = suspension.woken() => {
                    return ConnectionEnd::Lost(io::ErrorKind::TimedOut.into());
                }
                () = sleep_until(due.into()) => {
                    let now = Instant::now();
                    if keep_alive.is_dead(now) {
                        return ConnectionEnd::Lost(io::ErrorKind::TimedOut.into());
                    }
                    if keep_alive.ping(now, &mut self.random) {
                        outbox.push_control(|out| ClientFrame::Ping(0).encode(out));
                    }
                    let action = self.udp.on_timeout(now);
                    self.perform(&keys, association, &outbox, action);
                }
            }
        }
    }
}

impl Drop for RelayTask {
    fn drop(&mut self) {
        self.shared.with_relay(self.number, |relay| relay.outbox.close());
        self.shared.remove_relay(self.number);
    }
}

/// Reason why a connection is no longer served.
enum ConnectionEnd {
    /// This side has ended the session.
    Left,
    Lost(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_was_down_is_missed_for_little_longer() {
        for down in [1, 5, 20, 60, 600].map(Duration::from_secs) {
            let (mut now, mut attempts, mut backoff) = (Duration::ZERO, 0, BACKOFF);
            while now < down {
                now += backoff.failed(Instant::now());
                attempts += 1;
            }
            let overshoot = FIRST_PAUSE * 6 / 5 + down * 3 / 10;
            assert!(now - down <= overshoot, "{down:?}: {now:?}");
            assert!(attempts < 40, "{down:?}: {attempts}");
        }
    }
}
