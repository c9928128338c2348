//! Finds a peer and dials it in parallel by all known ways, and by all ways that the search finds
//! meanwhile. The first connection that proves the peer's key wins.

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
    SearchEvent, SearchTarget, search_with_call, usual_port,
};
use wraith_discovery::{Backoff, Capability, PlaceName, Places, Reach, Ticket, TimeLimit, Way};
use wraith_transport::{Addr, CloseReason, ConnectError, Connection, Endpoint, Role, is_target};

use super::access_keys::AccessKeys;
use super::retry::reached;
use crate::carrier::ResolveError;
use crate::error::plain;
use crate::event::FoundAt;
use crate::paths::SocketPaths;
use crate::settings::RETRY_PAUSE;
use crate::state::{Contact, ContactAddress};

/// If the sender has not answered at its known addresses for this long, a search for new ones
/// starts.
const SEARCH_AFTER: Duration = Duration::from_secs(1);
/// Maximum number of address lists accepted from meeting places, so that a peer with ever-changing
/// addresses cannot create tasks without end.
const LISTS_MAX: usize = 8;
/// Maximum number of addresses per list; as many as a ticket holds.
const ADDRESSES_MAX: usize = wraith_discovery::MAX_ADDRESSES;

/// How long this side waits for its observed addresses before it stores its record for the peer.
/// Without them, the record is useless if this side is behind a NAT.
const OBSERVE_WAIT: Duration = Duration::from_millis(700);
/// Head start of direct paths: a direct path that is later than another one by less than this still
/// wins.
const HEAD_START: Duration = Duration::from_millis(300);
/// Pauses between attempts over a carrier without direct paths. They grow while the carrier itself
/// cannot be used. A relay limits the number of attempts.
const CARRIER_BACKOFF: Backoff =
    Backoff::new(Duration::from_secs(2), Duration::from_secs(30)).with_jitter();
/// Maximum number of ways of a carrier other than UDP that a peer can make this machine dial.
const WAYS_OF_KIND_MAX: usize = 4;

/// The known facts about where a peer may be.
#[derive(Debug)]
pub(crate) struct Dialler {
    /// The local socket and its paths.
    pub paths: SocketPaths,
    pub peer: NodeId,
    access_keys: AccessKeys,
    /// The known ways to the peer.
    pub reach: Reach,
    /// The call that the peer stored in the DHT: its request to be dialled while it dials too. Set
    /// if both sides may have to dial.
    pub stored_call: Option<PunchRequest>,
    /// The capability of a ticket: its sender may have published its current addresses under it.
    capability: Option<Capability>,
    /// Configured names and addresses with their default ports, resolved anew for each attempt.
    names: Vec<(ContactAddress, u16)>,
    /// The pair under which the peer is searched at meeting places; `None` disables the search.
    pair: Option<ContactPair>,
    pub places: Places,
    /// The search starts if the peer has not answered at the known addresses for this long.
    search_after: Duration,
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
    /// Dials the holder of a ticket's secret, at `places` as well if the ticket's ways do not lead
    /// to it soon. `pair` is what both sides of a transfer share.
    pub fn of_ticket(
        paths: SocketPaths,
        ticket: &Ticket,
        pair: Option<ContactPair>,
        places: Places,
    ) -> Self {
        Self {
            paths,
            peer: ticket.node_id(),
            access_keys: AccessKeys::of_ticket(ticket.capability(), ticket.node_id()),
            reach: ticket.reach().clone(),
            stored_call: None,
            capability: Some(ticket.capability().clone()),
            names: Vec::new(),
            pair,
            places,
            search_after: SEARCH_AFTER,
        }
    }

    /// Dials a contact where it was met, at the addresses of its user, and at `places`.
    pub fn of_contact(
        paths: SocketPaths,
        contact: &Contact,
        pair: ContactPair,
        access_keys: AccessKeys,
        mut places: Places,
    ) -> Self {
        let port = usual_port(contact.node_id);
        places.rendezvous = places.rendezvous.or_else(|| contact.rendezvous.clone());
        Self {
            paths,
            peer: contact.node_id,
            access_keys,
            reach: contact.seen_at.clone().into(),
            stored_call: None,
            capability: None,
            names: contact.addresses.iter().map(|name| (name.clone(), port)).collect(),
            pair: Some(pair),
            places,
            search_after: Duration::ZERO,
        }
    }

    /// Dials until a peer proves the key, or until the limit.
    pub async fn dial(&mut self, limit: Option<&mut TimeLimit>) -> Result<Dialled, NotFound> {
        let (event_tx, mut events) = mpsc::unbounded_channel();
        let mut race = DialRace::new(self, event_tx);
        let mut tried = self.dial_known(&mut race);
        let mut error = ConnectError::Closed(CloseReason::HandshakeTimeout);
        let begin = Instant::now() + self.search_after;
        let mut seen = None;
        let mut searching: Option<ContactSearch> = None;
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
                    _ = async { Some(seen.as_mut()?.await) }, if seen.is_some() => {
                        seen = None;
                        searching.iter_mut().for_each(ContactSearch::publish_call);
                    }
                    Ok(()) = changes.changed(), if searching.is_some() => {
                        searching.iter().for_each(ContactSearch::addresses_changed);
                    }
                    found = async { searching.as_mut()?.next().await }, if searching.is_some() => {
                        let (place, why) = match found {
                            Some(SearchEvent::Found(place, reach, secret)) => {
                                race.dial_found(place.clone(), &reach, secret);
                                (place, "it was there, and then not reached".to_owned())
                            }
                            Some(SearchEvent::PlaceFailed(place, why)) => (place, why.to_string()),
                            // No place is still searching; the known addresses remain.
                            None => {
                                (searching, may_search) = (None, false);
                                continue;
                            }
                        };
                        tried.insert(place.to_string(), why);
                    }
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
    fn search(&self) -> ContactSearch {
        let mut punch_secret = [0; PUNCH_SECRET_LEN];
        let calling = getrandom::fill(&mut punch_secret)
            .is_ok()
            .then(|| CallOptions { reach: self.paths.make_reach(), punch_secret });
        let ticket = self.capability.as_ref().map(|capability| (self.peer, capability));
        let target = SearchTarget { pair: self.pair.as_ref(), ticket };
        search_with_call(target, &self.places, calling)
    }

    /// Dials the known targets. Returns all of them, each with "no answer" as its preliminary
    /// result.
    fn dial_known(&self, race: &mut DialRace) -> BTreeMap<String, String> {
        let mut tried: BTreeMap<String, String> = BTreeMap::new();
        let at = FoundAt::Address;
        let mut no_answer = |what: String| drop(tried.insert(what, "no answer".to_owned()));
        if race.paths.allows_direct() {
            let addresses = self.reach.addresses();
            addresses.iter().for_each(|address| no_answer(address.to_string()));
            race.dial_addresses(at.clone(), addresses);
            for (name, port) in &self.names {
                no_answer(name.to_string());
                race.dial_name(name.clone(), *port);
            }
            if let Some(call) = &self.stored_call {
                race.punch(at.clone(), call.reach.addresses(), call.punch_secret, false);
            }
        }
        let call = self.stored_call.iter().flat_map(|call| call.reach.ways());
        for way in self.reach.ways().iter().chain(call) {
            if way.ip().is_none() && race.dial_way(at.clone(), way) {
                no_answer(way.to_string());
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
    /// The ways other than addresses that are being dialled.
    ways: Vec<Way>,
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
            ways: Vec::new(),
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

    /// Tries all ways to a found peer.
    fn dial_found(&mut self, place: PlaceName, reach: &Reach, secret: Option<PunchSecret>) {
        let begins_later = self.stores.contains(&place);
        let at = FoundAt::Place(place);
        if self.paths.allows_direct() {
            let mut addresses = reach.addresses();
            addresses.truncate(ADDRESSES_MAX);
            if let Some(PunchSecret(secret)) = secret {
                self.punch(at.clone(), addresses.clone(), secret, begins_later);
            }
            self.dial_list(at.clone(), addresses);
        }
        for way in reach.ways().iter().filter(|way| way.ip().is_none()) {
            self.dial_way(at.clone(), way);
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
        let dialling = self.dial_addresses(at, list.clone());
        self.lists.push((list, dialling));
    }

    /// Dials these addresses together. Multicast and similar ones are never dialled, from any
    /// source.
    fn dial_addresses(&mut self, at: FoundAt, addresses: Vec<SocketAddr>) -> Option<AbortHandle> {
        let hosts = addresses.into_iter().filter(|address| is_target(*address));
        self.dial_ways(at, hosts.map(Way::Ip).collect())
    }

    /// Dials a way of a carrier other than UDP. Returns false if that was done before, is not
    /// allowed, or needs a carrier that this node does not have.
    fn dial_way(&mut self, at: FoundAt, way: &Way) -> bool {
        let of_kind = self.ways.iter().filter(|known| known.kind() == way.kind()).count();
        if self.ways.contains(way) || of_kind >= WAYS_OF_KIND_MAX {
            return false;
        }
        let dialling = self.dial_ways(at, vec![way.clone()]);
        self.ways.extend(dialling.is_some().then(|| way.clone()));
        dialling.is_some()
    }

    /// Dials ways of one carrier together, after its delay in favour of direct paths.
    fn dial_ways(&mut self, at: FoundAt, mut ways: Vec<Way>) -> Option<AbortHandle> {
        let carrier = self.paths.carrier(ways.first()?.kind())?;
        let (retry, delay) = match carrier.is_direct() {
            true => (Backoff::new(RETRY_PAUSE, RETRY_PAUSE), Duration::ZERO),
            false if self.paths.allows_direct() => (CARRIER_BACKOFF, HEAD_START),
            false => (CARRIER_BACKOFF, Duration::ZERO),
        };
        let begin = Instant::now() + delay;
        let attempt = self.attempt(at);
        Some(self.attempts.spawn(async move {
            let mut backoff = retry;
            while !ways.is_empty() {
                let (mut to, mut lasting) = (Vec::new(), Vec::new());
                let mut is_usable = false;
                for way in ways {
                    let resolved = carrier.resolve(&way).await;
                    is_usable |= !matches!(resolved, Err(ResolveError::Unavailable(_)));
                    if let Err(why) = &resolved {
                        attempt.report(DialEvent::Failed(way.to_string(), why.to_string()));
                    }
                    if !matches!(resolved, Err(ResolveError::Final(_))) {
                        lasting.push(way);
                    }
                    to.extend(resolved);
                }
                ways = lasting;
                if !to.is_empty() {
                    sleep_until(begin).await;
                    if let Some(dialled) = attempt.connect(&to).await {
                        return Some(dialled);
                    }
                }
                if is_usable {
                    backoff = retry;
                }
                backoff.wait().await;
            }
            None
        }))
    }

    /// Dials the addresses of a name and resolves it again for each attempt, because they may
    /// change.
    fn dial_name(&mut self, name: ContactAddress, port: u16) {
        let attempt = self.attempt(FoundAt::Address);
        self.attempts.spawn(async move {
            loop {
                match resolve(&name, port).await {
                    Ok(addresses) => {
                        if let Some(dialled) = attempt.connect(&addresses).await {
                            return Some(dialled);
                        }
                    }
                    Err(error) => {
                        attempt.report(DialEvent::Failed(name.to_string(), plain(&error)));
                    }
                }
                sleep(RETRY_PAUSE).await;
            }
        });
    }

    /// Returns what a task of this race needs.
    fn attempt(&self, at: FoundAt) -> DialAttempt {
        let endpoint = self.paths.endpoint().clone();
        let (access_keys, event_tx) = (self.access_keys.clone(), self.event_tx.clone());
        DialAttempt { endpoint, peer: self.peer, access_keys, event_tx, at }
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
        let (paths, attempt) = (self.paths.clone(), self.attempt(at));
        self.attempts.spawn(async move {
            let best = match begins_later {
                true => loop {
                    let best = paths
                        .punch(secret, Role::Initiator, addresses.clone(), Some(&mut more))
                        .await;
                    if let Some(best) = best {
                        break best;
                    }
                    sleep(RETRY_PAUSE).await;
                },
                false => paths.punch(secret, Role::Initiator, addresses, None).await?,
            };
            attempt.connect(&[best]).await
        });
    }
}

/// What a task of a race needs to connect to the peer.
struct DialAttempt {
    endpoint: Endpoint,
    peer: NodeId,
    access_keys: AccessKeys,
    event_tx: UnboundedSender<DialEvent>,
    at: FoundAt,
}

impl DialAttempt {
    /// Connects to one of these addresses; reports the failure.
    async fn connect<A: Clone + Into<Addr>>(&self, addresses: &[A]) -> Option<Dialled> {
        match self.access_keys.connect(&self.endpoint, addresses, self.peer).await {
            Ok(connection) => Some(Dialled { connection, at: self.at.clone() }),
            Err(error) => {
                self.report(DialEvent::NoAnswer(error));
                None
            }
        }
    }

    fn report(&self, event: DialEvent) {
        // Without a receiver, this task is about to end.
        let _ = self.event_tx.send(event);
    }
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
    fn an_unusable_carrier_is_tried_ever_more_rarely() {
        let mut backoff = CARRIER_BACKOFF;
        let pauses: Vec<_> = (0..6).map(|_| backoff.failed(Instant::now())).collect();
        assert!(pauses[0] < Duration::from_secs(3) && pauses[..5].is_sorted(), "{pauses:?}");
        assert!(pauses[4..].iter().all(|pause| pause.as_secs() >= 30), "{pauses:?}");
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
