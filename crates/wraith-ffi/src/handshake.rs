//! Handshakes: two or three messages over any transport, after which both sides have a session.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wraith::session::{HandshakeBuilder, HandshakeError, Protocol, Read, StaticKey};

use crate::content::node_id;
use crate::error::WraithError;
use crate::identity::{Identity, array};
use crate::random;
use crate::secret::SecretKey;
use crate::session::Session;

/// What a handshake is begun with. Every pattern needs `identity` or `local_key` but NK's initiator.
#[derive(Clone, Default, uniffi::Record)]
pub struct HandshakeOptions {
    /// Who this side is: its NodeId is told and proved.
    #[uniffi(default = None)]
    pub identity: Option<Arc<Identity>>,
    /// In place of an identity a plain X25519 secret: 32 random bytes.
    #[uniffi(default = None)]
    pub local_key: Option<Arc<SecretKey>>,
    /// The NodeId that the other side must have.
    #[uniffi(default = None)]
    pub peer: Option<String>,
    /// In place of a NodeId the other side's plain X25519 key, where the pattern has it known before.
    #[uniffi(default = None)]
    pub remote_key: Option<Vec<u8>>,
    /// The key that both sides know, for a protocol with `psk` in its name.
    #[uniffi(default = None)]
    pub psk: Option<Arc<SecretKey>>,
    /// What both sides must agree on beside the protocol. It is not sent.
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

/// One side of a handshake. Each message goes to the other side by whatever way the caller has. Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct Handshake(Mutex<wraith::session::Handshake>);

#[uniffi::export]
impl Handshake {
    /// The side that writes first. `protocol` is a name of Noise's, such as `Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s`.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if the name is not known, or an option is missing, too much or of another length.
    #[uniffi::constructor]
    pub fn initiator(
        protocol: String,
        options: HandshakeOptions,
    ) -> Result<Arc<Self>, WraithError> {
        Self::start(wraith::session::Handshake::initiator(named(&protocol)?), options)
    }

    /// The side that reads first.
    ///
    /// # Errors
    /// As for [`Handshake::initiator`].
    #[uniffi::constructor]
    pub fn responder(
        protocol: String,
        options: HandshakeOptions,
    ) -> Result<Arc<Self>, WraithError> {
        Self::start(wraith::session::Handshake::responder(named(&protocol)?), options)
    }

    /// Writes the next message, with `payload` in it (may be empty). The first payload of XX and IX can be read by anybody.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if it is the other side's turn.
    pub fn write(&self, payload: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        Ok(self.lock().write(&payload)?)
    }

    /// Reads a message of the other side and returns its payload; none if it is the last one again, which [`Handshake::repeat`] answers.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] or [`WraithError::WrongPeer`]: nothing has changed then, and the right message may still come.
    pub fn read(&self, message: Vec<u8>) -> Result<Option<Vec<u8>>, WraithError> {
        Ok(match self.lock().read(&message)? {
            Read::Payload(payload) => Some(payload),
            Read::Repeated => None,
        })
    }

    /// The message that was written last.
    pub fn repeat(&self) -> Option<Vec<u8>> {
        self.lock().repeat().map(<[u8]>::to_vec)
    }

    /// Whether [`Handshake::write`] is what comes next.
    pub fn is_my_turn(&self) -> bool {
        self.lock().is_my_turn()
    }

    /// Whether [`Handshake::into_session`] gives a session.
    pub fn is_finished(&self) -> bool {
        self.lock().is_finished()
    }

    /// The hash of everything said: equal on both sides, and different in any two handshakes.
    pub fn channel_hash(&self) -> Vec<u8> {
        self.lock().hash().to_vec()
    }

    /// The other side's X25519 key, once it is known.
    pub fn remote_key(&self) -> Option<Vec<u8>> {
        self.lock().remote_key().map(Vec::from)
    }

    /// The NodeId of the other side, once it is proved.
    pub fn peer(&self) -> Option<String> {
        self.lock().peer().map(|peer| peer.to_string())
    }

    /// Gives out the session, once. The handshake stays to answer a message that comes again.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] before the handshake is over, and the second time.
    pub fn into_session(&self) -> Result<Arc<Session>, WraithError> {
        Ok(Session::new(self.lock().split()?))
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
        if let Some(local) = local {
            builder = builder.local(&local);
        }
        if let Some(peer) = peer {
            builder = builder.peer(node_id(&peer)?);
        }
        if let Some(key) = remote_key {
            builder = builder.remote(array("a key", &key)?);
        }
        if let Some(psk) = psk {
            builder = builder.psk(psk.copy());
        }
        if let Some(prologue) = prologue {
            builder = builder.prologue(&prologue);
        }
        let handshake = builder.start(&mut random::generator()?)?;
        Ok(Arc::new(Self(Mutex::new(handshake))))
    }

    /// A panic elsewhere does not make it another's turn.
    fn lock(&self) -> MutexGuard<'_, wraith::session::Handshake> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(protocol: &str) -> Result<Protocol, WraithError> {
    protocol.parse().map_err(WraithError::invalid)
}

impl From<HandshakeError> for WraithError {
    fn from(error: HandshakeError) -> Self {
        let text = error.to_string();
        match error {
            HandshakeError::Forbidden(_)
            | HandshakeError::Needs(_)
            | HandshakeError::PayloadLength => Self::InvalidInput(text),
            HandshakeError::Turn | HandshakeError::NoKeys => Self::WrongState(text),
            HandshakeError::Unauthentic => Self::Unauthentic(text),
            HandshakeError::BadKey => Self::Protocol(text),
            HandshakeError::Identity | HandshakeError::WrongPeer(_) => Self::WrongPeer(text),
        }
    }
}
