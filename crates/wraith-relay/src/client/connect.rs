//! How a relay is reached by UDP where TCP goes there through a proxy: a [`Connect`] that can ask the proxy for a way.
//!
//! Invariant: nothing is sent to the relay's own address then.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use wraith_discovery::{BoxFuture, Connect, Direct};

/// Bytes in front of what comes from a relay through a [`UdpAssociation`], at most: it has an IPv6 address.
pub const ASSOCIATION_HEADER_MAX: usize = 22;

/// A way for UDP to one port of a relay through a proxy, for who has a socket (SOCKS5, RFC 1928 §7). Dropping it ends it.
///
/// Every datagram, in both directions, is behind a header. That of what comes from the relay is the one of what goes there, too.
pub trait UdpAssociation: Send + Sync + fmt::Debug {
    /// The proxy's UDP port. Datagrams go there and nowhere else, and what comes from elsewhere is none of this.
    fn proxy(&self) -> SocketAddr;

    /// In front of datagrams to the relay, as long as nothing has come from there: its address, or the name that the proxy resolves.
    fn header(&self) -> &[u8];

    /// How long the header in front of `datagram` is, if that says that the relay has sent it. It is [`ASSOCIATION_HEADER_MAX`] at most.
    fn header_from(&self, datagram: &[u8]) -> Option<usize>;

    /// Returns when the proxy has ended it.
    fn closed(&self) -> BoxFuture<'_, ()>;
}

/// The future of [`ConnectRelay::associate`].
pub type Associating<'a> = BoxFuture<'a, io::Result<Box<dyn UdpAssociation>>>;

/// Makes connections to relays, and ways for UDP beside them.
pub trait ConnectRelay: Connect {
    /// A way for UDP to `port` of `host` where [`connect`](Connect::connect) goes through a proxy that may carry it; `None` where there is
    /// none. [`Unsupported`](io::ErrorKind::Unsupported) is the error of a proxy that will say so however often it is asked.
    fn associate<'a>(&'a self, _host: &'a str, _port: u16) -> Option<Associating<'a>> {
        None
    }
}

impl ConnectRelay for Direct {}
