//! Conversations that start from prekeys, and starts that are refused.

use rand_chacha::ChaCha20Rng;
use wraith_crypto::ml_kem_768::{DecapsulationKey, ENCAPSULATION_KEY_BYTES};
use wraith_crypto::{NodeId, SecretIdentity, agree};
use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::{identity, rng};

/// Returns an encoded, signed bundle of `owner` with these keys.
fn bundle(
    owner: &SecretIdentity,
    signed: &[u8; 32],
    one_time: Option<&[u8; 32]>,
    kem: &[u8; ENCAPSULATION_KEY_BYTES],
) -> Vec<u8> {
    let (id, one_time_id) = (7_u32.to_le_bytes(), one_time.map_or(0, |_| 9_u32).to_le_bytes());
    let sign = |context: &[u8], id: &[u8], key: &[u8]| owner.sign(&[context, id, key].concat());
    let kem_signature = match one_time {
        Some(_) => sign(b"wraith session/1 one-time prekey ML-KEM-768\0", &one_time_id, kem),
        None => sign(b"wraith session/1 last-resort prekey ML-KEM-768\0", &id, kem),
    };
    [
        &[1][..],
        owner.node_id().as_bytes(),
        &id,
        signed,
        &sign(b"wraith session/1 signed prekey X25519\0", &id, signed),
        &one_time_id,
        one_time.map_or(&[][..], |key| key),
        kem,
        &kem_signature,
    ]
    .concat()
}

fn good_keys() -> ([u8; 32], [u8; ENCAPSULATION_KEY_BYTES]) {
    let kem = DecapsulationKey::from_seed(&[5; 64]).encapsulation_key();
    (agree::x25519_public(&[6; 32]), kem)
}

fn respond(prekeys: &mut PreKeys, message: &[u8]) -> Result<(Ratchet, Vec<u8>), StartError> {
    Ratchet::respond(&identity(2), prekeys, b"", message)
}

/// Asserts that the start fails with `error` and changes nothing.
fn refuses(prekeys: &mut PreKeys, message: &[u8], error: StartError) {
    let before = prekeys.save();
    assert_eq!(respond(prekeys, message).unwrap_err(), error);
    assert!(before == prekeys.save(), "a message that starts nothing changes nothing");
}

/// Returns prekeys of identity 2, and the first message of a conversation that starts from them.
fn first_message(rng: &mut ChaCha20Rng) -> (PreKeys, Vec<u8>) {
    let mut prekeys = PreKeys::generate(rng, &identity(2), 1);
    let mut alice = Ratchet::initiate(rng, &identity(1), &prekeys.bundle().unwrap()).unwrap();
    let first = seal(&mut alice, rng, b"first");
    (prekeys, first)
}

#[test]
fn a_bundle_reads_back_and_has_the_documented_lengths() {
    let mut prekeys = PreKeys::generate(&mut rng(1), &identity(2), 1);
    for (one_time, len) in [(true, BUNDLE_BYTES_MAX), (false, 1385), (false, 1385)] {
        let bundle = prekeys.bundle().unwrap();
        assert_eq!(bundle.has_one_time(), one_time);
        let bytes = bundle.encode();
        assert_eq!(bytes.len(), len);
        assert_eq!(PreKeyBundle::decode(&bytes).unwrap(), bundle);
        for cut in 0..len {
            assert!(PreKeyBundle::decode(&bytes[..cut]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(PreKeyBundle::decode(&longer).unwrap_err(), StartError::Malformed);
    }
}

#[test]
fn a_changed_bundle_fails_its_signature() {
    let (signed, kem) = good_keys();
    for one_time in [None, Some(&[9; 32])] {
        let good = bundle(&identity(2), &signed, one_time, &kem);
        PreKeyBundle::decode(&good).unwrap();
        let one_time_key = 137..137 + one_time.map_or(0, |_| 32);
        for at in (0..good.len()).filter(|at| !one_time_key.contains(at)) {
            let mut changed = good.clone();
            changed[at] ^= 1;
            assert!(PreKeyBundle::decode(&changed).is_err(), "byte {at}");
        }
    }
}

#[test]
fn a_signature_of_one_purpose_or_owner_serves_no_other() {
    let mut prekeys = PreKeys::generate(&mut rng(2), &identity(2), 1);
    let with = prekeys.bundle().unwrap().encode();
    let without = prekeys.bundle().unwrap().encode();
    // The one-time ML-KEM key replaces the one of last resort, with its signature.
    let mut swapped = without.clone();
    swapped[137..].copy_from_slice(&with[169..]);
    assert_eq!(PreKeyBundle::decode(&swapped).unwrap_err(), StartError::Signature);
    let mut owner = without;
    owner[1..33].copy_from_slice(identity(3).node_id().as_bytes());
    assert_eq!(PreKeyBundle::decode(&owner).unwrap_err(), StartError::Signature);
    owner[1..33].fill(0);
    assert_eq!(PreKeyBundle::decode(&owner).unwrap_err(), StartError::Identity);
}

#[test]
fn keys_that_are_none_start_nothing_even_if_signed() {
    let mut rng = rng(3);
    let (signed, kem) = good_keys();
    let (mut low, mut no_kem) = ([0; 32], kem);
    low[0] = 1;
    no_kem[..3].fill(0xff);
    let bundles = [
        bundle(&identity(2), &low, None, &kem),
        bundle(&identity(2), &signed, Some(&low), &kem),
        bundle(&identity(2), &signed, None, &no_kem),
        bundle(&identity(2), &signed, Some(&signed), &no_kem),
    ];
    for bytes in bundles {
        let bundle = PreKeyBundle::decode(&bytes).unwrap();
        let error = Ratchet::initiate(&mut rng, &identity(1), &bundle).unwrap_err();
        assert_eq!(error, StartError::PublicKey);
    }
    let own = PreKeyBundle::decode(&bundle(&identity(1), &signed, None, &kem)).unwrap();
    let error = Ratchet::initiate(&mut rng, &identity(1), &own).unwrap_err();
    assert_eq!(error, StartError::Identity);
}

#[test]
fn a_first_message_starts_one_conversation_and_uses_its_prekeys_up() {
    let mut rng = rng(4);
    let mut prekeys = PreKeys::generate(&mut rng, &identity(2), 2);
    let mut alice = Ratchet::initiate(&mut rng, &identity(1), &prekeys.bundle().unwrap()).unwrap();
    assert_eq!(prekeys.remaining(), 1);
    let [first, second] = [b"first", b"2nd.."].map(|text| seal(&mut alice, &mut rng, text));
    let len = prekeys.save().len();
    let (mut bob, text) = respond(&mut prekeys, &first).unwrap();
    assert_eq!((text.as_slice(), bob.peer()), (&b"first"[..], identity(1).node_id()));
    assert!(prekeys.save().len() < len, "the secrets are gone");
    for replay in [&first, &second] {
        refuses(&mut prekeys, replay, StartError::UnknownPreKey);
    }
    assert_eq!(open(&mut bob, &second).unwrap(), b"2nd..");
    assert_eq!(open(&mut bob, &first), Err(DecryptError::Replayed));
}

#[test]
fn without_one_time_prekeys_a_first_message_starts_one_conversation_too() {
    let mut rng = rng(5);
    let mut prekeys = PreKeys::generate(&mut rng, &identity(2), 0);
    let bundle = prekeys.bundle().unwrap();
    let firsts = [1, 2].map(|_| {
        let mut alice = Ratchet::initiate(&mut rng, &identity(1), &bundle).unwrap();
        [b"first", b"2nd.."].map(|text| seal(&mut alice, &mut rng, text))
    });
    for [first, second] in &firsts {
        respond(&mut prekeys, first).unwrap();
        refuses(&mut prekeys, first, StartError::Replayed);
        refuses(&mut prekeys, second, StartError::Replayed);
    }
    let mut restored = PreKeys::restore(&prekeys.save()).unwrap();
    refuses(&mut restored, &firsts[0][0], StartError::Replayed);
}

#[test]
fn any_message_of_the_initiator_may_be_the_first_to_arrive() {
    let mut rng = rng(6);
    let mut prekeys = PreKeys::generate(&mut rng, &identity(2), 1);
    let mut alice = Ratchet::initiate(&mut rng, &identity(1), &prekeys.bundle().unwrap()).unwrap();
    let messages = [1, 2, 3].map(|text| seal(&mut alice, &mut rng, &[text]));
    let (mut bob, text) = respond(&mut prekeys, &messages[1]).unwrap();
    assert_eq!(text, [2]);
    for message in [&messages[2], &messages[0]] {
        open(&mut bob, message).unwrap();
    }
    // The initial part is sent until an answer has arrived.
    assert!(alice.is_unanswered());
    let answer = seal(&mut bob, &mut rng, b"answer");
    open(&mut alice, &answer).unwrap();
    assert!(!alice.is_unanswered());
    let message = seal(&mut alice, &mut rng, b"");
    assert_eq!((message.len(), Ratchet::initiator_of(&message)), (OVERHEAD_BYTES, None));
}

#[test]
fn a_first_message_that_is_damaged_starts_nothing_and_leaves_the_prekeys() {
    let mut rng = rng(7);
    let (mut prekeys, first) = first_message(&mut rng);
    let before = prekeys.save();
    for at in 0..first.len() {
        let mut damaged = first.clone();
        damaged[at] ^= 0x20;
        respond(&mut prekeys, &damaged).unwrap_err();
    }
    for len in 0..first.len() {
        respond(&mut prekeys, &first[..len]).unwrap_err();
    }
    assert!(before == prekeys.save());
    respond(&mut prekeys, &first).unwrap();
}

#[test]
fn a_first_message_is_bound_to_its_sender() {
    let mut rng = rng(8);
    let mut prekeys = PreKeys::generate(&mut rng, &identity(2), 1);
    let mut alice = Ratchet::initiate(&mut rng, &identity(1), &prekeys.bundle().unwrap()).unwrap();
    let mut first = seal(&mut alice, &mut rng, b"first");
    for id in [identity(3).node_id(), identity(2).node_id(), NodeId([0; 32])] {
        first[2..34].copy_from_slice(id.as_bytes());
        let before = prekeys.save();
        respond(&mut prekeys, &first).unwrap_err();
        assert!(before == prekeys.save());
    }
    // An ephemeral key of small order.
    first[2..34].copy_from_slice(identity(1).node_id().as_bytes());
    first[34..66].fill(0);
    refuses(&mut prekeys, &first, StartError::PublicKey);
}

#[test]
fn signed_prekeys_stay_for_one_rotation() {
    let (mut rng, bob) = (rng(9), identity(2));
    let mut prekeys = PreKeys::generate(&mut rng, &bob, 0);
    let bundle = prekeys.bundle().unwrap();
    let firsts = [1, 2].map(|_| {
        let mut alice = Ratchet::initiate(&mut rng, &identity(1), &bundle).unwrap();
        seal(&mut alice, &mut rng, b"first")
    });
    prekeys.rotate(&mut rng, &bob).unwrap();
    assert_ne!(prekeys.bundle().unwrap(), bundle);
    respond(&mut prekeys, &firsts[0]).unwrap();
    prekeys.rotate(&mut rng, &bob).unwrap();
    refuses(&mut prekeys, &firsts[1], StartError::UnknownPreKey);
    refuses(&mut prekeys, &firsts[0], StartError::UnknownPreKey);
}

#[test]
fn one_time_prekeys_are_replenished_and_bounded() {
    let (mut rng, bob) = (rng(10), identity(2));
    let mut prekeys = PreKeys::generate(&mut rng, &bob, 3);
    let handed_out = prekeys.bundle().unwrap();
    assert_eq!(prekeys.remaining(), 2);
    prekeys.replenish(&mut rng, &bob, 3).unwrap();
    assert_eq!(prekeys.remaining(), 3);
    let mut alice = Ratchet::initiate(&mut rng, &identity(1), &handed_out).unwrap();
    let first = seal(&mut alice, &mut rng, b"first");
    prekeys.replenish(&mut rng, &bob, usize::MAX).unwrap();
    assert_eq!(prekeys.remaining(), ONE_TIME_MAX);
    // Those handed out were evicted.
    refuses(&mut prekeys, &first, StartError::UnknownPreKey);
}

#[test]
fn prekeys_serve_one_identity() {
    let mut rng = rng(11);
    let (mut prekeys, first) = first_message(&mut rng);
    let before = prekeys.save();
    let error = Ratchet::respond(&identity(3), &mut prekeys, b"", &first).unwrap_err();
    assert_eq!(error, StartError::Identity);
    let refused = Err(StartError::Identity);
    assert_eq!(prekeys.rotate(&mut rng, &identity(3)), refused);
    assert_eq!(prekeys.replenish(&mut rng, &identity(3), 9), refused);
    assert!(before == prekeys.save());
}
