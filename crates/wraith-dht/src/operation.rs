//! One get or put: a socket, a lookup, and the clock. The operation runs within the caller's
//! future; dropping the future ends it.

use std::collections::HashMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UdpSocket, lookup_host};
use tokio::select;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, trace};
use wraith_discovery::{PlaceError, RecordKey, StoredRecord};

use crate::id::Id;
use crate::krpc::{Answer, Query, Response, SignedRecord, TransactionId, decode};
use crate::lookup::{CLOSEST, Lookup, QueryKind};
use crate::shared::Shared;

/// Timeout of a query. Most nodes answer within 300 ms, and other nodes can replace a slow one.
const QUERY_TIMEOUT: Duration = Duration::from_millis(700);
/// Least timeout of a query, when all other nodes answer at once.
const SHORTEST_QUERY_TIMEOUT: Duration = Duration::from_millis(200);
/// Number of answers that reveal the network's speed. From then on, a node is late after three
/// times the slowest answer.
const ENOUGH_ANSWERS: usize = 4;
/// Silence after which the bootstrap nodes are asked as well.
const BOOTSTRAP_AFTER: Duration = Duration::from_millis(700);
/// Silence after which the network is considered unreachable.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(4);
/// Longest time of a lookup. After that, the lookup ends with the results so far. Real lookups take
/// two or three seconds.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(8);
/// Time after which an unconfirmed put is sent once more.
const PUT_REPEAT: Duration = Duration::from_millis(500);
/// Time after which the confirmations so far decide.
const PUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of storing nodes that suffices. It is unlikely that all of them leave within the hour.
const ENOUGH_STORED: usize = 4;
/// Number of nodes that a query of known nodes asks. A record lies at [`CLOSEST`] nodes, and two lookups differ
/// in a few of them.
const KNOWN_NODES_QUERIED: usize = 4;
/// Time limit for resolving one bootstrap host.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Most bootstrap nodes and most remembered nodes to ask.
const MAX_BOOTSTRAP_NODES: usize = 16;
/// Receive buffer, larger than any answer. A longer datagram is truncated and fails to parse.
const MAX_DATAGRAM: usize = 2048;

/// One operation in progress; the permit limits their number.
pub struct Operation {
    shared: Arc<Shared>,
    socket: UdpSocket,
    /// The node ID that this operation presents.
    own: Id,
    target: Id,
    lookup: Lookup,
    pending: HashMap<TransactionId, PendingQuery>,
    started: Instant,
    has_answer: bool,
    /// Number of answers, and the time of the slowest.
    answers: (usize, Duration),
    bootstrap: BootstrapState,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct PendingQuery {
    at: SocketAddrV4,
    kind: QueryKind,
    since: Instant,
    is_late: bool,
}

/// Progress of the bootstrap.
#[derive(Debug)]
enum BootstrapState {
    NotStarted,
    Resolving(JoinSet<Vec<SocketAddrV4>>),
    Done,
}

/// Progress of an operation.
#[derive(Debug)]
pub enum Event {
    /// A node answered without a verified record.
    Answer,
    /// A node answered with a record that verifies.
    Record(StoredRecord),
    /// The lookup is over.
    Done,
}

impl Operation {
    /// Starts a lookup of `target`.
    ///
    /// # Errors
    /// No socket or no randomness is available.
    pub async fn start_lookup(shared: Arc<Shared>, target: Id) -> Result<Self, PlaceError> {
        let mut lookup = Lookup::new(target);
        for (id, address) in shared.nodes().closest(&target, CLOSEST) {
            lookup.add_seed(id, address);
        }
        if !shared.nodes().has_any() {
            let remembered = shared.config.remembered.iter().take(MAX_BOOTSTRAP_NODES);
            remembered.for_each(|address| lookup.add_bootstrap_node(*address));
        }
        Self::with_lookup(shared, target, lookup, BootstrapState::NotStarted).await
    }

    /// Asks only the closest known nodes. Starts a full lookup if fewer than
    /// [`KNOWN_NODES_QUERIED`] are known.
    ///
    /// # Errors
    /// Same as [`Self::start_lookup`].
    pub async fn start_at_known_nodes(shared: Arc<Shared>, target: Id) -> Result<Self, PlaceError> {
        let closest = shared.nodes().closest(&target, KNOWN_NODES_QUERIED);
        if closest.len() < KNOWN_NODES_QUERIED {
            return Self::start_lookup(shared, target).await;
        }
        let mut lookup = Lookup::of_seeds_only(target);
        closest.into_iter().for_each(|(id, address)| lookup.add_seed(id, address));
        Self::with_lookup(shared, target, lookup, BootstrapState::Done).await
    }

    async fn with_lookup(
        shared: Arc<Shared>,
        target: Id,
        lookup: Lookup,
        bootstrap: BootstrapState,
    ) -> Result<Self, PlaceError> {
        let permit = Arc::clone(&shared.permits).acquire_owned().await;
        let permit = permit.map_err(|_| PlaceError::Unreachable("it was closed".into()))?;
        let socket = UdpSocket::bind((shared.config.bind, 0)).await;
        let socket = socket.map_err(|why| PlaceError::Unreachable(format!("no socket: {why}")))?;
        let mut own = [0; 20];
        getrandom::fill(&mut own).map_err(no_randomness)?;
        Ok(Self {
            shared,
            socket,
            own,
            target,
            lookup,
            pending: HashMap::new(),
            started: Instant::now(),
            has_answer: false,
            answers: (0, Duration::ZERO),
            bootstrap,
            _permit: permit,
        })
    }

    /// Runs until the next event. Records are verified under `key`. Cancel-safe.
    ///
    /// # Errors
    /// No node answers.
    pub async fn next_event(&mut self, key: Option<&RecordKey>) -> Result<Event, PlaceError> {
        let mut buffer = [0; MAX_DATAGRAM];
        loop {
            self.start_bootstrap();
            while let Some((to, kind)) = self.lookup.next() {
                self.send_query(to, kind).await?;
            }
            let now = Instant::now();
            let is_resolving = matches!(self.bootstrap, BootstrapState::Resolving(_));
            if self.has_answer && (self.lookup.is_done() || now >= self.started + LOOKUP_TIMEOUT) {
                return Ok(Event::Done);
            }
            // Silence is not final before the bootstrap nodes were asked, and a slow node may still
            // answer.
            let is_hopeless = self.pending.is_empty()
                && !is_resolving
                && !matches!(self.bootstrap, BootstrapState::NotStarted);
            if !self.has_answer && (is_hopeless || now >= self.started + SILENCE_TIMEOUT) {
                return Err(PlaceError::Unreachable("no DHT node answers".into()));
            }
            let wake = self.next_timer(now);
            let resolved = async {
                match &mut self.bootstrap {
                    BootstrapState::Resolving(tasks) => tasks.join_next().await,
                    _ => std::future::pending().await,
                }
            };
            select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let Ok((len, SocketAddr::V4(from))) = received else { continue };
                    if let Some(event) = self.on_datagram(&buffer[..len], from, key) {
                        return Ok(event);
                    }
                }
                addresses = resolved => match addresses {
                    Some(addresses) => {
                        let addresses = addresses.unwrap_or_default();
                        addresses.into_iter().for_each(|it| self.lookup.add_bootstrap_node(it));
                    }
                    None => self.bootstrap = BootstrapState::Done,
                },
                () = sleep_until(wake) => self.mark_late_queries(),
            }
        }
    }

    /// Stores `item` at the closest nodes that the lookup found.
    ///
    /// # Errors
    /// Too few nodes confirm.
    pub async fn store(&mut self, item: &SignedRecord) -> Result<(), PlaceError> {
        let closest: Vec<_> =
            self.lookup.closest().map(|(to, token)| (to, token.to_vec())).collect();
        let enough = closest.len().clamp(1, ENOUGH_STORED);
        let started = Instant::now();
        let (mut asked, mut stored, mut refused) = (HashMap::new(), 0, 0);
        let mut repeat = Some(started + PUT_REPEAT);
        self.put_to_all(&closest, item, &mut asked).await?;
        let mut buffer = [0; MAX_DATAGRAM];
        while stored + refused < closest.len() {
            let deadline = repeat.unwrap_or(started + PUT_TIMEOUT);
            select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let Ok((len, SocketAddr::V4(from))) = received else { continue };
                    self.shared.traffic.record_received(len);
                    let Some((transaction, answer)) = decode(&buffer[..len]) else { continue };
                    if asked.get(&transaction) == Some(&from) {
                        asked.retain(|_, at| *at != from);
                        match answer {
                            Answer::Response(_) => stored += 1,
                            Answer::Error(code) => {
                                trace!(code, "put refused");
                                refused += 1;
                            }
                        }
                    }
                }
                () = sleep_until(deadline) => match repeat.take() {
                    // A node that is still slow has the record already, or lost the query.
                    Some(_) if stored >= enough => break,
                    Some(_) => {
                        let silent: Vec<_> = closest
                            .iter()
                            .filter(|(to, _)| asked.values().any(|at| at == to))
                            .cloned()
                            .collect();
                        self.put_to_all(&silent, item, &mut asked).await?;
                    }
                    None => break,
                },
            }
        }
        debug!(stored, refused, of = closest.len(), "a record was put");
        if stored >= enough {
            return Ok(());
        }
        Err(PlaceError::Unreachable(format!(
            "{stored} of {} DHT nodes stored the record",
            closest.len()
        )))
    }

    async fn put_to_all(
        &self,
        nodes: &[(SocketAddrV4, Vec<u8>)],
        item: &SignedRecord,
        asked: &mut HashMap<TransactionId, SocketAddrV4>,
    ) -> Result<(), PlaceError> {
        for (to, token) in nodes {
            let transaction = random_transaction()?;
            let query = Query::Put { target: &self.target, token, item };
            self.send(*to, &query.encode(&self.own, transaction)).await;
            asked.insert(transaction, *to);
        }
        Ok(())
    }

    async fn send_query(&mut self, to: SocketAddrV4, kind: QueryKind) -> Result<(), PlaceError> {
        let transaction = random_transaction()?;
        let query = match kind {
            QueryKind::FindNode => Query::FindNode(&self.target),
            QueryKind::Get => Query::Get(&self.target),
        };
        let datagram = query.encode(&self.own, transaction);
        let pending = PendingQuery { at: to, kind, since: Instant::now(), is_late: false };
        self.pending.insert(transaction, pending);
        if !self.send(to, &datagram).await {
            self.pending.remove(&transaction);
            self.lookup.on_failure(to, kind);
        }
        Ok(())
    }

    async fn send(&self, to: SocketAddrV4, datagram: &[u8]) -> bool {
        self.shared.traffic.record_sent(datagram.len());
        let sent = self.socket.send_to(datagram, to).await;
        if let Err(why) = &sent {
            trace!(%why, "query not sent");
        }
        sent.is_ok()
    }

    /// Handles a datagram. Answers from other addresses or with unknown transaction IDs are
    /// dropped.
    fn on_datagram(
        &mut self,
        datagram: &[u8],
        from: SocketAddrV4,
        key: Option<&RecordKey>,
    ) -> Option<Event> {
        self.shared.traffic.record_received(datagram.len());
        let (transaction, answer) = decode(datagram)?;
        let asked = self.pending.get(&transaction).filter(|asked| asked.at == from)?;
        let (kind, (count, slowest)) = (asked.kind, self.answers);
        self.answers = (count + 1, slowest.max(asked.since.elapsed()));
        self.pending.remove(&transaction);
        let Answer::Response(response) = answer else {
            self.lookup.on_failure(from, kind);
            return None;
        };
        self.has_answer = true;
        let Response { id, token, nodes, record } = *response;
        self.lookup.on_answer(from, kind, id, token, &nodes);
        self.shared.nodes().record_answer(id, from);
        match (record, key) {
            (Some(record), Some(key)) => record.verify(key).map(Event::Record),
            _ => Some(Event::Answer),
        }
    }

    /// Returns the present timeout of a query.
    fn query_timeout(&self) -> Duration {
        match self.answers {
            (ENOUGH_ANSWERS.., slowest) => {
                (3 * slowest).clamp(SHORTEST_QUERY_TIMEOUT, QUERY_TIMEOUT)
            }
            _ => QUERY_TIMEOUT,
        }
    }

    fn mark_late_queries(&mut self) {
        let (now, query_timeout) = (Instant::now(), self.query_timeout());
        for pending in self.pending.values_mut().filter(|it| !it.is_late) {
            if now >= pending.since + query_timeout {
                pending.is_late = true;
                self.lookup.on_timeout(pending.at, pending.kind);
                self.shared.nodes().remove(pending.at);
            }
        }
    }

    fn next_timer(&self, now: Instant) -> Instant {
        let pending = self.pending.values().filter(|it| !it.is_late);
        let mut wake =
            self.started + if self.has_answer { LOOKUP_TIMEOUT } else { SILENCE_TIMEOUT };
        if matches!(self.bootstrap, BootstrapState::NotStarted) && !self.has_answer {
            wake = wake.min(self.started + BOOTSTRAP_AFTER);
        }
        let query_timeout = self.query_timeout();
        pending.map(|it| it.since + query_timeout).fold(wake, Instant::min).max(now)
    }

    /// Asks the bootstrap nodes if no other node is known or answers.
    fn start_bootstrap(&mut self) {
        let is_time = self.lookup.is_done() || Instant::now() >= self.started + BOOTSTRAP_AFTER;
        if !matches!(self.bootstrap, BootstrapState::NotStarted) || self.has_answer || !is_time {
            return;
        }
        let mut tasks = JoinSet::new();
        for host in self.shared.config.bootstrap.iter().take(MAX_BOOTSTRAP_NODES).cloned() {
            tasks.spawn(resolve(host));
        }
        self.bootstrap = BootstrapState::Resolving(tasks);
    }
}

/// Resolves a bootstrap host to its first addresses. Returns no address on failure or timeout.
pub async fn resolve(host: String) -> Vec<SocketAddrV4> {
    match timeout(RESOLVE_TIMEOUT, lookup_host(host)).await {
        Ok(Ok(addresses)) => addresses.filter_map(ipv4).take(4).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn ipv4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}

fn random_transaction() -> Result<TransactionId, PlaceError> {
    let mut transaction = [0; 4];
    getrandom::fill(&mut transaction).map_err(no_randomness)?;
    Ok(transaction)
}

pub fn no_randomness(_: getrandom::Error) -> PlaceError {
    PlaceError::Unusable("the system has no randomness".into())
}
