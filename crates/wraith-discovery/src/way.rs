//! A way to reach a peer: a kind of carrier, and an address in the form of that kind (SPEC §2.1).
//!
//! Tickets, records and contact messages carry lists of ways. Within a kind, the most useful way
//! comes first.
//!
//! Invariant: a program keeps ways of kinds that it does not know, and does not dial them. So peers
//! with different carriers can still use those that both have.

use std::fmt;
use std::net::SocketAddr;

use thiserror::Error;
use wraith_crypto::from_variants;

use crate::relay_addr::RelayAddr;

/// Longest address of a [`CustomWay`] in bytes.
pub const MAX_WAY_LEN: usize = 255;
/// Length of `kind ‖ length` before such an address.
const HEAD_LEN: usize = 3;

/// A way to reach a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// UDP to an IP address and port.
    Ip(SocketAddr),
    /// A mailbox at a relay.
    Relay(RelayAddr),
    /// An address of another carrier.
    Custom(CustomWay),
}

/// An address that only the carrier of its kind can read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CustomWay {
    kind: u16,
    bytes: Box<[u8]>,
}

/// Reason why [`CustomWay::new`] refused its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WayError {
    /// The kind is that of IP addresses or relays, or 0.
    #[error("kind {0} of ways is not for other carriers")]
    ReservedKind(u16),
    /// The address is longer than [`MAX_WAY_LEN`].
    #[error("an address of {0} bytes is too long for a way")]
    TooLong(usize),
}

impl Way {
    /// Kind of [`Way::Ip`].
    pub const IP: u16 = 1;
    /// Kind of [`Way::Relay`].
    pub const RELAY: u16 = 2;

    /// Returns the kind, which names the carrier.
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Ip(_) => Self::IP,
            Self::Relay(_) => Self::RELAY,
            Self::Custom(way) => way.kind,
        }
    }

    /// Returns the IP address and port, if it is one.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            _ => None,
        }
    }

    /// Returns the mailbox at a relay, if it is one.
    pub const fn relay(&self) -> Option<&RelayAddr> {
        match self {
            Self::Relay(relay) => Some(relay),
            _ => None,
        }
    }

    /// Returns the address of another carrier, if it is one.
    pub const fn custom(&self) -> Option<&CustomWay> {
        match self {
            Self::Custom(way) => Some(way),
            _ => None,
        }
    }
}

impl CustomWay {
    /// Makes a way of a carrier other than UDP and relays. Applications use kinds from 256 on.
    ///
    /// # Errors
    /// The kind is reserved, or the address is too long.
    pub fn new(kind: u16, bytes: impl Into<Box<[u8]>>) -> Result<Self, WayError> {
        let bytes = bytes.into();
        if kind <= Way::RELAY {
            return Err(WayError::ReservedKind(kind));
        }
        if bytes.len() > MAX_WAY_LEN {
            return Err(WayError::TooLong(bytes.len()));
        }
        Ok(Self { kind, bytes })
    }

    /// Returns the kind, which names the carrier.
    pub const fn kind(&self) -> u16 {
        self.kind
    }

    /// Returns the address in the form of the carrier.
    pub const fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn encoded_len(&self) -> usize {
        HEAD_LEN + self.bytes.len()
    }

    /// Appends `kind(2) ‖ length(1) ‖ address`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.kind.to_be_bytes());
        out.push(self.bytes.len() as u8);
        out.extend_from_slice(&self.bytes);
    }

    /// Decodes the first way in `bytes`, and returns the rest. The way is an error if its kind has
    /// another place in the message. `None` if the input is truncated.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Result<Self, WayError>, &[u8])> {
        let ([high, low, len], rest) = bytes.split_first_chunk::<HEAD_LEN>()?;
        let (address, rest) = rest.split_at_checked(usize::from(*len))?;
        Some((Self::new(u16::from_be_bytes([*high, *low]), address), rest))
    }
}

/// Omits the address, which may allow dialling the peer.
impl fmt::Debug for CustomWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomWay").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Formats the way for people, without secrets.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Relay(relay) => write!(f, "relay {relay}"),
            Self::Custom(way) => write!(f, "carrier {}", way.kind),
        }
    }
}

from_variants!(Way { SocketAddr => Ip, RelayAddr => Relay, CustomWay => Custom });

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_way_survives_and_leaves_the_rest(
            kind in 3..=u16::MAX, bytes in prop::collection::vec(any::<u8>(), 0..=MAX_WAY_LEN),
        ) {
            let way = CustomWay::new(kind, bytes).unwrap();
            let mut out = Vec::new();
            way.encode(&mut out);
            prop_assert_eq!(out.len(), way.encoded_len());
            out.push(7);
            prop_assert_eq!(CustomWay::decode(&out), Some((Ok(way), &[7][..])));
            prop_assert!(CustomWay::decode(&out[..out.len() - 2]).is_none());
        }
    }

    #[test]
    fn reserved_kinds_and_long_addresses_are_refused() {
        for kind in [0, Way::IP, Way::RELAY] {
            assert_eq!(CustomWay::new(kind, []), Err(WayError::ReservedKind(kind)));
        }
        let long = CustomWay::new(256, vec![0; 64 << 10]);
        assert_eq!(long, Err(WayError::TooLong(64 << 10)));
    }
}
