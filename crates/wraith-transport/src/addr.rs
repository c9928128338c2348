//! The address of a peer, as applications use it.
//!
//! The core represents a non-IP address by a small number ([`PathAddr`](wraith_core::PathAddr)).
//! The mover's [`AddressTable`](crate::mover::AddressTable) translates between address and number.

use std::fmt;
use std::net::SocketAddr;

use wraith_crypto::from_variants;

/// The address of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addr {
    /// UDP to an IP address and port.
    Ip(SocketAddr),
    /// An address of a [`MoverFactory`](crate::mover::MoverFactory) that the application supplied.
    Custom {
        /// The [`MoverFactory::kind`](crate::mover::MoverFactory::kind) that serves the address.
        kind: u64,
        /// Address bytes in the mover's own format.
        bytes: Box<[u8]>,
    },
}

impl Addr {
    /// Returns the IP address and port, if it is one.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Custom { .. } => None,
        }
    }
}

from_variants!(Addr { SocketAddr => Ip });

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
