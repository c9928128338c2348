//! The two ends of a transfer.

use std::fmt;

use minicbor::{Decode, Encode};

/// The two ends of a transfer, independent of which side dialled. Each index is the role's number
/// in Hello (SPEC §10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Role {
    /// Offers files.
    #[n(1)]
    Sender,
    /// Fetches files.
    #[n(2)]
    Receiver,
}

impl Role {
    /// Returns the other end.
    pub fn peer(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        })
    }
}
