//! Conversations for peers that are rarely online together: the Double Ratchet with header
//! encryption. A conversation starts from prekeys, which are public keys that the responder
//! published beforehand. The start and some of the later steps also use ML-KEM-768.
//!
//! ```
//! use wraith_session::ratchet::{PreKeyBundle, PreKeys, Ratchet};
//! use wraith_session::{SecretIdentity, SystemRng};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut rng = SystemRng;
//! let (alice, bob) = (SecretIdentity::generate(), SecretIdentity::generate());
//!
//! // Bob publishes prekeys and goes away.
//! let mut prekeys = PreKeys::generate(&mut rng, &bob, 10);
//! let published = prekeys.bundle()?.encode();
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
//! | `kept` | conversations and prekeys in a vault |
//! | `hybrid` | the ML-KEM steps |
//! | `skipped` | keys of missing messages |
//! | `keys` | the key schedule |
//! | `chain` | chains of message keys |
//! | `message`, `padding` | the layout of a message |
//! | `state` | saving and restoring, and the effects of a rollback |
//! | `group` | the same message to several peers |
//!
//! # Guarantees
//! - Messages may be lost, reordered and duplicated: each message that arrives opens once, or it is
//!   too late and refused as [`DecryptError::TooOld`]. [`SKIP_MAX`], [`SKIPPED_MAX`],
//!   [`MISSING_CHAINS_MAX`] and the lifetimes of keys limit how late a message may arrive.
//! - No loss ends the conversation. After any number of lost messages the next one opens, at the
//!   cost of some thousand hashes.
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
//! # Late messages, forgeries and flooding
//! The header of a message names its number, but it is encrypted under the header key of its chain.
//! So a receiver recognizes only messages of chains whose header keys it holds. It holds them longer
//! than message keys, because one header key stands for a whole chain. Beyond
//! [`FORGOTTEN_CHAINS_MAX`] and [`COMPLETE_CHAINS_MAX`] a late message cannot be told from a
//! forgery, and the error is [`DecryptError::Unauthentic`].
//!
//! In the specification a message that skips more than MAX_SKIP others is refused, so that a peer
//! cannot cause unbounded work by huge numbers. But then, once more than MAX_SKIP messages at the
//! front of a chain are lost, no message of this chain opens, and without them there is no next
//! chain. Here the receiver keeps the keys of the last [`SKIP_MAX`] missing messages and forgets the
//! others. Chains of message keys have levels (module `chain`), so each number is near.
//!
//! A thief of a state can read the headers of the recognized chains, but not the bodies of messages
//! that were opened or forgotten.
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
//! [`Ratchet::keep`] and [`PreKeys::keep`] keep states in a vault
//! ([`KeyVault`](crate::vault::KeyVault), the application's store). A caller that stores states itself follows the rules of [`Ratchet::save`]: it saves a state before it sends that
//! state's messages. The module `state` describes the effects of a rollback: no body key seals two
//! texts, but the conversation may have to be restarted.

mod batch;
mod bundle;
mod chain;
mod curve;
mod double_ratchet;
mod error;
mod group;
mod hybrid;
mod kept;
mod keys;
mod message;
mod padding;
mod prekeys;
mod skipped;
mod start;
mod state;
#[cfg(test)]
mod tests;

pub use bundle::{BUNDLE_BYTES_MAX, PreKeyBundle};
pub use double_ratchet::Ratchet;
pub use error::{DecryptError, EncryptError, StartError};
pub use group::{GROUP_MAX, Group, GroupError};
pub use hybrid::{KEM_INTERVAL, KEM_INTERVAL_BYTES};
pub use message::{MESSAGE_BYTES_MAX, OVERHEAD_BYTES, PLAINTEXT_BYTES_MAX};
pub use padding::padme;
pub use prekeys::{LAST_RESORT_MAX, ONE_TIME_MAX, PreKeys};
pub use skipped::{
    COMPLETE_CHAINS_MAX, FORGOTTEN_CHAINS_MAX, MISSING_CHAINS_MAX, SKIP_MAX, SKIPPED_LIFETIME,
    SKIPPED_LIFETIME_MESSAGES, SKIPPED_MAX,
};
