//! The task of one relay: its TLS connection, made again whenever it breaks; what was asked and not answered; the binding of UDP.
//!
//! Where only the TLS connection goes to the relay, UDP goes by an association with the proxy that it goes through, if that grants one, and
//! is proved and given up as any other; nothing is sent to the relay's own address then.
//!
//! Invariants: a session goes on over a new connection with its pairs, if the relay still has it; mailboxes are registered again on
//! every new one; whoever waits for an answer gets one, or [`RelayError::Down`].

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{sleep, sleep_until, timeout};
use tracing::debug;

use super::config::RelayConfig;
use super::held_association::{Change, HeldAssociation};
use super::hub::Hub;
use super::keep_alive::KeepAlive;
use super::link::{Link, handshake, outbox, pump, read_welcome};
use super::route::Route;
use super::status::{Status, Way};
use super::udp_path::{Step, UdpPath};
use crate::binding::BindingKeys;
use crate::error::RelayError;
use crate::frame::{ClientFrame, Mailbox, Proof, Refusal, ServerFrame, VERSION, mailbox_of};
use crate::header::{Direction, WireId};
use crate::outbox::Outbox;
use crate::proof::resumption;
use crate::random::Random;
use wraith_crypto::MaskKey;

/// From the first packet to the end of the TLS handshake, and from there to WELCOME.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses between attempts to connect again: the first within the grace that a relay gives, the longest for one that is down.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Pairs of one relay: more than it makes for one client.
const PAIRS_MAX: usize = 1024;

/// What a handle asks of the task.
#[derive(Debug)]
pub enum Command {
    /// Wait at the mailbox of this secret, now and after every reconnection.
    Register([u8; 32], Reply<Mailbox>),
    /// No longer.
    Unregister(Mailbox),
    /// Make a pair.
    Dial(Mailbox, Reply<WireId>),
    /// End one.
    HangUp(WireId),
}

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<Result<T, RelayError>>;

/// See the module.
pub struct Session {
    config: RelayConfig,
    hub: Arc<Hub>,
    number: u32,
    notify: Arc<Notify>,
    status: watch::Sender<Status>,
    random: Random,
    /// What goes on: number and secret.
    resume: Option<(u64, [u8; 32])>,
    mailboxes: Vec<[u8; 32]>,
    registering: HashMap<Mailbox, Vec<Reply<Mailbox>>>,
    dialling: HashMap<u32, Reply<WireId>>,
    next_request: u32,
    udp: UdpPath,
    /// How UDP goes to the relay, as the hub has it.
    route: Option<Route>,
}

impl Session {
    pub fn new(
        config: RelayConfig,
        hub: Arc<Hub>,
        status: watch::Sender<Status>,
    ) -> io::Result<Self> {
        let random = Random::new()?;
        let notify = Arc::new(Notify::new());
        let number = hub.add_relay(outbox(), Arc::clone(&notify));
        Ok(Self {
            config,
            hub,
            number,
            notify,
            status,
            random,
            resume: None,
            mailboxes: Vec::new(),
            registering: HashMap::new(),
            dialling: HashMap::new(),
            next_request: 0,
            udp: UdpPath::new(None),
            route: None,
        })
    }

    /// The number by which the hub knows this relay.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Connects once.
    pub async fn connect(&mut self) -> Result<Link, RelayError> {
        let (carrier, udp, pin, exporter) = timeout(CONNECT_TIMEOUT, handshake(&self.config))
            .await
            .map_err(|_| RelayError::Timeout)??;
        let (mut carrier, outbox) = (carrier, outbox());
        let proof = match (&self.config.token, &self.config.identity) {
            (Some(token), _) => Proof::of_token(token, &exporter),
            (None, Some(identity)) => Proof::of_identity(identity, &exporter),
            (None, None) => Proof::None,
        };
        let resume = self.resume.map(|(session, secret)| (session, resumption(&secret, &exporter)));
        outbox.push_control(|out| {
            ClientFrame::Hello { version: VERSION, resume, proof }.encode(out);
        });
        let welcome = timeout(CONNECT_TIMEOUT, read_welcome(&mut carrier, &outbox)).await;
        let welcome = welcome.map_err(|_| RelayError::Timeout)??;
        let udp = udp.filter(|_| self.config.udp && welcome.udp_port != 0);
        let udp = udp.map(|ip| SocketAddr::new(ip, welcome.udp_port));
        // Whoever was believed the first time is held to it: the next connection hands over the secrets of our mailboxes.
        self.config.pin = Some(pin);
        Ok(Link { carrier, outbox, welcome, udp, pin })
    }

    /// Serves the first connection, and then one after the other, until no handle is left.
    pub async fn run(mut self, first: Link, mut commands: mpsc::Receiver<Command>) {
        let mut link = Some(first);
        let mut association = HeldAssociation::default();
        let mut pause = BACKOFF.0;
        loop {
            if let Some(link) = link.take() {
                pause = BACKOFF.0;
                match self.serve(link, &mut association, &mut commands).await {
                    Ended::NoHandle => break,
                    Ended::Lost(error) => debug!(%error, "the connection to a relay is lost"),
                }
                self.lost();
            }
            if !self.wait(pause, &mut commands).await {
                break;
            }
            pause = (2 * pause).min(BACKOFF.1);
            match self.connect().await {
                Ok(new) => link = Some(new),
                Err(error) => {
                    debug!(%error, "a relay is not reached again");
                    if matches!(error, RelayError::Refused(Refusal::TooOften)) {
                        pause = BACKOFF.1;
                    }
                    self.status.send_modify(|status| status.error = Some(error.to_string()));
                }
            }
        }
    }

    /// Waits before another attempt, and refuses what is asked meanwhile. False if no handle is left.
    async fn wait(&mut self, pause: Duration, commands: &mut mpsc::Receiver<Command>) -> bool {
        let fifth = pause.as_millis() as u64 / 5;
        let pause = pause + Duration::from_millis(self.random.below(fifth + 1));
        let mut due = std::pin::pin!(sleep(pause));
        loop {
            tokio::select! {
                () = &mut due => return true,
                command = commands.recv() => match command {
                    None => return false,
                    // It is registered on the next connection, which answers.
                    Some(Command::Register(secret, reply)) => self.remember(secret, reply),
                    Some(Command::Unregister(mailbox)) => self.forget(&mailbox),
                    Some(Command::Dial(_, reply)) => drop(reply.send(Err(RelayError::Down))),
                    Some(Command::HangUp(_)) => {}
                },
            }
        }
    }

    /// The connection is gone: what waits for an answer of it has none, and nothing goes by TLS.
    fn lost(&mut self) {
        for (_, reply) in self.dialling.drain() {
            let _ = reply.send(Err(RelayError::Down));
        }
        self.hub.with_relay(self.number, |relay| relay.outbox.close());
        self.status.send_modify(|status| status.way = Way::Down);
    }

    fn remember(&mut self, secret: [u8; 32], reply: Reply<Mailbox>) {
        if !self.mailboxes.contains(&secret) {
            self.mailboxes.push(secret);
        }
        self.registering.entry(mailbox_of(&secret)).or_default().push(reply);
    }

    fn forget(&mut self, mailbox: &Mailbox) {
        self.mailboxes.retain(|secret| mailbox_of(secret) != *mailbox);
        self.registering.remove(mailbox);
    }

    /// Begins with what a new connection was told.
    fn begin(&mut self, link: &Link, association: &mut HeldAssociation) {
        let Link { outbox, welcome, udp, pin, .. } = link;
        let is_lost = self.resume.is_some() && !welcome.resumed;
        self.resume = Some((welcome.session, welcome.secret));
        let has_mover = self.hub.lock().has_mover;
        let RelayConfig { connect, host, udp: is_wanted, .. } = &self.config;
        let by_proxy = *is_wanted && has_mover && udp.is_none() && welcome.udp_port != 0;
        association.begin(by_proxy.then_some((connect, host, welcome.udp_port)));
        // What has proved itself for this session is good for it on another connection.
        let proved = |route: Route| {
            self.route.filter(|of| welcome.resumed && of.to() == route.to()).unwrap_or(route)
        };
        self.route = udp.map(Route::straight).or_else(|| association.route().map(proved));
        let now = self.route.filter(|_| has_mover).map(|_| Instant::now());
        if welcome.resumed {
            self.udp.reconnected(now)
        } else {
            self.udp = UdpPath::new(now)
        }
        self.hub.with_relay(self.number, |relay| {
            relay.outbox = Arc::clone(outbox);
            relay.begin(welcome, self.route);
        });
        outbox.push_control(|out| {
            self.mailboxes.iter().for_each(|secret| ClientFrame::Register(*secret).encode(out));
        });
        self.status.send_modify(|status| {
            *status = Status {
                way: Way::Tls,
                draining: false,
                rtt: status.rtt,
                observed_tcp: Some(welcome.observed),
                observed_udp: None,
                udp: *udp,
                udp_other: udp
                    .filter(|_| welcome.other_port != 0)
                    .map(|udp| SocketAddr::new(udp.ip(), welcome.other_port)),
                observe: Some(welcome.observe),
                pin: Some(*pin),
                sessions_lost: status.sessions_lost + u64::from(is_lost),
                error: None,
            };
        });
    }

    async fn serve(
        &mut self,
        link: Link,
        association: &mut HeldAssociation,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Ended {
        self.begin(&link, association);
        let Link { mut carrier, outbox, welcome, .. } = link;
        let keys = UdpKeys {
            binding: BindingKeys::new(&welcome.secret, welcome.binding),
            up_mask: MaskKey::new(welcome.up_mask),
        };
        let mut keep_alive = KeepAlive::new(Instant::now());
        let notify = Arc::clone(&self.notify);
        loop {
            let ping_due = keep_alive.due();
            let due = self.udp.timeout().map_or(ping_due, |udp_due| udp_due.min(ping_due));
            tokio::select! {
                change = association.changed() => {
                    let step = self.on_association(change, association, Instant::now());
                    self.take_step(&keys, association, &outbox, step);
                }
                error = pump(&mut carrier, &outbox, |frame| self.on_frame(&mut keep_alive, frame)) => {
                    return Ended::Lost(error);
                }
                command = commands.recv() => match command {
                    Some(command) => self.on_command(&outbox, command),
                    None => return Ended::NoHandle,
                },
                () = notify.notified() => self.on_notified(&keys, association, &outbox),
                () = sleep_until(due.into()) => {
                    let now = Instant::now();
                    if keep_alive.is_dead(now) {
                        return Ended::Lost(io::ErrorKind::TimedOut.into());
                    }
                    if keep_alive.ping(now, &mut self.random) {
                        outbox.push_control(|out| ClientFrame::Ping(0).encode(out));
                    }
                    let step = self.udp.on_time(now);
                    self.take_step(&keys, association, &outbox, step);
                }
            }
        }
    }

    fn on_command(&mut self, outbox: &Outbox, command: Command) {
        match command {
            Command::Register(secret, reply) => {
                self.remember(secret, reply);
                outbox.push_control(|out| ClientFrame::Register(secret).encode(out));
            }
            Command::Unregister(mailbox) => {
                self.forget(&mailbox);
                outbox.push_control(|out| ClientFrame::Unregister(mailbox).encode(out));
            }
            Command::Dial(mailbox, reply) => {
                let request = self.next_request;
                self.next_request = request.wrapping_add(1);
                self.dialling.insert(request, reply);
                outbox.push_control(|out| ClientFrame::Dial { request, mailbox }.encode(out));
            }
            Command::HangUp(id) => {
                outbox.push_control(|out| ClientFrame::HangUp(id).encode(out));
            }
        }
    }

    fn on_frame(&mut self, keep_alive: &mut KeepAlive, frame: &[u8]) -> io::Result<()> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let Some(frame) = ServerFrame::decode(frame).map_err(invalid)? else { return Ok(()) };
        match frame {
            ServerFrame::Datagram(id, datagram) => {
                self.hub.push_received(self.number, id, datagram)
            }
            ServerFrame::Registered(mailbox) => self.registered(mailbox, None),
            ServerFrame::NotRegistered(mailbox, why) => self.registered(mailbox, Some(why)),
            ServerFrame::Dialled(request, id) => {
                self.hub.with_relay(self.number, |relay| relay.add_pair(id));
                if let Some(reply) = self.dialling.remove(&request)
                    && reply.send(Ok(id)).is_ok()
                {
                    return Ok(());
                }
                // Nobody wants it any more.
                self.hub.with_relay(self.number, |relay| {
                    relay.pairs.remove(&id);
                    relay.outbox.push_control(|out| ClientFrame::HangUp(id).encode(out));
                });
            }
            ServerFrame::NotDialled(request, why) => {
                if let Some(reply) = self.dialling.remove(&request) {
                    let _ = reply.send(Err(why.into()));
                }
            }
            ServerFrame::Incoming(id, _) => {
                self.hub.with_relay(self.number, |relay| {
                    // The relay bounds them too; a lying one gets no more memory than an honest one.
                    if relay.pairs.len() < PAIRS_MAX {
                        relay.add_pair(id);
                    }
                });
            }
            ServerFrame::Closed(id) => {
                self.hub.with_relay(self.number, |relay| relay.pairs.remove(&id));
            }
            ServerFrame::Pong(_) => {
                if let Some(rtt) = keep_alive.pong(Instant::now()) {
                    self.status.send_modify(|status| {
                        if status.way == Way::Tls {
                            status.rtt = Some(rtt);
                        }
                    });
                }
            }
            ServerFrame::Draining(seconds) => {
                debug!(seconds, "a relay is about to stop");
                self.status.send_modify(|status| status.draining = true);
            }
            ServerFrame::Welcome(_) | ServerFrame::Refused(_) => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    fn registered(&mut self, mailbox: Mailbox, refused: Option<Refusal>) {
        let waiting = self.registering.remove(&mailbox);
        if refused.is_some() && waiting.is_some() {
            // Who asked for it hears so, and asks for another; one that was ours before is asked for with the next connection again.
            self.mailboxes.retain(|secret| mailbox_of(secret) != mailbox);
        }
        for reply in waiting.into_iter().flatten() {
            let _ = reply.send(match refused {
                None => Ok(mailbox),
                Some(why) => Err(why.into()),
            });
        }
    }

    /// The mover has bindings for us, or hears nothing.
    fn on_notified(&mut self, keys: &UdpKeys, association: &HeldAssociation, outbox: &Outbox) {
        let taken = self.hub.with_relay(self.number, |relay| {
            (std::mem::take(&mut relay.bindings), std::mem::take(&mut relay.stalled))
        });
        let Some((bindings, stalled)) = taken else { return };
        let now = Instant::now();
        for mut datagram in bindings {
            let Some(route) = self.route else { continue };
            let split = route.split(association.open(), &mut datagram);
            let Some((header, inner)) = split else { continue };
            let Some(message) = keys.binding.open(Direction::Down, inner) else { continue };
            let (step, rtt) = self.udp.on_message(now, message, &mut self.random);
            // It answers what was asked last.
            if let (Some(_), Some(route)) = (rtt, &mut self.route)
                && route.header().is_none()
            {
                route.prove(header);
                self.hub.with_relay(self.number, |relay| relay.set_route(Some(*route)));
            }
            self.take_step(keys, association, outbox, step);
            if self.udp.is_bound() {
                let observed = self.udp.observed();
                self.status.send_if_modified(|status| {
                    let before = (status.observed_udp, status.rtt);
                    status.observed_udp = observed;
                    status.rtt = rtt.or(status.rtt);
                    before != (status.observed_udp, status.rtt)
                });
            }
        }
        if stalled {
            let step = self.udp.on_silence(now);
            self.take_step(keys, association, outbox, step);
        }
    }

    /// The association with the proxy has come, or gone.
    fn on_association(
        &mut self,
        change: Change,
        association: &HeldAssociation,
        now: Instant,
    ) -> Step {
        self.route = association.route();
        self.hub.with_relay(self.number, |relay| relay.set_route(self.route));
        match change {
            Change::Opened => {
                self.udp.reconnected(Some(now));
                self.udp.on_time(now)
            }
            Change::Closed => self.udp.on_closed(),
        }
    }

    fn take_step(
        &mut self,
        keys: &UdpKeys,
        association: &HeldAssociation,
        outbox: &Outbox,
        step: Step,
    ) {
        match step {
            Step::None => {}
            Step::Send(message) => {
                let datagram =
                    keys.binding.seal(&keys.up_mask, Direction::Up, &message, &mut self.random);
                debug_assert_eq!(
                    crate::header::read_id(&keys.up_mask, &datagram),
                    Some(keys.binding.id())
                );
                let asked_with = || association.open().map(|open| open.header());
                if let Some(route) = &self.route
                    && let Some(header) = route.header().or_else(asked_with)
                {
                    self.hub.push_binding(route.to(), [header, &datagram].concat());
                }
            }
            Step::Use(use_udp) => {
                debug!(use_udp, "how datagrams go to a relay");
                outbox.push_control(|out| ClientFrame::UseUdp(use_udp).encode(out));
                self.hub.with_relay(self.number, |relay| {
                    if let Some(session) = &mut relay.session {
                        session.use_udp = use_udp;
                    }
                });
                let observed = self.udp.observed();
                self.status.send_modify(|status| {
                    status.way = if use_udp { Way::Udp } else { Way::Tls };
                    status.observed_udp = observed;
                });
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hub.with_relay(self.number, |relay| relay.outbox.close());
        self.hub.remove_relay(self.number);
    }
}

/// Why a connection is no more served.
enum Ended {
    NoHandle,
    Lost(io::Error),
}

/// What the session's messages by UDP are sealed with.
struct UdpKeys {
    binding: BindingKeys,
    up_mask: MaskKey,
}
