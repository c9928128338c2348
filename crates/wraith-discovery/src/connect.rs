//! TCP connections to servers: direct, or through the application's own connector, such as a proxy.
//!
//! Invariant: a connector such as a proxy may provide only a stream to the server. In that case,
//! the source address that the server observes is not used as this machine's address, and nothing
//! is sent to the server's own address.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, lookup_host};
use tokio::time::timeout;

use crate::place::BoxFuture;

/// Time limit per address of a server. A name may have several addresses, and some may be
/// unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP segments of a [narrow](Connect::connect_narrow) connection, with the options of TCP. With the
/// headers of IPv6 and TCP, they have 572 bytes.
const NARROW_SEGMENT_BYTES: u32 = 512;

/// A byte stream to a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Result of a [`Connect`].
pub struct Connected {
    /// Stream to the server's TCP port.
    pub stream: Box<dyn Stream>,
    /// IP address of the server's UDP ports; `None` if only the stream reaches it (through a
    /// proxy).
    pub udp: Option<IpAddr>,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("udp", &self.udp).finish_non_exhaustive()
    }
}

/// Future of a [`Connect`].
pub type Connecting<'a> = BoxFuture<'a, io::Result<Connected>>;

/// Connects to servers. The caller limits the time of a whole attempt.
pub trait Connect: Send + Sync + fmt::Debug {
    /// Connects to `port` of `host`, a name or an IP address without brackets.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;

    /// Like [`connect`](Self::connect), with TCP segments that fit a path of 576 bytes, for a path
    /// that drops larger packets without a message. The default does not limit them.
    fn connect_narrow<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.connect(host, port)
    }
}

/// Connects directly by TCP, trying the addresses of a name in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Connect for Direct {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(connect_to_any(host, port, None))
    }

    fn connect_narrow<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(connect_to_any(host, port, Some(NARROW_SEGMENT_BYTES)))
    }
}

async fn connect_to_any(
    host: &str,
    port: u16,
    segment_bytes: Option<u32>,
) -> io::Result<Connected> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match connect_to(address, segment_bytes).await {
            Ok(connected) => return Ok(connected),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr, segment_bytes: Option<u32>) -> io::Result<Connected> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(bytes) = segment_bytes {
        SockRef::from(&socket).set_tcp_mss(bytes)?;
    }
    let stream = timeout(CONNECT_TIMEOUT, socket.connect(address)).await;
    let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(Connected { stream: Box::new(stream), udp: Some(address.ip().to_canonical()) })
}
