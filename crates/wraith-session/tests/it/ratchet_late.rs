//! Lost and late messages of conversations: which messages open, and the errors of the others.

use std::time::Duration;

use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::{identity, rng};

#[test]
fn a_direction_goes_on_after_any_number_of_lost_messages() {
    for lost in [1, 1001, 1100, 20_000] {
        let mut rng = rng(30);
        let (mut alice, mut bob) = established(&mut rng);
        // The first messages of a chain, and later ones of the same chain.
        for _ in 0..2 {
            for _ in 0..lost {
                seal(&mut alice, &mut rng, b"lost");
            }
            for text in [b"one", b"two"] {
                let message = seal(&mut alice, &mut rng, text);
                assert_eq!(open(&mut bob, &message).unwrap(), text, "{lost} lost");
            }
        }
        turn(&mut bob, &mut alice, &mut rng);
    }
}

#[test]
fn messages_that_are_late_by_many_turns_open() {
    let mut rng = rng(31);
    let (mut alice, mut bob) = established(&mut rng);
    let mut late = Vec::new();
    for _ in 0..20 {
        late.extend((0..7).map(|_| seal(&mut alice, &mut rng, b"late")));
        turn(&mut alice, &mut bob, &mut rng);
    }
    assert_eq!(late.len(), 140);
    for message in &late {
        assert_eq!(open(&mut bob, message).unwrap(), b"late");
    }
}

#[test]
fn of_a_gap_the_last_thousand_messages_open_and_the_others_are_too_old() {
    let mut rng = rng(32);
    let (mut alice, mut bob) = established(&mut rng);
    let first = seal(&mut alice, &mut rng, b"first");
    open(&mut bob, &first).unwrap();
    let within: Vec<_> = (0..1500).map(|_| seal(&mut alice, &mut rng, b"late")).collect();
    let after = seal(&mut alice, &mut rng, b"after");
    open(&mut bob, &after).unwrap();
    assert_eq!(bob.missing(), SKIP_MAX as usize);
    refuses(&mut bob, b"", &within[499], DecryptError::TooOld);
    // The gap at the end of a chain shows with the first message of the next one.
    let at_end: Vec<_> = (0..1500).map(|_| seal(&mut alice, &mut rng, b"late")).collect();
    let answer = seal(&mut bob, &mut rng, b"answer");
    open(&mut alice, &answer).unwrap();
    let next = seal(&mut alice, &mut rng, b"next");
    open(&mut bob, &next).unwrap();
    assert_eq!(bob.missing(), SKIPPED_MAX);
    for gap in [within, at_end] {
        for (at, message) in gap.iter().enumerate() {
            match at {
                ..500 => refuses(&mut bob, b"", message, DecryptError::TooOld),
                _ => assert_eq!(open(&mut bob, message).unwrap(), b"late"),
            }
        }
    }
    assert_eq!(bob.missing(), 0);
    turn(&mut bob, &mut alice, &mut rng);
}

#[test]
fn no_more_keys_are_held_than_promised_and_the_oldest_go_first() {
    let mut rng = rng(9);
    let (mut alice, mut bob) = established(&mut rng);
    let mut messages = Vec::new();
    for _ in 0..3 {
        messages.extend((0..900).map(|_| seal(&mut alice, &mut rng, b"text")));
        let arrives = seal(&mut alice, &mut rng, b"arrives");
        open(&mut bob, &arrives).unwrap();
    }
    assert_eq!(bob.missing(), SKIPPED_MAX);
    refuses(&mut bob, b"", &messages[699], DecryptError::TooOld);
    for message in &messages[700..] {
        open(&mut bob, message).unwrap();
    }
}

#[test]
fn the_key_of_a_missing_message_expires_by_time() {
    let mut rng = rng(11);
    let (mut alice, mut bob) = established(&mut rng);
    let start = Duration::from_secs(1_000_000);
    bob.set_time(start);
    let [first, second, third] = [1, 2, 3].map(|_| seal(&mut alice, &mut rng, b"text"));
    open(&mut bob, &third).unwrap();
    bob.set_time(start + SKIPPED_LIFETIME - Duration::from_nanos(1));
    open(&mut bob, &second).unwrap();
    bob.set_time(Duration::ZERO);
    assert_eq!(bob.missing(), 1, "time does not run backwards");
    bob.set_time(start + SKIPPED_LIFETIME);
    assert_eq!(bob.missing(), 0);
    refuses(&mut bob, b"", &first, DecryptError::TooOld);
}

#[test]
fn the_key_of_a_missing_message_expires_by_messages() {
    let mut rng = rng(12);
    let (mut alice, mut bob) = established(&mut rng);
    let _missing = seal(&mut alice, &mut rng, b"text");
    for count in 0..SKIPPED_LIFETIME_MESSAGES {
        assert_eq!(bob.missing(), usize::from(count > 0));
        let message = seal(&mut alice, &mut rng, b"");
        open(&mut bob, &message).unwrap();
    }
    assert_eq!(bob.missing(), 0);
}

#[test]
fn chains_with_losses_are_recognized_as_long_as_promised() {
    let mut rng = rng(33);
    let (mut alice, mut bob) = established(&mut rng);
    let mut late = Vec::new();
    for _ in 0..=MISSING_CHAINS_MAX + FORGOTTEN_CHAINS_MAX {
        late.push(seal(&mut alice, &mut rng, b"late"));
        turn(&mut alice, &mut bob, &mut rng);
    }
    assert_eq!(bob.missing(), MISSING_CHAINS_MAX);
    bob = Ratchet::restore(&bob.save()).unwrap();
    // Beyond the limit a late message looks like a message of another conversation.
    refuses(&mut bob, b"", &late[0], DecryptError::Unauthentic);
    for message in &late[1..=FORGOTTEN_CHAINS_MAX] {
        refuses(&mut bob, b"", message, DecryptError::TooOld);
    }
    for message in &late[FORGOTTEN_CHAINS_MAX + 1..] {
        assert_eq!(open(&mut bob, message).unwrap(), b"late");
    }
    turn(&mut bob, &mut alice, &mut rng);
}

#[test]
fn messages_whose_keys_expired_in_ended_chains_are_too_old() {
    let mut rng = rng(34);
    let (mut alice, mut bob) = established(&mut rng);
    let mut late = Vec::new();
    for _ in 0..20 {
        late.push(seal(&mut alice, &mut rng, b"late"));
        turn(&mut alice, &mut bob, &mut rng);
    }
    bob.set_time(SKIPPED_LIFETIME);
    assert_eq!(bob.missing(), 0);
    bob = Ratchet::restore(&bob.save()).unwrap();
    for message in &late {
        refuses(&mut bob, b"", message, DecryptError::TooOld);
    }
    turn(&mut bob, &mut alice, &mut rng);
}

#[test]
fn a_replay_is_recognized_in_its_chain_and_as_long_as_promised_after_it() {
    let mut rng = rng(3);
    let (mut alice, mut bob) = established(&mut rng);
    let [early, late] = [b"early", b"late!"].map(|text| seal(&mut alice, &mut rng, text));
    assert_eq!(open(&mut bob, &late).unwrap(), b"late!");
    refuses(&mut bob, b"", &late, DecryptError::Replayed);
    assert_eq!(open(&mut bob, &early).unwrap(), b"early");
    for _ in 0..COMPLETE_CHAINS_MAX {
        refuses(&mut bob, b"", &early, DecryptError::Replayed);
        refuses(&mut bob, b"", &late, DecryptError::Replayed);
        let message = seal(&mut bob, &mut rng, b"text");
        open(&mut alice, &message).unwrap();
        let message = seal(&mut alice, &mut rng, b"text");
        open(&mut bob, &message).unwrap();
        bob = Ratchet::restore(&bob.save()).unwrap();
    }
    refuses(&mut bob, b"", &early, DecryptError::Replayed);
    turn(&mut bob, &mut alice, &mut rng);
    refuses(&mut bob, b"", &early, DecryptError::Unauthentic);
}

#[test]
fn a_conversation_starts_with_any_message_after_a_long_loss() {
    let mut rng = rng(35);
    let (alice, bob) = (identity(1), identity(2));
    let mut prekeys = PreKeys::generate(&mut rng, &bob, 1);
    let mut alice = Ratchet::initiate(&mut rng, &alice, &prekeys.bundle().unwrap()).unwrap();
    let lost: Vec<_> = (0..1100).map(|_| seal(&mut alice, &mut rng, b"late")).collect();
    let message = seal(&mut alice, &mut rng, b"arrives");
    let (mut bob, text) = Ratchet::respond(&bob, &mut prekeys, b"", &message).unwrap();
    assert_eq!(text, b"arrives");
    refuses(&mut bob, b"", &lost[99], DecryptError::TooOld);
    assert_eq!(open(&mut bob, &lost[100]).unwrap(), b"late");
    turn(&mut bob, &mut alice, &mut rng);
}

#[test]
fn a_changed_late_message_is_a_forgery() {
    let mut rng = rng(36);
    let (mut alice, mut bob) = established(&mut rng);
    let late = seal(&mut alice, &mut rng, b"late");
    for _ in 0..20 {
        turn(&mut alice, &mut bob, &mut rng);
    }
    for at in 1..late.len() {
        let mut changed = late.clone();
        changed[at] ^= 1;
        refuses(&mut bob, b"", &changed, DecryptError::Unauthentic);
    }
    assert_eq!(open(&mut bob, &late).unwrap(), b"late");
}
