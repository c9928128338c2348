//! Addresses of contacts: an IP address or a host name, with or without a port.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// The longest name in the Domain Name System.
const MAX_HOST_LEN: usize = 253;

/// `HOST[:PORT]`. The default port is the usual port of the contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactAddress {
    /// A host name, or an IP address without brackets.
    host: String,
    port: Option<u16>,
}

/// A text is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an address is IP, IP:PORT, HOST or HOST:PORT, with a port from 1 to 65535")]
pub struct ContactAddressError;

impl ContactAddress {
    /// Returns the host name or IP address (without brackets) and the port; `usual_port` if it has
    /// none.
    pub fn host_and_port(&self, usual_port: u16) -> (&str, u16) {
        (&self.host, self.port.unwrap_or(usual_port))
    }
}

impl From<SocketAddr> for ContactAddress {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_canonical().to_string(), port: Some(address.port()) }
    }
}

impl fmt::Display for ContactAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.host.contains(':')) {
            (None, _) => f.write_str(&self.host),
            (Some(port), true) => write!(f, "[{}]:{port}", self.host),
            (Some(port), false) => write!(f, "{}:{port}", self.host),
        }
    }
}

impl FromStr for ContactAddress {
    type Err = ContactAddressError;

    fn from_str(text: &str) -> Result<Self, ContactAddressError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return if address.port() == 0 { Err(ContactAddressError) } else { Ok(address.into()) };
        }
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self { host: ip.to_canonical().to_string(), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| ContactAddressError)?)),
            None => (text, None),
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let fits = (1..=MAX_HOST_LEN).contains(&host.len()) && host.chars().all(is_word);
        if !fits || host.starts_with('-') || port == Some(0) {
            return Err(ContactAddressError);
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

/// Returns whether `address` is useful for a later connection. Link-local addresses are not: they
/// need their interface.
pub fn is_lasting(address: SocketAddr) -> bool {
    let link_local = match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => Ipv6Addr::is_unicast_link_local(&ip),
    };
    !link_local && address.port() != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, ContactAddressError> {
        text.parse::<ContactAddress>().map(|address| address.to_string())
    }

    #[test]
    fn addresses_and_machines_are_read_with_and_without_a_port() {
        for text in ["192.0.2.1", "192.0.2.1:9", "2001:db8::1", "[2001:db8::1]:9", "home.example:9"]
        {
            assert_eq!(parse(text).as_deref(), Ok(text));
        }
        assert_eq!(parse("[2001:db8::1]").as_deref(), Ok("2001:db8::1"));
        assert_eq!(parse("[::ffff:192.0.2.1]:9").as_deref(), Ok("192.0.2.1:9"));
    }

    #[test]
    fn nonsense_is_refused() {
        let long = "a".repeat(254);
        for text in ["", ":9", "a:", "a:b", "a:0", "1.2.3.4:0", "a b", "-a", "a\u{1b}", "é", &long]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_usual_port_is_used_where_none_is_named() {
        let address = |text: &str| text.parse::<ContactAddress>().unwrap();
        assert_eq!(address("127.0.0.1").host_and_port(7), ("127.0.0.1", 7));
        assert_eq!(address("[::1]:9").host_and_port(7), ("::1", 9));
    }
}
