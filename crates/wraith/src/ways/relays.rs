//! The relays of a socket: where it waits, and through which it dials.
//!
//! Invariant: one connection to each relay, whoever named it. A relay without a pin is believed the first time; what it shows then goes
//! into our tickets, and the other side is held to it.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tracing::debug;
use wraith_discovery::{MAX_RELAYS, RelayAddr};
use wraith_relay::{Refusal, RelayClient, RelayConfig, RelayError, Relays, Token};
use wraith_transport::Addr;

use super::{Ways, lock};

/// Relays that a socket is connected to at once: those that the user named, and those of tickets.
const CONNECTED_MAX: usize = 8;
/// Between two attempts to reach a relay for the first time; afterwards its client does it by itself.
const RETRY: Duration = Duration::from_secs(5);

/// A relay that a user named.
#[derive(Clone, PartialEq, Eq)]
pub struct RelayServer {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// TCP and UDP.
    pub port: u16,
    /// What it lets us in with.
    pub token: Option<String>,
}

/// Without the token, which is a secret.
impl fmt::Debug for RelayServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, token: _ } = self;
        f.debug_struct("RelayServer")
            .field("host", host)
            .field("port", port)
            .finish_non_exhaustive()
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct RelayTable {
    relays: Relays,
    connected: Mutex<Vec<Connected>>,
    /// How many of those that the user named were tried, whatever came of it.
    tried: watch::Sender<usize>,
}

#[derive(Clone, Debug)]
struct Connected {
    host: String,
    port: u16,
    client: RelayClient,
    mailbox: Option<RelayAddr>,
}

impl RelayTable {
    pub fn new(relays: Relays) -> Self {
        Self { relays, connected: Mutex::default(), tried: watch::Sender::new(0) }
    }

    /// Waits until so many were tried.
    pub async fn tried(&self, wanted: usize) {
        // This keeps the sending half, so the wait does not fail.
        let _ = self.tried.subscribe().wait_for(|tried| *tried >= wanted).await;
    }

    /// The mailboxes at which we wait, the nearest relay first.
    pub fn mailboxes(&self) -> Vec<RelayAddr> {
        let mut waiting: Vec<_> = lock(&self.connected)
            .iter()
            .filter(|relay| !relay.client.status().borrow().draining)
            .filter_map(|relay| Some((relay.client.rtt(), relay.mailbox.clone()?)))
            .collect();
        waiting.sort_by_key(|(rtt, _)| rtt.unwrap_or(Duration::MAX));
        waiting.into_iter().map(|(_, mailbox)| mailbox).take(MAX_RELAYS).collect()
    }

    /// The clients, for whoever asks relays where they see us.
    pub fn clients(&self) -> Vec<RelayClient> {
        lock(&self.connected).iter().map(|relay| relay.client.clone()).collect()
    }

    /// The relay that an address of a connection belongs to, as `HOST:PORT`.
    pub fn name_of(&self, address: &Addr) -> Option<String> {
        let connected = lock(&self.connected);
        let relay = connected.iter().find(|relay| relay.client.owns(address))?;
        Some(match relay.host.contains(':') {
            true => format!("[{}]:{}", relay.host, relay.port),
            false => format!("{}:{}", relay.host, relay.port),
        })
    }

    /// The relay that an address of a connection belongs to, and how many of our sessions it has lost.
    pub fn owner_of(&self, address: &Addr) -> Option<(RelayClient, u64)> {
        let connected = lock(&self.connected);
        let relay = connected.iter().find(|relay| relay.client.owns(address))?;
        let lost = relay.client.status().borrow().sessions_lost;
        Some((relay.client.clone(), lost))
    }

    pub fn close(&self) {
        lock(&self.connected).clear();
    }

    /// The connection to this relay, made if there is none.
    async fn client(&self, config: RelayConfig) -> Result<RelayClient, RelayError> {
        let known = |relay: &&Connected| relay.host == config.host && relay.port == config.port;
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
        let client = self.relays.connect(config).await?;
        let mut connected = lock(&self.connected);
        if connected.len() == CONNECTED_MAX {
            // The oldest that nobody waits at goes.
            let idle = connected.iter().position(|relay| relay.mailbox.is_none()).unwrap_or(0);
            connected.remove(idle);
        }
        connected.push(Connected { host, port, client: client.clone(), mailbox: None });
        Ok(client)
    }

    fn waits(&self, client: &RelayClient, mailbox: RelayAddr) {
        let mut connected = lock(&self.connected);
        let (host, port) = (mailbox.host(), mailbox.port());
        let known = |relay: &&mut Connected| relay.host == host && relay.port == port;
        match connected.iter_mut().find(known) {
            Some(relay) => relay.mailbox = Some(mailbox),
            None => connected.push(Connected {
                host: host.to_owned(),
                port,
                client: client.clone(),
                mailbox: Some(mailbox),
            }),
        }
    }
}

/// Whether a relay will say the same however often it is asked.
pub(crate) fn is_final(why: &RelayError) -> bool {
    matches!(
        why,
        RelayError::Pin(_)
            | RelayError::Refused(Refusal::Token | Refusal::Identity | Refusal::Version)
    )
}

impl Ways {
    /// Waits at a relay that the user named, and tries until it can, or is sent away for good.
    pub(super) async fn wait_at(&self, server: &RelayServer) {
        let mut counted = false;
        loop {
            let waiting = self.register(server).await;
            if let Err(why) = &waiting {
                debug!(relay = server.host, %why, "not waiting at a relay");
            }
            if !counted {
                counted = true;
                self.inner.relays.tried.send_modify(|tried| *tried += 1);
            }
            match waiting {
                Ok(()) => {
                    self.has_changed();
                    self.see_anew().await;
                    return;
                }
                // Asking again would only use up what this address may ask.
                Err(why) if is_final(&why) => return,
                Err(_) => {}
            }
            sleep(RETRY).await;
        }
    }

    async fn register(&self, server: &RelayServer) -> Result<(), RelayError> {
        let config = self.relay_config(&server.host, server.port);
        let client = self.inner.relays.client(config).await?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| RelayError::Unreachable(std::io::Error::other(error)))?;
        let mailbox = client.register(secret).await?;
        let address = RelayAddr::new(&server.host, server.port, *client.pin(), mailbox)
            .map_err(|error| RelayError::Unreachable(std::io::Error::other(error)))?;
        self.inner.relays.waits(&client, address);
        Ok(())
    }

    /// Asks a relay for a pair with whoever waits there: an address to connect to.
    ///
    /// # Errors
    /// The relay cannot be used, or nobody waits there.
    pub async fn dial_relay(&self, relay: &RelayAddr) -> Result<Addr, RelayError> {
        let mut config = self.relay_config(relay.host(), relay.port());
        config.pin = Some(*relay.pin());
        self.inner.relays.client(config).await?.dial(*relay.mailbox()).await
    }

    /// With what we show there if it is one of the user's own.
    fn relay_config(&self, host: &str, port: u16) -> RelayConfig {
        let settings = self.inner.node.way_settings();
        let own = settings.relays.iter().find(|own| own.host == host && own.port == port);
        let mut config = RelayConfig::new(host, port);
        if let Some(own) = own {
            config.token = own.token.as_deref().map(Token::new);
            config.identity = Some(self.inner.node.identity().clone());
        }
        config.connect = Arc::clone(&settings.connect);
        config
    }
}
