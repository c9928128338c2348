//! The kinds of failures that all errors of this crate share, and the kind of each error.

use crate::codec::StateError;
use crate::fragment::FragmentError;
use crate::handshake::HandshakeError;
use crate::ratchet::{DecryptError, EncryptError, StartError};
use crate::sealed_box::SealedBoxError;
use crate::session::{BatchError, OpenError, SealError};
use crate::vault::{StoreError, VaultError};

/// The kind of a failure, for programs. Each error of this crate has a method `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// An argument or an option is invalid.
    InvalidInput,
    /// The named record or prekey does not exist.
    NotFound,
    /// The call is not allowed in this state.
    WrongState,
    /// A message, a signature or a saved state does not authenticate.
    Unauthentic,
    /// The message was opened before.
    Replayed,
    /// The message is so late that it is no longer opened.
    TooOld,
    /// The peer has another identity than expected, or does not prove its identity.
    WrongPeer,
    /// The bytes are no piece of a message.
    Malformed,
    /// The peer violated the protocol.
    Protocol,
    /// A limit is reached.
    Exhausted,
    /// The vault failed.
    Vault,
    /// Another writer uses the record, or the vault holds an older copy.
    Conflict,
}

/// Defines `reason` of each error. Brackets name the variants that have the reason of the error
/// inside.
macro_rules! reasons {
    ($($error:ident [$($inner:ident)?] { $($($variant:ident)|+ => $reason:ident,)* })*) => { $(
        impl $error {
            /// Returns the kind of this error.
            #[must_use]
            pub fn reason(&self) -> Reason {
                match self {
                    $($(Self::$variant { .. })|+ => Reason::$reason,)*
                    $(Self::$inner(inner) => inner.reason(),)?
                }
            }
        }
    )* };
}

reasons! {
    HandshakeError [] {
        Forbidden | Needs | PayloadLength => InvalidInput,
        Turn | NoKeys => WrongState,
        Unauthentic => Unauthentic,
        BadKey => Protocol,
        Identity | WrongPeer => WrongPeer,
    }
    SealError [Vault] {
        Length | Room => InvalidInput,
        NotSaved => WrongState,
        Exhausted => Exhausted,
    }
    OpenError [Vault] {
        Length | Unauthentic | TooFarAhead => Unauthentic,
        Replayed => Replayed,
        TooOld => TooOld,
    }
    StartError [Store] {
        Identity => InvalidInput,
        UnknownPreKey => NotFound,
        Replayed => Replayed,
        PreKeysExhausted => Exhausted,
        Malformed | UnknownVersion | Signature | PublicKey | Message => Unauthentic,
    }
    EncryptError [Vault] {
        TooLong => InvalidInput,
        ChainExhausted => Exhausted,
        PublicKey => Unauthentic,
    }
    DecryptError [Vault] {
        Replayed => Replayed,
        TooOld => TooOld,
        Violation => Protocol,
        Malformed | TooLong | Unauthentic => Unauthentic,
    }
    StoreError [Vault] {
        Name | Kind => InvalidInput,
        Missing => NotFound,
        Kept | OneKept => WrongState,
        Exists | RolledBack => Conflict,
        Record | State => Unauthentic,
    }
    VaultError [] {
        Conflict => Conflict,
        Failed => Vault,
    }
    StateError [] {
        Version | Malformed => Unauthentic,
    }
    FragmentError [] {
        Room => InvalidInput,
        Malformed => Malformed,
        TooLong => Exhausted,
    }
    SealedBoxError [] {
        Length | Recipient => InvalidInput,
        Malformed | Unauthentic => Unauthentic,
    }
}

impl BatchError<SealError> {
    /// Returns the kind of this error.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.why.reason()
    }
}

impl BatchError<EncryptError> {
    /// Returns the kind of this error.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.why.reason()
    }
}
