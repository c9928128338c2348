//! Everything that a relay knows: sessions of clients, the mailboxes at which they wait, the pairs between them, and what each may
//! do. It has no sockets and no clock.
//!
//! ```text
//! mailbox ──▶ client ◀── session                       id in a datagram ──▶ binding of a client
//!               ▲                                                      └──▶ one end of a pair ──▶ the other end ──▶ client
//!               └── pair (two ends, each with an id and keys of its own)
//! ```
//!
//! Invariants: a client that is gone takes its mailboxes, its pairs and every id that led to them along, so a number kept in one
//! of these never leads to a stranger; what is counted for an address is what its clients have.

mod binding;
mod forward;
mod slab;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wraith_crypto::{MaskKey, equal};
use wraith_discovery::rates::{Limit, Rates, Source};
use zeroize::Zeroize;

use crate::frame::{Mailbox, Refusal, ServerFrame, Welcome, mailbox_of};
use crate::header::{Direction, TagKey, WireId, down_mask};
use crate::outbox::Outbox;
use crate::proof::{Exporter, resumption};
use crate::random::Random;
use crate::server::metrics::Metrics;
use crate::server::options::Limits;
use crate::server::rate::{Bucket, Day, Shares, Use};

pub use forward::{Action, Forwarded};
use slab::Slab;

/// How long a session waits for its client to connect again: some repetitions of a client that is patient.
const GRACE: Duration = Duration::from_secs(30);
/// A pair through which nothing comes for this long is over: four idle timeouts of a connection.
const PAIR_IDLE: Duration = Duration::from_secs(120);
/// One of which only one end has sent anything: longer than any handshake takes.
const PAIR_UNANSWERED: Duration = Duration::from_secs(20);
/// An address that was not bound again for this long is none any more: four keep-alives.
const BINDING_LIFETIME: Duration = Duration::from_secs(60);
/// Mailboxes of one client: an endpoint needs one.
const MAILBOXES_MAX: usize = 4;
/// Pairs that wait at one client.
const PAIRS_PER_CLIENT: usize = 256;
/// Requests for pairs from one address: a receiver that searches asks once in a while.
const DIALS: Limit = Limit { burst: 20, refill: Duration::from_secs(1), addresses: 4096 };

/// See the module.
#[derive(Debug)]
pub struct Table {
    clients: Slab<Client>,
    pairs: Slab<Pair>,
    sessions: HashMap<u64, usize>,
    mailboxes: HashMap<Mailbox, usize>,
    routes: HashMap<WireId, Route>,
    sources: HashMap<Source, SourceUse>,
    dials: Rates,
    limits: Limits,
    shares: Shares,
    day: Day,
    up_mask_key: [u8; 32],
    up_mask: MaskKey,
    cookie_key: [u8; 32],
    random: Random,
    draining: bool,
    metrics: Arc<Metrics>,
}

/// Somebody with a session.
#[derive(Debug)]
struct Client {
    session: u64,
    secret: [u8; 32],
    source: Source,
    /// Its TLS connection; none while it is away.
    link: Option<Arc<Outbox>>,
    gone: Option<Instant>,
    /// Where it has proved that it receives UDP, and when it last said so.
    bound: Option<(SocketAddr, Instant)>,
    use_udp: bool,
    binding: WireId,
    /// Highest counter of a binding, and which of them was challenged last.
    highest: u64,
    challenged: u64,
    challenged_at: Option<Instant>,
    mailboxes: Vec<Mailbox>,
    /// Its pairs, and which of them it made.
    pairs: Vec<usize>,
    /// Ends that were closed while it was away.
    missed: Vec<WireId>,
}

/// Two clients.
#[derive(Debug)]
struct Pair {
    /// Who dialled, and who was dialled.
    ends: [End; 2],
    made: Instant,
    used: Instant,
    bucket: Bucket,
    usage: Use,
    place: usize,
}

#[derive(Debug)]
struct End {
    client: usize,
    id: WireId,
    up_tag: TagKey,
    down_tag: TagKey,
    down_mask: MaskKey,
    has_sent: bool,
}

/// What an id leads to.
#[derive(Clone, Copy, Debug)]
enum Route {
    Binding { client: usize },
    End { pair: usize, side: usize },
}

/// What clients of one address have.
#[derive(Debug)]
struct SourceUse {
    clients: usize,
    pairs: usize,
    bucket: Bucket,
}

/// The side of a pair that dialled: its address is whose pairs are counted, for nobody chooses by whom he is dialled.
const DIALLER: usize = 0;

impl Table {
    /// An empty one.
    pub fn new(now: Instant, limits: Limits, mut random: Random, metrics: Arc<Metrics>) -> Self {
        let up_mask_key = random.bytes();
        Self {
            clients: Slab::new(),
            pairs: Slab::new(),
            sessions: HashMap::new(),
            mailboxes: HashMap::new(),
            routes: HashMap::new(),
            sources: HashMap::new(),
            dials: Rates::new(DIALS),
            limits,
            shares: Shares::new(now),
            day: Day::new(now),
            up_mask_key,
            up_mask: MaskKey::new(up_mask_key),
            cookie_key: random.bytes(),
            random,
            draining: false,
            metrics,
        }
    }

    /// Gives a client a session, or the one it had, whose earlier connection ends. The client's number, and what it is told; the
    /// relay's own addresses are for others to fill in.
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
                self.move_source(now, number, source);
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
            up_mask: self.up_mask_key,
            binding: client.binding,
            observe: [0; 32],
            udp_port: 0,
            other_port: 0,
            observed: ([0, 0, 0, 0], 0).into(),
        };
        Ok((number, welcome))
    }

    /// Ends that a client has not heard of yet: they were closed while it was away.
    pub fn take_missed(&mut self, number: usize) -> Vec<WireId> {
        self.clients
            .get_mut(number)
            .map(|client| std::mem::take(&mut client.missed))
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
        let of_source = self.sources.get(&source).map_or(0, |used| used.clients);
        if self.clients.len() >= self.limits.clients || of_source >= self.limits.clients_per_address
        {
            return Err(Refusal::Full);
        }
        let (session, binding) = (self.draw(), self.draw());
        let number = self.clients.insert(Client {
            session,
            secret: self.random.bytes(),
            source,
            link: None,
            gone: None,
            bound: None,
            use_udp: false,
            binding,
            highest: 0,
            challenged: 0,
            challenged_at: None,
            mailboxes: Vec::new(),
            pairs: Vec::new(),
            missed: Vec::new(),
        });
        self.sessions.insert(session, number);
        self.routes.insert(binding, Route::Binding { client: number });
        self.source(now, source).clients += 1;
        self.metrics.sessions.add(1);
        self.metrics.clients.set(self.clients.len() as u64);
        Ok(number)
    }

    /// A number that is no session and no id yet.
    fn draw(&mut self) -> u64 {
        loop {
            let number = self.random.u64();
            if !self.routes.contains_key(&number) && !self.sessions.contains_key(&number) {
                return number;
            }
        }
    }

    fn source(&mut self, now: Instant, source: Source) -> &mut SourceUse {
        let new = || SourceUse { clients: 0, pairs: 0, bucket: Bucket::new(now) };
        self.sources.entry(source).or_insert_with(new)
    }

    fn move_source(&mut self, now: Instant, number: usize, to: Source) {
        let Some(client) = self.clients.get_mut(number) else { return };
        let from = std::mem::replace(&mut client.source, to);
        let dialled = client.pairs.clone();
        let dialled = dialled.into_iter().filter_map(|pair| self.pairs.get(pair));
        let pairs = dialled.filter(|pair| pair.ends[DIALLER].client == number).count();
        let old = self.source(now, from);
        old.clients -= 1;
        old.pairs -= pairs;
        let new = self.source(now, to);
        new.clients += 1;
        new.pairs += pairs;
        self.forget_source(from);
    }

    fn forget_source(&mut self, source: Source) {
        if self.sources.get(&source).is_some_and(|used| used.clients == 0) {
            self.sources.remove(&source);
        }
    }

    /// The connection of `link` ended. Its client has some time to come again, if it has anything to come for.
    pub fn disconnected(&mut self, now: Instant, number: usize, link: &Arc<Outbox>) {
        let Some(client) = self.clients.get_mut(number) else { return };
        // It may have another connection by now.
        if !client.link.as_ref().is_some_and(|current| Arc::ptr_eq(current, link)) {
            return;
        }
        client.link = None;
        client.gone = Some(now);
        if client.pairs.is_empty() && client.mailboxes.is_empty() {
            self.remove_client(number);
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
        self.routes.remove(&client.binding);
        if let Some(used) = self.sources.get_mut(&client.source) {
            used.clients -= 1;
        }
        self.forget_source(client.source);
        if let Some(link) = client.link.take() {
            link.close();
        }
        self.metrics.clients.set(self.clients.len() as u64);
        self.metrics.mailboxes.set(self.mailboxes.len() as u64);
    }

    /// A client waits at the mailbox of `secret` from now on, in the place of whoever did.
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

    /// A client waits at `mailbox` no longer.
    pub fn unregister(&mut self, number: usize, mailbox: &Mailbox) {
        if self.mailboxes.get(mailbox) == Some(&number) {
            self.mailboxes.remove(mailbox);
            if let Some(client) = self.clients.get_mut(number) {
                client.mailboxes.retain(|of| of != mailbox);
            }
            self.metrics.mailboxes.set(self.mailboxes.len() as u64);
        }
    }

    /// Makes a pair of a client and who waits at `mailbox`, who is told; the client's end of it.
    pub fn dial(
        &mut self,
        now: Instant,
        number: usize,
        mailbox: &Mailbox,
    ) -> Result<WireId, Refusal> {
        let result = self.make_pair(now, number, mailbox);
        if result.is_err() {
            self.metrics.dials_refused.add(1);
        }
        result
    }

    fn make_pair(
        &mut self,
        now: Instant,
        number: usize,
        mailbox: &Mailbox,
    ) -> Result<WireId, Refusal> {
        let source = self.clients.get(number).ok_or(Refusal::Full)?.source;
        if self.draining {
            return Err(Refusal::Draining);
        }
        if !self.dials.allow(source, now) {
            return Err(Refusal::TooOften);
        }
        if !self.day.take(self.limits.day_bytes, now, 0) {
            return Err(Refusal::Exhausted);
        }
        let waiting = self.mailboxes.get(mailbox).copied().filter(|waiting| *waiting != number);
        let waiting = waiting.ok_or(Refusal::NoMailbox)?;
        let peer = self.clients.get(waiting).ok_or(Refusal::NoMailbox)?;
        let link = Arc::clone(peer.link.as_ref().ok_or(Refusal::NoMailbox)?);
        let of_source = self.sources.get(&source).map_or(0, |used| used.pairs);
        if self.pairs.len() >= self.limits.pairs
            || of_source >= self.limits.pairs_per_address
            || peer.pairs.len() >= PAIRS_PER_CLIENT
        {
            return Err(Refusal::Full);
        }
        let ends = [number, waiting].map(|client| self.end(client));
        let ids = [ends[0].id, ends[1].id];
        let pair = self.pairs.insert(Pair {
            ends,
            made: now,
            used: now,
            bucket: Bucket::new(now),
            usage: Use::default(),
            place: 0,
        });
        for (side, client) in [number, waiting].into_iter().enumerate() {
            self.routes.insert(ids[side], Route::End { pair, side });
            let Some(client) = self.clients.get_mut(client) else { continue };
            client.pairs.push(pair);
        }
        self.source(now, source).pairs += 1;
        link.push_control(|out| ServerFrame::Incoming(ids[1], *mailbox).encode(out));
        self.metrics.pairs_made.add(1);
        self.metrics.pairs.set(self.pairs.len() as u64);
        Ok(ids[0])
    }

    fn end(&mut self, client: usize) -> End {
        let id = self.draw();
        let secret = self.clients.get(client).map(|client| client.secret).unwrap_or_default();
        End {
            client,
            id,
            up_tag: TagKey::new(&secret, id, Direction::Up),
            down_tag: TagKey::new(&secret, id, Direction::Down),
            down_mask: down_mask(&secret),
            has_sent: false,
        }
    }

    /// A client lets go of its end of a pair.
    pub fn hang_up(&mut self, number: usize, id: WireId) {
        if let Some(Route::End { pair, side }) = self.routes.get(&id).copied()
            && self.pairs.get(pair).is_some_and(|pair| pair.ends[side].client == number)
        {
            self.close_pair(pair, Some(number));
        }
    }

    /// Takes a pair away, and tells its clients but the one `by` whom it ends.
    fn close_pair(&mut self, number: usize, by: Option<usize>) {
        let Some(pair) = self.pairs.remove(number) else { return };
        let dialler = self.clients.get(pair.ends[DIALLER].client).map(|client| client.source);
        if let Some(used) = dialler.and_then(|source| self.sources.get_mut(&source)) {
            used.pairs -= 1;
        }
        for end in pair.ends {
            self.routes.remove(&end.id);
            let Some(client) = self.clients.get_mut(end.client) else { continue };
            client.pairs.retain(|of| *of != number);
            if by == Some(end.client) {
                continue;
            }
            match &client.link {
                Some(link) => link.push_control(|out| ServerFrame::Closed(end.id).encode(out)),
                None => client.missed.push(end.id),
            }
        }
        self.metrics.pairs.set(self.pairs.len() as u64);
    }

    /// Whether a client wants its datagrams by UDP, which counts where it has bound an address.
    pub fn use_udp(&mut self, number: usize, use_udp: bool) {
        if let Some(client) = self.clients.get_mut(number) {
            client.use_udp = use_udp;
        }
    }

    /// No new clients and pairs from now on; everybody hears that the relay ends in `left`.
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

    /// Whether anything would be lost by ending now.
    pub fn has_pairs(&self) -> bool {
        self.pairs.len() > 0
    }

    /// Lets go of whom and what has not been heard of for too long.
    pub fn tick(&mut self, now: Instant) {
        let since = |then: Instant| now.saturating_duration_since(then);
        let gone = |client: &Client| client.gone.is_some_and(|gone| since(gone) >= GRACE);
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
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}
