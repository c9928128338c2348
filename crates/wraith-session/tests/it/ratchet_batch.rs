//! A batch of a ratchet gives the same results as single calls.

use wraith_session::BatchError;
use wraith_session::ratchet::*;

use crate::ratchet_support::*;
use crate::support::rng;

const TEXTS: [&[u8]; 4] = [b"one", b"", b"three", b"four"];

#[test]
fn a_batch_equals_the_same_single_calls() {
    let (alice, bob) = established(&mut rng(1));
    let [mut batch, mut single] = [0, 1].map(|_| Ratchet::restore(&alice.save()).unwrap());
    let [mut batch_bob, mut single_bob] = [0, 1].map(|_| Ratchet::restore(&bob.save()).unwrap());
    let sealed = batch.encrypt_many(&mut rng(2), b"aad", &TEXTS).unwrap();
    let mut same = rng(2);
    for (text, message) in TEXTS.iter().zip(sealed.iter()) {
        let mut out = Vec::new();
        single.encrypt(&mut same, b"aad", text, &mut out).unwrap();
        assert_eq!(out, message);
    }
    assert!(batch.save() == single.save());
    let messages: Vec<&[u8]> = sealed.iter().collect();
    let opened = batch_bob.decrypt_many(b"aad", &messages).unwrap();
    assert!(opened.iter().eq((0..).zip(TEXTS).map(Ok)));
    for message in messages {
        single_bob.decrypt(b"aad", message, &mut Vec::new()).unwrap();
    }
    assert!(batch_bob.save() == single_bob.save());
}

#[test]
fn each_message_of_a_batch_is_judged_by_itself_and_in_order() {
    let mut rng = rng(3);
    let (mut alice, mut bob) = established(&mut rng);
    let sealed = alice.encrypt_many(&mut rng, b"", &TEXTS).unwrap();
    let messages: Vec<&[u8]> = sealed.iter().collect();
    let mut damaged = messages[1].to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let given = [messages[3], &damaged, messages[0], messages[0], b"", messages[1]];
    let opened = bob.decrypt_many(b"", &given).unwrap();
    let expected = [
        Ok((0, TEXTS[3])),
        Err(DecryptError::Unauthentic),
        Ok((2, TEXTS[0])),
        Err(DecryptError::Replayed),
        Err(DecryptError::Malformed),
        Ok((5, TEXTS[1])),
    ];
    assert_eq!(opened.iter().collect::<Vec<_>>(), expected);
    assert_eq!((opened.len(), bob.missing()), (6, 1));
    assert!(!format!("{opened:?}").contains("111"), "texts are not printed");
}

#[test]
fn of_a_batch_with_a_text_that_is_too_long_nothing_is_encrypted() {
    let mut rng = rng(4);
    let (_, mut bob) = started(&mut rng);
    let before = bob.save();
    let long = vec![0; PLAINTEXT_BYTES_MAX + 1];
    let failed = bob.encrypt_many(&mut rng, b"", &[b"short", &long, &long]);
    assert_eq!(failed.err(), Some(BatchError { index: 1, why: EncryptError::TooLong }));
    assert!(bob.encrypt_many(&mut rng, b"", &[]).unwrap().is_empty());
    assert!(bob.decrypt_many(b"", &[]).unwrap().is_empty());
    assert!(before == bob.save(), "not even a chain has begun");
}
