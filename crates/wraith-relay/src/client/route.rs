//! Where the UDP datagrams of a relay go and come from: its own address, or a proxy's, each behind a header.
//!
//! Invariant: by a proxy nothing but bindings goes until the relay has answered one by it. The header of that answer is then the
//! one of every datagram, in both directions, and what has another one is not the relay's.

use std::net::SocketAddr;

use super::connect::{ASSOCIATION_HEADER_MAX, UdpAssociation};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    to: SocketAddr,
    header: Option<Header>,
}

/// The header of datagrams by a proxy; empty for those that go straight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    bytes: [u8; ASSOCIATION_HEADER_MAX],
    len: usize,
}

impl Route {
    /// Straight to the relay's UDP port.
    pub fn straight(relay: SocketAddr) -> Self {
        Self { to: relay, header: Some(Header { bytes: [0; ASSOCIATION_HEADER_MAX], len: 0 }) }
    }

    /// To a proxy's UDP port, by which the relay has not answered yet.
    pub fn unproved(proxy: SocketAddr) -> Self {
        Self { to: proxy, header: None }
    }

    /// The relay has answered behind `header`. Nothing changes if that is longer than one can be.
    pub fn prove(&mut self, header: &[u8]) {
        let mut bytes = [0; ASSOCIATION_HEADER_MAX];
        let Some(front) = bytes.get_mut(..header.len()) else { return };
        front.copy_from_slice(header);
        self.header = Some(Header { bytes, len: header.len() });
    }

    /// The address that datagrams go to and come from.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// In front of each; `None` until it is proved.
    #[inline]
    pub fn header(&self) -> Option<&[u8]> {
        self.header.as_ref().map(|header| &header.bytes[..header.len])
    }

    /// How many bytes are in front of `datagram`, which came from `from`, if it may be the relay's.
    #[inline]
    pub fn header_len_of(&self, from: SocketAddr, datagram: &[u8]) -> Option<usize> {
        let header = self.header().filter(|_| self.to == from)?;
        datagram.starts_with(header).then_some(header.len())
    }

    /// The header in front of `datagram`, which came from [`Self::to`], and the rest, if it may be the relay's. Until that is proved it is
    /// the `association` with the proxy that knows.
    pub fn split<'a>(
        &self,
        association: Option<&dyn UdpAssociation>,
        datagram: &'a mut [u8],
    ) -> Option<(&'a [u8], &'a mut [u8])> {
        let len = match self.header() {
            Some(header) => datagram.starts_with(header).then_some(header.len()),
            None => association?.header_from(datagram),
        };
        let (header, rest) = datagram.split_at_mut_checked(len?)?;
        Some((header, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        (std::net::Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn straight_is_behind_nothing_and_from_the_relay_alone() {
        let route = Route::straight(address(1));
        assert_eq!(route.header(), Some(&[][..]));
        assert_eq!(route.header_len_of(address(1), b"datagram"), Some(0));
        assert_eq!(route.header_len_of(address(2), b"datagram"), None);
        let mut datagram = *b"datagram";
        assert_eq!(route.split(None, &mut datagram).unwrap().1, b"datagram");
    }

    #[test]
    fn by_a_proxy_nothing_is_the_relays_until_it_has_answered_and_then_what_is_behind_that_header()
    {
        let mut route = Route::unproved(address(1));
        assert_eq!(route.header(), None);
        assert_eq!(route.header_len_of(address(1), b"headerdatagram"), None);
        route.prove(&[7; ASSOCIATION_HEADER_MAX + 1]);
        assert_eq!(route.header(), None);
        route.prove(b"header");
        assert_eq!(route.header(), Some(&b"header"[..]));
        assert_eq!(route.header_len_of(address(1), b"headerdatagram"), Some(6));
        for (from, datagram) in
            [(1, &b"hEaderdatagram"[..]), (1, b"heade"), (1, b""), (2, b"headerd")]
        {
            assert_eq!(route.header_len_of(address(from), datagram), None);
        }
    }

    /// An association whose headers are six bytes long.
    #[derive(Debug)]
    struct Six;

    impl UdpAssociation for Six {
        fn proxy(&self) -> SocketAddr {
            address(1)
        }

        fn header(&self) -> &[u8] {
            b"asked:"
        }

        fn header_from(&self, datagram: &[u8]) -> Option<usize> {
            (datagram.get(5) == Some(&b':')).then_some(6)
        }

        fn closed(&self) -> wraith_discovery::BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn what_the_association_takes_for_the_relays_is_split_until_one_header_is_proved() {
        let split = |route: &Route, datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            route.split(Some(&Six), &mut datagram).map(|(header, _)| header.to_vec())
        };
        let mut route = Route::unproved(address(1));
        assert_eq!(route.split(None, &mut b"first:datagram".to_vec()), None);
        assert_eq!(split(&route, b"first:datagram"), Some(b"first:".to_vec()));
        assert_eq!(split(&route, b"datagram"), None);
        route.prove(b"first:");
        assert_eq!(split(&route, b"first:datagram"), Some(b"first:".to_vec()));
        assert_eq!(split(&route, b"other:datagram"), None);
    }
}
