//! The address of a peer as applications know it.
//!
//! The core sees a small number in the place of anything but an IP address ([`PathAddr`](wraith_core::PathAddr)); the mover's
//! [`Names`](crate::mover::Names) translate.

use std::fmt;
use std::net::SocketAddr;

/// Where a peer is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addr {
    /// UDP to an IP address and port.
    Ip(SocketAddr),
    /// An address of a [`Bind`](crate::mover::Bind) that the application brought.
    Custom {
        /// Which [`Bind::kind`](crate::mover::Bind::kind).
        kind: u64,
        /// What it calls the address; only it knows what the bytes mean.
        bytes: Box<[u8]>,
    },
}

impl Addr {
    /// The IP address and port, if it is one.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Custom { .. } => None,
        }
    }
}

impl From<SocketAddr> for Addr {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl From<&SocketAddr> for Addr {
    fn from(address: &SocketAddr) -> Self {
        Self::Ip(*address)
    }
}

impl From<&Addr> for Addr {
    fn from(address: &Addr) -> Self {
        address.clone()
    }
}

impl PartialEq<SocketAddr> for Addr {
    fn eq(&self, other: &SocketAddr) -> bool {
        self.ip() == Some(*other)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Custom { kind, bytes } => {
                write!(f, "{kind:x}:")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}
