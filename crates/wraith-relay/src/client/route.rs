//! The UDP route to a relay: its own address, or that of a proxy with a header in front of each
//! datagram.
//!
//! Invariant: through a proxy, only binding messages are sent until the relay has answered one of
//! them. From then on, every datagram in both directions has the header of that answer. A datagram
//! with another header is not from the relay.

use std::net::SocketAddr;

use super::connect::{ASSOCIATION_HEADER_MAX, UdpAssociation};

/// Address and header of the relay's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    to: SocketAddr,
    header: Option<Header>,
}

/// Header of datagrams through a proxy; empty for a direct route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    bytes: [u8; ASSOCIATION_HEADER_MAX],
    len: usize,
}

impl Route {
    /// Creates a direct route to the relay's UDP port.
    pub fn direct(relay: SocketAddr) -> Self {
        Self { to: relay, header: Some(Header { bytes: [0; ASSOCIATION_HEADER_MAX], len: 0 }) }
    }

    /// Creates a route through a proxy's UDP port on which the relay has not answered yet.
    pub fn through_proxy(proxy: SocketAddr) -> Self {
        Self { to: proxy, header: None }
    }

    /// Records the header of the relay's answer. A header beyond the limit is ignored.
    pub fn confirm_header(&mut self, header: &[u8]) {
        let mut bytes = [0; ASSOCIATION_HEADER_MAX];
        let Some(front) = bytes.get_mut(..header.len()) else { return };
        front.copy_from_slice(header);
        self.header = Some(Header { bytes, len: header.len() });
    }

    /// Returns the address that datagrams go to and come from.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Returns the header of each datagram; `None` before the relay's answer.
    #[inline]
    pub fn header(&self) -> Option<&[u8]> {
        self.header.as_ref().map(|header| &header.bytes[..header.len])
    }

    /// Returns the length of the header of `datagram` from `from` if the relay may have sent it.
    #[inline]
    pub fn header_len_of(&self, from: SocketAddr, datagram: &[u8]) -> Option<usize> {
        let header = self.header().filter(|_| self.to == from)?;
        datagram.starts_with(header).then_some(header.len())
    }

    /// Splits `datagram` from [`Self::to`] into header and payload if the relay may have sent it.
    /// Before the relay's first answer, the proxy's `association` recognises the header.
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
    fn a_direct_route_has_no_header_and_accepts_only_the_relay() {
        let route = Route::direct(address(1));
        assert_eq!(route.header(), Some(&[][..]));
        assert_eq!(route.header_len_of(address(1), b"datagram"), Some(0));
        assert_eq!(route.header_len_of(address(2), b"datagram"), None);
        let mut datagram = *b"datagram";
        assert_eq!(route.split(None, &mut datagram).unwrap().1, b"datagram");
    }

    #[test]
    fn a_proxy_route_accepts_datagrams_only_behind_the_confirmed_header() {
        let mut route = Route::through_proxy(address(1));
        assert_eq!(route.header(), None);
        assert_eq!(route.header_len_of(address(1), b"headerdatagram"), None);
        route.confirm_header(&[7; ASSOCIATION_HEADER_MAX + 1]);
        assert_eq!(route.header(), None);
        route.confirm_header(b"header");
        assert_eq!(route.header(), Some(&b"header"[..]));
        assert_eq!(route.header_len_of(address(1), b"headerdatagram"), Some(6));
        for (from, datagram) in
            [(1, &b"hEaderdatagram"[..]), (1, b"heade"), (1, b""), (2, b"headerd")]
        {
            assert_eq!(route.header_len_of(address(from), datagram), None);
        }
    }

    /// An association whose headers have six bytes.
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
    fn headers_of_the_association_are_split_until_one_is_confirmed() {
        let split = |route: &Route, datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            route.split(Some(&Six), &mut datagram).map(|(header, _)| header.to_vec())
        };
        let mut route = Route::through_proxy(address(1));
        assert_eq!(route.split(None, &mut b"first:datagram".to_vec()), None);
        assert_eq!(split(&route, b"first:datagram"), Some(b"first:".to_vec()));
        assert_eq!(split(&route, b"datagram"), None);
        route.confirm_header(b"first:");
        assert_eq!(split(&route, b"first:datagram"), Some(b"first:".to_vec()));
        assert_eq!(split(&route, b"other:datagram"), None);
    }
}
