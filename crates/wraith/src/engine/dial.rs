//! Finds a peer and dials it: at all addresses that are known and at all that are found meanwhile, at once. The first that
//! proves the peer's key wins.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use wraith_crypto::NodeId;
use wraith_discovery::contact::{ContactSearch, Found, Pair, search};
use wraith_discovery::{Place, Places};
use wraith_transport::{CloseReason, ConnectError, Connection, Endpoint};

use super::retry::RETRY_PAUSE;
use crate::error::plain;
use crate::event::FoundAt;
use crate::state::Address;

/// Lists of addresses that places may tell: a peer that changes its mind does not make tasks without end.
const LISTS_MAX: usize = 8;
/// Addresses that are believed at once; as many as a ticket holds.
const ADDRESSES_MAX: usize = wraith_discovery::MAX_ADDRESSES;

/// What is known of where a peer may be.
#[derive(Debug)]
pub(crate) struct Dialler {
    pub endpoint: Endpoint,
    pub peer: NodeId,
    /// Dialled as they are.
    pub addresses: Vec<SocketAddr>,
    /// Names and addresses that somebody wrote down, resolved anew for each attempt, with the port where none is given.
    pub names: Vec<(Address, u16)>,
    /// Under what the peer is looked for at meeting places; `None`: nowhere.
    pub pair: Option<Pair>,
    pub places: Places,
    /// The peer is looked for when it has not answered at the known addresses for so long.
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
    /// What was tried, and what came of it.
    pub tried: BTreeMap<String, String>,
    /// How the last attempt to connect ended.
    pub error: ConnectError,
}

/// What a task that dials tells meanwhile.
enum News {
    /// A name could not be looked up.
    NotResolved(String, String),
    /// Nobody was reached.
    Missed(ConnectError),
}

impl Dialler {
    /// Dials until somebody with the peer's key answers, or the deadline.
    pub async fn dial(&mut self, deadline: Option<Instant>) -> Result<Dialled, NotFound> {
        let (tell, mut news) = mpsc::unbounded_channel();
        let mut attempts = JoinSet::new();
        let mut tried = self.dial_known(&mut attempts, &tell);
        let mut lists: Vec<Vec<SocketAddr>> = Vec::new();
        let mut error = ConnectError::Closed(CloseReason::HandshakeTimeout);
        let begin = Instant::now() + self.search_after;
        let mut searching: Option<ContactSearch> = None;
        let mut pair = self.pair.clone().filter(|_| !self.places.all().is_empty());
        if attempts.is_empty() && pair.is_none() {
            return Err(NotFound { tried, error: ConnectError::NoAddress });
        }
        let work = async {
            loop {
                tokio::select! {
                    Some(Ok(dialled)) = attempts.join_next() => return dialled,
                    Some(news) = news.recv() => match news {
                        News::NotResolved(name, why) => drop(tried.insert(name, why)),
                        News::Missed(missed) => error = missed,
                    },
                    () = sleep_until(begin), if searching.is_none() && pair.is_some() => {
                        searching = pair.as_ref().map(|pair| search(pair, &self.places));
                    }
                    found = next(&mut searching), if searching.is_some() => match found {
                        Some(Found::At(place, mut addresses)) => {
                            let what = place.to_string();
                            tried.insert(what, "it was there, and then not reached".into());
                            addresses.truncate(ADDRESSES_MAX);
                            if lists.len() < LISTS_MAX && !lists.contains(&addresses) {
                                lists.push(addresses.clone());
                                let at = FoundAt::Place(place);
                                let (endpoint, peer) = (self.endpoint.clone(), self.peer);
                                attempts.spawn(dial(endpoint, peer, at, addresses, tell.clone()));
                            }
                        }
                        Some(Found::Not(place, why)) => {
                            tried.insert(place.to_string(), why.to_string());
                        }
                        // No place goes on looking; the known addresses remain.
                        None => (searching, pair) = (None, None),
                    },
                }
            }
        };
        let dialled = match deadline {
            Some(deadline) => timeout_at(deadline, work).await.ok(),
            None => Some(work.await),
        };
        // Dropping the others gives their attempts up.
        dialled.ok_or(NotFound { tried, error })
    }

    /// Dials what is known. All that is tried, with nothing known against it yet.
    fn dial_known(
        &self,
        attempts: &mut JoinSet<Dialled>,
        tell: &mpsc::UnboundedSender<News>,
    ) -> BTreeMap<String, String> {
        let mut tried = BTreeMap::new();
        for address in &self.addresses {
            tried.insert(address.to_string(), "no answer".to_owned());
        }
        if !self.addresses.is_empty() {
            let (endpoint, addresses) = (self.endpoint.clone(), self.addresses.clone());
            let at = FoundAt::Address;
            attempts.spawn(dial(endpoint, self.peer, at, addresses, tell.clone()));
        }
        for (name, port) in &self.names {
            tried.insert(name.to_string(), "no answer".to_owned());
            let (endpoint, peer) = (self.endpoint.clone(), self.peer);
            attempts.spawn(dial_name(endpoint, peer, name.clone(), *port, tell.clone()));
        }
        if self.pair.is_some() {
            for place in self.places.names() {
                let why = if place == Place::Lan { "no answer" } else { "nobody waits there" };
                tried.insert(place.to_string(), why.to_owned());
            }
        }
        tried
    }
}

async fn next(searching: &mut Option<ContactSearch>) -> Option<Found> {
    searching.as_mut()?.next().await
}

/// Dials these addresses again and again.
async fn dial(
    endpoint: Endpoint,
    peer: NodeId,
    at: FoundAt,
    addresses: Vec<SocketAddr>,
    tell: mpsc::UnboundedSender<News>,
) -> Dialled {
    loop {
        match endpoint.connect(&addresses, peer).await {
            Ok(connection) => return Dialled { connection, at },
            Err(error) => drop(tell.send(News::Missed(error))),
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Dials what a name stands for, looking it up again each time: it may have moved.
async fn dial_name(
    endpoint: Endpoint,
    peer: NodeId,
    name: Address,
    port: u16,
    tell: mpsc::UnboundedSender<News>,
) -> Dialled {
    loop {
        match resolve(&name, port).await {
            Ok(addresses) => match endpoint.connect(&addresses, peer).await {
                Ok(connection) => return Dialled { connection, at: FoundAt::Address },
                Err(error) => drop(tell.send(News::Missed(error))),
            },
            Err(error) => {
                drop(tell.send(News::NotResolved(name.to_string(), plain(&error))));
            }
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// The addresses that a name stands for; one that is an address already is looked up nowhere.
async fn resolve(name: &Address, port: u16) -> io::Result<Vec<SocketAddr>> {
    let (host, port) = name.host_and_port(port);
    if let Ok(ip) = host.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}
