//! Messages over a transport that loses, duplicates, reorders and forges.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use wraith_session::{
    EPOCH_MESSAGES, EPOCHS_AHEAD_MAX, MESSAGE_OVERHEAD, OpenError, Pattern, Protocol, RekeyLimits,
    SESSION_WINDOW, SealError, Session, Suite, TEXT_BYTES_MAX,
};

use crate::support::sessions;

fn pair() -> [Session; 2] {
    [
        Session::new(Suite::Aes256Gcm, &[1; 32], &[2; 32]),
        Session::new(Suite::Aes256Gcm, &[2; 32], &[1; 32]),
    ]
}

fn seal(session: &mut Session, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    session.seal(b"", text, &mut out).unwrap();
    out
}

fn open(session: &mut Session, message: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut out = b"before".to_vec();
    match session.open(b"", message, &mut out) {
        Ok(_) => Ok(out.split_off(6)),
        Err(why) => {
            assert_eq!(out, b"before", "it is as it was");
            Err(why)
        }
    }
}

fn number(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[..8].try_into().unwrap())
}

fn rekey(messages: u32, bytes: u64) -> RekeyLimits {
    let mut rekey = RekeyLimits::default();
    (rekey.messages, rekey.bytes) = (messages, bytes);
    rekey
}

#[test]
fn every_message_opens_once_in_any_order() {
    let [mut one, mut two] = pair();
    let messages: Vec<_> = (0..SESSION_WINDOW).map(|i| seal(&mut one, &i.to_le_bytes())).collect();
    for (i, message) in messages.iter().enumerate().rev() {
        assert_eq!(open(&mut two, message).unwrap(), (i as u64).to_le_bytes());
    }
    for message in &messages {
        assert_eq!(open(&mut two, message), Err(OpenError::Replayed));
    }
    seal(&mut one, b"lost");
    let newest = seal(&mut one, b"newest");
    open(&mut two, &newest).unwrap();
    assert_eq!(open(&mut two, &messages[0]), Err(OpenError::TooOld));
}

#[test]
fn foreign_messages_change_nothing() {
    let [mut one, mut two] = pair();
    let [mut stranger, _] = sessions(Protocol { pattern: Pattern::XX, ..Protocol::DEFAULT });
    let message = seal(&mut one, b"text");
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 0x80;
        assert!(open(&mut two, &changed).is_err(), "byte {at}");
    }
    for len in 0..message.len() {
        assert!(open(&mut two, &message[..len]).is_err(), "{len} bytes");
    }
    let mut out = Vec::new();
    assert_eq!(two.open(b"other", &message, &mut out), Err(OpenError::Unauthentic));
    assert_eq!(open(&mut two, &seal(&mut stranger, b"text")), Err(OpenError::Unauthentic));
    assert_eq!(open(&mut one, &message), Err(OpenError::Unauthentic), "reflected");
    assert_eq!(open(&mut two, &vec![0; TEXT_BYTES_MAX + 25]), Err(OpenError::Length));
    assert_eq!(open(&mut two, &[0xfe; 24]), Err(OpenError::TooFarAhead));
    assert_eq!(open(&mut two, &message).unwrap(), b"text", "none of it did any harm");
}

#[test]
fn lengths_have_limits_and_an_empty_text_is_a_message() {
    let [mut one, mut two] = pair();
    let empty = seal(&mut one, b"");
    assert_eq!(empty.len(), MESSAGE_OVERHEAD);
    assert_eq!(open(&mut two, &empty).unwrap(), b"");
    let mut out = Vec::new();
    let long = vec![0; TEXT_BYTES_MAX + 1];
    assert_eq!(one.seal(b"", &long, &mut out), Err(SealError::Length));
    assert_eq!(one.seal(&[0; 65_537], b"", &mut out), Err(SealError::Length));
    assert_eq!(one.seal_into(b"", b"text", &mut [0; 27]), Err(SealError::Room(28)));
    assert!(out.is_empty());
    let longest = seal(&mut one, &long[1..]);
    assert_eq!(number(&longest), 1, "what was refused has used no number");
    assert_eq!(open(&mut two, &longest).unwrap().len(), TEXT_BYTES_MAX);
    let mut room = [9; 40];
    assert_eq!(one.seal_into(b"", b"text", &mut room), Ok((2, 28)));
    assert_eq!(room[28..], [9; 12]);
    let (number, text) = two.open_in_place(b"", &mut room[..28]).unwrap();
    assert_eq!((number, &*text), (2, &b"text"[..]));
}

#[test]
fn both_sides_change_keys_with_the_same_message() {
    let [mut one, mut two] = pair();
    one.set_rekey(rekey(10, 1000));
    let messages: Vec<_> = (0..100).map(|_| seal(&mut one, &[0; 30])).collect();
    let epochs: Vec<u64> = messages.iter().map(|m| number(m) / EPOCH_MESSAGES).collect();
    assert_eq!(epochs, (0..100).map(|i| i / 10).collect::<Vec<_>>());
    // In order, except the last of an epoch, which arrives after the start of the next epoch.
    for ten in messages.chunks(10).collect::<Vec<_>>().windows(2) {
        for message in &ten[0][..9] {
            let _ = open(&mut two, message);
        }
        open(&mut two, &ten[1][0]).unwrap();
        open(&mut two, &ten[0][9]).unwrap();
        assert_eq!(open(&mut two, &ten[0][9]), Err(OpenError::Replayed));
    }
    // By bytes: never more than the limit, and a message longer than the limit gets its own key.
    let [mut one, _] = pair();
    one.set_rekey(rekey(1000, 100));
    let epochs: Vec<u64> = [60, 40, 1, 200, 1, 99, 1]
        .map(|len| number(&seal(&mut one, &vec![0; len])) / EPOCH_MESSAGES)
        .to_vec();
    assert_eq!(epochs, [0, 0, 1, 2, 3, 3, 4]);
}

#[test]
fn keys_age_only_if_the_time_is_set() {
    let [mut one, mut two] = pair();
    one.set_time(Duration::from_secs(1000));
    let first = seal(&mut one, b"first");
    one.set_time(Duration::from_secs(1599));
    assert_eq!(number(&seal(&mut one, b"")), 1);
    one.set_time(Duration::from_secs(1600));
    let aged = seal(&mut one, b"aged");
    assert_eq!(number(&aged), EPOCH_MESSAGES);
    assert_eq!(number(&seal(&mut one, b"")), EPOCH_MESSAGES + 1);
    two.set_time(Duration::from_secs(5));
    open(&mut two, &aged).unwrap();
    two.set_time(Duration::from_secs(124));
    open(&mut two, &first).unwrap();
    let late = number(&first) + 1;
    two.set_time(Duration::from_secs(125));
    let mut forged = late.to_le_bytes().to_vec();
    forged.extend_from_slice(&[0; 16]);
    assert_eq!(open(&mut two, &forged), Err(OpenError::TooOld), "that key is gone");
}

#[test]
fn a_zero_key_lifetime_still_seals_messages_of_one_instant() {
    let [mut one, _] = pair();
    let mut rekey = RekeyLimits::default();
    rekey.time = Duration::ZERO;
    one.set_rekey(rekey);
    let saved = one.save();
    one.confirm(&saved);
    one.set_time(Duration::from_secs(1));
    assert_eq!(number(&seal(&mut one, b"")), 0);
    one.set_time(Duration::from_secs(1));
    assert_eq!(one.seal_many(b"", &[b"a", b"b"]).unwrap().len(), 2);
}

#[test]
fn epochs_may_be_lost_altogether_up_to_a_limit() {
    for ahead in [1, 31, 32, 33, 500, EPOCHS_AHEAD_MAX, EPOCHS_AHEAD_MAX + 1] {
        let [mut one, mut two] = pair();
        one.set_rekey(rekey(1, u64::MAX));
        let messages: Vec<_> = (0..=ahead).map(|_| seal(&mut one, b"text")).collect();
        let mut forged = messages[ahead as usize].clone();
        forged[20] ^= 1;
        let (authentic, spoilt) = match ahead <= EPOCHS_AHEAD_MAX {
            true => (Ok(b"text".to_vec()), OpenError::Unauthentic),
            false => (Err(OpenError::TooFarAhead), OpenError::TooFarAhead),
        };
        assert_eq!(open(&mut two, &forged), Err(spoilt), "{ahead}");
        assert_eq!(open(&mut two, &messages[ahead as usize]), authentic, "{ahead}");
        if ahead > 1 && authentic.is_ok() {
            assert_eq!(open(&mut two, &messages[1]), Err(OpenError::TooOld));
            open(&mut two, &messages[0]).unwrap();
        }
    }
}

#[test]
fn the_key_of_the_last_epoch_is_wiped_when_its_messages_are_too_old() {
    let [mut one, mut two] = pair();
    one.set_rekey(rekey(5, u64::MAX));
    let old: Vec<_> = (0..5).map(|_| seal(&mut one, b"")).collect();
    open(&mut two, &seal(&mut one, b"the first of the next")).unwrap();
    one.set_rekey(RekeyLimits::default());
    for _ in 1..SESSION_WINDOW {
        open(&mut two, &seal(&mut one, b"")).unwrap();
    }
    open(&mut two, &old[0]).unwrap();
    open(&mut two, &seal(&mut one, b"")).unwrap();
    assert_eq!(open(&mut two, &old[1]), Err(OpenError::TooOld));
}

#[test]
fn a_batch_equals_single_calls() {
    for (count, len) in [(0, 0), (1, 5), (300, 100), (20, 200_000)] {
        let [mut one, mut two] = pair();
        let [mut single, mut other] = pair();
        for session in [&mut one, &mut single] {
            session.set_rekey(rekey(7, 1_500_000));
        }
        let texts: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; len + i]).collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let batch = one.seal_many(b"aad", &texts).unwrap();
        let alone: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| {
                let mut out = Vec::new();
                single.seal(b"aad", text, &mut out).unwrap();
                out
            })
            .collect();
        assert_eq!(batch.len(), count);
        assert!(batch.iter().eq(alone.iter().map(|message| &message[..])));

        // One damaged, one duplicate, one too short, one of another session.
        let mut messages: Vec<&[u8]> = batch.iter().collect();
        let mut spoilt = alone.last().cloned().unwrap_or_default();
        if let Some(last) = spoilt.last_mut() {
            *last ^= 1;
        }
        messages.insert(0, &spoilt);
        messages.push(batch.iter().next().unwrap_or(&[]));
        messages.push(&[1, 2, 3]);
        messages.push(&[7; 24]);
        let opened = two.open_many(b"aad", &messages).unwrap();
        assert_eq!(opened.len(), messages.len());
        let mut expected = Vec::new();
        for message in &messages {
            let mut out = Vec::new();
            expected.push(other.open(b"aad", message, &mut out).map(|number| (number, out)));
        }
        let opened: Vec<_> = opened.iter().map(|r| r.map(|(n, text)| (n, text.to_vec()))).collect();
        assert_eq!(opened, expected);
    }
}

#[test]
fn a_batch_with_a_message_that_cannot_be_sealed_names_it_and_uses_no_number() {
    let [mut one, _] = pair();
    let long = vec![0; TEXT_BYTES_MAX + 1];
    let why = one.seal_many(b"", &[b"a", b"b", &long]).unwrap_err();
    assert_eq!((why.index, why.why), (2, SealError::Length));
    let _ = one.save();
    let many = vec![&b"x"[..]; 600];
    let why = one.seal_many(b"", &many).unwrap_err();
    assert_eq!((why.index, why.why), (512, SealError::NotSaved));
    assert_eq!(number(&seal(&mut one, b"a")), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Loss, duplicates, reordering within the window, rekeys: each message that arrives opens
    /// once, at its first arrival.
    #[test]
    fn a_message_opens_once(
        seed in any::<u64>(),
        every in 1u32..300,
        order in proptest::collection::vec((any::<bool>(), 0usize..900), 1..2500),
    ) {
        let [mut one, mut two] = pair();
        one.set_rekey(rekey(every, seed % 50_000 + 1));
        let mut messages: Vec<(usize, Vec<u8>)> = Vec::new();
        for (i, (twice, later)) in order.iter().enumerate() {
            let message = seal(&mut one, &i.to_le_bytes());
            messages.push((i + later % 40, message.clone()));
            if *twice {
                messages.push((i + later % 60, message));
            }
        }
        messages.sort_by_key(|(when, _)| *when);
        let mut seen = HashSet::new();
        for (_, message) in &messages {
            match open(&mut two, message) {
                Ok(_) => prop_assert!(seen.insert(number(message))),
                Err(OpenError::Replayed) => prop_assert!(seen.contains(&number(message))),
                // Allowed only if the keys change more than once within the messages in flight.
                Err(OpenError::TooOld) => prop_assert!(every < 60 || seed % 50_000 < 8 * 60),
                Err(why) => prop_assert!(false, "{why}"),
            }
        }
    }
}
