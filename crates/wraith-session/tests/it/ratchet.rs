//! Properties of conversations under the Double Ratchet.

use rand_core::Rng;
use wraith_crypto::Suite;
use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::rng;

#[test]
fn both_sides_talk_in_either_suite() {
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let mut rng = rng(1);
        let (mut alice, mut bob) = started_with(&mut rng, suite);
        assert_eq!((alice.suite(), bob.suite()), (suite, suite));
        assert_eq!((alice.peer(), bob.peer()), (bob.local_id(), alice.local_id()));
        assert_eq!(alice.binding(), bob.binding());
        for len in [0, 1, 15, 16, 1024, 5000, 100_000] {
            let mut text = vec![0; len];
            rng.fill_bytes(&mut text);
            let message = seal(&mut alice, &mut rng, &text);
            assert_eq!(open(&mut bob, &message).unwrap(), text);
            let message = seal(&mut bob, &mut rng, &text);
            assert_eq!(message.len(), len + OVERHEAD_BYTES);
            assert_eq!(open(&mut alice, &message).unwrap(), text);
        }
    }
}

#[test]
fn messages_are_appended_to_the_output() {
    let mut rng = rng(2);
    let (mut alice, mut bob) = established(&mut rng);
    let (mut message, mut text) = (b"head".to_vec(), b"head".to_vec());
    alice.encrypt(&mut rng, b"aad", b"text", &mut message).unwrap();
    bob.decrypt(b"aad", &message[4..], &mut text).unwrap();
    assert_eq!((&message[..4], &text[..]), (&b"head"[..], &b"headtext"[..]));
}

#[test]
fn every_changed_bit_and_every_truncation_is_refused() {
    let mut rng = rng(4);
    let (mut alice, mut bob) = established(&mut rng);
    let message = seal(&mut alice, &mut rng, b"text");
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 1 << (at % 8);
        let error = if at == 0 { DecryptError::Malformed } else { DecryptError::Unauthentic };
        refuses(&mut bob, b"", &changed, error);
    }
    for len in 0..message.len() {
        let short = len < OVERHEAD_BYTES;
        let error = if short { DecryptError::Malformed } else { DecryptError::Unauthentic };
        refuses(&mut bob, b"", &message[..len], error);
    }
    refuses(&mut bob, b"other", &message, DecryptError::Unauthentic);
    refuses(&mut bob, b"", &[&message[..], &[0]].concat(), DecryptError::Unauthentic);
    assert_eq!(open(&mut bob, &message).unwrap(), b"text");
}

#[test]
fn every_changed_byte_of_a_message_with_the_initial_part_is_refused() {
    let mut rng = rng(5);
    let (mut alice, mut bob) = started(&mut rng);
    let message = seal(&mut alice, &mut rng, b"second");
    assert_eq!(Ratchet::initiator_of(&message), Some(alice.local_id()));
    for at in 1..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 0x40;
        refuses(&mut bob, b"", &changed, DecryptError::Unauthentic);
    }
    assert_eq!(open(&mut bob, &message).unwrap(), b"second");
}

#[test]
fn every_changed_byte_of_a_message_with_ml_kem_is_refused() {
    let mut rng = rng(18);
    let (mut alice, mut bob) = established(&mut rng);
    let offers = until_offer(&mut alice, &mut bob, &mut rng);
    let offers = [offers, seal(&mut alice, &mut rng, b"turn")];
    refuses_every_change(&mut bob, &offers);
    let answers = [1, 2].map(|_| seal(&mut bob, &mut rng, b"turn"));
    assert_eq!(answers[0].len(), OVERHEAD_BYTES + 4 + 1088 + 16);
    refuses_every_change(&mut alice, &answers);
    turn(&mut alice, &mut bob, &mut rng);
}

/// Checks the first message of a chain and a later one: with a change in every byte, and then
/// unchanged.
fn refuses_every_change(ratchet: &mut Ratchet, messages: &[Vec<u8>; 2]) {
    for message in messages {
        for at in 1..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 0x10;
            refuses(ratchet, b"", &changed, DecryptError::Unauthentic);
        }
        assert_eq!(open(ratchet, message).unwrap(), b"turn");
    }
}

#[test]
fn any_message_of_a_chain_with_ml_kem_may_be_the_first_or_the_only_one_to_arrive() {
    let mut rng = rng(19);
    let (mut alice, mut bob) = established(&mut rng);
    let lost = until_offer(&mut alice, &mut bob, &mut rng);
    let offer = seal(&mut alice, &mut rng, b"turn");
    open(&mut bob, &offer).unwrap();
    let answers = [1, 2, 3].map(|_| seal(&mut bob, &mut rng, b"turn"));
    open(&mut alice, &answers[2]).unwrap();
    turn(&mut alice, &mut bob, &mut rng);
    // They arrive late, after the chains of both sides have ended.
    assert_eq!(open(&mut bob, &lost).unwrap(), b"turn");
    assert_eq!(open(&mut alice, &answers[0]).unwrap(), b"turn");
}

#[test]
fn messages_of_other_conversations_and_ones_own_are_refused() {
    let mut rng = rng(6);
    let (mut alice, mut bob) = established(&mut rng);
    let (mut other, _) = established(&mut rng);
    let foreign = seal(&mut other, &mut rng, b"text");
    let own = seal(&mut bob, &mut rng, b"text");
    refuses(&mut bob, b"", &foreign, DecryptError::Unauthentic);
    refuses(&mut bob, b"", &own, DecryptError::Unauthentic);
    assert_eq!(open(&mut alice, &own).unwrap(), b"text");
}

#[test]
fn too_long_messages_are_refused_on_both_sides() {
    let mut rng = rng(7);
    let (mut alice, mut bob) = established(&mut rng);
    let before = alice.save();
    let (text, mut out) = (vec![0; PLAINTEXT_BYTES_MAX + 1], Vec::new());
    assert_eq!(alice.encrypt(&mut rng, b"", &text, &mut out), Err(EncryptError::TooLong));
    assert!(out.is_empty() && before == alice.save());
    refuses(&mut bob, b"", &vec![0x20; MESSAGE_BYTES_MAX + 1], DecryptError::TooLong);
    alice.set_padding(true);
    let longest = seal(&mut alice, &mut rng, &text[1..]);
    assert!(longest.len() <= MESSAGE_BYTES_MAX);
    assert_eq!(open(&mut bob, &longest).unwrap().len(), PLAINTEXT_BYTES_MAX);
}

#[test]
fn a_stolen_state_opens_nothing_that_was_opened_before() {
    let mut rng = rng(13);
    let (mut alice, mut bob) = established(&mut rng);
    let messages: Vec<_> = (0..5).map(|_| seal(&mut alice, &mut rng, b"text")).collect();
    for message in [4, 0, 1, 2].map(|at: usize| &messages[at]) {
        open(&mut bob, message).unwrap();
    }
    let stolen = bob.save();
    for message in [4, 0, 1, 2].map(|at: usize| &messages[at]) {
        let mut thief = Ratchet::restore(&stolen).unwrap();
        assert_eq!(open(&mut thief, message), Err(DecryptError::Replayed));
    }
    let mut thief = Ratchet::restore(&stolen).unwrap();
    assert_eq!(open(&mut thief, &messages[3]).unwrap(), b"text", "this one was missing");
}

#[test]
fn a_stolen_state_reads_on_only_until_its_side_has_made_a_new_key() {
    let mut rng = rng(14);
    let (mut alice, mut bob) = established(&mut rng);
    let message = seal(&mut alice, &mut rng, b"text");
    open(&mut bob, &message).unwrap();
    let stolen = bob.save();
    // Before the turn the thief can decrypt, because no new secret was mixed in.
    let message = seal(&mut alice, &mut rng, b"read");
    assert_eq!(open(&mut Ratchet::restore(&stolen).unwrap(), &message).unwrap(), b"read");
    open(&mut bob, &message).unwrap();
    let message = seal(&mut bob, &mut rng, b"new key");
    open(&mut alice, &message).unwrap();
    let healed = seal(&mut alice, &mut rng, b"healed");
    let mut thief = Ratchet::restore(&stolen).unwrap();
    // A key that the thief makes in Bob's place does not help either.
    seal(&mut thief, &mut rng, b"");
    assert_eq!(open(&mut thief, &healed), Err(DecryptError::Unauthentic));
    assert_eq!(open(&mut bob, &healed).unwrap(), b"healed");
}

#[test]
fn equal_texts_give_messages_that_share_no_bytes_but_the_first() {
    let mut rng = rng(15);
    let (mut alice, mut bob) = established(&mut rng);
    let text = [7; 200];
    let messages: Vec<_> = (0..64).map(|_| seal(&mut alice, &mut rng, &text)).collect();
    for message in &messages {
        assert_eq!(message[0], 0x20);
        open(&mut bob, message).unwrap();
    }
    // A position is equal in all messages with probability 2^-504, and in two neighbours in about
    // one position.
    for at in 1..messages[0].len() {
        assert!(messages.iter().any(|message| message[at] != messages[0][at]), "byte {at}");
    }
    for pair in messages.windows(2) {
        let equal = pair[0].iter().zip(&pair[1]).skip(1).filter(|(a, b)| a == b).count();
        assert!(equal < 20, "{equal} equal bytes");
    }
}

#[test]
fn padding_hides_lengths_within_a_bucket() {
    let mut rng = rng(16);
    let (mut alice, mut bob) = established(&mut rng);
    alice.set_padding(true);
    let lengths: Vec<_> = (1024..1087)
        .map(|len| {
            let message = seal(&mut alice, &mut rng, &vec![0; len]);
            assert_eq!(open(&mut bob, &message).unwrap(), vec![0; len]);
            message.len()
        })
        .collect();
    assert!(lengths.iter().all(|&len| len == padme(1025) + OVERHEAD_BYTES));
}
