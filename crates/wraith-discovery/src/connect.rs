//! How servers are reached by TCP, and by UDP: straight, or by a way of the application's own, such as a proxy.
//!
//! Invariant: where only a stream goes to the server, nobody takes its sender's address for one of ours, and nothing is sent to the
//! server's own address.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::place::BoxFuture;

/// How long one address of a server may take to accept. A name may have several, of which some lead nowhere.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A stream of bytes to a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What a [`Connect`] has made.
pub struct Connected {
    /// To the server's TCP port.
    pub stream: Box<dyn Stream>,
    /// Where the server's UDP ports are; none where only the stream goes there (a proxy). UDP may go there by [`Connect::associate`].
    pub udp: Option<IpAddr>,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("udp", &self.udp).finish_non_exhaustive()
    }
}

/// The future of a [`Connect`].
pub type Connecting<'a> = BoxFuture<'a, io::Result<Connected>>;

/// A way for UDP to one port of a server through a proxy, for who has a socket (SOCKS5, RFC 1928 §7). Dropping it ends it.
///
/// Every datagram, in both directions, is behind a header. That of what comes from the server is the one of what goes there, too.
pub trait UdpAssociation: Send + Sync + fmt::Debug {
    /// The proxy's UDP port. Datagrams go there and nowhere else, and what comes from elsewhere is none of this.
    fn proxy(&self) -> SocketAddr;

    /// In front of datagrams to the server, as long as nothing has come from there: its address, or the name that the proxy resolves.
    fn header(&self) -> &[u8];

    /// How long the header in front of `datagram` is, if that says that the server has sent it. It is [`ASSOCIATION_HEADER_MAX`] at most.
    fn header_from(&self, datagram: &[u8]) -> Option<usize>;

    /// Returns when the proxy has ended it.
    fn closed(&self) -> BoxFuture<'_, ()>;
}

/// Bytes in front of what comes from a server through a [`UdpAssociation`], at most: it has an IPv6 address.
pub const ASSOCIATION_HEADER_MAX: usize = 22;

/// The future of [`Connect::associate`].
pub type Associating<'a> = BoxFuture<'a, io::Result<Box<dyn UdpAssociation>>>;

/// Makes connections to servers. Timeouts of a whole attempt are the caller's.
pub trait Connect: Send + Sync + fmt::Debug {
    /// Connects to `port` of `host`, a name or an IP address without brackets.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;

    /// A way for UDP to `port` of `host` where [`connect`](Self::connect) goes through a proxy that may carry it; `None` where there is
    /// none. [`Unsupported`](io::ErrorKind::Unsupported) is the error of a proxy that will say so however often it is asked.
    fn associate<'a>(&'a self, _host: &'a str, _port: u16) -> Option<Associating<'a>> {
        None
    }
}

/// Straight, by TCP: the addresses of a name one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Connect for Direct {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in lookup_host((host, port)).await? {
                match connect_to(address).await {
                    Ok(connected) => return Ok(connected),
                    Err(error) => last = error,
                }
            }
            Err(last)
        })
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<Connected> {
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(Connected { stream: Box::new(stream), udp: Some(address.ip().to_canonical()) })
}
