//! Finds a contact and dials it: at all addresses that are known and at all that are found meanwhile, at once. The first that
//! proves the contact's key wins.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wraith::state::{Address, Contact};
use wraith_discovery::contact::{Found, Pair, call, usual_port};
use wraith_discovery::{Lan, Place, Places};
use wraith_transport::{Connection, Endpoint, block_on_timeout};

use crate::code;
use crate::failure::{Exit, Failure, plain};
use crate::interrupt::Interrupt;

/// How often a dialler looks whether another was first.
const GLANCE: Duration = Duration::from_millis(50);
/// Between two attempts at an address that cannot be reached at all, or a name that is not known.
const RETRY: Duration = Duration::from_millis(700);
/// Lists of addresses that places may tell: a contact that changes its mind does not make threads without end.
const MAX_LISTS: usize = 8;

/// How the contact was found.
#[derive(Clone, Debug)]
pub struct Reached {
    /// None if at an address that was known.
    pub at: Option<Place>,
    pub address: SocketAddr,
}

impl Reached {
    /// For scripts.
    pub fn place(&self) -> String {
        self.at.as_ref().map_or_else(|| "address".to_owned(), code::name)
    }
}

/// What is needed to find somebody.
pub struct Reaching<'a> {
    pub contact: &'a Contact,
    pub pair: &'a Pair,
    pub places: &'a Places,
    pub endpoint: &'a Endpoint,
    pub interrupt: &'a Interrupt,
}

enum News {
    Place(Found),
    /// A name could not be looked up, or an address not be reached.
    Missed(String, String),
    Dialled(Option<Place>, Connection),
    Stop,
}

/// Shared by the threads that dial; over when this is dropped at the end of the search.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Reaching<'_> {
    /// Looks until the deadline.
    pub fn run(&self, deadline: Instant) -> Result<(Reached, Connection), Failure> {
        let (tell, news) = mpsc::channel();
        let over = Over(Arc::default());
        let dialler = Dialler {
            endpoint: self.endpoint.clone(),
            contact: self.contact.clone(),
            over: Arc::clone(&over.0),
            tell: tell.clone(),
        };
        let stop = tell.clone();
        self.interrupt.on_signal(move || drop(stop.send(News::Stop)));
        let _call = call(self.pair, self.places, move |found| drop(tell.send(News::Place(found))))
            .map_err(|error| {
                Failure::new(Exit::Other, format!("cannot look for anybody: {}", plain(&error)))
            })?;
        let mut tried = self.dial_known(&dialler);
        let mut lists: Vec<Vec<SocketAddr>> = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match news.recv_timeout(left) {
                Ok(News::Dialled(at, connection)) => {
                    return Ok((Reached { at, address: connection.remote() }, connection));
                }
                Ok(News::Place(Found::At(place, addresses))) => {
                    tried.insert(place.to_string(), "it was there, and then not reached".into());
                    if lists.len() < MAX_LISTS && !lists.contains(&addresses) {
                        lists.push(addresses.clone());
                        dialler.dial(Some(place), addresses);
                    }
                }
                Ok(News::Place(Found::Not(place, why))) => {
                    tried.insert(place.to_string(), why);
                }
                Ok(News::Missed(what, why)) => {
                    tried.insert(what, why);
                }
                Ok(News::Stop) => return Err(Failure::new(Exit::Interrupted, "stopped")),
                Err(_) => return Err(self.not_found(&tried)),
            }
        }
    }

    /// Dials what is known of the contact. All that is tried, with nothing known against it yet.
    fn dial_known(&self, dialler: &Dialler) -> BTreeMap<String, String> {
        let mut tried = BTreeMap::new();
        let silence = || "no answer".to_owned();
        for address in &self.contact.seen_at {
            tried.insert(address.to_string(), silence());
        }
        if !self.contact.seen_at.is_empty() {
            dialler.dial(None, self.contact.seen_at.clone());
        }
        for address in &self.contact.addresses {
            tried.insert(address.to_string(), silence());
            dialler.look_up(address.clone());
        }
        if self.places.lan != Lan::Off {
            tried.insert(Place::Lan.to_string(), silence());
        }
        if let Some(server) = self.places.rendezvous.clone() {
            tried.insert(Place::Rendezvous(server).to_string(), "nobody waits there".into());
        }
        tried
    }

    fn not_found(&self, tried: &BTreeMap<String, String>) -> Failure {
        let name = &self.contact.name;
        if tried.is_empty() {
            let message = format!("there is nowhere to look for {name}: no address is known");
            return Failure::new(Exit::PeerNotFound, message).hint(
                "give --rendezvous, allow --lan, or send once with a code, which teaches the address",
            );
        }
        let tried: Vec<_> = tried.iter().map(|(what, why)| format!("{what}: {why}")).collect();
        let message = format!("{name} cannot be reached ({})", tried.join("; "));
        Failure::new(Exit::PeerNotFound, message)
            .hint("does wraith listen run there, and are you a contact of theirs?")
    }
}

/// Dials on threads of its own.
struct Dialler {
    endpoint: Endpoint,
    contact: Contact,
    over: Arc<AtomicBool>,
    tell: Sender<News>,
}

impl Dialler {
    /// Dials these addresses again and again.
    fn dial(&self, place: Option<Place>, addresses: Vec<SocketAddr>) {
        let theirs = self.share();
        thread::spawn(move || {
            while !theirs.is_over() {
                match theirs.dial_once(&addresses) {
                    Some(connection) => {
                        let _ = theirs.tell.send(News::Dialled(place, connection));
                        return;
                    }
                    None => theirs.pause(),
                }
            }
        });
    }

    /// Dials what the user wrote down, looking names up again each time: they may have moved.
    fn look_up(&self, address: Address) {
        let theirs = self.share();
        thread::spawn(move || {
            let port = usual_port(theirs.contact.node_id);
            while !theirs.is_over() {
                match address.resolve(port) {
                    Ok(addresses) => {
                        if let Some(connection) = theirs.dial_once(&addresses) {
                            let _ = theirs.tell.send(News::Dialled(None, connection));
                            return;
                        }
                    }
                    Err(error) => {
                        let missed = News::Missed(address.to_string(), plain(&error));
                        let _ = theirs.tell.send(missed);
                    }
                }
                theirs.pause();
            }
        });
    }

    fn dial_once(&self, addresses: &[SocketAddr]) -> Option<Connection> {
        let mut attempt = pin!(self.endpoint.connect(addresses, self.contact.node_id));
        while !self.is_over() {
            if let Some(result) = block_on_timeout(attempt.as_mut(), GLANCE) {
                return result.ok();
            }
        }
        None
    }

    fn share(&self) -> Self {
        let Self { endpoint, contact, over, tell } = self;
        let (endpoint, contact) = (endpoint.clone(), contact.clone());
        Self { endpoint, contact, over: Arc::clone(over), tell: tell.clone() }
    }

    fn pause(&self) {
        let until = Instant::now() + RETRY;
        while Instant::now() < until && !self.is_over() {
            thread::sleep(GLANCE);
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}
