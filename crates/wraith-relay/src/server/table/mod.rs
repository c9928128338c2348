//! The relay's state: client sessions, their mailboxes, the pairs between clients, and the limits
//! of each. It has no sockets and no clock.
//!
//! ```text
//! mailbox ──▶ client ◀── session, UDP address, id of its next binding message
//!               ▲
//!               └── pair (two ends, each with an id and keys of its own)
//! ```
//!
//! Invariants: removing a client removes its mailboxes, its pairs and all IDs that refer to them. A
//! stored number therefore never refers to a different client.

mod address_index;
mod binding;
mod forward;
#[cfg(test)]
mod limit_tests;
mod pairs;
mod slab;
mod sources;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wraith_crypto::{MaskKey, equal};
use wraith_discovery::rates::{RateLimit, RateLimiter, Source};
use zeroize::Zeroize;

use crate::binding::UpIds;
use crate::frame::{Mailbox, Refusal, ServerFrame, Welcome, mailbox_of};
use crate::header::{TagKey, WireId, up_mask};
use crate::outbox::Outbox;
use crate::proof::{Exporter, resumption};
use crate::random::Random;
use crate::server::metrics::Metrics;
use crate::server::options::Limits;
use crate::server::rate::{Bucket, DailyVolume, FairShares, PairDemand};

use address_index::AddressIndex;
pub use forward::{Action, Forwarded};
use slab::Slab;
use sources::Sources;

/// Time that a session outlives its connection: several reconnection attempts.
const GRACE: Duration = Duration::from_secs(30);
/// Time that the pairs of a client outlive its LEAVE: its last datagrams may arrive after the LEAVE,
/// which takes another way.
const LEAVE_GRACE: Duration = Duration::from_secs(1);
/// Idle time after which a pair is closed: four idle timeouts of a connection.
const PAIR_IDLE: Duration = Duration::from_secs(120);
/// Age at which a pair is closed if only one end has sent anything: longer than any handshake.
const PAIR_UNANSWERED: Duration = Duration::from_secs(20);
/// Lifetime of an address binding without renewal: four keep-alives.
const BINDING_LIFETIME: Duration = Duration::from_secs(60);
/// Most mailboxes per client; an endpoint needs one.
const MAILBOXES_MAX: usize = 4;
/// Most pairs per dialled client.
const PAIRS_PER_CLIENT: usize = 256;
/// Rate limit of dials per address; a searching receiver dials once in a while.
const DIALS: RateLimit = RateLimit { burst: 20, refill: Duration::from_secs(1), addresses: 4096 };

/// All state of the relay; see the module documentation.
#[derive(Debug)]
pub struct Table {
    clients: Slab<Client>,
    pairs: Slab<Pair>,
    sessions: HashMap<u64, usize>,
    mailboxes: HashMap<Mailbox, usize>,
    /// Ends of pairs by their IDs.
    targets: HashMap<WireId, EndNumber>,
    /// Clients by the IDs of their next binding messages.
    bind_ids: HashMap<WireId, usize>,
    addresses: AddressIndex,
    sources: Sources,
    dials: RateLimiter,
    limits: Limits,
    shares: FairShares,
    day: DailyVolume,
    cookie_key: [u8; 32],
    random: Random,
    draining: bool,
    /// Notified when a draining relay has no more pairs.
    drained: Arc<Notify>,
    metrics: Arc<Metrics>,
}

/// A client with a session.
#[derive(Debug)]
struct Client {
    session: u64,
    secret: [u8; 32],
    /// Address of its TLS connection.
    source: Source,
    /// Address of its bound UDP socket, if that is another one.
    udp_source: Option<Source>,
    /// Its TLS connection; `None` while it is disconnected.
    link: Option<Arc<Outbox>>,
    gone: Option<Instant>,
    /// Whether it has ended its session.
    left: bool,
    /// Proved UDP address, and the time of the latest proof.
    bound: Option<(SocketAddr, Instant)>,
    use_udp: bool,
    /// Mask of the IDs in its datagrams.
    up_mask: MaskKey,
    /// ID of the relay's binding messages to it.
    binding: WireId,
    up_ids: UpIds,
    /// IDs of its next binding messages, from the one after `highest`.
    next_ids: VecDeque<WireId>,
    /// Highest binding counter, and the counter challenged last.
    highest: u64,
    challenged: u64,
    challenged_at: Option<Instant>,
    mailboxes: Vec<Mailbox>,
    /// Numbers of its pairs, in both roles.
    pairs: Vec<usize>,
    /// Ends that were closed while it was disconnected.
    closed_while_disconnected: Vec<WireId>,
}

/// A pair of clients.
#[derive(Debug)]
struct Pair {
    /// The dialling end, then the dialled end.
    ends: [PairEnd; 2],
    made: Instant,
    used: Instant,
    bucket: Bucket,
    usage: PairDemand,
    place: usize,
}

#[derive(Debug)]
struct PairEnd {
    client: usize,
    id: WireId,
    up_tag: TagKey,
    down_tag: TagKey,
    down_mask: MaskKey,
    has_sent: bool,
}

/// Number of an end: its pair and its side.
type EndNumber = (usize, usize);

/// The dialling side. Pairs count against the dialling client's address, because a client cannot
/// choose its callers.
const DIALLER: usize = 0;

impl Table {
    /// Creates an empty table.
    pub fn new(now: Instant, limits: Limits, mut random: Random, metrics: Arc<Metrics>) -> Self {
        Self {
            clients: Slab::new(),
            pairs: Slab::new(),
            sessions: HashMap::new(),
            mailboxes: HashMap::new(),
            targets: HashMap::new(),
            bind_ids: HashMap::new(),
            addresses: AddressIndex::default(),
            sources: Sources::default(),
            dials: RateLimiter::new(DIALS),
            limits,
            shares: FairShares::new(now),
            day: DailyVolume::new(now),
            cookie_key: random.bytes(),
            random,
            draining: false,
            drained: Arc::default(),
            metrics,
        }
    }

    /// Creates a session or resumes one, whose earlier connection ends. Returns the client's number
    /// and the WELCOME; the caller fills in the relay's ports and observed address.
    pub fn connect(
        &mut self,
        now: Instant,
        source: Source,
        link: &Arc<Outbox>,
        resume: Option<(u64, [u8; 32])>,
        exporter: &Exporter,
    ) -> Result<(usize, Welcome), Refusal> {
        let resumed = resume.and_then(|(session, proof)| self.resume(session, &proof, exporter));
        let number = match resumed {
            Some(number) => {
                self.move_source(now, number, source)?;
                self.metrics.resumed.add(1);
                number
            }
            None => self.new_client(now, source)?,
        };
        let client = self.clients.get_mut(number).expect("just found or made");
        if let Some(old) = client.link.replace(Arc::clone(link)) {
            old.close();
        }
        client.gone = None;
        client.use_udp = false;
        let welcome = Welcome {
            session: client.session,
            resumed: resumed.is_some(),
            secret: client.secret,
            binding: client.binding,
            observe: [0; 32],
            udp_port: 0,
            other_port: 0,
            observed: ([0, 0, 0, 0], 0).into(),
        };
        Ok((number, welcome))
    }

    /// Takes the ends that were closed while the client was disconnected.
    pub fn take_closed_while_disconnected(&mut self, number: usize) -> Vec<WireId> {
        self.clients
            .get_mut(number)
            .map(|client| std::mem::take(&mut client.closed_while_disconnected))
            .unwrap_or_default()
    }

    fn resume(&mut self, session: u64, proof: &[u8; 32], exporter: &Exporter) -> Option<usize> {
        let number = *self.sessions.get(&session)?;
        let secret = &self.clients.get(number)?.secret;
        equal(proof, &resumption(secret, exporter)).then_some(number)
    }

    fn new_client(&mut self, now: Instant, source: Source) -> Result<usize, Refusal> {
        if self.draining {
            return Err(Refusal::Draining);
        }
        if self.clients.len() >= self.limits.clients {
            return Err(Refusal::Full);
        }
        self.sources.enter(now, &self.limits, source, 0)?;
        let (session, binding) = (self.draw(), self.draw());
        let secret: [u8; 32] = self.random.bytes();
        let number = self.clients.insert(Client {
            session,
            up_mask: up_mask(&secret),
            up_ids: UpIds::new(&secret),
            next_ids: VecDeque::new(),
            secret,
            source,
            udp_source: None,
            link: None,
            gone: None,
            left: false,
            bound: None,
            use_udp: false,
            binding,
            highest: 0,
            challenged: 0,
            challenged_at: None,
            mailboxes: Vec::new(),
            pairs: Vec::new(),
            closed_while_disconnected: Vec::new(),
        });
        self.sessions.insert(session, number);
        self.expect_bindings_after(number, 0);
        self.metrics.sessions.add(1);
        self.metrics.clients.set(self.clients.len() as u64);
        Ok(number)
    }

    /// Draws a number that is neither a session nor an ID.
    fn draw(&mut self) -> u64 {
        loop {
            let number = self.random.u64();
            if !self.targets.contains_key(&number) && !self.sessions.contains_key(&number) {
                return number;
            }
        }
    }

    /// Charges a client to the address of its new connection. A refused client keeps its session
    /// for the grace period.
    fn move_source(&mut self, now: Instant, number: usize, to: Source) -> Result<(), Refusal> {
        let Some(client) = self.clients.get_mut(number) else { return Err(Refusal::Full) };
        if client.source == to {
            return Ok(());
        }
        let dialled = client.pairs.iter().filter_map(|pair| self.pairs.get(*pair));
        let pairs = dialled.filter(|pair| pair.ends[DIALLER].client == number).count();
        self.sources.enter(now, &self.limits, to, pairs)?;
        let from = std::mem::replace(&mut client.source, to);
        self.sources.leave(from, pairs);
        // The client binds its UDP address again, which charges the right address.
        if let Some((address, _)) = client.bound.take() {
            self.addresses.remove(address, number);
        }
        if let Some(udp_source) = client.udp_source.take() {
            self.sources.leave(udp_source, 0);
        }
        Ok(())
    }

    /// Handles the end of the connection of `link`. A client with pairs or mailboxes has a grace
    /// period to reconnect.
    pub fn disconnected(&mut self, now: Instant, number: usize, link: &Arc<Outbox>) {
        let Some(client) = self.clients.get_mut(number) else { return };
        // The client may have a newer connection.
        if !client.link.as_ref().is_some_and(|current| Arc::ptr_eq(current, link)) {
            return;
        }
        client.link = None;
        client.gone.get_or_insert(now);
        if client.pairs.is_empty() && client.mailboxes.is_empty() {
            self.remove_client(number);
        }
    }

    /// Ends the session of a client. A pair remains for the last datagrams of the client, until the
    /// other side leaves too or [`LEAVE_GRACE`] is over.
    pub fn leave(&mut self, now: Instant, number: usize) {
        let Some(client) = self.clients.get_mut(number) else { return };
        (client.left, client.gone) = (true, Some(now));
        for mailbox in std::mem::take(&mut client.mailboxes) {
            self.mailboxes.remove(&mailbox);
        }
        self.sessions.remove(&client.session);
        self.metrics.mailboxes.set(self.mailboxes.len() as u64);
        for pair in client.pairs.clone() {
            let ends = self.pairs.get(pair).map(|pair| [pair.ends[0].client, pair.ends[1].client]);
            let has_left = |client| self.clients.get(client).is_some_and(|client| client.left);
            if ends.is_some_and(|ends| ends.into_iter().all(has_left)) {
                self.close_pair(pair, None);
            }
        }
    }

    fn remove_client(&mut self, number: usize) {
        let pairs = self.clients.get(number).map(|client| client.pairs.clone()).unwrap_or_default();
        pairs.into_iter().for_each(|pair| self.close_pair(pair, Some(number)));
        let Some(mut client) = self.clients.remove(number) else { return };
        for mailbox in &client.mailboxes {
            self.mailboxes.remove(mailbox);
        }
        self.sessions.remove(&client.session);
        self.forget_bindings(number, &client.next_ids);
        if let Some((address, _)) = client.bound {
            self.addresses.remove(address, number);
        }
        self.sources.leave(client.source, 0);
        if let Some(udp_source) = client.udp_source {
            self.sources.leave(udp_source, 0);
        }
        if let Some(link) = client.link.take() {
            link.close();
        }
        self.metrics.clients.set(self.clients.len() as u64);
        self.metrics.mailboxes.set(self.mailboxes.len() as u64);
    }

    /// Registers a client at the mailbox of `secret`, replacing the previous one.
    pub fn register(&mut self, number: usize, secret: &[u8; 32]) -> (Mailbox, Result<(), Refusal>) {
        let mailbox = mailbox_of(secret);
        let Some(client) = self.clients.get_mut(number) else {
            return (mailbox, Err(Refusal::Full));
        };
        if !client.mailboxes.contains(&mailbox) {
            if client.mailboxes.len() >= MAILBOXES_MAX {
                return (mailbox, Err(Refusal::Full));
            }
            client.mailboxes.push(mailbox);
            let before = self.mailboxes.insert(mailbox, number);
            if let Some(before) = before.and_then(|before| self.clients.get_mut(before)) {
                before.mailboxes.retain(|of| *of != mailbox);
            }
            self.metrics.mailboxes.set(self.mailboxes.len() as u64);
        }
        (mailbox, Ok(()))
    }

    /// Unregisters a client from `mailbox`.
    pub fn unregister(&mut self, number: usize, mailbox: &Mailbox) {
        if self.mailboxes.get(mailbox) == Some(&number) {
            self.mailboxes.remove(mailbox);
            if let Some(client) = self.clients.get_mut(number) {
                client.mailboxes.retain(|of| of != mailbox);
            }
            self.metrics.mailboxes.set(self.mailboxes.len() as u64);
        }
    }

    /// Sets whether a client receives datagrams by UDP. It has no effect without a bound address.
    pub fn use_udp(&mut self, number: usize, use_udp: bool) {
        if let Some(client) = self.clients.get_mut(number) {
            client.use_udp = use_udp;
        }
    }

    /// Refuses new clients and pairs from now on, and notifies all clients that the relay stops in
    /// `left`.
    pub fn drain(&mut self, left: Duration) {
        self.draining = true;
        self.metrics.draining.set(1);
        let seconds = u16::try_from(left.as_secs()).unwrap_or(u16::MAX);
        for (_, client) in self.clients.iter() {
            if let Some(link) = &client.link {
                link.push_control(|out| ServerFrame::Draining(seconds).encode(out));
            }
        }
    }

    /// Returns the signal that a draining relay has no more pairs.
    pub fn drained(&self) -> Arc<Notify> {
        Arc::clone(&self.drained)
    }

    /// Reports whether stopping now would break a pair.
    pub fn has_pairs(&self) -> bool {
        self.pairs.len() > 0
    }

    /// Removes expired clients and pairs.
    pub fn tick(&mut self, now: Instant) {
        let since = |then: Instant| now.saturating_duration_since(then);
        let gone = |client: &Client| {
            let grace = if client.left { LEAVE_GRACE } else { GRACE };
            client.gone.is_some_and(|gone| since(gone) >= grace)
        };
        let gone: Vec<_> =
            self.clients.iter().filter(|(_, client)| gone(client)).map(|(i, _)| i).collect();
        gone.into_iter().for_each(|number| self.remove_client(number));
        let idle = |pair: &Pair| {
            let answered = pair.ends.iter().all(|end| end.has_sent);
            since(pair.used) >= PAIR_IDLE || (!answered && since(pair.made) >= PAIR_UNANSWERED)
        };
        let idle: Vec<_> =
            self.pairs.iter().filter(|(_, pair)| idle(pair)).map(|(i, _)| i).collect();
        idle.into_iter().for_each(|pair| self.close_pair(pair, None));
        self.sources.forget_unused(now);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}
