//! UDP to a relay through a proxy: a [`Connect`] that can request a UDP association.
//!
//! Invariant: with an association, nothing is sent to the relay's own address.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use wraith_discovery::{BoxFuture, Connect, Direct};

/// Longest header in front of a datagram from a [`UdpAssociation`], in bytes: it holds an IPv6
/// address.
pub const ASSOCIATION_HEADER_MAX: usize = 22;

/// A SOCKS5 UDP association to one relay port (RFC 1928 §7). Drop closes it.
///
/// Every datagram carries a header, in both directions. The header of datagrams from the relay is
/// also used for datagrams to it.
pub trait UdpAssociation: Send + Sync + fmt::Debug {
    /// Returns the proxy's UDP port. Datagrams go only there; datagrams from other addresses are
    /// not part of the association.
    fn proxy(&self) -> SocketAddr;

    /// Returns the header for datagrams to the relay before the first answer. It holds the relay's
    /// address, or the name that the proxy resolves.
    fn header(&self) -> &[u8];

    /// Returns the length of the header in front of `datagram` if it names the relay as the sender.
    /// At most [`ASSOCIATION_HEADER_MAX`].
    fn header_from(&self, datagram: &[u8]) -> Option<usize>;

    /// Returns once the proxy has closed the association.
    fn closed(&self) -> BoxFuture<'_, ()>;
}

/// Future of [`ConnectRelay::associate`].
pub type Associating<'a> = BoxFuture<'a, io::Result<Box<dyn UdpAssociation>>>;

/// Connects to relays, optionally with a UDP association beside the stream.
pub trait ConnectRelay: Connect {
    /// Requests a UDP association to `port` of `host` if [`connect`](Connect::connect) uses a proxy
    /// that may support one. `None` if there is no such proxy. The error
    /// [`Unsupported`](io::ErrorKind::Unsupported) is permanent: the proxy would repeat it on every
    /// request.
    fn associate<'a>(&'a self, _host: &'a str, _port: u16) -> Option<Associating<'a>> {
        None
    }
}

impl ConnectRelay for Direct {}
