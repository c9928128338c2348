//! Handshakes: two or three messages over any transport that give both sides a session.

use std::fmt;
use std::sync::{Arc, Mutex};

use wraith::session::{HandshakeBuilder, Protocol, ReadOutcome, StaticKey, system_rng};

use crate::content::{locked, node_id, set};
use crate::error::WraithError;
use crate::identity::{Identity, array};
use crate::secret::SecretKey;
use crate::session::Session;

/// Options of a handshake. Every side needs `identity` or `local_key`, except the initiator of NK.
#[derive(Clone, Default, uniffi::Record)]
pub struct HandshakeOptions {
    /// Identity of this side. The handshake sends and proves its NodeId.
    #[uniffi(default = None)]
    pub identity: Option<Arc<Identity>>,
    /// Plain X25519 secret of 32 random bytes, instead of an identity.
    #[uniffi(default = None)]
    pub local_key: Option<Arc<SecretKey>>,
    /// Expected NodeId of the peer.
    #[uniffi(default = None)]
    pub peer: Option<String>,
    /// The peer's plain X25519 public key, instead of a NodeId, for patterns in which it is known
    /// in advance.
    #[uniffi(default = None)]
    pub remote_key: Option<Vec<u8>>,
    /// Pre-shared key, for a protocol with `psk` in its name.
    #[uniffi(default = None)]
    pub psk: Option<Arc<SecretKey>>,
    /// Data that both sides must agree on beside the protocol. It is not sent.
    #[uniffi(default = None)]
    pub prologue: Option<Vec<u8>>,
}

impl fmt::Debug for HandshakeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeOptions")
            .field("identity", &self.identity)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// One side of a handshake. The application sends each message to the peer. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct Handshake(Mutex<wraith::session::Handshake>);

#[uniffi::export]
impl Handshake {
    /// Starts the side that writes first. `protocol` is a Noise protocol name, such as
    /// `Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s`.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if the name is unknown, or if an option is missing, unused, or
    /// of the wrong length.
    #[uniffi::constructor]
    pub fn initiator(
        protocol: String,
        options: HandshakeOptions,
    ) -> Result<Arc<Self>, WraithError> {
        Self::start(wraith::session::Handshake::initiator(named(&protocol)?), options)
    }

    /// Starts the side that reads first.
    ///
    /// # Errors
    /// As [`Handshake::initiator`].
    #[uniffi::constructor]
    pub fn responder(
        protocol: String,
        options: HandshakeOptions,
    ) -> Result<Arc<Self>, WraithError> {
        Self::start(wraith::session::Handshake::responder(named(&protocol)?), options)
    }

    /// Writes the next message with `payload`, which may be empty. The first payload of XX and IX
    /// is not encrypted.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the peer has to write first.
    pub fn write(&self, payload: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        Ok(locked(&self.0).write(&payload)?)
    }

    /// Reads a message of the peer and returns its payload. Returns null for a duplicate of the
    /// previous message; answer it with [`Handshake::repeat`].
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] or [`WraithError::WrongPeer`]: the state is unchanged, and the
    /// right message may still arrive.
    pub fn read(&self, message: Vec<u8>) -> Result<Option<Vec<u8>>, WraithError> {
        Ok(match locked(&self.0).read(&message)? {
            ReadOutcome::Payload(payload) => Some(payload),
            ReadOutcome::Repeated => None,
        })
    }

    /// Returns the last written message for retransmission, or null once the peer has answered it.
    pub fn repeat(&self) -> Option<Vec<u8>> {
        locked(&self.0).repeat().map(<[u8]>::to_vec)
    }

    /// Returns whether [`Handshake::write`] is the next call.
    pub fn is_my_turn(&self) -> bool {
        locked(&self.0).is_my_turn()
    }

    /// Returns whether the handshake is finished and [`Handshake::into_session`] returns a session.
    pub fn is_finished(&self) -> bool {
        locked(&self.0).is_finished()
    }

    /// Returns the handshake hash: equal on both sides, and different in any two handshakes.
    pub fn channel_hash(&self) -> Vec<u8> {
        locked(&self.0).hash().to_vec()
    }

    /// Returns the peer's X25519 public key, or null until it is known.
    pub fn remote_key(&self) -> Option<Vec<u8>> {
        locked(&self.0).remote_key().map(Vec::from)
    }

    /// Returns the peer's NodeId, or null until it is proved.
    pub fn peer(&self) -> Option<String> {
        locked(&self.0).peer().map(|peer| peer.to_string())
    }

    /// Returns the NodeId that the peer claims, or null until it has sent one. A claim proves
    /// nothing: the first message of IK and IX can be replayed, and anyone can make that of IX. The
    /// first message of the resulting session that opens proves the claim.
    pub fn claimed_peer(&self) -> Option<String> {
        locked(&self.0).claimed_peer().map(|peer| peer.to_string())
    }

    /// Returns the session, once. The handshake stays usable to answer duplicates.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] before the handshake is finished, and at the second call.
    pub fn into_session(&self) -> Result<Arc<Session>, WraithError> {
        Ok(Session::new(locked(&self.0).split()?))
    }
}

impl Handshake {
    fn start(
        mut builder: HandshakeBuilder,
        options: HandshakeOptions,
    ) -> Result<Arc<Self>, WraithError> {
        let HandshakeOptions { identity, local_key, peer, remote_key, psk, prologue } = options;
        let local = match (identity, local_key) {
            (Some(_), Some(_)) => {
                return Err(WraithError::invalid("an identity has its own key: give one of both"));
            }
            (Some(identity), None) => Some(StaticKey::of(&identity.0)),
            (None, Some(key)) => Some(StaticKey::from_secret(key.copy())),
            (None, None) => None,
        };
        let peer = peer.as_deref().map(node_id).transpose()?;
        let remote_key = remote_key.map(|key| array("a key", &key)).transpose()?;
        builder = set(builder, local.as_ref(), HandshakeBuilder::local);
        builder = set(builder, peer, HandshakeBuilder::peer);
        builder = set(builder, remote_key, HandshakeBuilder::remote);
        builder = set(builder, psk.map(|psk| psk.copy()), HandshakeBuilder::psk);
        builder = set(builder, prologue.as_deref(), HandshakeBuilder::prologue);
        let handshake = builder.start(&mut system_rng()?)?;
        Ok(Arc::new(Self(Mutex::new(handshake))))
    }
}

fn named(protocol: &str) -> Result<Protocol, WraithError> {
    protocol.parse().map_err(WraithError::invalid)
}
