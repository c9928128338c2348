//! Target of a proxy request: an address, or a name that the proxy resolves.

use std::net::{IpAddr, SocketAddr};

use crate::error::ProxyError;
use crate::url::{authority, is_host};

/// A host and a port. A name has at most 253 bytes of letters, digits, `-`, `.` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Address(SocketAddr),
    Name(String, u16),
}

impl Target {
    pub fn new(host: &str, port: u16) -> Result<Self, ProxyError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self::Address(SocketAddr::new(address, port)));
        }
        if !is_host(host) {
            return Err(ProxyError::BadTarget(host.to_owned()));
        }
        Ok(Self::Name(host.to_owned(), port))
    }

    /// Returns `host:port`.
    pub fn authority(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Name(name, port) => authority(name, *port),
        }
    }
}
