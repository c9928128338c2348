//! Address of a peer at a relay (SPEC §13): the relay, its pin (the hash of its certificate's key),
//! and the peer's mailbox (the name at which the relay finds the peer).
//!
//! Invariant: the host can be resolved and shown as it is. The host is short, and none of its
//! characters has a special meaning for a terminal, a URL or a resolver.

use std::fmt;

use thiserror::Error;

/// Most relays per peer: one and a spare, so that a ticket stays short.
pub const MAX_RELAYS: usize = 2;
/// Longest host name of a relay. Names can be four times as long; typed ones are not.
pub const MAX_HOST_LEN: usize = 64;
/// Length of a certificate pin in bytes.
pub const PIN_LEN: usize = 32;
/// Length of a mailbox name in bytes.
pub const MAILBOX_LEN: usize = 16;
/// Longest binary form in bytes.
pub const MAX_RELAY_LEN: usize = 1 + MAX_HOST_LEN + 2 + PIN_LEN + MAILBOX_LEN;

/// A mailbox at a relay.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RelayAddr {
    host: String,
    port: u16,
    pin: [u8; PIN_LEN],
    mailbox: [u8; MAILBOX_LEN],
}

/// Reason why this is not a relay address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RelayAddrError {
    /// The host is empty, too long, or has a character that is invalid in names and addresses.
    #[error("the name of a relay is empty, too long or holds a character that no name has")]
    BadHost,
    /// The port is 0.
    #[error("a relay has port 0")]
    BadPort,
    /// The input is truncated.
    #[error("it is truncated")]
    WrongLength,
}

impl RelayAddr {
    /// # Errors
    /// The host or port is invalid.
    pub fn new(
        host: &str,
        port: u16,
        pin: [u8; PIN_LEN],
        mailbox: [u8; MAILBOX_LEN],
    ) -> Result<Self, RelayAddrError> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || host.len() > MAX_HOST_LEN || !host.chars().all(is_good) {
            return Err(RelayAddrError::BadHost);
        }
        if port == 0 {
            return Err(RelayAddrError::BadPort);
        }
        Ok(Self { host: host.to_owned(), port, pin, mailbox })
    }

    /// Returns the host: a name or an IP address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port for TCP and UDP.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the pin of the relay's certificate.
    pub const fn pin(&self) -> &[u8; PIN_LEN] {
        &self.pin
    }

    /// Returns the peer's mailbox.
    pub const fn mailbox(&self) -> &[u8; MAILBOX_LEN] {
        &self.mailbox
    }

    /// Appends `length(1) ‖ host ‖ port(2) ‖ pin(32) ‖ mailbox(16)`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.host.len() as u8);
        out.extend_from_slice(self.host.as_bytes());
        out.extend_from_slice(&self.port.to_be_bytes());
        out.extend_from_slice(&self.pin);
        out.extend_from_slice(&self.mailbox);
    }

    /// Decodes the first address in `bytes` and returns the rest.
    ///
    /// # Errors
    /// The input is malformed.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), RelayAddrError> {
        let short = RelayAddrError::WrongLength;
        let (&len, bytes) = bytes.split_first().ok_or(short)?;
        let (host, bytes) = bytes.split_at_checked(usize::from(len)).ok_or(short)?;
        let (port, bytes) = bytes.split_first_chunk().ok_or(short)?;
        let (pin, bytes) = bytes.split_first_chunk().ok_or(short)?;
        let (mailbox, bytes) = bytes.split_first_chunk().ok_or(short)?;
        let host = str::from_utf8(host).map_err(|_| RelayAddrError::BadHost)?;
        Ok((Self::new(host, u16::from_be_bytes(*port), *pin, *mailbox)?, bytes))
    }

    /// Returns the length of the binary form in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        MAX_RELAY_LEN - MAX_HOST_LEN + self.host.len()
    }
}

impl fmt::Display for RelayAddr {
    /// Shows the relay without its mailbox.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for RelayAddr {
    /// Omits the mailbox, because its name allows dialling it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelayAddr({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoding_and_decoding_preserves_the_address(
            host in "[a-zA-Z0-9._:-]{1,64}", port in 1..=u16::MAX, pin: [u8; 32], mailbox: [u8; 16],
        ) {
            let address = RelayAddr::new(&host, port, pin, mailbox).unwrap();
            let mut bytes = Vec::new();
            address.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), address.encoded_len());
            bytes.push(7);
            prop_assert_eq!(RelayAddr::decode(&bytes), Ok((address, &[7][..])));
            prop_assert!(RelayAddr::decode(&bytes[..bytes.len() - 2]).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_encode_to_themselves(bytes: Vec<u8>) {
            if let Ok((address, rest)) = RelayAddr::decode(&bytes) {
                let mut again = Vec::new();
                address.encode(&mut again);
                again.extend_from_slice(rest);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn a_host_that_means_something_to_a_terminal_or_a_resolver_is_refused() {
        let long = "a".repeat(MAX_HOST_LEN + 1);
        for host in ["", "a b", "a\u{1b}[2J", "a/b", "user@host", "ä.example", "[::1]", &long] {
            let made = RelayAddr::new(host, 1, [0; 32], [0; 16]);
            assert_eq!(made, Err(RelayAddrError::BadHost), "{host}");
        }
        let no_port = RelayAddr::new("relay.example", 0, [0; 32], [0; 16]);
        assert_eq!(no_port, Err(RelayAddrError::BadPort));
    }

    #[test]
    fn display_omits_the_mailbox() {
        let address = RelayAddr::new("2001:db8::1", 443, [1; 32], [2; 16]).unwrap();
        assert_eq!(address.to_string(), "[2001:db8::1]:443");
        assert_eq!(format!("{address:?}"), "RelayAddr([2001:db8::1]:443)");
    }
}
