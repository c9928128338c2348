//! Bundles of prekeys. Invariant: an accepted bundle encodes to the same bytes, and a conversation
//! with it starts or is refused.
//!
//! The first byte states whether the target signs the bundle anew, which otherwise only its owner
//! can do.

use wraith_crypto::SecretIdentity;
use wraith_session::ratchet::{
    BUNDLE_BYTES_MAX, OVERHEAD_BYTES, PreKeyBundle, Ratchet, StartError,
};

use crate::session_world::{alice, bob, conversation, rng};

const SIGNED_DH: &[u8] = b"wraith session/1 signed prekey X25519\0";
const LAST_RESORT_KEM: &[u8] = b"wraith session/1 last-resort prekey ML-KEM-768\0";
const ONE_TIME_KEM: &[u8] = b"wraith session/1 one-time prekey ML-KEM-768\0";
/// Offsets of the fields: see the module `bundle`.
const NODE_ID_AT: usize = 1;
const SIGNED_AT: usize = NODE_ID_AT + 32;
const ONE_TIME_AT: usize = SIGNED_AT + 4 + 32 + 64;
const KEM_BYTES: usize = 1184;

pub(crate) fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if kind & 1 != 0 {
        sign(&bob(), &mut bytes);
    }
    let Ok(bundle) = PreKeyBundle::decode(&bytes) else {
        assert!(bytes != conversation().bundle, "a genuine one is taken");
        return;
    };
    assert!(bytes.len() <= BUNDLE_BYTES_MAX && bundle.encode() == bytes);
    assert_eq!(bundle.node_id(), bob().node_id(), "only its owner signs it");
    match Ratchet::initiate(&mut rng(1), &alice(), &bundle) {
        Ok(mut ratchet) => {
            let mut message = Vec::new();
            ratchet.encrypt(&mut rng(2), b"", b"", &mut message).expect("it has just begun");
            assert!(message.len() > OVERHEAD_BYTES && ratchet.is_unanswered());
            assert_eq!(Ratchet::initiator_of(&message), Some(alice().node_id()));
        }
        Err(why) => assert_eq!(why, StartError::PublicKey),
    }
}

/// Writes the NodeId of `identity` and its signatures into bytes that have the length of a bundle.
fn sign(identity: &SecretIdentity, bytes: &mut [u8]) {
    let Some(one_time) = bytes.get(ONE_TIME_AT..ONE_TIME_AT + 4).map(<[u8]>::to_vec) else {
        return;
    };
    let has_one_time = one_time != [0; 4];
    let kem_at = ONE_TIME_AT + 4 + if has_one_time { 32 } else { 0 };
    if bytes.len() < kem_at + KEM_BYTES + 64 {
        return;
    }
    bytes[NODE_ID_AT..SIGNED_AT].copy_from_slice(identity.node_id().as_bytes());
    let signed_id = bytes[SIGNED_AT..SIGNED_AT + 4].to_vec();
    let dh = [SIGNED_DH, &bytes[SIGNED_AT..SIGNED_AT + 4 + 32]].concat();
    bytes[SIGNED_AT + 36..][..64].copy_from_slice(&identity.sign(&dh));
    let (context, id) =
        if has_one_time { (ONE_TIME_KEM, one_time) } else { (LAST_RESORT_KEM, signed_id) };
    let kem = [context, &id, &bytes[kem_at..kem_at + KEM_BYTES]].concat();
    bytes[kem_at + KEM_BYTES..][..64].copy_from_slice(&identity.sign(&kem));
}
