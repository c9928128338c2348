//! Conversations whose two sides are seldom there at the same time: the Double Ratchet with header encryption, started from
//! prekeys, with ML-KEM-768 in its start and now and then in its steps.
//!
//! ```
//! use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! use wraith_crypto::SecretIdentity;
//! use wraith_session::ratchet::{PreKeyBundle, PreKeys, Ratchet};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // (Take a generator and seeds of the operating system instead.)
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
//! | module | what |
//! |---|---|
//! | `bundle`, `prekeys` | what a responder publishes, and the secrets behind it |
//! | `start` | PQXDH, and where it differs |
//! | `double_ratchet` | the state of a conversation and its steps |
//! | `batch` | many messages at once |
//! | `hybrid` | when and how ML-KEM takes part |
//! | `skipped` | keys of messages that have not come |
//! | `keys` | the key schedule |
//! | `message`, `padding` | the layout of a message |
//! | `state` | saving and restoring, and what a rolled back state means |
//! | `group` | the same to several peers |
//!
//! # What is promised
//! - Messages may be lost, reordered and repeated: each that arrives opens once ([`SKIP_MAX`], [`SKIPPED_MAX`] and the lifetimes
//!   beside them bound how late).
//! - *Forward secrecy*: a stolen state opens nothing that was opened before it was stolen.
//! - *Healing*: a stolen state opens nothing from the turn on that follows a key its side has made since; against an attacker
//!   with a quantum computer, from the next hybrid step on ([`KEM_INTERVAL`]).
//! - Nothing changes before a message has authenticated.
//! - Who sees messages sees their length (unless [padded](Ratchet::set_padding)), and whether they are of the first ones. Numbers
//!   and ratchet keys are encrypted; apart from the first byte, and the initial part of the first messages, all bytes look random.
//!
//! # What is not
//! - Two sides that start at the same time have two conversations; which of them to go on with is for the caller to decide.
//! - A start without one-time prekeys has forward secrecy from when the responder has rotated its signed ones away.
//! - Authentication is X25519's: who will have a quantum computer at the time of a start can pretend to be somebody.
//!
//! # Lost or rolled back states
//! [`StoredRatchet`](crate::StoredRatchet) and [`StoredPreKeys`](crate::StoredPreKeys) keep them; who does it otherwise sees
//! [`Ratchet::save`]: states are saved before their messages leave. What remains if one is rolled back is said in the
//! module `state`: no body key seals two texts, but the conversation may have to be started anew.

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
