//! How servers are reached by TCP: straight, or by a way of the application's own, such as a proxy.
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
    /// Where the server's UDP ports are; none where only the stream goes there (a proxy).
    pub udp: Option<IpAddr>,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("udp", &self.udp).finish_non_exhaustive()
    }
}

/// The future of a [`Connect`].
pub type Connecting<'a> = BoxFuture<'a, io::Result<Connected>>;

/// Makes connections to servers. Timeouts of a whole attempt are the caller's.
pub trait Connect: Send + Sync + fmt::Debug {
    /// Connects to `port` of `host`, a name or an IP address without brackets.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;
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
