//! States that survive their process. The vault (the application's store,
//! [`KeyVault`](crate::vault::KeyVault)) holds each state change before the effect of the change
//! becomes visible.
//!
//! | module | content |
//! |---|---|
//! | `slot` | the place of a state in a vault, and recovery after a failed store |
//! | `session` | a [`Session`](crate::Session) |
//! | `ratchet` | a [`Ratchet`](crate::ratchet::Ratchet) |
//! | `prekeys` | [`PreKeys`](crate::ratchet::PreKeys) |
//!
//! Invariant: before a call returns a message, an opened text or a bundle, the vault holds the
//! state after it. So a process that is killed at any moment and restarted from its vault uses no
//! number or key twice and opens nothing twice. If the vault fails, the state is unchanged and the
//! call can be repeated. A process that finds that another process wrote under its name stores
//! nothing any more.
//!
//! The price: if a process is killed after the store and before it uses an opened text, it loses
//! that text. The peer cannot tell this from a message lost on the way. So an application should
//! retransmit important messages until they are answered.

mod prekeys;
mod ratchet;
mod session;
mod slot;

use thiserror::Error;

pub use prekeys::StoredPreKeys;
pub use ratchet::StoredRatchet;
pub use session::StoredSession;

use crate::bytes::StateError;
use crate::ratchet::{DecryptError, EncryptBatchError, EncryptError, StartError};
use crate::session::{BatchError, OpenError, SealError};
use crate::vault::{RecordError, VaultError};

/// Why a stored state was not loaded or not stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The record name is invalid.
    #[error("a name has 1 to 64 of a-z, A-Z, 0-9, - and _")]
    Name,
    /// A record of this name already exists.
    #[error("a record of this name already exists")]
    Exists,
    /// No record of this name exists.
    #[error("there is no record of this name")]
    Missing,
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The vault returned bytes that are no valid record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record holds another kind of state.
    #[error("the record holds another kind of state")]
    Kind,
    /// The state in the record is damaged or has another version.
    #[error(transparent)]
    State(#[from] StateError),
    /// The record is older than the newest that the vault has counted: it was restored from a copy.
    /// Continuing would reuse numbers and keys.
    #[error("the record was rolled back: generation {found}, but {latest} was stored already")]
    RolledBack {
        /// Generation of the record.
        found: u64,
        /// Latest stored generation.
        latest: u64,
    },
    /// The session could not seal the message.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The session could not seal the batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The session could not open the message.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The conversation could not start, or the prekeys could not be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The ratchet could not encrypt the message.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// The ratchet could not encrypt the batch.
    #[error(transparent)]
    EncryptBatch(#[from] EncryptBatchError),
    /// The ratchet could not decrypt the message.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
}
