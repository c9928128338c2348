//! A handshake: two or three messages, after which both sides have a [`Session`] and know what the pattern tells them of each other.
//!
//! Who begins is the initiator. Each side writes and reads in turn; how a message gets to the other side is the caller's matter.
//!
//! ```text
//!     Handshake::write  ──── message 1 ───▶  Handshake::read
//!     Handshake::read  ◀──── message 2 ────  Handshake::write
//!     Handshake::write  ──── message 3 ───▶  Handshake::read         (XX and XK only)
//!     Handshake::split                       Handshake::split
//! ```
//!
//! What holds:
//!
//! - A message that does not authenticate changes nothing, and the right one may still come. A first message proves nothing, whoever
//!   wrote it: a responder answers the one it has read, and that one only. Whoever may get others takes a new [`Handshake`] for each. snow keeps the key of the last attempt to read,
//!   so after such a message its state is built again out of what was drawn, written and read: that takes what the handshake took so far.
//! - A message that came before is known again ([`Read::Repeated`]) and answered by the same bytes ([`Handshake::repeat`]): nothing is
//!   encrypted twice, and each ephemeral key is used in one handshake.
//! - Where a side's static key is of an identity, its NodeId is in front of the payload of the message that tells the static key, and
//!   is believed only if the key is its image (SPEC §1).

use std::fmt;
use std::mem;

use rand_core::CryptoRng;
use snow::{Builder, HandshakeState};
use thiserror::Error;
use wraith_crypto::{NodeId, Policy, Wiped};
use wraith_noise::primitives::{KeyPair, MlKem, Resolver};
use zeroize::Zeroizing;

use crate::key::StaticKey;
use crate::protocol::Protocol;
use crate::session::Session;

/// The longest message of Noise (revision 34, §3).
pub const HANDSHAKE_MESSAGE_BYTES_MAX: usize = 65_535;
/// The longest payload of a handshake message: a round number that leaves room for all keys of any pattern.
pub const HANDSHAKE_PAYLOAD_BYTES_MAX: usize = 61_440;
/// More than the keys and tags of any message take: two public keys, ML-KEM's longer half, four tags, a NodeId.
const OVERHEAD_BYTES_MAX: usize = 2 * 32 + 1184 + 4 * 16 + NODE_ID_BYTES;
const NODE_ID_BYTES: usize = 32;

/// Why a handshake does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The policy does not allow the protocol's cipher, hash or key agreement.
    #[error("the policy '{0}' does not allow this protocol")]
    Forbidden(Policy),
    /// The builder lacks what the pattern needs, or has what it has no place for.
    #[error("this handshake needs {0}")]
    Needs(&'static str),
    /// The other side has to write first, or nothing is left to write or read.
    #[error("it is not this side's turn")]
    Turn,
    /// The handshake is not over, or its keys were given out before.
    #[error("there are no keys to give out: the handshake is not over, or they were taken before")]
    NoKeys,
    /// Longer than a payload may be.
    #[error("a payload has at most {HANDSHAKE_PAYLOAD_BYTES_MAX} bytes")]
    PayloadLength,
    /// Not what the other side wrote, or written with other keys, or for another protocol, prologue or pre-shared key.
    #[error("the message does not authenticate")]
    Unauthentic,
    /// The other side's key is none: of low order, or no key of ML-KEM. This handshake cannot go on.
    #[error("the other side's key cannot be agreed with")]
    BadKey,
    /// The NodeId is missing, or is not the one whose key was used.
    #[error("the other side does not prove the identity it claims")]
    Identity,
    /// It proved an identity, and not the one that was expected.
    #[error("the other side is {0}, who was not expected")]
    WrongPeer(NodeId),
}

/// What a message was.
#[derive(PartialEq, Eq)]
pub enum Read {
    /// The next one, with this payload. Who wrote it is proved when the pattern says so, at the latest by the first message
    /// of the session.
    Payload(Vec<u8>),
    /// The one before again. If the other side lacks an answer, [`Handshake::repeat`] has it.
    Repeated,
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload(payload) => write!(f, "Payload({} bytes)", payload.len()),
            Self::Repeated => f.write_str("Repeated"),
        }
    }
}

/// What a handshake is begun with.
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
    /// This side's static key. Every pattern needs it but NK's initiator.
    #[must_use]
    pub fn local(mut self, key: &StaticKey) -> Self {
        self.local = Some(key.clone());
        self
    }

    /// The other side's static key, where the pattern has it known before.
    #[must_use]
    pub fn remote(mut self, key: [u8; 32]) -> Self {
        self.remote = Some(key);
        self
    }

    /// Who the other side has to be. Where the pattern has its key known before, this is also that key.
    #[must_use]
    pub fn peer(mut self, peer: NodeId) -> Self {
        self.peer = Some(peer);
        self
    }

    /// The key that both sides know already.
    #[must_use]
    pub fn psk(mut self, psk: Zeroizing<[u8; 32]>) -> Self {
        self.psk = Some(psk);
        self
    }

    /// Refuses a protocol that this policy does not allow.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What both sides must agree on beside the protocol: versions, the names of the transport. It is not sent.
    #[must_use]
    pub fn prologue(mut self, prologue: &[u8]) -> Self {
        self.prologue = prologue.to_vec();
        self
    }

    /// Draws the ephemeral keys.
    ///
    /// # Errors
    /// [`HandshakeError::Forbidden`] if the policy does not allow the protocol; [`HandshakeError::Needs`] if something is missing or has no place;
    /// [`HandshakeError::Identity`] if nobody can be `peer`.
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
                "no key of the other side: that is told in the handshake",
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
                _ if pattern.tells_static_in(!self.initiator).is_none() => {
                    return Err(HandshakeError::Needs("no NodeId of an anonymous side"));
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
        let inputs = Inputs { options: self, ephemeral: KeyPair::of(secret), kem_seed };
        Ok(Handshake { state: inputs.state(), inputs, steps: Vec::new(), peer: None, split: false })
    }
}

impl fmt::Debug for HandshakeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeBuilder").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

/// Everything a state is a function of, but for the messages.
struct Inputs {
    options: HandshakeBuilder,
    ephemeral: KeyPair,
    kem_seed: Zeroizing<[u8; 64]>,
}

impl Inputs {
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
        let local = local.as_ref().map(|key| key.pair.clone());
        let (ephemeral, local, suite) = (self.ephemeral.clone(), local.clone(), protocol.suite);
        let resolver = Resolver { ephemeral, local: local.clone(), suite, kem };
        let mut builder = Builder::with_resolver(protocol.params(), Box::new(resolver))
            .prologue(prologue)
            .expect("there is no other prologue");
        if let Some(local) = &local {
            builder = builder.local_private_key(local.secret()).expect("there is no other key");
        }
        if let Some(remote) = remote {
            builder = builder.remote_public_key(remote).expect("there is no other key");
        }
        if let (Some(position), Some(psk)) = (protocol.psk, psk) {
            builder = builder.psk(position, psk).expect("the position is one of the pattern");
        }
        let state = match initiator {
            true => builder.build_initiator(),
            false => builder.build_responder(),
        };
        Wiped::new(state.expect("what the pattern needs was checked"))
    }
}

/// A message of the past.
enum Step {
    Wrote { payload: Zeroizing<Vec<u8>>, message: Vec<u8> },
    Read { message: Vec<u8> },
}

/// One side of a handshake. Secrets are wiped when dropped.
pub struct Handshake {
    inputs: Inputs,
    state: Wiped<HandshakeState>,
    /// What was written and read, in order: three at most.
    steps: Vec<Step>,
    peer: Option<NodeId>,
    split: bool,
}

impl Handshake {
    /// The side that writes first.
    #[must_use]
    pub fn initiator(protocol: Protocol) -> HandshakeBuilder {
        Self::builder(protocol, true)
    }

    /// The side that reads first.
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

    /// Whether [`write`](Self::write) is what comes next.
    #[must_use]
    pub fn is_my_turn(&self) -> bool {
        !self.is_finished() && self.state.is_my_turn()
    }

    /// Whether all messages are written and read, so that [`split`](Self::split) gives a session.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state.is_handshake_finished()
    }

    /// Writes the next message, with `payload` in it. What protects the payload depends on pattern and message: the first
    /// one of XX and IX is sent in the clear (Noise revision 34, §7.7).
    ///
    /// # Errors
    /// [`HandshakeError::Turn`], [`HandshakeError::PayloadLength`]; [`HandshakeError::BadKey`] if what the other side has sent cannot be agreed
    /// with.
    pub fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        if !self.is_my_turn() {
            return Err(HandshakeError::Turn);
        }
        if payload.len() > HANDSHAKE_PAYLOAD_BYTES_MAX {
            return Err(HandshakeError::PayloadLength);
        }
        let node_id =
            self.told_now(self.inputs.options.initiator).then(|| self.local_id()).flatten();
        let head: &[u8] = node_id.as_ref().map_or(&[], |id| id.as_bytes());
        let payload = Zeroizing::new([head, payload].concat());
        let message = write(&mut self.state, &payload).map_err(|_| HandshakeError::BadKey)?;
        self.steps.push(Step::Wrote { payload, message: message.clone() });
        Ok(message)
    }

    /// Reads a message of the other side.
    ///
    /// # Errors
    /// Nothing has changed then, and the right message may still come.
    pub fn read(&mut self, message: &[u8]) -> Result<Read, HandshakeError> {
        if self.has_read_last(message) {
            return Ok(Read::Repeated);
        }
        if self.is_finished() || self.state.is_my_turn() {
            return Err(HandshakeError::Turn);
        }
        if message.len() > HANDSHAKE_MESSAGE_BYTES_MAX {
            return Err(HandshakeError::Unauthentic);
        }
        let mut payload = vec![0; message.len()];
        let told = self.told_now(!self.inputs.options.initiator);
        let read = self.state.read_message(message, &mut payload);
        let judged = match read {
            Ok(len) => {
                payload.truncate(len);
                self.judge(told, &mut payload)
            }
            Err(_) => Err(HandshakeError::Unauthentic),
        };
        match judged {
            Ok(peer) => {
                self.peer = peer.or(self.peer);
                self.steps.push(Step::Read { message: message.to_vec() });
                Ok(Read::Payload(payload))
            }
            Err(why) => {
                self.rebuild();
                Err(why)
            }
        }
    }

    /// The message that was written last, for a caller that had no answer to it in time, or has read the one before it for the second time.
    /// `None` if the other side has answered it: so two sides that repeat what is asked for twice come to an end.
    #[must_use]
    pub fn repeat(&self) -> Option<&[u8]> {
        match self.steps.last()? {
            Step::Wrote { message, .. } => Some(message),
            Step::Read { .. } => None,
        }
    }

    /// The hash of everything said (Noise revision 34, §11.2): equal on both sides and different in any two handshakes, so what binds
    /// something else to this one. Complete when the handshake is finished.
    #[must_use]
    pub fn hash(&self) -> &[u8] {
        self.state.get_handshake_hash()
    }

    /// The other side's static key, once it is known.
    #[must_use]
    pub fn remote_key(&self) -> Option<[u8; 32]> {
        self.state.get_remote_static().and_then(|key| key.first_chunk()).copied()
    }

    /// Who the other side is, once it is proved: it told its NodeId, or that was known before. The responder of IK and IX never has a proof
    /// in the handshake: see [`Self::claimed_peer`].
    #[must_use]
    pub fn peer(&self) -> Option<NodeId> {
        let Protocol { pattern, .. } = self.inputs.options.protocol;
        let proves = self.inputs.options.initiator || pattern.proves_initiator();
        self.claimed_peer().filter(|_| proves)
    }

    /// Who the other side says it is. The first message of IK and IX tells the initiator's NodeId and proves nothing: that of IX can be made by
    /// anybody, that of IK by who has the responder's secret, and both can be sent again. It is proved by the first message of the session that opens.
    #[must_use]
    pub fn claimed_peer(&self) -> Option<NodeId> {
        let known = self.is_finished() && self.inputs.options.remote.is_some();
        self.peer.or(self.inputs.options.peer.filter(|_| known))
    }

    /// Gives out the session, once. The handshake stays to answer a message that comes again.
    ///
    /// # Errors
    /// [`HandshakeError::NoKeys`] before the handshake is over, and the second time.
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
            Step::Read { message } => Some(&message[..]),
            Step::Wrote { .. } => None,
        });
        last == Some(message)
    }

    fn local_id(&self) -> Option<NodeId> {
        self.inputs.options.local.as_ref().and_then(|key| key.node_id)
    }

    /// Whether the message that is next tells the static key of that side.
    fn told_now(&self, initiator: bool) -> bool {
        let next = self.steps.len();
        let told = self.inputs.options.protocol.pattern.tells_static_in(initiator);
        told.is_some_and(|message| usize::from(message) == next)
    }

    /// Takes the NodeId off the payload of a message that tells a static key, where identities are spoken of at all.
    fn judge(&self, told: bool, payload: &mut Vec<u8>) -> Result<Option<NodeId>, HandshakeError> {
        let expected = self.inputs.options.peer;
        if !told || self.local_id().is_none() && expected.is_none() {
            return Ok(None);
        }
        let id = NodeId(*payload.first_chunk().ok_or(HandshakeError::Identity)?);
        let key = id.noise_public().map_err(|_| HandshakeError::Identity)?;
        if self.remote_key() != Some(key) {
            return Err(HandshakeError::Identity);
        }
        // Somebody who sends back what was written here.
        if self.local_id() == Some(id) {
            return Err(HandshakeError::WrongPeer(id));
        }
        if expected.is_some_and(|expected| expected != id) {
            return Err(HandshakeError::WrongPeer(id));
        }
        payload.drain(..NODE_ID_BYTES);
        Ok(Some(id))
    }

    /// Brings the state back to where it was before a failed attempt to read.
    fn rebuild(&mut self) {
        self.state = self.inputs.state();
        let mut scratch = Zeroizing::new(vec![0; HANDSHAKE_MESSAGE_BYTES_MAX]);
        for step in &self.steps {
            match step {
                Step::Wrote { payload, message } => {
                    let again = write(&mut self.state, payload);
                    debug_assert_eq!(
                        again.as_ref(),
                        Ok(message),
                        "a state is a function of its inputs"
                    );
                }
                Step::Read { message } => {
                    let again = self.state.read_message(message, &mut scratch);
                    debug_assert!(again.is_ok(), "it was read before");
                }
            }
        }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("protocol", &self.inputs.options.protocol)
            .field("initiator", &self.inputs.options.initiator)
            .field("messages", &self.steps.len())
            .finish_non_exhaustive()
    }
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, snow::Error> {
    let mut message =
        vec![0; (payload.len() + OVERHEAD_BYTES_MAX).min(HANDSHAKE_MESSAGE_BYTES_MAX)];
    let len = state.write_message(payload, &mut message)?;
    message.truncate(len);
    Ok(message)
}
