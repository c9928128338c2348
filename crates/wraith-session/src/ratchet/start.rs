//! The start of a conversation with an offline peer: PQXDH, a key agreement with the peer's
//! published prekeys.
//!
//! | | |
//! |---|---|
//! | DH1 | initiator's identity × signed prekey |
//! | DH2 | ephemeral × responder's identity |
//! | DH3 | ephemeral × signed prekey |
//! | DH4 | ephemeral × one-time prekey, if there is one |
//! | SS | encapsulated to the ML-KEM prekey, one-time or of last resort |
//! | binding | `derive(context, suite ‖ both NodeIds ‖ id and key of each prekey ‖ ephemeral ‖ ciphertext)` |
//! | seed | `derive(context, DH1 ‖ DH2 ‖ DH3 [‖ DH4] ‖ SS ‖ binding)` |
//!
//! The seed gives the first root key and the first two header keys. The responder's first ratchet
//! key is its signed prekey.
//!
//! This follows Signal's "The PQXDH Key Agreement Protocol" (revision 3), with these differences:
//! - The KDF is BLAKE3's key derivation with its own context. PQXDH's prefix of 32 bytes of 0xff,
//!   which separates X25519 from XEdDSA, is omitted, because XEdDSA is not used: identities are
//!   Ed25519 keys, and the key agreement uses their X25519 images.
//! - The secret depends on a hash of all public values, including the ML-KEM key, the ciphertext
//!   and both NodeIds. The hash replaces PQXDH's associated data (AD): it is neither sent nor
//!   repeated in each AEAD. So a ciphertext cannot be made to fit another key, nor a conversation
//!   another pair of peers (the re-encapsulation attack of Bhargavan and others, 2024).
//! - One-time X25519 and ML-KEM prekeys form a pair with one id.
//! - The responder remembers each start without one-time prekeys until it has rotated out the
//!   signed prekeys. So a replayed first message starts nothing.
//!
//! The initiator's NodeId is sent in the clear in the initial part, as in PQXDH. To hide it from
//! observers, send the messages through encrypted connections.

use rand_core::CryptoRng;
use wraith_crypto::ml_kem_768::{CIPHERTEXT_BYTES, ENCAPSULATION_KEY_BYTES};
use wraith_crypto::{NodeId, Policy, SecretIdentity, Suite, aes_hardware, kdf};
use zeroize::Zeroizing;

use super::bundle::PreKeyBundle;
use super::curve;
use super::double_ratchet::Ratchet;
use super::error::{DecryptError, StartError};
use super::hybrid::Hybrid;
use super::keys::{self, Secret};
use super::message::{Envelope, INITIAL_BYTES};
use super::prekeys::PreKeys;
use super::skipped::SkippedKeys;
use crate::codec::Reader;
use crate::vault::StoreError;

const BINDING: &str = "wraith session/1 pqxdh binding";
const SEED: &str = "wraith session/1 pqxdh seed";

/// Input of the responder's key agreement; each message carries it until the responder answers.
struct InitialPart {
    suite: Suite,
    initiator: NodeId,
    ephemeral: [u8; 32],
    signed_id: u32,
    /// 0 if there are no one-time prekeys.
    one_time_id: u32,
    ciphertext: Box<[u8; CIPHERTEXT_BYTES]>,
}

impl InitialPart {
    fn encode(&self) -> Box<[u8; INITIAL_BYTES]> {
        let parts = [
            &[self.suite.to_wire()][..],
            self.initiator.as_bytes(),
            &self.ephemeral,
            &self.signed_id.to_le_bytes(),
            &self.one_time_id.to_le_bytes(),
            &self.ciphertext[..],
        ];
        let bytes = parts.concat().into_boxed_slice();
        bytes.try_into().expect("the lengths of the fields add up")
    }

    fn decode(bytes: &[u8; INITIAL_BYTES]) -> Result<Self, StartError> {
        let mut reader = Reader::new(bytes);
        // Accepts only the suites that this program's own initiator can choose.
        let suite = Suite::from_wire(reader.u8()?)
            .filter(|suite| Policy::Default.packet_suites() & suite.bit() != 0)
            .ok_or(StartError::UnknownVersion)?;
        let (initiator, ephemeral) = (NodeId(reader.array()?), reader.array()?);
        let (signed_id, one_time_id) = (reader.u32()?, reader.u32()?);
        let ciphertext = reader.boxed()?;
        reader.finish()?;
        Ok(Self { suite, initiator, ephemeral, signed_id, one_time_id, ciphertext })
    }

    /// Hashes all public values. `one_time` is present exactly if its id is not 0, and every other
    /// field has a fixed length.
    fn binding(
        &self,
        responder: NodeId,
        signed: &[u8; 32],
        one_time: Option<&[u8; 32]>,
        kem: &[u8; ENCAPSULATION_KEY_BYTES],
    ) -> [u8; 32] {
        let parts = [
            &[self.suite.to_wire()][..],
            self.initiator.as_bytes(),
            responder.as_bytes(),
            &self.signed_id.to_le_bytes(),
            signed,
            &self.one_time_id.to_le_bytes(),
            one_time.map_or(&[][..], |key| key),
            kem,
            &self.ephemeral,
            &self.ciphertext[..],
        ];
        kdf::derive_parts(BINDING, &parts)
    }
}

/// The X25519 results in the order of the table, and the ML-KEM secret.
struct Shares {
    dh: [Option<Secret>; 4],
    kem: Secret,
}

impl Shares {
    fn seed(&self, binding: &[u8; 32]) -> Secret {
        let mut parts: Vec<&[u8]> = self.dh.iter().flatten().map(|dh| &dh[..]).collect();
        parts.extend([&self.kem[..], binding]);
        Zeroizing::new(kdf::derive_parts(SEED, &parts))
    }
}

fn agree(secret: &[u8; 32], public: &[u8; 32]) -> Result<Option<Secret>, StartError> {
    curve::agree(secret, public).map(Some).ok_or(StartError::PublicKey)
}

impl Ratchet {
    /// Starts a conversation with the owner of `bundle`, which may be offline. Until an answer
    /// [opens](Self::decrypt), every message is 1161 bytes longer, and [`Self::respond`] can start
    /// from any of them.
    ///
    /// # Errors
    /// [`StartError::Identity`] if the bundle is the local identity's own,
    /// [`StartError::PublicKey`] if one of its keys is invalid.
    pub fn initiate(
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        bundle: &PreKeyBundle,
    ) -> Result<Self, StartError> {
        let suite = if aes_hardware() { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 };
        Self::initiate_with(rng, identity, bundle, suite)
    }

    /// As [`Self::initiate`], with an explicit suite instead of the faster one.
    ///
    /// # Errors
    /// As [`Self::initiate`].
    pub fn initiate_with(
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        bundle: &PreKeyBundle,
        suite: Suite,
    ) -> Result<Self, StartError> {
        let (me, peer) = (identity.node_id(), bundle.node_id);
        if me == peer {
            return Err(StartError::Identity);
        }
        let peer_static = peer.noise_public().map_err(|_| StartError::Identity)?;
        let (ephemeral_secret, ephemeral) = curve::new_pair(rng);
        let (ciphertext, kem) =
            curve::encapsulate(rng, &bundle.kem).ok_or(StartError::PublicKey)?;
        let dh4 = match &bundle.one_time {
            Some((_, key)) => agree(&ephemeral_secret, key)?,
            None => None,
        };
        let dh = [
            agree(&identity.noise_static(), &bundle.signed)?,
            agree(&ephemeral_secret, &peer_static)?,
            agree(&ephemeral_secret, &bundle.signed)?,
            dh4,
        ];
        let part = InitialPart {
            suite,
            initiator: me,
            ephemeral,
            signed_id: bundle.signed_id,
            one_time_id: bundle.one_time.map_or(0, |(id, _)| id),
            ciphertext: Box::new(ciphertext),
        };
        let one_time = bundle.one_time.as_ref().map(|(_, key)| key);
        let binding = part.binding(peer, &bundle.signed, one_time, &bundle.kem);
        let seed = Shares { dh, kem }.seed(&binding);
        let mut ratchet = Self::initial_state(suite, me, peer, binding, &seed, true);
        ratchet.remote = Some(bundle.signed);
        ratchet.initial = Some(part.encode());
        ratchet.send_ratchet_step(rng).map_err(|_| StartError::PublicKey)?;
        Ok(ratchet)
    }

    /// Returns the claimed sender of `message`, if [`Self::respond`] can start from it. Nothing is
    /// authenticated.
    #[must_use]
    pub fn initiator_of(message: &[u8]) -> Option<NodeId> {
        let initial = Envelope::parse(message).ok()?.initial()?;
        InitialPart::decode(initial).ok().map(|part| part.initiator)
    }

    /// Starts the conversation that `message` requests, and decrypts the message. Its one-time
    /// prekeys are removed from `prekeys`, so that the same message cannot start another
    /// conversation. The initiator repeats the initial part until it has an answer. Pass those
    /// further messages to [`Self::decrypt`]. If a conversation with [that
    /// peer](Self::initiator_of) exists, try it first.
    ///
    /// Cost of a forged first message: negligible if it names no existing prekey. Otherwise it
    /// costs four X25519 agreements and three ML-KEM operations, about 0.2 ms. A caller that
    /// accepts first messages from strangers should limit their rate.
    ///
    /// # Errors
    /// [`StartError`]; the state is unchanged. If the prekeys are kept in a vault,
    /// [`Self::respond_in_vault`] keeps the conversation in one, too.
    pub fn respond(
        identity: &SecretIdentity,
        prekeys: &mut PreKeys,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Self, Vec<u8>), StartError> {
        match prekeys.is_kept() {
            true => Err(StoreError::OneKept.into()),
            false => Self::start_from(identity, prekeys, aad, message),
        }
    }

    /// As [`Self::respond`], without a store.
    pub(super) fn start_from(
        identity: &SecretIdentity,
        prekeys: &mut PreKeys,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Self, Vec<u8>), StartError> {
        let me = identity.node_id();
        prekeys.check_owner(identity)?;
        let initial = Envelope::parse(message)?.initial();
        let part = InitialPart::decode(initial.ok_or(DecryptError::Malformed)?)?;
        if part.initiator == me {
            return Err(StartError::Identity);
        }
        let (mut ratchet, binding) = Self::answer(identity, prekeys, &part)?;
        let mut plaintext = Vec::new();
        ratchet.decrypt_step(aad, message, &mut plaintext)?;
        prekeys.started(part.signed_id, part.one_time_id, binding);
        Ok((ratchet, plaintext))
    }

    /// Computes the responder's half of the key agreement.
    fn answer(
        identity: &SecretIdentity,
        prekeys: &PreKeys,
        part: &InitialPart,
    ) -> Result<(Self, [u8; 32]), StartError> {
        let (me, peer) = (identity.node_id(), part.initiator);
        let peer_static = peer.noise_public().map_err(|_| StartError::Identity)?;
        let signed = prekeys.signed(part.signed_id).ok_or(StartError::UnknownPreKey)?;
        let one_time = match part.one_time_id {
            0 => None,
            id => Some(prekeys.one_time(id).ok_or(StartError::UnknownPreKey)?),
        };
        let kem_seed = one_time.map_or(&signed.kem_seed, |keys| &keys.kem_seed);
        let one_time_public = one_time.map(|keys| curve::public_of(&keys.secret));
        let binding = part.binding(
            me,
            &curve::public_of(&signed.secret),
            one_time_public.as_ref(),
            &curve::encapsulation_key(kem_seed),
        );
        if one_time.is_none() {
            prekeys.may_start(part.signed_id, &binding)?;
        }
        let dh4 = match one_time {
            Some(keys) => agree(&keys.secret, &part.ephemeral)?,
            None => None,
        };
        let dh = [
            agree(&signed.secret, &peer_static)?,
            agree(&identity.noise_static(), &part.ephemeral)?,
            agree(&signed.secret, &part.ephemeral)?,
            dh4,
        ];
        let kem = curve::decapsulate(kem_seed, &part.ciphertext);
        let seed = Shares { dh, kem }.seed(&binding);
        let mut ratchet = Self::initial_state(part.suite, me, peer, binding, &seed, false);
        ratchet.own = Some(signed.secret.clone());
        Ok((ratchet, binding))
    }

    /// Returns the state that both sides share before either has made a ratchet key.
    fn initial_state(
        suite: Suite,
        me: NodeId,
        peer: NodeId,
        binding: [u8; 32],
        seed: &Secret,
        is_initiator: bool,
    ) -> Self {
        let (initiators, responders) = (keys::expand(seed, 2), keys::expand(seed, 3));
        let (next_sending_header, next_receiving_header) =
            if is_initiator { (initiators, responders) } else { (responders, initiators) };
        Self {
            suite,
            me,
            peer,
            binding,
            root: keys::expand(seed, 1),
            own: None,
            remote: None,
            sending: None,
            previous_len: 0,
            next_sending_header,
            receiving: None,
            next_receiving_header,
            skipped: SkippedKeys::default(),
            hybrid: Hybrid::default(),
            initial: None,
            padding: false,
            kept: None,
        }
    }
}
