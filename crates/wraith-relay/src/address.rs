//! Where somebody is reached through a relay, as tickets and contacts carry it (SPEC §13.8).
//!
//! Invariant: a [`RelayAddr`] that exists has a host of 1 to 253 bytes of letters, digits, dots, hyphens and colons, and whatever
//! decodes encodes to the same bytes again.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use thiserror::Error;

use crate::frame::{MAILBOX_BYTES, Mailbox};
use crate::wire::Reader;

/// Longest name of a host (RFC 1035 §2.3.4, as text).
pub const HOST_MAX: usize = 253;
/// Longest encoding.
pub const RELAY_ADDR_MAX: usize = 1 + HOST_MAX + 2 + PIN_BYTES + MAILBOX_BYTES;
/// Bytes of a pin: SHA-256 of the public key in the relay's certificate, with its algorithm (SubjectPublicKeyInfo).
pub const PIN_BYTES: usize = 32;

/// A relay, and who waits there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RelayAddr {
    host: Box<str>,
    port: u16,
    pin: [u8; PIN_BYTES],
    mailbox: Mailbox,
}

/// Not the address of anybody at a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an address at a relay")]
pub struct RelayAddrError;

impl RelayAddr {
    /// Who waits at `mailbox` of the relay at `host` and `port`, whose certificate has the key `pin`.
    ///
    /// # Errors
    /// The host is neither a name nor an IP address, or the port is 0.
    pub fn new(
        host: &str,
        port: u16,
        pin: [u8; PIN_BYTES],
        mailbox: Mailbox,
    ) -> Result<Self, RelayAddrError> {
        if !is_host(host) || port == 0 {
            return Err(RelayAddrError);
        }
        Ok(Self { host: host.into(), port, pin, mailbox })
    }

    /// The relay's name or IP address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The relay's port, TCP and UDP.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the relay's certificate must have.
    pub fn pin(&self) -> &[u8; PIN_BYTES] {
        &self.pin
    }

    /// Who waits.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// `length(1) ‖ host ‖ port(2) ‖ pin(32) ‖ mailbox(16)`, at most [`RELAY_ADDR_MAX`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 + self.host.len() + 2 + PIN_BYTES + MAILBOX_BYTES);
        out.push(self.host.len() as u8);
        out.extend_from_slice(self.host.as_bytes());
        out.extend_from_slice(&self.port.to_be_bytes());
        out.extend_from_slice(&self.pin);
        out.extend_from_slice(&self.mailbox);
        out
    }

    /// Reads one from the front of `bytes`, and how many they were: addresses stand one after the other in a ticket.
    ///
    /// # Errors
    /// There is none.
    pub fn decode_prefix(bytes: &[u8]) -> Result<(Self, usize), RelayAddrError> {
        let mut reader = Reader::new(bytes);
        let mut read = || {
            let len = reader.u8()?.into();
            let host = std::str::from_utf8(reader.take(len)?).ok()?;
            let address = Self::new(host, reader.u16()?, reader.array()?, reader.array()?).ok()?;
            Some((address, bytes.len() - reader.rest().len()))
        };
        read().ok_or(RelayAddrError)
    }

    /// Reads one that is all of `bytes`.
    ///
    /// # Errors
    /// It is none, or more than one.
    pub fn decode(bytes: &[u8]) -> Result<Self, RelayAddrError> {
        match Self::decode_prefix(bytes)? {
            (address, len) if len == bytes.len() => Ok(address),
            _ => Err(RelayAddrError),
        }
    }
}

/// A name or an IP address. What it means is up to who resolves it; here nothing odd gets into logs or onto screens.
fn is_host(host: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    (1..=HOST_MAX).contains(&host.len()) && host.bytes().all(is_fine)
}

/// Lower-case base32 of the encoding.
impl fmt::Display for RelayAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD.encode(&self.encode()).to_ascii_lowercase())
    }
}

impl FromStr for RelayAddr {
    type Err = RelayAddrError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > RELAY_ADDR_MAX.div_ceil(5) * 8 {
            return Err(RelayAddrError);
        }
        let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes());
        Self::decode(&bytes.map_err(|_| RelayAddrError)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_from_bytes_and_text() {
        for host in ["relay.example", "192.0.2.1", "2001:db8::1", &"a".repeat(HOST_MAX)] {
            let address = RelayAddr::new(host, 443, [1; 32], [2; 16]).unwrap();
            let bytes = address.encode();
            assert!(bytes.len() <= RELAY_ADDR_MAX);
            assert_eq!(RelayAddr::decode(&bytes), Ok(address.clone()));
            assert_eq!(address.to_string().parse(), Ok(address.clone()));
            let two = [&bytes[..], &bytes[..]].concat();
            assert_eq!(RelayAddr::decode_prefix(&two), Ok((address, bytes.len())));
            assert_eq!(RelayAddr::decode(&two), Err(RelayAddrError));
            assert!((0..bytes.len()).all(|len| RelayAddr::decode(&bytes[..len]).is_err()));
        }
    }

    #[test]
    fn odd_hosts_no_port_and_endless_text_are_refused() {
        for host in ["", "a b", "a\n", "ä", "a/b", "[::1]", &"a".repeat(HOST_MAX + 1)] {
            assert_eq!(RelayAddr::new(host, 443, [1; 32], [2; 16]), Err(RelayAddrError), "{host}");
        }
        assert_eq!(RelayAddr::new("a", 0, [1; 32], [2; 16]), Err(RelayAddrError));
        assert!("a".repeat(1 << 20).parse::<RelayAddr>().is_err());
    }
}
