//! Which relay, and how it is reached.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use wraith_crypto::SecretIdentity;
use wraith_discovery::RelayAddr;

use crate::proof::Token;
use crate::tls;

/// A stream of bytes to a relay, before TLS.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What a [`Connect`] has made.
pub struct Connected {
    /// To the relay's TCP port.
    pub stream: Box<dyn Stream>,
    /// Where the relay's UDP port is; none where only the stream goes there (a proxy).
    pub udp: Option<IpAddr>,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("udp", &self.udp).finish_non_exhaustive()
    }
}

/// The future of a [`Connect`].
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Connected>> + Send + 'a>>;

/// Makes connections to relays. Timeouts are the caller's.
pub trait Connect: Send + Sync + fmt::Debug {
    /// Connects to `port` of `host`, a name or an IP address.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;
}

/// Straight, by TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Connect for Direct {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let udp = Some(stream.peer_addr()?.ip().to_canonical());
            Ok(Connected { stream: Box::new(stream), udp })
        })
    }
}

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
    pub connect: Arc<dyn Connect>,
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
