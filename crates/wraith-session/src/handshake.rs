//! A Noise handshake: two or three messages that give both sides a [`Session`] and the identities
//! that the pattern proves.
//!
//! The initiator writes first. Both sides then read and write in turn; the caller transports the
//! messages.
//!
//! ```text
//!  Handshake::write   ──── message 1 ───▶   Handshake::read
//!  Handshake::read   ◀──── message 2 ────   Handshake::write
//!  Handshake::write   ──── message 3 ───▶   Handshake::read      (XX and XK only)
//!  Handshake::split                         Handshake::split
//! ```
//!
//! Invariants:
//!
//! - A message that does not authenticate changes nothing, and the genuine message may still
//!   arrive.
//! - A first message does not authenticate its sender. A responder's [`Handshake`] answers only the
//!   first message that it has read. A caller that may receive first messages of several initiators
//!   creates a [`Handshake`] for each.
//! - A duplicate is recognised ([`ReadOutcome::Repeated`]) and answered with the same bytes
//!   ([`Handshake::repeat`]). So nothing is encrypted twice, and each ephemeral key is used in one
//!   handshake.
//! - If a side's static key belongs to an identity, its NodeId (the identity's Ed25519 public key)
//!   precedes the payload of the message with the static key. The reader accepts the NodeId only if
//!   the static key is the NodeId's X25519 image (SPEC §1).
//!
//! After a read that fails, snow's state keeps the key from the bad message. Therefore the state is
//! then rebuilt from this side's ephemeral keys and the recorded messages, which costs as much as
//! the handshake so far.

use std::fmt;
use std::mem;

use rand_core::CryptoRng;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use thiserror::Error;
use wraith_crypto::{NodeId, Policy, TAG_BYTES, Wiped, redacted_debug};
use wraith_noise::primitives::{KeyPair, MlKem, Resolver};
use zeroize::Zeroizing;

use crate::hash::SuiteResolver;
use crate::key::StaticKey;
use crate::protocol::Protocol;
use crate::session::Session;

/// Maximum length of a Noise message, in bytes (revision 34, §3).
pub const HANDSHAKE_MESSAGE_BYTES_MAX: usize = 65_535;
/// Maximum payload of a handshake message, in bytes: a round number that leaves room for the keys
/// of every pattern.
pub const HANDSHAKE_PAYLOAD_BYTES_MAX: usize = 61_440;
const NODE_ID_BYTES: usize = 32;

/// Why a handshake call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The policy does not allow the protocol's cipher, hash or key agreement.
    #[error("the policy '{0}' does not allow this protocol")]
    Forbidden(Policy),
    /// The builder lacks an input that the pattern needs, or has one that the pattern does not use.
    #[error("this handshake needs {0}")]
    Needs(&'static str),
    /// The peer has to write first, or the handshake is finished.
    #[error("the call is out of turn: the handshake expects another message, or is finished")]
    Turn,
    /// The handshake is not finished, or its keys were taken before.
    #[error(
        "no session is available: the handshake is not finished, or its session was already taken"
    )]
    NoKeys,
    /// The payload is longer than [`HANDSHAKE_PAYLOAD_BYTES_MAX`].
    #[error("a payload has at most {HANDSHAKE_PAYLOAD_BYTES_MAX} bytes")]
    PayloadLength,
    /// The message was changed, or made with other keys or for another protocol, prologue or
    /// pre-shared key.
    #[error("the message does not authenticate")]
    Unauthentic,
    /// The peer's X25519 key has low order, or its ML-KEM key is invalid. This handshake cannot
    /// continue.
    #[error("the peer's public key is invalid")]
    BadKey,
    /// The NodeId is missing, or does not match the static key that was used.
    #[error("the peer does not prove its claimed identity")]
    Identity,
    /// The peer proved an identity other than the expected one.
    #[error("the peer is {0}, which is not the expected identity")]
    WrongPeer(NodeId),
}

/// Result of [`Handshake::read`].
#[derive(PartialEq, Eq)]
pub enum ReadOutcome {
    /// The next message, with this payload. The pattern determines when its writer is proved: at
    /// the latest with the first message of the session.
    Payload(Vec<u8>),
    /// A duplicate of the message read before. If the peer lacks an answer, send
    /// [`Handshake::repeat`].
    Repeated,
}

impl fmt::Debug for ReadOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload(payload) => write!(f, "Payload({} bytes)", payload.len()),
            Self::Repeated => f.write_str("Repeated"),
        }
    }
}

/// Inputs of a handshake.
#[derive(Clone)]
pub struct HandshakeBuilder {
    protocol: Protocol,
    initiator: bool,
    local: Option<StaticKey>,
    remote: Option<[u8; 32]>,
    peer: Option<NodeId>,
    psk: Option<Zeroizing<[u8; 32]>>,
    prologue: Vec<u8>,
    policy: Policy,
}

impl HandshakeBuilder {
    /// Sets the local static key. Every side needs one, except the initiator of NK.
    #[must_use]
    pub fn local(mut self, key: &StaticKey) -> Self {
        self.local = Some(key.clone());
        self
    }

    /// Sets the peer's static key, for patterns in which it is known in advance.
    #[must_use]
    pub fn remote(mut self, key: [u8; 32]) -> Self {
        self.remote = Some(key);
        self
    }

    /// Sets the expected identity of the peer. If the pattern needs the peer's static key in
    /// advance, this sets it, too.
    #[must_use]
    pub fn peer(mut self, peer: NodeId) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Sets the pre-shared key.
    #[must_use]
    pub fn psk(mut self, psk: Zeroizing<[u8; 32]>) -> Self {
        self.psk = Some(psk);
        self
    }

    /// Sets the policy. [`start`](Self::start) refuses a protocol that it does not allow.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets data that both sides must agree on beside the protocol, such as versions. It is not
    /// sent.
    #[must_use]
    pub fn prologue(mut self, prologue: &[u8]) -> Self {
        self.prologue = prologue.to_vec();
        self
    }

    /// Draws the ephemeral keys and starts the handshake.
    ///
    /// # Errors
    /// [`HandshakeError::Forbidden`] if the policy does not allow the protocol;
    /// [`HandshakeError::Needs`] if an input is missing or unused; [`HandshakeError::Identity`] if
    /// `peer` is not a valid NodeId.
    pub fn start(mut self, rng: &mut impl CryptoRng) -> Result<Handshake, HandshakeError> {
        if !self.protocol.is_allowed_by(self.policy) {
            return Err(HandshakeError::Forbidden(self.policy));
        }
        let pattern = self.protocol.pattern;
        let knows_remote = self.initiator && pattern.knows_responder();
        let checks = [
            (
                self.local.is_some() == pattern.has_static(self.initiator),
                "a static key of its own, but for the initiator of NK",
            ),
            (
                self.psk.is_some() == self.protocol.psk.is_some(),
                "a pre-shared key exactly where its name has psk",
            ),
            (
                !knows_remote || self.remote.is_some() || self.peer.is_some(),
                "the key or the NodeId of the responder",
            ),
            (
                knows_remote || self.remote.is_none(),
                "no remote key, because the handshake sends it",
            ),
        ];
        if let Some((_, needs)) = checks.into_iter().find(|(holds, _)| !holds) {
            return Err(HandshakeError::Needs(needs));
        }
        if let Some(peer) = self.peer {
            let key = peer.noise_public().map_err(|_| HandshakeError::Identity)?;
            match self.remote {
                Some(remote) if remote != key => return Err(HandshakeError::Identity),
                _ if knows_remote => self.remote = Some(key),
                _ if !pattern.sends_static(!self.initiator) => {
                    return Err(HandshakeError::Needs(
                        "no peer identity, because this pattern keeps the peer anonymous",
                    ));
                }
                _ => {}
            }
        }
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *secret);
        let mut kem_seed = Zeroizing::new([0; 64]);
        if self.protocol.hybrid {
            rng.fill_bytes(&mut *kem_seed);
        }
        let inputs = HandshakeInputs { options: self, ephemeral: KeyPair::of(secret), kem_seed };
        Ok(Handshake { state: inputs.state(), inputs, steps: Vec::new(), peer: None, split: false })
    }
}

redacted_debug!(HandshakeBuilder, protocol);

/// All inputs of the Noise state except the messages.
struct HandshakeInputs {
    options: HandshakeBuilder,
    ephemeral: KeyPair,
    kem_seed: Zeroizing<[u8; 64]>,
}

impl HandshakeInputs {
    fn state(&self) -> Wiped<HandshakeState> {
        let HandshakeBuilder { protocol, initiator, local, remote, psk, prologue, .. } =
            &self.options;
        let kem = match initiator {
            true => MlKem::Generates(self.kem_seed.clone()),
            false => {
                let seed = self.kem_seed.first_chunk().expect("64 bytes hold 32");
                MlKem::Encapsulates(Zeroizing::new(*seed))
            }
        };
        let local = local.as_ref().map(|key| &key.pair);
        let resolver = Resolver {
            ephemeral: self.ephemeral.clone(),
            local: local.cloned(),
            suite: protocol.suite,
            kem,
        };
        let psk = protocol.psk.zip(psk.as_deref());
        noise_state(protocol.params(), resolver, *initiator, prologue, remote.as_ref(), psk)
    }
}

/// Starts a Noise handshake whose inputs are those that its pattern needs.
pub(crate) fn noise_state(
    params: NoiseParams,
    resolver: Resolver,
    initiator: bool,
    prologue: &[u8],
    remote: Option<&[u8; 32]>,
    psk: Option<(u8, &[u8; 32])>,
) -> Wiped<HandshakeState> {
    let local = resolver.local.clone();
    let mut builder = Builder::with_resolver(params, Box::new(SuiteResolver(resolver)))
        .prologue(prologue)
        .expect("there is no other prologue");
    if let Some(local) = &local {
        builder = builder.local_private_key(local.secret()).expect("there is no other key");
    }
    if let Some(remote) = remote {
        builder = builder.remote_public_key(remote).expect("there is no other key");
    }
    if let Some((position, psk)) = psk {
        builder = builder.psk(position, psk).expect("the position is one of the pattern");
    }
    let state = match initiator {
        true => builder.build_initiator(),
        false => builder.build_responder(),
    };
    Wiped::new(state.expect("what the pattern needs was checked"))
}

/// A message that was written or read.
enum HandshakeMessage {
    Wrote { payload: Zeroizing<Vec<u8>>, message: Vec<u8> },
    Read { message: Vec<u8> },
}

/// One side of a handshake. Secrets are wiped when dropped.
pub struct Handshake {
    inputs: HandshakeInputs,
    state: Wiped<HandshakeState>,
    /// Messages written and read, in order; at most three.
    steps: Vec<HandshakeMessage>,
    peer: Option<NodeId>,
    split: bool,
}

impl Handshake {
    /// Configures the side that writes first.
    #[must_use]
    pub fn initiator(protocol: Protocol) -> HandshakeBuilder {
        Self::builder(protocol, true)
    }

    /// Configures the side that reads first.
    #[must_use]
    pub fn responder(protocol: Protocol) -> HandshakeBuilder {
        Self::builder(protocol, false)
    }

    fn builder(protocol: Protocol, initiator: bool) -> HandshakeBuilder {
        HandshakeBuilder {
            protocol,
            initiator,
            local: None,
            remote: None,
            peer: None,
            psk: None,
            prologue: Vec::new(),
            policy: Policy::Default,
        }
    }

    /// Returns whether [`write`](Self::write) is the next call.
    #[must_use]
    pub fn is_my_turn(&self) -> bool {
        !self.is_finished() && self.state.is_my_turn()
    }

    /// Returns whether all messages were written and read, so that [`split`](Self::split) returns a
    /// session.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state.is_handshake_finished()
    }

    /// Writes the next message, with `payload` in it. The payload's protection depends on pattern
    /// and message: in the first message of XX and IX it is sent in the clear (Noise revision 34,
    /// §7.7).
    ///
    /// # Errors
    /// [`HandshakeError::Turn`], [`HandshakeError::PayloadLength`]; [`HandshakeError::BadKey`] if
    /// the peer's key allows no agreement.
    pub fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let len = self.written_len(payload.len())?;
        let node_id = self.local_id().filter(|_| self.carries_static_now());
        let head: &[u8] = node_id.as_ref().map_or(&[], |id| id.as_bytes());
        let payload = Zeroizing::new([head, payload].concat());
        let message = write(&mut self.state, &payload, len).map_err(|_| HandshakeError::BadKey)?;
        self.steps.push(HandshakeMessage::Wrote { payload, message: message.clone() });
        Ok(message)
    }

    /// Returns the length of the next message with a payload of this length.
    ///
    /// # Errors
    /// [`HandshakeError::Turn`], [`HandshakeError::PayloadLength`].
    pub fn written_len(&self, payload: usize) -> Result<usize, HandshakeError> {
        if !self.is_my_turn() {
            return Err(HandshakeError::Turn);
        }
        if payload > HANDSHAKE_PAYLOAD_BYTES_MAX {
            return Err(HandshakeError::PayloadLength);
        }
        Ok(self.next_overhead(self.local_id().is_some()) + payload)
    }

    /// Returns the payload length of a message of this length; 0 for a duplicate or an early
    /// message.
    #[must_use]
    pub fn payload_len(&self, message: usize) -> usize {
        if self.is_finished() || self.is_my_turn() {
            return 0;
        }
        message.saturating_sub(self.next_overhead(self.expects_identity()))
    }

    /// Returns the bytes of the next message without its payload, of a writer with or without an
    /// identity.
    fn next_overhead(&self, has_identity: bool) -> usize {
        let has_identity = has_identity && self.carries_static_now();
        let id = if has_identity { NODE_ID_BYTES } else { 0 };
        self.inputs.options.protocol.overhead(self.steps.len()) + id
    }

    /// Reads a message of the peer.
    ///
    /// # Errors
    /// [`HandshakeError`]. The state is unchanged, and the right message may still arrive.
    pub fn read(&mut self, message: &[u8]) -> Result<ReadOutcome, HandshakeError> {
        if self.has_read_last(message) {
            return Ok(ReadOutcome::Repeated);
        }
        if self.is_finished() || self.state.is_my_turn() {
            return Err(HandshakeError::Turn);
        }
        if message.len() > HANDSHAKE_MESSAGE_BYTES_MAX {
            return Err(HandshakeError::Unauthentic);
        }
        let mut payload = vec![0; message.len()];
        let read = self.state.read_message(message, &mut payload);
        let judged = match read {
            Ok(len) => {
                payload.truncate(len);
                self.verify_identity(&mut payload)
            }
            Err(_) => Err(HandshakeError::Unauthentic),
        };
        match judged {
            Ok(peer) => {
                self.peer = peer.or(self.peer);
                self.steps.push(HandshakeMessage::Read { message: message.to_vec() });
                Ok(ReadOutcome::Payload(payload))
            }
            Err(why) => {
                self.rebuild();
                Err(why)
            }
        }
    }

    /// Returns the last written message, for retransmission: after a timeout, or after
    /// [`ReadOutcome::Repeated`]. Returns `None` once the peer has answered it, so that two sides
    /// that retransmit for each other's duplicates come to an end.
    #[must_use]
    pub fn repeat(&self) -> Option<&[u8]> {
        match self.steps.last()? {
            HandshakeMessage::Wrote { message, .. } => Some(message),
            HandshakeMessage::Read { .. } => None,
        }
    }

    /// Returns the handshake hash (Noise revision 34, §11.2), for channel binding: equal on both
    /// sides, and different in any two handshakes. It is complete once the handshake is finished.
    #[must_use]
    pub fn hash(&self) -> &[u8] {
        self.state.get_handshake_hash()
    }

    /// Returns the peer's static key, once it is known.
    #[must_use]
    pub fn remote_key(&self) -> Option<[u8; 32]> {
        self.state.get_remote_static().and_then(|key| key.first_chunk()).copied()
    }

    /// Returns the peer's identity, once it is proved. The peer sent its NodeId, or the builder
    /// named it. The responder of IK and IX never has a proof within the handshake; see
    /// [`Self::claimed_peer`].
    #[must_use]
    pub fn peer(&self) -> Option<NodeId> {
        let Protocol { pattern, .. } = self.inputs.options.protocol;
        let proves = self.inputs.options.initiator || pattern.proves_initiator();
        self.claimed_peer().filter(|_| proves)
    }

    /// Returns the identity that the peer claims. The first message of IK and IX carries the
    /// initiator's NodeId and proves nothing. Anyone can make that of IX, a holder of the
    /// responder's secret can make that of IK, and both can be replayed. The first message of the
    /// resulting session that opens proves the claim.
    #[must_use]
    pub fn claimed_peer(&self) -> Option<NodeId> {
        let known = self.is_finished() && self.inputs.options.remote.is_some();
        self.peer.or(self.inputs.options.peer.filter(|_| known))
    }

    /// Returns the session, once. The handshake stays usable to answer duplicates.
    ///
    /// # Errors
    /// [`HandshakeError::NoKeys`] before the handshake is finished, and at the second call.
    pub fn split(&mut self) -> Result<Session, HandshakeError> {
        if !self.is_finished() || mem::replace(&mut self.split, true) {
            return Err(HandshakeError::NoKeys);
        }
        let keys = Zeroizing::new(self.state.dangerously_get_raw_split());
        let (send, receive) = match self.inputs.options.initiator {
            true => (&keys.0, &keys.1),
            false => (&keys.1, &keys.0),
        };
        Ok(Session::new(self.inputs.options.protocol.suite, send, receive))
    }

    fn has_read_last(&self, message: &[u8]) -> bool {
        let last = self.steps.iter().rev().find_map(|step| match step {
            HandshakeMessage::Read { message } => Some(&message[..]),
            HandshakeMessage::Wrote { .. } => None,
        });
        last == Some(message)
    }

    fn local_id(&self) -> Option<NodeId> {
        self.inputs.options.local.as_ref().and_then(|key| key.node_id)
    }

    /// Returns whether identities are in use, so that the peer sends its own.
    fn expects_identity(&self) -> bool {
        self.local_id().is_some() || self.inputs.options.peer.is_some()
    }

    /// Returns whether the next message, of either side, carries a static key.
    fn carries_static_now(&self) -> bool {
        self.inputs.options.protocol.pattern.carries_static(self.steps.len())
    }

    /// Removes and verifies the NodeId in the payload of a message that carries a static key, if
    /// identities are in use.
    fn verify_identity(&self, payload: &mut Vec<u8>) -> Result<Option<NodeId>, HandshakeError> {
        let expected = self.inputs.options.peer;
        if !self.carries_static_now() || !self.expects_identity() {
            return Ok(None);
        }
        let id = NodeId(*payload.first_chunk().ok_or(HandshakeError::Identity)?);
        let key = id.noise_public().map_err(|_| HandshakeError::Identity)?;
        if self.remote_key() != Some(key) {
            return Err(HandshakeError::Identity);
        }
        // Reflection: an attacker returns this side's own messages.
        if self.local_id() == Some(id) {
            return Err(HandshakeError::WrongPeer(id));
        }
        if expected.is_some_and(|expected| expected != id) {
            return Err(HandshakeError::WrongPeer(id));
        }
        payload.drain(..NODE_ID_BYTES);
        Ok(Some(id))
    }

    /// Rebuilds the state as it was before a failed read.
    fn rebuild(&mut self) {
        self.state = self.inputs.state();
        let mut scratch = Zeroizing::new(vec![0; HANDSHAKE_MESSAGE_BYTES_MAX]);
        for step in &self.steps {
            match step {
                HandshakeMessage::Wrote { payload, message } => {
                    let again = write(&mut self.state, payload, message.len());
                    debug_assert_eq!(
                        again.as_ref(),
                        Ok(message),
                        "a state is a function of its inputs"
                    );
                }
                HandshakeMessage::Read { message } => {
                    let again = self.state.read_message(message, &mut scratch);
                    debug_assert!(again.is_ok(), "it was read before");
                }
            }
        }
    }
}

redacted_debug!(
    |it: Handshake|
    protocol: it.inputs.options.protocol, initiator: it.inputs.options.initiator,
    messages: it.steps.len()
);

fn write(state: &mut HandshakeState, payload: &[u8], len: usize) -> Result<Vec<u8>, snow::Error> {
    // snow requires room for a tag behind the payload, also where there is none.
    let mut message = vec![0; len + TAG_BYTES];
    let written = state.write_message(payload, &mut message)?;
    debug_assert_eq!(written, len, "the length of each message is known in advance");
    message.truncate(written);
    Ok(message)
}
