//! Anonymous public-key encryption: one message to one identity. The message neither names nor
//! authenticates its sender, and cannot be answered.
//!
//! ```text
//!  version 1 (1) ‖ message of Noise_N_25519_ChaChaPoly_BLAKE2s with an empty payload (48) ‖ ciphertext ‖ tag (16)
//! ```
//!
//! The text is sealed with the first key of `Split` and nonce 0. Only the owner of the identity can
//! open it. The box does not authenticate its sender and has no forward secrecy: a later holder of
//! the identity's secret can read it. The box has no ML-KEM part either, because an identity has no
//! ML-KEM key. For text that must stay secret for decades, use a [session](crate::Session) or a
//! [ratchet](crate::ratchet).

use rand_core::CryptoRng;
use snow::HandshakeState;
use snow::params::{
    BaseChoice, CipherChoice, DHChoice, HandshakeChoice, HandshakeModifierList, HandshakePattern,
    HashChoice, NoiseParams,
};
use thiserror::Error;
use wraith_crypto::{AeadKey, NodeId, SecretIdentity, Suite, TAG_BYTES, Wiped};
use wraith_noise::primitives::{KeyPair, MlKem, Resolver, nonce};
use zeroize::{Zeroize, Zeroizing};

use crate::handshake::noise_state;
use crate::session::TEXT_BYTES_MAX;

const VERSION: u8 = 1;
const PROTOCOL: &str = "Noise_N_25519_ChaChaPoly_BLAKE2s";
const HEAD_BYTES: usize = 1 + HANDSHAKE_BYTES;
const HANDSHAKE_BYTES: usize = 32 + TAG_BYTES;
/// Bytes that a box adds to its text.
pub const SEALED_BOX_OVERHEAD: usize = HEAD_BYTES + TAG_BYTES;

/// Why a box was not made or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealedBoxError {
    /// The text is too long.
    #[error("a sealed box holds at most {TEXT_BYTES_MAX} bytes")]
    Length,
    /// The recipient's NodeId is invalid.
    #[error("this NodeId is invalid; check it for typing errors")]
    Recipient,
    /// The bytes are no box of a supported version.
    #[error("not a sealed box, or one of a later version")]
    Malformed,
    /// The box is for another identity or another context, or was changed.
    #[error("the box was not made for this identity and context, or was changed")]
    Unauthentic,
}

/// Seals `text` for `to`. `context` states the purpose: it is not sent, and must be equal when the
/// box is opened.
///
/// # Errors
/// [`SealedBoxError::Length`], [`SealedBoxError::Recipient`].
pub fn seal(
    rng: &mut impl CryptoRng,
    to: &NodeId,
    context: &[u8],
    text: &[u8],
) -> Result<Vec<u8>, SealedBoxError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SealedBoxError::Length);
    }
    let recipient = to.noise_public().map_err(|_| SealedBoxError::Recipient)?;
    let mut secret = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *secret);
    let mut noise = state(None, KeyPair::of(secret), context, Some(&recipient));
    let mut out = vec![0; HEAD_BYTES];
    out[0] = VERSION;
    // A key of the prime-order subgroup agrees with every ephemeral key.
    noise.write_message(&[], &mut out[1..]).map_err(|_| SealedBoxError::Recipient)?;
    out.extend_from_slice(text);
    let tag = key(&mut noise).seal(nonce(Suite::ChaCha20Poly1305, 0), &[], &mut out[HEAD_BYTES..]);
    out.extend_from_slice(&tag);
    Ok(out)
}

/// Opens a box that was made for `identity` and `context`.
///
/// # Errors
/// [`SealedBoxError::Malformed`], [`SealedBoxError::Unauthentic`].
pub fn open(
    identity: &SecretIdentity,
    context: &[u8],
    sealed: &[u8],
) -> Result<Vec<u8>, SealedBoxError> {
    let lens = SEALED_BOX_OVERHEAD..=SEALED_BOX_OVERHEAD + TEXT_BYTES_MAX;
    if !lens.contains(&sealed.len()) || sealed[0] != VERSION {
        return Err(SealedBoxError::Malformed);
    }
    let (head, sealed) = sealed.split_at(HEAD_BYTES);
    let local = KeyPair::of(identity.noise_static());
    let mut noise = state(Some(&local), KeyPair::default(), context, None);
    noise.read_message(&head[1..], &mut []).map_err(|_| SealedBoxError::Unauthentic)?;
    let mut text = sealed.to_vec();
    match key(&mut noise).open(nonce(Suite::ChaCha20Poly1305, 0), &[], &mut text) {
        Ok(()) => {
            text.truncate(sealed.len() - TAG_BYTES);
            Ok(text)
        }
        Err(_) => {
            text.zeroize();
            Err(SealedBoxError::Unauthentic)
        }
    }
}

fn key(noise: &mut HandshakeState) -> AeadKey {
    let split = Zeroizing::new(noise.dangerously_get_raw_split());
    AeadKey::new(Suite::ChaCha20Poly1305, &split.0)
}

fn state(
    local: Option<&KeyPair>,
    ephemeral: KeyPair,
    context: &[u8],
    remote: Option<&[u8; 32]>,
) -> Wiped<HandshakeState> {
    let params = NoiseParams::new(
        PROTOCOL.to_owned(),
        BaseChoice::Noise,
        HandshakeChoice {
            pattern: HandshakePattern::N,
            modifiers: HandshakeModifierList { list: Vec::new() },
        },
        DHChoice::Curve25519,
        None,
        CipherChoice::ChaChaPoly,
        HashChoice::Blake2s,
    );
    let kem = MlKem::Encapsulates(Zeroizing::default());
    let suite = Suite::ChaCha20Poly1305;
    let resolver = Resolver { ephemeral, local: local.cloned(), suite, kem };
    // N needs the responder's key on both sides, and has it.
    noise_state(params, resolver, remote.is_some(), context, remote, None)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(1)
    }

    #[test]
    fn a_box_opens_for_its_identity_and_context_and_for_no_other() {
        let [owner, other] = [1, 2].map(|byte| SecretIdentity::from_seed([byte; 32]));
        for len in [0, 1, 1000, 100_000] {
            let text = vec![7; len];
            let sealed = seal(&mut rng(), &owner.node_id(), b"context", &text).unwrap();
            assert_eq!(sealed.len(), len + SEALED_BOX_OVERHEAD);
            assert_eq!(open(&owner, b"context", &sealed).as_ref(), Ok(&text));
            assert_eq!(open(&other, b"context", &sealed), Err(SealedBoxError::Unauthentic));
            assert_eq!(open(&owner, b"other", &sealed), Err(SealedBoxError::Unauthentic));
        }
    }

    #[test]
    fn a_box_that_was_changed_or_cut_does_not_open() {
        let owner = SecretIdentity::from_seed([1; 32]);
        let sealed = seal(&mut rng(), &owner.node_id(), b"", b"text").unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&owner, b"", &changed).is_err(), "byte {at}");
            assert!(open(&owner, b"", &sealed[..at]).is_err(), "{at} bytes");
        }
        let mut small = sealed.clone();
        small[1..33].fill(0);
        assert_eq!(open(&owner, b"", &small), Err(SealedBoxError::Unauthentic), "of small order");
        let nobody = seal(&mut rng(), &NodeId([0; 32]), b"", b"text");
        assert_eq!(nobody, Err(SealedBoxError::Recipient));
        let long = vec![0; TEXT_BYTES_MAX + 1];
        assert_eq!(seal(&mut rng(), &owner.node_id(), b"", &long), Err(SealedBoxError::Length));
    }
}
