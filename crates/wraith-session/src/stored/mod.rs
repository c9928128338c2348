//! States that survive their process: whatever changes one is in a vault before anybody can see that it has changed.
//!
//! | module | what |
//! |---|---|
//! | `slot` | the place of a state in a vault, and what a store that failed has left there |
//! | `session` | a [`Session`](crate::Session) |
//! | `ratchet` | a [`Ratchet`](crate::ratchet::Ratchet) |
//! | `prekeys` | [`PreKeys`](crate::ratchet::PreKeys) |
//!
//! Invariant: what was given out (a message, an opened text, a bundle) is in the vault. So a process that is killed at any moment and starts again from its
//! vault uses no number or key twice and opens nothing twice. A vault that fails changes nothing: the call can be made again. Whoever finds that
//! somebody else has stored under its name stores nothing any more.
//!
//! The price: who is killed between the store and the use of a text that was opened does not get it again. To the other side that
//! looks like any other message that was lost, so what must arrive is asked for until it is answered.

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

/// Why a stored state was not loaded, or not stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Not a name of a record.
    #[error("a name has 1 to 64 of a-z, A-Z, 0-9, - and _")]
    Name,
    /// There is a record of this name already.
    #[error("there is a record of this name already")]
    Exists,
    /// There is no record of this name.
    #[error("there is no record of this name")]
    Missing,
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// What the vault holds is no record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record is of something else.
    #[error("the record is not of this kind")]
    Kind,
    /// The state in the record is damaged or of another version.
    #[error(transparent)]
    State(#[from] StateError),
    /// The record is older than the newest that the vault knows of: it was restored from a copy. To go on with it would use numbers
    /// and keys again.
    #[error("the record was rolled back: generation {found}, but {latest} was stored already")]
    RolledBack {
        /// The generation of the record.
        found: u64,
        /// The latest one.
        latest: u64,
    },
    /// Nothing was sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// Nothing was sealed of a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The message was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No conversation started, or no prekeys were made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A ratchet encrypted nothing.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// A ratchet encrypted nothing of a batch.
    #[error(transparent)]
    EncryptBatch(#[from] EncryptBatchError),
    /// A ratchet did not open the message.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
}
