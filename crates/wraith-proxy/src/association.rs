//! UDP through a SOCKS5 proxy (RFC 1928 §7), as a socket that never waits.
//!
//! ```text
//! datagram   0 ‖ 0 ‖ fragment(1) = 0 ‖ address ‖ payload        to and from the proxy's UDP port
//! ```
//!
//! The association lives as long as the TCP connection on which it was made: a task holds that, and tells when it ends.
//!
//! Datagrams go to the address at which the proxy itself was reached, with the port that it named. The address that it names is
//! not used: behind a NAT it is often wrong, and it would let a proxy make us send to anybody.
//!
//! Invariant: the socket is connected, so only datagrams from the proxy arrive.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::socks5::{ADDRESS_BYTES_MAX, read_address, write_address};

/// In front of the payload at most, with an IPv6 address: so much less fits into a datagram.
pub const HEADER_BYTES_MAX: usize = PREFIX.len() + ADDRESS_BYTES_MAX;
/// Two reserved bytes, and the number of a fragment: none.
const PREFIX: [u8; 3] = [0; 3];
/// Of a header with an IPv4 address, into which a received datagram's is split off.
const IPV4_HEADER_BYTES: usize = PREFIX.len() + 1 + 4 + 2;
const IPV6_MORE_BYTES: usize = HEADER_BYTES_MAX - IPV4_HEADER_BYTES;
/// A proxy that vanished without a word is noticed after two minutes.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(20));
/// Datagrams that make no sense, looked at in one call before it goes back to its caller.
const STRAYS_MAX: usize = 32;

/// A UDP socket of a proxy, as far as we can use it. Dropping it ends it.
#[derive(Debug)]
pub struct Association {
    socket: UdpSocket,
    open: watch::Receiver<bool>,
    /// Holds the TCP connection.
    control: JoinHandle<()>,
}

impl Association {
    /// Of a TCP connection on which the proxy has granted one at its UDP `port`.
    pub(crate) fn new(control: TcpStream, port: u16) -> io::Result<Self> {
        let proxy = SocketAddr::new(control.peer_addr()?.ip(), port);
        let any = if proxy.is_ipv4() {
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
        } else {
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
        };
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(proxy)?;
        // An association without it lasts as long as the proxy says; that is no reason not to have it.
        let _ = SockRef::from(&control).set_tcp_keepalive(&KEEPALIVE);
        let (tell, open) = watch::channel(true);
        let control = tokio::spawn(hold(control, tell));
        Ok(Self { socket, open, control })
    }

    /// Whether the proxy still holds it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Returns when the proxy has ended it.
    pub async fn closed(&self) {
        // The sender is gone only with the association itself.
        let _ = self.open.clone().wait_for(|open| !open).await;
    }

    /// Sends one datagram to `to` through the proxy. Nothing is copied.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room now; [`NotConnected`](io::ErrorKind::NotConnected) after the
    /// proxy has ended it; else what the system says, after which the datagram is lost.
    pub fn send(&self, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
        if !self.is_open() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (header, len) = header_to(to);
        let parts = [IoSlice::new(&header[..len]), IoSlice::new(payload)];
        rustix::io::writev(&self.socket, &parts)?;
        Ok(())
    }

    /// The next datagram, its payload at the start of `buffer`: where it came from, as the proxy says, and its length. What is
    /// longer than `buffer` is cut off.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none now; else what the system says, after which there may be more.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(SocketAddr, usize)> {
        for _ in 0..STRAYS_MAX {
            let mut header = [0; IPV4_HEADER_BYTES];
            let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
            let len = rustix::io::readv(&self.socket, &mut parts)?;
            let Some(payload) = len.checked_sub(header.len()) else { continue };
            if let Some(received) = unwrap(&header, buffer, payload) {
                return Ok(received);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Readable when a datagram is there, writable when there is room.
impl AsFd for Association {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        self.control.abort();
    }
}

/// Until the proxy closes the connection; what it says on it means nothing.
async fn hold(mut control: TcpStream, tell: watch::Sender<bool>) {
    let mut buffer = [0; 64];
    while control.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
    tell.send_replace(false);
}

/// The header of a datagram to `to`, and its length.
fn header_to(to: SocketAddr) -> ([u8; HEADER_BYTES_MAX], usize) {
    let mut address = [0; ADDRESS_BYTES_MAX];
    let len = write_address(&mut address, to);
    // What is in front is zero.
    let mut header = [0; HEADER_BYTES_MAX];
    header[PREFIX.len()..].copy_from_slice(&address);
    (header, PREFIX.len() + len)
}

/// Sender and payload of a datagram whose first bytes are in `header` and the other `len` in `buffer`. `None` for fragments,
/// names in place of addresses, and whatever else is no datagram of an association.
fn unwrap(header: &[u8], buffer: &mut [u8], len: usize) -> Option<(SocketAddr, usize)> {
    let address = header.strip_prefix(&PREFIX)?;
    if let Some((from, _)) = read_address(address) {
        return Some((from, len));
    }
    // An IPv6 address reaches into the buffer.
    let more = buffer[..len].get(..IPV6_MORE_BYTES)?;
    let (from, _) = read_address(&[address, more].concat())?;
    buffer.copy_within(IPV6_MORE_BYTES..len, 0);
    Some((from, len - IPV6_MORE_BYTES))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_datagram_is_unwrapped_as_it_was_wrapped(ip: std::net::IpAddr, port: u16, payload: Vec<u8>) {
            let to = SocketAddr::new(ip, port);
            let (header, len) = header_to(to);
            let datagram = [&header[..len], &payload].concat();
            let (head, rest) = datagram.split_at(IPV4_HEADER_BYTES);
            let mut buffer = rest.to_vec();
            prop_assert_eq!(unwrap(head, &mut buffer, rest.len()), Some((to, payload.len())));
            prop_assert_eq!(&buffer[..payload.len()], &payload[..]);
        }

        #[test]
        fn no_datagram_is_a_panic(header: [u8; IPV4_HEADER_BYTES], mut rest: Vec<u8>, plain: bool) {
            let mut header = header;
            if plain {
                header[..3].fill(0);
                header[3] = 4;
            }
            let len = rest.len();
            let _ = unwrap(&header, &mut rest, len);
        }
    }

    #[test]
    fn fragments_names_and_half_headers_are_dropped() {
        let mut buffer = [7; 64];
        let good = [0, 0, 0, 1, 10, 0, 0, 1, 0, 80];
        assert!(unwrap(&good, &mut buffer, 5).is_some());
        for (at, byte) in [(0, 1), (1, 1), (2, 1), (3, 3), (3, 9)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(unwrap(&bad, &mut buffer, 5), None, "byte {at} is {byte}");
        }
        let mut cut = good;
        cut[3] = 4;
        assert_eq!(unwrap(&cut, &mut buffer, IPV6_MORE_BYTES - 1), None);
    }
}
