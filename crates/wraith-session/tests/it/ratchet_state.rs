//! Saved states: restoring, refusals, and the effects of a rollback.

use proptest::collection::vec;
use proptest::prelude::*;
use wraith_session::StateError;
use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::{identity, rng};

/// Returns states of all kinds: unanswered, sending, receiving, offering, with keys missing.
fn states() -> Vec<Ratchet> {
    let mut rng = rng(1);
    let (unanswered, only_received) = started(&mut rng);
    let mut states = vec![unanswered, only_received];
    let (mut alice, mut bob) = established(&mut rng);
    for _ in 0..2 * KEM_INTERVAL {
        seal(&mut alice, &mut rng, b"lost");
        let message = seal(&mut alice, &mut rng, b"text");
        open(&mut bob, &message).unwrap();
        std::mem::swap(&mut alice, &mut bob);
        states.push(Ratchet::restore(&alice.save()).unwrap());
        states.push(Ratchet::restore(&bob.save()).unwrap());
    }
    states
}

#[test]
fn a_state_of_any_kind_comes_back_as_it_was() {
    for state in states() {
        let saved = state.save();
        let restored = Ratchet::restore(&saved).unwrap();
        assert!(saved == restored.save());
        assert_eq!((restored.local_id(), restored.peer()), (state.local_id(), state.peer()));
    }
}

#[test]
fn torn_states_and_those_of_other_versions_are_refused() {
    for state in states().iter().step_by(7) {
        let saved = state.save();
        for len in 0..saved.len() {
            assert_eq!(Ratchet::restore(&saved[..len]).unwrap_err(), StateError::Malformed);
        }
        let longer = [&saved[..], &[0]].concat();
        assert_eq!(Ratchet::restore(&longer).unwrap_err(), StateError::Malformed);
        let mut other = saved.to_vec();
        other[0] = 1;
        assert_eq!(Ratchet::restore(&other).unwrap_err(), StateError::Version(1));
    }
}

#[test]
fn torn_prekeys_and_those_of_other_versions_are_refused() {
    let mut rng = rng(2);
    let bob = identity(2);
    let mut prekeys = PreKeys::generate(&mut rng, &bob, 3);
    prekeys.rotate(&mut rng, &bob).unwrap();
    prekeys.bundle().unwrap();
    let saved = prekeys.save();
    let restored = PreKeys::restore(&saved).unwrap();
    assert!(saved == restored.save());
    assert_eq!((restored.node_id(), restored.remaining()), (bob.node_id(), 2));
    for len in 0..saved.len() {
        assert_eq!(PreKeys::restore(&saved[..len]).unwrap_err(), StateError::Malformed);
    }
    let longer = [&saved[..], &[0]].concat();
    assert_eq!(PreKeys::restore(&longer).unwrap_err(), StateError::Malformed);
    let mut other = saved.to_vec();
    other[0] = 0;
    assert_eq!(PreKeys::restore(&other).unwrap_err(), StateError::Version(0));
}

#[test]
fn a_rolled_back_sender_never_uses_a_body_key_or_a_header_nonce_twice() {
    let mut rng = rng(3);
    let (mut alice, bob) = established(&mut rng);
    seal(&mut alice, &mut rng, b"begins the chain");
    let (saved, bobs) = (alice.save(), bob.save());
    let texts = [[0x00; 64], [0xff; 64]];
    let messages = texts.map(|text| {
        let mut alice = Ratchet::restore(&saved).unwrap();
        seal(&mut alice, &mut rng, &text)
    });
    // Both have the same number, and each opens if the other has not arrived before.
    for (message, text) in messages.iter().zip(texts) {
        let mut bob = Ratchet::restore(&bobs).unwrap();
        assert_eq!(open(&mut bob, message).unwrap(), text);
        assert_eq!(bob.missing(), 1);
        let other = messages.iter().find(|other| *other != message).unwrap();
        assert!(open(&mut bob, other).is_err());
    }
    assert_ne!(messages[0][1..17], messages[1][1..17], "the salt");
    // Under one key stream the ciphertexts would differ as the texts do, and not at all in the
    // equal headers.
    let differences: Vec<u8> = messages[0].iter().zip(&messages[1]).map(|(a, b)| a ^ b).collect();
    assert!(differences[17..58].iter().filter(|&&byte| byte == 0).count() < 10);
    assert!(differences[74..138].iter().filter(|&&byte| byte == 0xff).count() < 10);
}

proptest! {
    /// A damaged state that decodes (there is no checksum) does not panic.
    #[test]
    fn a_damaged_state_does_no_harm(
        which in any::<usize>(),
        damage in vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut rng = rng(4);
        let (mut alice, mut bob) = established(&mut rng);
        // The states include one that offers a key, and one that answers.
        until_offer(&mut alice, &mut bob, &mut rng);
        let message = seal(&mut alice, &mut rng, b"text");
        open(&mut bob, &message).unwrap();
        let answer = seal(&mut bob, &mut rng, b"text");
        let saved = if which % 2 == 0 { alice.save() } else { bob.save() };
        let mut damaged = saved.to_vec();
        for (at, value) in damage {
            let at = at % damaged.len();
            damaged[at] = value;
        }
        if let Ok(mut ratchet) = Ratchet::restore(&damaged) {
            prop_assert!(damaged == ratchet.save().as_slice());
            for message in [&message, &answer] {
                let _ = open(&mut ratchet, message);
            }
            let _ = ratchet.encrypt(&mut rng, b"", b"text", &mut Vec::new());
        }
    }

    #[test]
    fn no_bytes_make_restoring_panic(version in 0..3_u8, mut bytes in vec(any::<u8>(), 0..2000)) {
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        let _ = Ratchet::restore(&bytes);
        let _ = PreKeys::restore(&bytes);
        let _ = PreKeyBundle::decode(&bytes);
    }
}
