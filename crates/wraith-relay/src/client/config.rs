//! Which relay, and how it is reached.

use std::sync::Arc;

use wraith_crypto::SecretIdentity;
use wraith_discovery::{Direct, RelayAddr};

use super::connect::ConnectRelay;
use crate::proof::Token;
use crate::tls;

/// A relay, and what is shown to it.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Name or IP address.
    pub host: String,
    /// TCP and UDP.
    pub port: u16,
    /// What it must be; without one it may be anybody, and [`RelayClient::pin`](super::RelayClient::pin) tells who.
    pub pin: Option<tls::Pin>,
    /// Where the relay wants one.
    pub token: Option<Token>,
    /// Shown only where there is no token, to a relay for certain identities. It learns who we are.
    pub identity: Option<SecretIdentity>,
    /// How it is reached.
    pub connect: Arc<dyn ConnectRelay>,
    /// False where datagrams are to go over TLS only.
    pub udp: bool,
}

impl RelayConfig {
    /// The relay at `host` and `port`, straight, whoever it is.
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
