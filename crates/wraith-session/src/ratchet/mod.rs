//! Conversations for peers that are rarely online together: the Double Ratchet with header
//! encryption. A conversation starts from prekeys, which are public keys that the responder
//! published beforehand. The start and some of the later steps also use ML-KEM-768.
//!
//! ```
//! use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! use wraith_crypto::SecretIdentity;
//! use wraith_session::ratchet::{PreKeyBundle, PreKeys, Ratchet};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // (Use the operating system's generator and random seeds instead.)
//! let mut rng = ChaCha20Rng::from_seed([1; 32]);
//! let (alice, bob) = (SecretIdentity::from_seed([2; 32]), SecretIdentity::from_seed([3; 32]));
//!
//! // Bob publishes prekeys and goes away.
//! let mut prekeys = PreKeys::generate(&mut rng, &bob, 10);
//! let published = prekeys.bundle().encode();
//!
//! // Alice starts a conversation.
//! let bundle = PreKeyBundle::decode(&published)?;
//! assert_eq!(bundle.node_id(), bob.node_id());
//! let mut alices = Ratchet::initiate(&mut rng, &alice, &bundle)?;
//! let mut message = Vec::new();
//! alices.encrypt(&mut rng, b"", b"hello", &mut message)?;
//!
//! // Bob comes back, reads and answers.
//! let (mut bobs, hello) = Ratchet::respond(&bob, &mut prekeys, b"", &message)?;
//! assert_eq!((hello.as_slice(), bobs.peer()), (&b"hello"[..], alice.node_id()));
//! let (mut answer, mut text) = (Vec::new(), Vec::new());
//! bobs.encrypt(&mut rng, b"", b"hello yourself", &mut answer)?;
//! alices.decrypt(b"", &answer, &mut text)?;
//! assert_eq!(text, b"hello yourself");
//! # Ok(())
//! # }
//! ```
//!
//! | module | content |
//! |---|---|
//! | `bundle`, `prekeys` | the published prekeys of a responder, and their secrets |
//! | `start` | PQXDH, and the differences from it |
//! | `double_ratchet` | the state of a conversation and its steps |
//! | `batch` | batches of messages |
//! | `hybrid` | the ML-KEM steps |
//! | `skipped` | keys of missing messages |
//! | `keys` | the key schedule |
//! | `message`, `padding` | the layout of a message |
//! | `state` | saving and restoring, and the effects of a rollback |
//! | `group` | the same message to several peers |
//!
//! # Guarantees
//! - Messages may be lost, reordered and duplicated: each message that arrives opens once.
//!   [`SKIP_MAX`], [`SKIPPED_MAX`] and the lifetimes of keys limit how late a message may arrive.
//! - *Forward secrecy*: a stolen state does not decrypt messages that were decrypted before the
//!   theft.
//! - *Healing*: after the theft of its state, a side makes a new key, and the peer answers it. From
//!   that turn on the stolen state decrypts no new message. Against an attacker with a quantum
//!   computer this holds from the next hybrid step on ([`KEM_INTERVAL`]).
//! - The state changes only after a message has authenticated.
//! - An observer of messages sees their length (unless [padded](Ratchet::set_padding)), and whether
//!   they carry the initial part. Numbers and ratchet keys are encrypted. All bytes look random,
//!   except the first byte and the initial part.
//!
//! # Non-guarantees
//! - Two sides that start at the same time have two conversations; the caller decides which of them
//!   to continue.
//! - A start without one-time prekeys has no forward secrecy until the responder has rotated out
//!   (deleted) the signed prekeys that it used.
//! - Authentication relies on X25519: an attacker with a quantum computer at the time of a start
//!   can impersonate a peer.
//!
//! # Lost or rolled-back states
//! [`StoredRatchet`](crate::StoredRatchet) and [`StoredPreKeys`](crate::StoredPreKeys) keep states
//! in a vault ([`KeyVault`](crate::vault::KeyVault), the application's store). A caller that stores
//! states itself follows the rules of [`Ratchet::save`]: it saves a state before it sends that
//! state's messages. The module `state` describes the effects of a rollback: no body key seals two
//! texts, but the conversation may have to be restarted.

mod batch;
mod bundle;
mod codec;
mod curve;
mod double_ratchet;
mod error;
mod group;
mod hybrid;
mod keys;
mod message;
mod padding;
mod prekeys;
mod skipped;
mod start;
mod state;
#[cfg(test)]
mod tests;

pub use batch::{DecryptedBatch, EncryptBatchError};
pub use bundle::{BUNDLE_BYTES_MAX, PreKeyBundle};
pub use double_ratchet::Ratchet;
pub use error::{DecryptError, EncryptError, StartError};
pub use group::{GROUP_MAX, Group, GroupError};
pub use hybrid::{KEM_INTERVAL, KEM_INTERVAL_BYTES};
pub use message::{MESSAGE_BYTES_MAX, OVERHEAD_BYTES, PLAINTEXT_BYTES_MAX};
pub use padding::padme;
pub use prekeys::{LAST_RESORT_MAX, ONE_TIME_MAX, PreKeys};
pub use skipped::{
    OLD_CHAINS_MAX, SKIP_MAX, SKIPPED_LIFETIME, SKIPPED_LIFETIME_MESSAGES, SKIPPED_MAX,
};
