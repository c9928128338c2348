//! UDP to one server through a SOCKS5 proxy (RFC 1928 §7). The caller brings its own socket; this
//! module supplies the destination address and the header of each datagram.
//!
//! ```text
//! datagram   0 ‖ 0 ‖ fragment(1) = 0 ‖ address ‖ payload        to and from the proxy's UDP port
//! ```
//!
//! A datagram from the server carries the server's address as the proxy sees it, and datagrams to
//! the server can use the same header. If only the server's name is known, the first datagrams
//! carry the name. After the first answer, the caller may send the header of that answer instead.
//!
//! The association lives as long as the TCP connection that created it. A task holds that
//! connection and reports its end.
//!
//! Datagrams go to the IP address of the TCP connection, with the port from the proxy's reply. The
//! address in the reply is ignored: behind a NAT it is often wrong, and it would let a proxy direct
//! this machine's traffic to any host.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::socks5::{ADDRESS_BYTES_MAX, read_address, write_target};
use crate::target::Target;

/// Maximum length of the header in front of a datagram from the server, or to a server with a known
/// address. The payload of a datagram shrinks by this much.
pub const HEADER_BYTES_MAX: usize = PREFIX.len() + ADDRESS_BYTES_MAX;
/// Two reserved bytes, then fragment number 0, which means that the datagram is not a fragment.
const PREFIX: [u8; 3] = [0; 3];
/// TCP keepalive of the control connection: a vanished proxy is detected after about two minutes.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(20));

/// A SOCKS5 UDP association with one server as its target (RFC 1928 §7). Drop closes it.
#[derive(Debug)]
pub struct Association {
    proxy: SocketAddr,
    target: Target,
    header: Vec<u8>,
    open: watch::Receiver<bool>,
    /// The task that holds the TCP connection.
    control: JoinHandle<()>,
}

impl Association {
    /// Wraps the control connection of an association that the proxy has granted at its UDP `port`.
    pub(crate) fn new(control: TcpStream, port: u16, target: Target) -> io::Result<Self> {
        let proxy = SocketAddr::new(control.peer_addr()?.ip(), port);
        // Without keepalive, the end of the association may go unnoticed; that does not make it
        // useless.
        let _ = SockRef::from(&control).set_tcp_keepalive(&KEEPALIVE);
        let (sender, open) = watch::channel(true);
        let control = tokio::spawn(wait_for_close(control, sender));
        let header = header_to(&target);
        Ok(Self { proxy, target, header, open, control })
    }

    /// Returns the proxy's UDP address. Send datagrams to it, and ignore datagrams from any other
    /// source.
    #[must_use]
    pub fn proxy(&self) -> SocketAddr {
        self.proxy
    }

    /// Returns the header of datagrams to the server: at most [`HEADER_BYTES_MAX`] bytes with an
    /// address, 262 with a name.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns the length of the header of `datagram` if it comes from the server. If only the
    /// server's name is known, any address with the server's port is accepted.
    ///
    /// Returns `None` for a fragment, a name in place of an address, another source, and any other
    /// invalid datagram.
    #[must_use]
    pub fn header_from(&self, datagram: &[u8]) -> Option<usize> {
        let (from, len) = read_address(datagram.strip_prefix(&PREFIX)?)?;
        let is_target = match &self.target {
            Target::Address(address) => from == *address,
            Target::Name(_, port) => from.port() == *port,
        };
        is_target.then_some(PREFIX.len() + len)
    }

    /// Completes when the proxy has closed the association.
    pub async fn closed(&self) {
        // The sender lives as long as the association itself.
        let _ = self.open.clone().wait_for(|open| !open).await;
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        self.control.abort();
    }
}

/// Waits until the proxy closes the connection. Data on it has no meaning.
async fn wait_for_close(mut control: TcpStream, sender: watch::Sender<bool>) {
    let mut buffer = [0; 64];
    while control.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
    sender.send_replace(false);
}

fn header_to(target: &Target) -> Vec<u8> {
    let mut header = PREFIX.to_vec();
    write_target(&mut header, target);
    header
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns an association without a real proxy.
    fn to(target: Target) -> Association {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Association {
            proxy: "127.0.0.1:9".parse().unwrap(),
            header: header_to(&target),
            target,
            open: watch::channel(true).1,
            control: runtime.spawn(async {}),
        }
    }

    proptest! {
        #[test]
        fn answers_of_the_target_have_the_header_of_requests_to_it(
            ip: std::net::IpAddr, port: u16, payload: Vec<u8>,
        ) {
            let association = to(Target::Address(SocketAddr::new(ip, port)));
            let len = if ip.is_ipv4() { 10 } else { HEADER_BYTES_MAX };
            prop_assert_eq!(association.header().len(), len);
            let datagram = [association.header(), &payload].concat();
            prop_assert_eq!(association.header_from(&datagram), Some(len));
            for cut in 0..len {
                prop_assert_eq!(association.header_from(&datagram[..cut]), None);
            }
            for byte in 0..len {
                let mut changed = datagram.clone();
                changed[byte] ^= 1;
                prop_assert_eq!(association.header_from(&changed), None, "byte {}", byte);
            }
            // A server known by name answers from an address that the client cannot predict.
            let named = to(Target::Name("relay.example".into(), port));
            prop_assert_eq!(named.header_from(&datagram), Some(len));
        }

        #[test]
        fn arbitrary_datagrams_do_not_panic(datagram: Vec<u8>, kind in 0_u8..6, port: u16) {
            let association = to(Target::Name("relay.example".into(), port));
            let _ = association.header_from(&datagram);
            let _ = association.header_from(&[&[0, 0, 0, kind], &datagram[..]].concat());
        }
    }

    #[test]
    fn the_first_datagrams_carry_the_name_and_answers_do_not() {
        let association = to(Target::Name("relay.example".into(), 443));
        let header = [&[0, 0, 0, 3, 13][..], b"relay.example", &[1, 187]].concat();
        assert_eq!(association.header(), header);
        assert_eq!(association.header_from(&[&header[..], b"payload"].concat()), None);
    }

    #[test]
    fn fragments_names_and_other_ports_are_rejected() {
        let association = to(Target::Name("relay.example".into(), 80));
        let good = [0, 0, 0, 1, 10, 0, 0, 1, 0, 80, 9];
        assert_eq!(association.header_from(&good), Some(10));
        for (at, byte) in [(0, 1), (1, 1), (2, 1), (2, 0x80), (3, 3), (3, 4), (3, 9), (9, 81)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(association.header_from(&bad), None, "byte {at} is {byte}");
        }
    }
}
