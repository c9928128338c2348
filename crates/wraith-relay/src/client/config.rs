//! Configuration of a relay connection.

use std::sync::Arc;

use wraith_crypto::SecretIdentity;
use wraith_discovery::{Direct, RelayAddr};

use super::connect::ConnectRelay;
use crate::proof::Token;
use crate::tls;

/// A relay and its credentials.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Host name or IP address.
    pub host: String,
    /// Port for both TCP and UDP.
    pub port: u16,
    /// Expected pin. Without one any key is accepted, and
    /// [`RelayClient::pin`](super::RelayClient::pin) returns the actual pin.
    pub pin: Option<tls::Pin>,
    /// Token, if the relay requires one.
    pub token: Option<Token>,
    /// Identity proof for relays with an allowlist. It reveals the client's NodeId (its public key),
    /// so it is sent only without a token, and only to a relay that asks for it.
    pub identity: Option<SecretIdentity>,
    /// Connector to the relay, direct or by proxy.
    pub connect: Arc<dyn ConnectRelay>,
    /// Whether UDP is used; otherwise all datagrams go over TLS.
    pub udp: bool,
}

impl RelayConfig {
    /// Creates a configuration for a direct connection to `host` and `port`, without a pin.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            pin: None,
            token: None,
            identity: None,
            connect: Arc::new(Direct),
            udp: true,
        }
    }
}

impl From<&RelayAddr> for RelayConfig {
    fn from(address: &RelayAddr) -> Self {
        Self { pin: Some(*address.pin()), ..Self::new(address.host(), address.port()) }
    }
}
