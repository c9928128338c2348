//! The relays of a socket: those at which it waits, and those through which it dials.
//!
//! Invariant: there is one connection to each relay, even if the relay has several names. A relay
//! without a known pin (the hash of its public key) is trusted on first use. Its pin then goes into
//! this side's tickets, and the peer requires it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use wraith_crypto::SecretIdentity;
use wraith_discovery::{BoxFuture, MAX_RELAYS, RelayAddr, Way};
use wraith_relay::{Refusal, RelayClient, RelayConfig, RelayError, Relays, Token};
use wraith_transport::Addr;

use super::peer_relays::{NotAllowed, PublicOnly};
use super::{SocketPaths, lock};
use crate::carrier::{Carrier, ResolveError};
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::node_core::{PathSettings, PeerRelays, RelayServer, host_and_port};

/// Maximum number of connected relays per socket: those of the user, and those of tickets.
const CONNECTED_MAX: usize = 8;
/// Pause between two attempts at the first connection to a relay. Afterwards, its client reconnects
/// by itself.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The relays of a socket (see the module docs).
#[derive(Debug)]
pub(super) struct RelayTable {
    relays: Relays,
    settings: PathSettings,
    /// Shown to own relays that ask for it.
    identity: SecretIdentity,
    connected: Mutex<Vec<ConnectedRelay>>,
    /// Number of the user's relays that were tried, successfully or not.
    tried: watch::Sender<usize>,
    reports: Mutex<Reports>,
}

/// Reports of the user's relays at which we cannot wait.
#[derive(Debug, Default)]
struct Reports {
    readers: Vec<(Weak<EventPublisher>, RelayReports)>,
    /// The reports about relays that are still unusable, for readers that come later, and whether
    /// each is final.
    made: Vec<(RelayServer, Event, bool)>,
}

#[derive(Clone, Debug)]
struct ConnectedRelay {
    host: String,
    port: u16,
    client: RelayClient,
    mailbox: Option<RelayAddr>,
}

impl RelayTable {
    pub fn new(relays: Relays, settings: PathSettings, identity: SecretIdentity) -> Self {
        Self {
            relays,
            settings,
            identity,
            connected: Mutex::default(),
            tried: watch::Sender::new(0),
            reports: Mutex::default(),
        }
    }

    /// Reports unusable relays of the user to `publisher`, also those that were tried before.
    pub fn report_to(&self, publisher: &Arc<EventPublisher>, wanted: RelayReports) {
        let mut reports = lock(&self.reports);
        reports.readers.retain(|(reader, _)| reader.strong_count() > 0);
        reports.readers.push((Arc::downgrade(publisher), wanted));
        let made = reports.made.clone();
        drop(reports);
        for (_, event, is_final) in made {
            if wanted.includes(is_final) {
                publisher.publish_beside(None, event);
            }
        }
    }

    fn is_usable(&self, server: &RelayServer) {
        lock(&self.reports).made.retain(|(of, ..)| of != server);
    }

    fn report(&self, server: &RelayServer, event: &Event, is_final: bool) {
        let readers = {
            let mut reports = lock(&self.reports);
            reports.made.push((server.clone(), event.clone(), is_final));
            reports.readers.clone()
        };
        for (reader, wanted) in readers {
            if let Some(publisher) = reader.upgrade().filter(|_| wanted.includes(is_final)) {
                publisher.publish_beside(None, event.clone());
            }
        }
    }

    /// Waits until this many relays were tried.
    pub async fn wait_until_tried(&self, wanted: usize) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.tried.subscribe().wait_for(|tried| *tried >= wanted).await;
    }

    /// Returns the mailboxes at which we wait, the nearest relay first.
    pub fn mailboxes(&self) -> Vec<RelayAddr> {
        let mut waiting: Vec<_> = lock(&self.connected)
            .iter()
            .filter(|relay| !relay.client.status().borrow().draining)
            .filter_map(|relay| Some((relay.client.rtt(), relay.mailbox.clone()?)))
            .collect();
        waiting.sort_by_key(|(rtt, _)| rtt.unwrap_or(Duration::MAX));
        waiting.into_iter().map(|(_, mailbox)| mailbox).take(MAX_RELAYS).collect()
    }

    /// Returns each client once, for queries of our observed addresses.
    pub fn clients(&self) -> Vec<RelayClient> {
        let mut clients: Vec<RelayClient> = Vec::new();
        for ConnectedRelay { client, .. } in lock(&self.connected).iter() {
            let is_known = |known: &RelayClient| known.status().same_channel(&client.status());
            if !clients.iter().any(is_known) {
                clients.push(client.clone());
            }
        }
        clients
    }

    /// Returns the relay that owns an address of a connection, as `HOST:PORT`.
    pub fn name_of(&self, address: &Addr) -> Option<String> {
        let connected = lock(&self.connected);
        let relay = connected.iter().find(|relay| relay.client.owns(address))?;
        Some(host_and_port(&relay.host, relay.port))
    }

    /// Returns the relay that owns an address of a connection, and how many of our sessions it has
    /// lost.
    pub fn owner_of(&self, address: &Addr) -> Option<(RelayClient, u64)> {
        let connected = lock(&self.connected);
        let relay = connected.iter().find(|relay| relay.client.owns(address))?;
        let lost = relay.client.status().borrow().sessions_lost;
        Some((relay.client.clone(), lost))
    }

    /// Ends the sessions at all relays, so that these keep nothing of them.
    pub async fn leave(&self) {
        let leaving: JoinSet<_> =
            self.clients().into_iter().map(|client| async move { client.leave().await }).collect();
        leaving.join_all().await;
    }

    pub fn close(&self) {
        lock(&self.connected).clear();
    }

    /// Returns the connection to this relay; connects if there is none.
    async fn client(&self, config: RelayConfig) -> Result<RelayClient, RelayError> {
        let known =
            |relay: &&ConnectedRelay| relay.host == config.host && relay.port == config.port;
        let there = lock(&self.connected).iter().find(known).map(|relay| relay.client.clone());
        if let Some(client) = there {
            return match config.pin {
                Some(pin) if *client.pin() != pin => {
                    Err(RelayError::Pin(wraith_relay::PinMismatch {
                        expected: pin,
                        found: *client.pin(),
                    }))
                }
                _ => Ok(client),
            };
        }
        let (host, port) = (config.host.clone(), config.port);
        let mut client = self.relays.connect(config).await?;
        let mut connected = lock(&self.connected);
        // The relay may already be known under another name. Two connections from our one UDP
        // socket would take each other's replies.
        if let Some(known) = connected.iter().find(|relay| is_same_relay(&relay.client, &client)) {
            client = known.client.clone();
        }
        let quicker = connected.iter().find(|relay| relay.host == host && relay.port == port);
        if let Some(quicker) = quicker.filter(|quicker| quicker.client.pin() == client.pin()) {
            // Another task connected at the same time. One name may lead to several machines, so
            // drop ours and share the other connection.
            return Ok(quicker.client.clone());
        }
        // Evict the oldest relay at which we do not wait. The number of those at which we wait is
        // bounded by the configuration.
        let idle = connected.iter().position(|relay| relay.mailbox.is_none());
        if let Some(idle) = idle.filter(|_| connected.len() >= CONNECTED_MAX) {
            connected.remove(idle);
        }
        connected.push(ConnectedRelay { host, port, client: client.clone(), mailbox: None });
        Ok(client)
    }

    /// Asks a relay for a pair with the peer that waits at this mailbox. Returns the address to
    /// connect to.
    ///
    /// # Errors
    /// The relay cannot be used, or no peer waits there.
    async fn dial(&self, relay: &RelayAddr) -> Result<Addr, RelayError> {
        let mut config = self.relay_config(relay.host(), relay.port());
        self.restrict(&mut config)?;
        config.pin = Some(*relay.pin());
        self.client(config).await?.dial(*relay.mailbox()).await
    }

    /// Applies the user's restrictions to a relay that a peer chose.
    fn restrict(&self, config: &mut RelayConfig) -> Result<(), RelayError> {
        let settings = &self.settings;
        let is_hidden = settings.proxies.for_host(&config.host).is_some();
        let default = match settings.relay_only && !is_hidden {
            true => PeerRelays::Own,
            false => PeerRelays::Public,
        };
        match settings.peer_relays.unwrap_or(default) {
            _ if self.own_relay(&config.host, config.port).is_some() => {}
            PeerRelays::Any => {}
            PeerRelays::Public => {
                config.connect = Arc::new(PublicOnly(Arc::clone(&settings.proxies)));
            }
            PeerRelays::Own => {
                return Err(RelayError::Unreachable(std::io::Error::other(NotAllowed::NotOwn)));
            }
        }
        Ok(())
    }

    fn own_relay(&self, host: &str, port: u16) -> Option<&RelayServer> {
        self.settings.relays.iter().find(|own| own.host == host && own.port == port)
    }

    /// Returns the configuration of a relay, with our credentials if it is one of the user's.
    fn relay_config(&self, host: &str, port: u16) -> RelayConfig {
        let mut config = RelayConfig::new(host, port);
        if let Some(own) = self.own_relay(host, port) {
            config.token = own.token.as_deref().map(Token::new);
            config.identity = self.settings.relay_identity.then(|| self.identity.clone());
        }
        config.connect = self.settings.proxies.clone();
        config
    }

    fn set_mailbox(&self, client: &RelayClient, mailbox: RelayAddr) {
        let mut connected = lock(&self.connected);
        let (host, port) = (mailbox.host(), mailbox.port());
        let known = |relay: &&mut ConnectedRelay| relay.host == host && relay.port == port;
        match connected.iter_mut().find(known) {
            Some(relay) => relay.mailbox = Some(mailbox),
            None => connected.push(ConnectedRelay {
                host: host.to_owned(),
                port,
                client: client.clone(),
                mailbox: Some(mailbox),
            }),
        }
    }
}

/// Returns whether both clients are connected to one process: a relay shows one certificate at all
/// its addresses, and draws one secret at its start.
fn is_same_relay(one: &RelayClient, other: &RelayClient) -> bool {
    let observe = |client: &RelayClient| client.status().borrow().observe;
    one.pin() == other.pin() && observe(one).is_some() && observe(one) == observe(other)
}

/// Which events to report about relays at which we cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayReports {
    /// Report all failures.
    All,
    /// Report only final refusals. An unreachable relay is also reported as a meeting place.
    Refusals,
}

impl RelayReports {
    fn includes(self, is_final: bool) -> bool {
        self == Self::All || is_final
    }
}

fn cannot_wait(server: &RelayServer, why: &RelayError) -> Event {
    let next = match why {
        RelayError::Refused(Refusal::Identity) => {
            "--relay-identity shows it this machine's NodeId; without that, it is not asked again"
        }
        why if is_final(why) => "it is not asked again",
        _ => "it is tried again",
    };
    let what = format!("no peer can connect through the relay {server} ({why}); {next}");
    Event::Note { path: String::new(), what }
}

impl Carrier for RelayTable {
    fn kind(&self) -> u16 {
        Way::RELAY
    }

    fn own_ways(&self, _: Option<IpAddr>) -> Vec<Way> {
        self.mailboxes().into_iter().map(Way::Relay).collect()
    }

    fn resolve<'a>(&'a self, way: &'a Way) -> BoxFuture<'a, Result<Addr, ResolveError>> {
        Box::pin(async move {
            let no_relay = || ResolveError::Final("it is not a relay".to_owned());
            self.dial(way.relay().ok_or_else(no_relay)?).await.map_err(ResolveError::from)
        })
    }
}

/// A relay that answered is asked at a steady pace, because the peer may come back at any time.
impl From<RelayError> for ResolveError {
    fn from(why: RelayError) -> Self {
        let message = why.to_string();
        match why {
            why if is_final(&why) => Self::Final(message),
            RelayError::Unreachable(_) | RelayError::Timeout | RelayError::Protocol => {
                Self::Unavailable(message)
            }
            _ => Self::NoPeer(message),
        }
    }
}

/// Returns whether a relay would give the same answer to every retry.
fn is_final(why: &RelayError) -> bool {
    match why {
        RelayError::Pin(_)
        | RelayError::Refused(Refusal::Token | Refusal::Identity | Refusal::Version) => true,
        RelayError::Unreachable(error) => NotAllowed::is_in(error),
        _ => false,
    }
}

impl SocketPaths {
    /// Waits at a relay of the user. Retries until it succeeds or the relay refuses for good.
    /// Reports the first failure.
    pub(super) async fn register_at(&self, server: &RelayServer) {
        let mut first = true;
        loop {
            let waiting = self.register(server).await;
            if std::mem::take(&mut first) {
                self.inner.relays.tried.send_modify(|tried| *tried += 1);
                if let Err(why) = &waiting {
                    let event = cannot_wait(server, why);
                    self.inner.relays.report(server, &event, is_final(why));
                }
            }
            match waiting {
                Ok(client) => {
                    self.inner.relays.is_usable(server);
                    self.notify_changed();
                    self.observe_again().await;
                    return self.watch_draining(&client).await;
                }
                // A retry would only use up the rate limit of this address.
                Err(why) if is_final(&why) => return,
                Err(_) => {}
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Publishes changes of the draining state: a relay that is about to stop admits no callers,
    /// and a restarted one does.
    async fn watch_draining(&self, client: &RelayClient) {
        let mut status = client.status();
        let mut draining = false;
        while let Ok(now) =
            status.wait_for(|now| now.draining != draining).await.map(|now| now.draining)
        {
            draining = now;
            self.notify_changed();
        }
    }

    async fn register(&self, server: &RelayServer) -> Result<RelayClient, RelayError> {
        let config = self.inner.relays.relay_config(&server.host, server.port);
        let client = self.inner.relays.client(config).await?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| RelayError::Unreachable(std::io::Error::other(error)))?;
        let mailbox = client.register(secret).await?;
        let address = RelayAddr::new(&server.host, server.port, *client.pin(), mailbox)
            .map_err(|error| RelayError::Unreachable(std::io::Error::other(error)))?;
        self.inner.relays.set_mailbox(&client, address);
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wraith_relay::{Options, Server};

    use super::*;

    fn table() -> RelayTable {
        let identity = SecretIdentity::from_seed([1; 32]);
        RelayTable::new(Relays::new().unwrap(), PathSettings::default(), identity)
    }

    async fn relay(folder: &tempfile::TempDir) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let options = Options::new(SocketAddr::from(([0, 0, 0, 0], 0)), folder.path());
        let server = Server::bind(options).await.unwrap();
        let address = server.local_addr().unwrap();
        let serving = async { server.run_until(std::future::pending()).await.unwrap() };
        (address, tokio::spawn(serving))
    }

    #[tokio::test]
    async fn a_relay_that_is_usable_again_is_not_reported_to_later_roles() {
        let table = table();
        let server = |port| RelayServer { host: "192.0.2.1".into(), port, token: None };
        let note = |what: &str| Event::Note { path: String::new(), what: what.into() };
        table.report(&server(1), &note("one"), false);
        table.report(&server(2), &note("two"), true);
        let reported = |wanted| {
            let publisher = Arc::new(EventPublisher::new(None));
            let events = publisher.subscribe();
            table.report_to(&publisher, wanted);
            publisher.end(Ok(()));
            events
        };
        table.is_usable(&server(1));
        for (wanted, expected) in [(RelayReports::All, "two"), (RelayReports::Refusals, "two")] {
            let mut events = reported(wanted);
            assert!(
                matches!(events.next().await, Some(Event::Note { what, .. }) if what == expected)
            );
            assert!(matches!(events.next().await, Some(Event::Done)));
        }
    }

    #[test]
    fn a_relay_that_answers_is_asked_steadily() {
        let unavailable = |why| matches!(ResolveError::from(why), ResolveError::Unavailable(_));
        assert!(unavailable(RelayError::Timeout) && unavailable(RelayError::Protocol));
        let no_mailbox = ResolveError::from(RelayError::Refused(Refusal::NoMailbox));
        assert!(matches!(no_mailbox, ResolveError::NoPeer(_)));
        let token = ResolveError::from(RelayError::Refused(Refusal::Token));
        assert!(matches!(token, ResolveError::Final(_)));
    }

    #[tokio::test]
    async fn a_relay_under_two_names_is_one_and_two_relays_are_two() {
        let folder = tempfile::tempdir().unwrap();
        let ((one, _serving), (other, _other)) = (relay(&folder).await, relay(&folder).await);
        let table = table();
        let client = async |host: &str, port| {
            table.client(RelayConfig::new(host, port)).await.unwrap().status()
        };
        let first = client("127.0.0.1", one.port()).await;
        assert!(first.same_channel(&client("127.0.0.2", one.port()).await));
        // Both have one certificate, as two machines of one operator may.
        assert!(!first.same_channel(&client("127.0.0.1", other.port()).await));
    }
}
