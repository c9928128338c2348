//! UDP to one server through a SOCKS5 proxy (RFC 1928 §7), for whoever has a socket: where its datagrams go, and the header in front
//! of each.
//!
//! ```text
//! datagram   0 ‖ 0 ‖ fragment(1) = 0 ‖ address ‖ payload        to and from the proxy's UDP port
//! ```
//!
//! The header of a datagram from the server has the server's address as the proxy sees it, and is the one of datagrams to there, too:
//! where the server is known by its name, the first datagrams have the name, and the others what the first answer had.
//!
//! The association lives as long as the TCP connection on which it was made: a task holds that, and tells when it ends.
//!
//! Datagrams go to the address at which the proxy itself was reached, with the port that it named. The address that it names is
//! not used: behind a NAT it is often wrong, and it would let a proxy make us send to anybody.

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

/// In front of what comes from a server, and goes to one whose address is known, at most: so much less fits into a datagram.
pub const HEADER_BYTES_MAX: usize = PREFIX.len() + ADDRESS_BYTES_MAX;
/// Two reserved bytes, and the number of a fragment: none.
const PREFIX: [u8; 3] = [0; 3];
/// A proxy that vanished without a word is noticed after two minutes.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(20));

/// A UDP port of a proxy, and what it takes to reach one server through it. Dropping it ends it.
#[derive(Debug)]
pub struct Association {
    proxy: SocketAddr,
    target: Target,
    header: Vec<u8>,
    open: watch::Receiver<bool>,
    /// Holds the TCP connection.
    control: JoinHandle<()>,
}

impl Association {
    /// Of a TCP connection on which the proxy has granted one at its UDP `port`.
    pub(crate) fn new(control: TcpStream, port: u16, target: Target) -> io::Result<Self> {
        let proxy = SocketAddr::new(control.peer_addr()?.ip(), port);
        // An association without it lasts as long as the proxy says; that is no reason not to have it.
        let _ = SockRef::from(&control).set_tcp_keepalive(&KEEPALIVE);
        let (tell, open) = watch::channel(true);
        let control = tokio::spawn(hold(control, tell));
        let header = header_to(&target);
        Ok(Self { proxy, target, header, open, control })
    }

    /// The proxy's UDP port: datagrams go there, and come from there or are none of this.
    #[must_use]
    pub fn proxy(&self) -> SocketAddr {
        self.proxy
    }

    /// In front of datagrams to the server: [`HEADER_BYTES_MAX`] at most for an address, 262 for a name.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// How long the header in front of `datagram` is, if that comes from the server: from its address, or, where only its name is
    /// known, from its port of any address. `None` for fragments, names in place of addresses, other senders, and what is no datagram
    /// of an association.
    #[must_use]
    pub fn header_from(&self, datagram: &[u8]) -> Option<usize> {
        let (from, len) = read_address(datagram.strip_prefix(&PREFIX)?)?;
        let is_target = match &self.target {
            Target::Address(address) => from == *address,
            Target::Name(_, port) => from.port() == *port,
        };
        is_target.then_some(PREFIX.len() + len)
    }

    /// Returns when the proxy has ended it.
    pub async fn closed(&self) {
        // The sender is gone only with the association itself.
        let _ = self.open.clone().wait_for(|open| !open).await;
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

fn header_to(target: &Target) -> Vec<u8> {
    let mut header = PREFIX.to_vec();
    write_target(&mut header, target);
    header
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One whose proxy is nobody.
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
        fn an_answer_of_the_server_has_the_header_of_a_question_to_it(
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
            // Who is known by name answers from an address, which nobody knew before.
            let named = to(Target::Name("relay.example".into(), port));
            prop_assert_eq!(named.header_from(&datagram), Some(len));
        }

        #[test]
        fn no_datagram_is_a_panic(datagram: Vec<u8>, kind in 0_u8..6, port: u16) {
            let association = to(Target::Name("relay.example".into(), port));
            let _ = association.header_from(&datagram);
            let _ = association.header_from(&[&[0, 0, 0, kind], &datagram[..]].concat());
        }
    }

    #[test]
    fn a_name_is_in_front_of_the_first_datagrams_and_no_answer_has_one() {
        let association = to(Target::Name("relay.example".into(), 443));
        let header = [&[0, 0, 0, 3, 13][..], b"relay.example", &[1, 187]].concat();
        assert_eq!(association.header(), header);
        assert_eq!(association.header_from(&[&header[..], b"payload"].concat()), None);
    }

    #[test]
    fn fragments_names_and_other_ports_are_none_of_the_servers() {
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
