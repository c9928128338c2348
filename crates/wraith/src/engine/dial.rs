//! Finds a peer and dials it in parallel at all known addresses, and at all addresses that the
//! search finds meanwhile. The first connection that proves the peer's key wins.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use wraith_crypto::NodeId;
use wraith_discovery::contact::{
    CallOptions, ContactPair, ContactSearch, PUNCH_SECRET_LEN, PunchRequest, PunchSecret,
    SearchEvent, search_with_call,
};
use wraith_discovery::record::{TicketSearch, find_ticket};
use wraith_discovery::{
    Backoff, Capability, PlaceError, PlaceName, Places, Reach, RelayAddr, TimeLimit,
};
use wraith_relay::RelayError;
use wraith_transport::{CloseReason, ConnectError, Connection, Role, is_target};

use super::access_keys::AccessKeys;
use super::retry::{RETRY_PAUSE, reached};
use crate::error::plain;
use crate::event::FoundAt;
use crate::paths::{SocketPaths, is_final};
use crate::state::ContactAddress;

/// Maximum number of address lists accepted from meeting places, so that a peer with ever-changing
/// addresses cannot create tasks without end.
const LISTS_MAX: usize = 8;
/// Maximum number of addresses per list; as many as a ticket holds.
const ADDRESSES_MAX: usize = wraith_discovery::MAX_ADDRESSES;

/// How long this side waits for its observed addresses before it stores its record for the peer.
/// Without them, the record is useless if this side is behind a NAT.
const OBSERVE_WAIT: Duration = Duration::from_millis(700);
/// Head start of direct paths: a direct path that is later than a relayed one by less than this
/// still wins.
const HEAD_START: Duration = Duration::from_millis(300);
/// Maximum number of relays that a peer can make this machine contact.
const RELAYS_MAX: usize = 4;
/// Pauses between attempts through a relay. They grow while the relay itself cannot be reached. The
/// relay limits the number of attempts.
const RELAY_BACKOFF: Backoff =
    Backoff::new(Duration::from_secs(2), Duration::from_secs(30)).with_jitter();

/// The known facts about where a peer may be.
#[derive(Debug)]
pub(crate) struct Dialler {
    /// The local socket and its paths.
    pub paths: SocketPaths,
    pub peer: NodeId,
    pub access_keys: AccessKeys,
    /// Addresses that are dialled as they are.
    pub addresses: Vec<SocketAddr>,
    /// Relays at which the peer waits.
    pub relays: Vec<RelayAddr>,
    /// The call that the peer stored in the DHT: its request to be dialled while it dials too. Set
    /// if both sides may have to dial.
    pub stored_call: Option<PunchRequest>,
    /// The capability of a ticket: its sender may have published its current addresses under it.
    pub capability: Option<Capability>,
    /// Configured names and addresses with their default ports, resolved anew for each attempt.
    pub names: Vec<(ContactAddress, u16)>,
    /// The pair under which the peer is searched at meeting places; `None` disables the search.
    pub pair: Option<ContactPair>,
    pub places: Places,
    /// The search starts if the peer has not answered at the known addresses for this long.
    pub search_after: Duration,
}

/// A peer that was reached.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub connection: Connection,
    pub at: FoundAt,
}

/// Why a peer was not reached.
#[derive(Debug)]
pub(crate) struct NotFound {
    /// Each attempt and its result.
    pub tried: BTreeMap<String, String>,
    /// The error of the last connection attempt.
    pub error: ConnectError,
}

/// Message of a dialling task.
enum DialEvent {
    /// An attempt failed: its target and the reason.
    Failed(String, String),
    /// No address answered.
    NoAnswer(ConnectError),
}

impl Dialler {
    /// Dials until a peer proves the key, or until the limit.
    pub async fn dial(&mut self, limit: Option<&mut TimeLimit>) -> Result<Dialled, NotFound> {
        let (event_tx, mut events) = mpsc::unbounded_channel();
        let mut race = DialRace::new(self, event_tx);
        let mut tried = self.dial_known(&mut race);
        let mut error = ConnectError::Closed(CloseReason::HandshakeTimeout);
        let begin = Instant::now() + self.search_after;
        let mut seen = None;
        let mut searching: Option<PeerSearch> = None;
        let mut may_search = self.can_search();
        let mut changes = self.paths.changes();
        if race.attempts.is_empty() && !may_search {
            return Err(NotFound { tried, error: ConnectError::NoAddress });
        }
        let work = async {
            loop {
                tokio::select! {
                    dialled = first_success(&mut race.attempts) => return dialled,
                    Some(event) = events.recv() => match event {
                        DialEvent::Failed(what, why) => drop(tried.insert(what, why)),
                        DialEvent::NoAnswer(missed) => error = missed,
                    },
                    () = sleep_until(begin), if searching.is_none() && may_search => {
                        seen = Some(Box::pin(timeout(OBSERVE_WAIT, race.observe())));
                        searching = Some(self.search());
                    }
                    _ = wait_for(&mut seen), if seen.is_some() => {
                        seen = None;
                        searching.iter_mut().for_each(PeerSearch::publish_call);
                    }
                    Ok(()) = changes.changed(), if searching.is_some() => {
                        searching.iter().for_each(PeerSearch::addresses_changed);
                    }
                    found = next(&mut searching), if searching.is_some() => match found {
                        Some(SearchEvent::Found(place, reach, secret)) => {
                            let what = place.to_string();
                            tried.insert(what, "it was there, and then not reached".into());
                            race.dial_found(place, reach, secret);
                        }
                        Some(SearchEvent::PlaceFailed(place, why)) => {
                            tried.insert(place.to_string(), why.to_string());
                        }
                        // No place is still searching; the known addresses remain.
                        None => (searching, may_search) = (None, false),
                    },
                }
            }
        };
        let dialled = tokio::select! {
            biased;
            dialled = work => Some(dialled),
            () = reached(limit) => None,
        };
        // Withdraws the stored records: in the background, or before the program may end.
        match (searching, &dialled) {
            (Some(searching), Some(_)) => drop(tokio::spawn(searching.close())),
            (Some(searching), None) => searching.close().await,
            (None, _) => {}
        }
        // Dropping the race cancels its other attempts.
        dialled.ok_or(NotFound { tried, error })
    }

    fn can_search(&self) -> bool {
        let is_anywhere = !self.places.all().is_empty() || !self.places.stores.is_empty();
        (self.pair.is_some() && is_anywhere)
            || (self.capability.is_some() && !self.places.stores.is_empty())
    }

    /// Starts a search at all places where the peer may have stored a record, and stores our own.
    fn search(&self) -> PeerSearch {
        let mut punch_secret = [0; PUNCH_SECRET_LEN];
        let calling = getrandom::fill(&mut punch_secret)
            .is_ok()
            .then(|| CallOptions { reach: self.paths.make_reach(), punch_secret });
        let by_pair = self.pair.as_ref().map(|pair| search_with_call(pair, &self.places, calling));
        let by_ticket = self
            .capability
            .as_ref()
            .map(|capability| find_ticket(&self.places.stores, self.peer, capability));
        PeerSearch { by_pair, by_ticket }
    }

    /// Dials the known targets. Returns all of them, each with "no answer" as its preliminary
    /// result.
    fn dial_known(&self, race: &mut DialRace) -> BTreeMap<String, String> {
        let mut tried = BTreeMap::new();
        let at = FoundAt::Address;
        if race.paths.allows_direct() {
            for address in &self.addresses {
                tried.insert(address.to_string(), "no answer".to_owned());
            }
            race.dial(at.clone(), self.addresses.clone());
            for (name, port) in &self.names {
                tried.insert(name.to_string(), "no answer".to_owned());
                race.dial_name(name.clone(), *port);
            }
            if let Some(call) = &self.stored_call {
                let begins_later = false;
                let addresses = call.reach.addresses.clone();
                race.punch(at.clone(), addresses, call.punch_secret, begins_later);
            }
        }
        let calls = self.stored_call.iter().flat_map(|call| &call.reach.relays);
        for relay in self.relays.iter().chain(calls) {
            if race.dial_relay(at.clone(), relay) {
                tried.insert(format!("relay {relay}"), "no answer".to_owned());
            }
        }
        if self.pair.is_some() {
            for place in self.places.names().into_iter().chain(self.places.store_names()) {
                let why = if place == PlaceName::Lan { "no answer" } else { "no peer waits there" };
                tried.insert(place.to_string(), why.to_owned());
            }
        }
        tried
    }
}

/// The running searches for a peer.
struct PeerSearch {
    by_pair: Option<ContactSearch>,
    by_ticket: Option<TicketSearch>,
}

impl PeerSearch {
    /// Returns the next result; `None` when all searches are over.
    async fn next(&mut self) -> Option<SearchEvent> {
        loop {
            let Self { by_pair, by_ticket } = self;
            tokio::select! {
                found = next_of(by_pair), if by_pair.is_some() => match found {
                    Some(found) => return Some(found),
                    None => self.by_pair = None,
                },
                found = next_of_ticket(by_ticket), if by_ticket.is_some() => match found {
                    Some((place, Ok(reach))) => return Some(SearchEvent::Found(place, reach, None)),
                    Some((place, Err(why))) => return Some(SearchEvent::PlaceFailed(place, why)),
                    None => self.by_ticket = None,
                },
                else => return None,
            }
        }
    }

    /// Stores a call for the peer: a record with our addresses, which asks the peer to dial us.
    fn publish_call(&mut self) {
        self.by_pair.iter_mut().for_each(ContactSearch::publish_call);
    }

    /// Updates our stored records.
    fn addresses_changed(&self) {
        self.by_pair.iter().for_each(ContactSearch::addresses_changed);
    }

    async fn close(self) {
        if let Some(search) = self.by_pair {
            search.close().await;
        }
    }
}

async fn next_of(search: &mut Option<ContactSearch>) -> Option<SearchEvent> {
    search.as_mut()?.next().await
}

async fn next_of_ticket(
    search: &mut Option<TicketSearch>,
) -> Option<(PlaceName, Result<Reach, PlaceError>)> {
    search.as_mut()?.next().await
}

async fn wait_for<T>(future: &mut Option<impl Future<Output = T> + Unpin>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn next(searching: &mut Option<PeerSearch>) -> Option<SearchEvent> {
    searching.as_mut()?.next().await
}

/// Returns the result of the first attempt that yields one; waits for ever if none does.
/// Cancel-safe.
async fn first_success<T: 'static>(attempts: &mut JoinSet<Option<T>>) -> T {
    loop {
        match attempts.join_next().await {
            Some(Ok(Some(brought))) => return brought,
            // An attempt without a result.
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

/// All parallel attempts to reach one peer. The first that proves the peer's key wins.
struct DialRace {
    paths: SocketPaths,
    peer: NodeId,
    access_keys: AccessKeys,
    event_tx: UnboundedSender<DialEvent>,
    attempts: JoinSet<Option<Dialled>>,
    /// Address lists from meeting places, and the tasks that dial them.
    lists: Vec<(Vec<SocketAddr>, Option<AbortHandle>)>,
    relays: Vec<RelayAddr>,
    /// Punch secrets, each with the channel for further addresses of the peer.
    punches: Vec<(PunchSecret, UnboundedSender<Vec<SocketAddr>>)>,
    /// Places that store records. A peer found there starts punching only when it finds our record.
    stores: Vec<PlaceName>,
}

impl DialRace {
    fn new(of: &Dialler, event_tx: UnboundedSender<DialEvent>) -> Self {
        Self {
            paths: of.paths.clone(),
            peer: of.peer,
            access_keys: of.access_keys.clone(),
            event_tx,
            attempts: JoinSet::new(),
            lists: Vec::new(),
            relays: Vec::new(),
            punches: Vec::new(),
            stores: of.places.store_names(),
        }
    }

    /// Determines our observed addresses, for the stored record. The returned receiver signals
    /// completion; the task continues even if the receiver is dropped.
    fn observe(&mut self) -> oneshot::Receiver<()> {
        let (done_tx, seen) = oneshot::channel();
        let paths = self.paths.clone();
        self.attempts.spawn(async move {
            paths.observe().await;
            let _ = done_tx.send(());
            None
        });
        seen
    }

    /// Tries all targets of a found peer.
    fn dial_found(&mut self, place: PlaceName, mut reach: Reach, secret: Option<PunchSecret>) {
        let begins_later = self.stores.contains(&place);
        let at = FoundAt::Place(place);
        reach.addresses.truncate(ADDRESSES_MAX);
        if self.paths.allows_direct() {
            if let Some(PunchSecret(secret)) = secret {
                self.punch(at.clone(), reach.addresses.clone(), secret, begins_later);
            }
            self.dial_list(at.clone(), reach.addresses);
        }
        for relay in &reach.relays {
            self.dial_relay(at.clone(), relay);
        }
    }

    /// Dials a list from a meeting place, unless it is already being dialled. Evicts the oldest
    /// list: the latest one of a moving peer is the right one.
    fn dial_list(&mut self, at: FoundAt, list: Vec<SocketAddr>) {
        if self.lists.iter().any(|(known, _)| *known == list) {
            return;
        }
        if self.lists.len() == LISTS_MAX {
            let (_, oldest) = self.lists.remove(0);
            oldest.iter().for_each(AbortHandle::abort);
        }
        let dialling = self.dial(at, list.clone());
        self.lists.push((list, dialling));
    }

    /// Dials these addresses repeatedly.
    fn dial(&mut self, at: FoundAt, mut addresses: Vec<SocketAddr>) -> Option<AbortHandle> {
        // Multicast and similar addresses are never dialled, from any source.
        addresses.retain(|address| is_target(*address));
        if addresses.is_empty() {
            return None;
        }
        let (endpoint, peer, event_tx) =
            (self.paths.endpoint().clone(), self.peer, self.event_tx.clone());
        let access_keys = self.access_keys.clone();
        Some(self.attempts.spawn(async move {
            loop {
                match access_keys.connect(&endpoint, &addresses, peer).await {
                    Ok(connection) => return Some(Dialled { connection, at }),
                    Err(error) => drop(event_tx.send(DialEvent::NoAnswer(error))),
                }
                sleep(RETRY_PAUSE).await;
            }
        }))
    }

    /// Dials the addresses of a name and resolves it again for each attempt, because they may
    /// change.
    fn dial_name(&mut self, name: ContactAddress, port: u16) {
        let (endpoint, peer, event_tx) =
            (self.paths.endpoint().clone(), self.peer, self.event_tx.clone());
        let access_keys = self.access_keys.clone();
        self.attempts.spawn(async move {
            loop {
                match resolve(&name, port).await {
                    Ok(addresses) => match access_keys.connect(&endpoint, &addresses, peer).await {
                        Ok(connection) => {
                            return Some(Dialled { connection, at: FoundAt::Address });
                        }
                        Err(error) => drop(event_tx.send(DialEvent::NoAnswer(error))),
                    },
                    Err(error) => {
                        drop(event_tx.send(DialEvent::Failed(name.to_string(), plain(&error))))
                    }
                }
                sleep(RETRY_PAUSE).await;
            }
        });
    }

    /// Opens our NAT while the peer opens its own, at the same time or later. Then dials the
    /// address at which the peer answers. Runs once per secret.
    fn punch(
        &mut self,
        at: FoundAt,
        addresses: Vec<SocketAddr>,
        secret: [u8; PUNCH_SECRET_LEN],
        begins_later: bool,
    ) {
        // Remove finished attempts.
        self.punches.retain(|(_, more)| !more.is_closed());
        let begun = self.punches.iter().find(|(begun, _)| *begun == PunchSecret(secret));
        if let Some((_, more)) = begun {
            // The attempt may be over.
            let _ = more.send(addresses);
            return;
        }
        if self.punches.len() >= LISTS_MAX {
            return;
        }
        let (add, mut more) = mpsc::unbounded_channel();
        self.punches.push((PunchSecret(secret), add));
        let (paths, peer, event_tx) = (self.paths.clone(), self.peer, self.event_tx.clone());
        let access_keys = self.access_keys.clone();
        self.attempts.spawn(async move {
            let best = match begins_later {
                true => loop {
                    let best = paths.wait_for_punch(secret, addresses.clone(), &mut more).await;
                    if let Some(best) = best {
                        break best;
                    }
                    sleep(RETRY_PAUSE).await;
                },
                false => paths.punch(secret, Role::Initiator, addresses).await?,
            };
            match access_keys.connect(paths.endpoint(), &[best], peer).await {
                Ok(connection) => return Some(Dialled { connection, at }),
                Err(error) => drop(event_tx.send(DialEvent::NoAnswer(error))),
            }
            None
        });
    }

    /// Dials through a relay, after a delay in favour of direct paths. Returns false if that was
    /// done before, or is not allowed.
    fn dial_relay(&mut self, at: FoundAt, relay: &RelayAddr) -> bool {
        let is_new = !self.relays.contains(relay) && self.relays.len() < RELAYS_MAX;
        if !is_new || !self.paths.allows_relays() {
            return false;
        }
        self.relays.push(relay.clone());
        let (paths, relay) = (self.paths.clone(), relay.clone());
        let (peer, event_tx, access_keys) =
            (self.peer, self.event_tx.clone(), self.access_keys.clone());
        let begin = Instant::now();
        let head_start = if paths.allows_direct() { HEAD_START } else { Duration::ZERO };
        self.attempts.spawn(async move {
            let mut backoff = RELAY_BACKOFF;
            loop {
                match paths.dial_relay(&relay).await {
                    Ok(addr) => {
                        backoff = RELAY_BACKOFF;
                        sleep_until(begin + head_start).await;
                        match access_keys.connect(paths.endpoint(), &[addr], peer).await {
                            Ok(connection) => return Some(Dialled { connection, at }),
                            Err(error) => drop(event_tx.send(DialEvent::NoAnswer(error))),
                        }
                    }
                    Err(why) => {
                        drop(
                            event_tx
                                .send(DialEvent::Failed(format!("relay {relay}"), why.to_string())),
                        );
                        if is_final(&why) {
                            return None;
                        }
                        if answers(&why) {
                            backoff = RELAY_BACKOFF;
                        }
                    }
                }
                backoff.wait().await;
            }
        });
        true
    }
}

/// Returns whether the relay answered. It is then asked at a steady pace, because the peer may come
/// back at any time.
fn answers(why: &RelayError) -> bool {
    !matches!(why, RelayError::Unreachable(_) | RelayError::Timeout | RelayError::Protocol)
}

/// Resolves a name; an IP address needs no lookup.
async fn resolve(name: &ContactAddress, port: u16) -> io::Result<Vec<SocketAddr>> {
    let (host, port) = name.host_and_port(port);
    if let Ok(ip) = host.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_relay_is_tried_ever_more_rarely_and_one_that_answers_steadily() {
        let mut backoff = RELAY_BACKOFF;
        let pauses: Vec<_> = (0..6).map(|_| backoff.failed(Instant::now())).collect();
        assert!(pauses[0] < Duration::from_secs(3) && pauses[..5].is_sorted(), "{pauses:?}");
        assert!(pauses[4..].iter().all(|pause| pause.as_secs() >= 30), "{pauses:?}");
        assert!(!answers(&RelayError::Timeout) && !answers(&RelayError::Protocol));
        assert!(answers(&RelayError::Refused(wraith_relay::Refusal::NoMailbox)));
    }

    #[tokio::test]
    async fn the_first_successful_attempt_wins_after_a_failed_one() {
        let mut attempts = JoinSet::new();
        attempts.spawn(async { None });
        attempts.spawn(async {
            sleep(Duration::from_millis(50)).await;
            Some(7)
        });
        // As if no other event occurred.
        let limit = Duration::from_secs(20);
        assert_eq!(timeout(limit, first_success(&mut attempts)).await, Ok(7));
        assert!(timeout(Duration::from_millis(1), first_success(&mut attempts)).await.is_err());
    }
}
