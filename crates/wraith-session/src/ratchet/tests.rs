//! Tests of internals: the number of operations of a message, and the derivation of the secrets.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::SecretIdentity;
use zeroize::Zeroizing;

use wraith_crypto::Suite;

use super::hybrid::KemPart;
use super::keys::{KemShare, root_step};
use super::*;

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([1; 32])
}

fn established(rng: &mut ChaCha20Rng) -> (Ratchet, Ratchet) {
    let [alice, bob] = [1, 2].map(|byte| SecretIdentity::from_seed([byte; 32]));
    let mut prekeys = PreKeys::generate(rng, &bob, 1);
    let mut alice = Ratchet::initiate(rng, &alice, &prekeys.bundle().unwrap()).unwrap();
    let mut first = Vec::new();
    alice.encrypt(rng, b"", b"", &mut first).unwrap();
    let (mut bob, _) = Ratchet::respond(&bob, &mut prekeys, b"", &first).unwrap();
    pass(rng, &mut bob, &mut alice);
    (alice, bob)
}

/// Passes one message. Returns the operations of the sender and of the receiver.
fn pass(rng: &mut ChaCha20Rng, from: &mut Ratchet, to: &mut Ratchet) -> (u64, u64) {
    let (mut message, mut text) = (Vec::new(), Vec::new());
    let start = curve::operations();
    from.encrypt(rng, b"", b"text", &mut message).unwrap();
    let sealed = curve::operations();
    to.decrypt(b"", &message, &mut text).unwrap();
    assert_eq!(text, b"text");
    (sealed - start, curve::operations() - sealed)
}

/// Plays turns until the next message of `alice` offers a key.
fn until_offer(rng: &mut ChaCha20Rng, alice: &mut Ratchet, bob: &mut Ratchet) {
    while alice.hybrid.chains < KEM_INTERVAL {
        pass(rng, alice, bob);
        pass(rng, bob, alice);
    }
}

#[test]
fn messages_inside_a_chain_cost_no_operation_on_the_curve() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    // A turn costs the sender a new pair and an agreement, and the receiver an agreement.
    assert_eq!(pass(&mut rng, &mut alice, &mut bob), (2, 1));
    for _ in 0..100 {
        assert_eq!(pass(&mut rng, &mut alice, &mut bob), (0, 0));
    }
    assert_eq!(pass(&mut rng, &mut bob, &mut alice), (2, 1));
}

#[test]
fn messages_inside_a_chain_with_ml_kem_cost_none_either() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    until_offer(&mut rng, &mut alice, &mut bob);
    // One more operation on each side: first for the key, then for the ciphertext.
    assert_eq!(pass(&mut rng, &mut alice, &mut bob), (3, 2));
    assert_eq!(pass(&mut rng, &mut alice, &mut bob), (0, 0));
    assert_eq!(pass(&mut rng, &mut bob, &mut alice), (3, 2));
    assert_eq!(pass(&mut rng, &mut bob, &mut alice), (0, 0));
    assert_eq!(pass(&mut rng, &mut alice, &mut bob), (2, 1));
}

#[test]
fn garbage_costs_no_operation_on_the_curve() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    let mut message = Vec::new();
    alice.encrypt(&mut rng, b"", b"text", &mut message).unwrap();
    let start = curve::operations();
    for at in [17, 40, 60] {
        let mut damaged = message.clone();
        damaged[at] ^= 1;
        bob.decrypt(b"", &damaged, &mut Vec::new()).unwrap_err();
    }
    assert_eq!(curve::operations(), start);
}

#[test]
fn breaking_x25519_and_a_stolen_state_do_not_reveal_a_hybrid_step() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    until_offer(&mut rng, &mut alice, &mut bob);
    // The thief steals both states at this point.
    let stolen = bob.save();
    pass(&mut rng, &mut alice, &mut bob);
    let (root, offered) = (bob.root.clone(), bob.hybrid.offered.clone().unwrap());
    bob.send_ratchet_step(&mut rng).unwrap();

    // The thief continues with the stolen state and breaks every later X25519 agreement.
    let thief = Ratchet::restore(&stolen).unwrap();
    let agreed =
        |ratchet: &Ratchet| curve::agree(ratchet.own.as_ref().unwrap(), &bob.remote.unwrap());
    let until_offer = root_step(&thief.root, &agreed(&thief).unwrap(), None);
    assert_eq!(*until_offer.root, *root, "without ML-KEM that is enough");
    let dh = agreed(&bob).unwrap();
    let share = |secret: [u8; 32], ciphertext: &[u8]| {
        KemShare::new(Zeroizing::new(secret), &offered[..], ciphertext)
    };
    let Some(KemPart::Ciphertext(ciphertext)) = &bob.hybrid.part else { panic!("it answers") };
    let guesses = [None, Some(share([0; 32], &ciphertext[..])), Some(share(*dh, &ciphertext[..]))];
    for guess in guesses {
        assert_ne!(*root_step(&root, &dh, guess.as_ref()).root, *bob.root);
    }

    // The thief lacks only the secret of the encapsulation key.
    let Some(KemPart::Key { seed, .. }) = &alice.hybrid.part else { panic!("it offers") };
    let secret = *curve::decapsulate(seed, ciphertext);
    let step = root_step(&root, &dh, Some(&share(secret, &ciphertext[..])));
    assert_eq!(*step.root, *bob.root);
    let other = root_step(&root, &dh, Some(&share(secret, &[0; 1088])));
    assert_ne!(*other.root, *bob.root, "the ciphertext takes part, too");
}

#[test]
fn ml_kem_is_mixed_in_at_its_interval_and_only_then() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    let mut offers = Vec::new();
    for chain in 0..4 * KEM_INTERVAL {
        let kind = |ratchet: &Ratchet| ratchet.hybrid.part.as_ref().map(KemPart::kind);
        pass(&mut rng, &mut alice, &mut bob);
        if kind(&alice).is_some() {
            offers.push(chain);
            pass(&mut rng, &mut bob, &mut alice);
            assert_eq!(kind(&bob), Some(message::KemKind::Ciphertext));
            assert_eq!((alice.hybrid.chains, bob.hybrid.chains), (0, 0));
        } else {
            pass(&mut rng, &mut bob, &mut alice);
            assert_eq!(kind(&bob), None);
        }
    }
    assert_eq!(offers, [49, 100, 151]);
}

#[test]
fn many_bytes_bring_ml_kem_forward() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    let (text, mut message) = (vec![0; PLAINTEXT_BYTES_MAX], Vec::new());
    for _ in 0..KEM_INTERVAL_BYTES / PLAINTEXT_BYTES_MAX as u64 {
        message.clear();
        alice.encrypt(&mut rng, b"", &text, &mut message).unwrap();
    }
    bob.decrypt(b"", &message, &mut Vec::new()).unwrap();
    pass(&mut rng, &mut bob, &mut alice);
    pass(&mut rng, &mut alice, &mut bob);
    assert!(bob.hybrid.offered.is_some());
}

#[test]
fn an_offer_that_is_no_key_or_stays_unanswered_is_a_violation() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    until_offer(&mut rng, &mut alice, &mut bob);
    alice.send_ratchet_step(&mut rng).unwrap();
    let good = alice.save();
    if let Some(KemPart::Key { key, .. }) = &mut alice.hybrid.part {
        key[..3].fill(0xff);
    }
    let before = bob.save();
    let (mut message, mut text) = (Vec::new(), Vec::new());
    alice.encrypt(&mut rng, b"", b"text", &mut message).unwrap();
    assert_eq!(bob.decrypt(b"", &message, &mut text), Err(DecryptError::Violation));
    assert!(before == bob.save() && text.is_empty());

    let mut alice = Ratchet::restore(&good).unwrap();
    pass(&mut rng, &mut alice, &mut bob);
    bob.hybrid.offered = None;
    message.clear();
    bob.encrypt(&mut rng, b"", b"text", &mut message).unwrap();
    let before = alice.save();
    assert_eq!(alice.decrypt(b"", &message, &mut text), Err(DecryptError::Violation));
    assert!(before == alice.save() && text.is_empty());
}

#[test]
fn a_chain_ends_before_its_numbers_do() {
    let mut rng = rng();
    let (mut alice, _) = established(&mut rng);
    alice.send_ratchet_step(&mut rng).unwrap();
    alice.sending.as_mut().unwrap().keys.seek(u32::MAX - 1);
    let mut message = Vec::new();
    alice.encrypt(&mut rng, b"", b"", &mut message).unwrap();
    let (before, len) = (alice.save(), message.len());
    let refused = alice.encrypt(&mut rng, b"", b"", &mut message);
    assert_eq!(refused, Err(EncryptError::ChainExhausted));
    assert!(before == alice.save() && message.len() == len);
}

#[test]
fn signed_prekeys_start_a_bounded_number_of_conversations() {
    let (mut rng, bob) = (rng(), SecretIdentity::from_seed([2; 32]));
    let mut prekeys = PreKeys::generate(&mut rng, &bob, 0);
    for start in 0..LAST_RESORT_MAX {
        let mut binding = [0; 32];
        binding[..8].copy_from_slice(&(start as u64).to_le_bytes());
        assert_eq!(prekeys.may_start(1, &binding), Ok(()));
        prekeys.started(1, 0, binding);
    }
    assert_eq!(prekeys.may_start(1, &[1; 32]), Err(StartError::PreKeysExhausted));
    assert_eq!(PreKeys::restore(&prekeys.save()).unwrap().save(), prekeys.save());
    prekeys.rotate(&mut rng, &bob).unwrap();
    assert_eq!(prekeys.may_start(2, &[1; 32]), Ok(()));
}

#[test]
fn the_state_of_an_idle_ratchet_is_smaller_than_1500_bytes() {
    let mut rng = rng();
    let (mut alice, mut bob) = established(&mut rng);
    assert!(alice.save().len() < 700, "{}", alice.save().len());
    for _ in 0..2 * COMPLETE_CHAINS_MAX {
        pass(&mut rng, &mut alice, &mut bob);
        pass(&mut rng, &mut bob, &mut alice);
    }
    assert!(alice.save().len() < 1500, "{}", alice.save().len());
}

#[test]
fn ratchets_and_prekeys_are_send() {
    fn is_sent<T: Send + Sync>() {}
    is_sent::<Ratchet>();
    is_sent::<PreKeys>();
    is_sent::<Group>();
}

#[test]
fn quick_key_supports_every_suite_of_a_state() {
    for suite in Suite::ALL {
        let key = super::keys::quick_key(suite, &[7; 32]);
        assert_eq!(key.suite(), suite);
    }
}
