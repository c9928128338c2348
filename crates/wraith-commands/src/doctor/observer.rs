//! Hosts that report the outside address of our sockets, and the sockets that ask them.

use std::net::SocketAddr;
use std::sync::Arc;

use wraith_dht::AddressQuery;
use wraith_relay::Relays;
use wraith_transport::nat::ObservedAddress;
use wraith_transport::{Config, Endpoint, EndpointConfig, SecretIdentity};

/// A host that reports the outside address of our sockets.
#[derive(Clone, Debug)]
pub enum Observer {
    /// A relay; the secret authenticates the questions.
    Relay {
        /// Secret that the relay issued for these questions.
        secret: [u8; 32],
        /// UDP address of the relay.
        of: SocketAddr,
        /// Second UDP port of the relay, if it has one.
        other: Option<SocketAddr>,
    },
    /// A DHT node; the questions are in plaintext.
    Node(SocketAddr),
}

impl Observer {
    /// Returns the address to ask, and its other port.
    pub fn ports(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let (of, other) = match self {
            Self::Relay { of, other, .. } => (*of, *other),
            Self::Node(node) => (*node, None),
        };
        [of].into_iter().chain(other)
    }

    /// Asks at `port`, one of the observer's ports, for the outside address of `socket`.
    pub async fn observe(&self, socket: &Endpoint, port: SocketAddr) -> Option<ObservedAddress> {
        let at = match self {
            Self::Relay { secret, .. } => socket.observe(*secret, port).await.ok()?,
            Self::Node(node) => {
                let question = AddressQuery::new().ok()?;
                let answer = socket.exchange(*node, question.datagram()).await.ok()?;
                SocketAddr::V4(question.observed_address(&answer)?)
            }
        };
        let at = SocketAddr::new(at.ip().to_canonical(), at.port());
        Some(ObservedAddress { by: port, at })
    }
}

/// Opens a socket like those of transfers, with a fresh random identity.
pub fn open(relays: Option<&Relays>) -> std::io::Result<Endpoint> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
    let core = EndpointConfig::new(SecretIdentity::from_seed(seed));
    let mut config = Config::new(core);
    config.movers.extend(relays.map(|relays| Arc::new(relays.clone()) as Arc<_>));
    Endpoint::bind(config)
}
