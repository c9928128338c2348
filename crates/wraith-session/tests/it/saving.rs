//! Sessions that outlive their process.

use proptest::prelude::*;
use wraith_session::{
    EPOCH_MESSAGES, OpenError, RESERVED_NUMBERS, RekeyLimits, SealError, Session, StateError, Suite,
};

fn pair() -> [Session; 2] {
    [
        Session::new(Suite::Aes256Gcm, &[1; 32], &[2; 32]),
        Session::new(Suite::Aes256Gcm, &[2; 32], &[1; 32]),
    ]
}

fn seal(session: &mut Session) -> Result<u64, SealError> {
    session.seal(b"", b"text", &mut Vec::new())
}

#[test]
fn no_number_is_used_by_a_living_session_and_by_one_restored_from_any_of_its_states() {
    let [mut one, _] = pair();
    for _ in 0..3 {
        seal(&mut one).unwrap();
    }
    let saved = one.save();
    let mut last = 0;
    for _ in 0..RESERVED_NUMBERS {
        last = seal(&mut one).unwrap();
    }
    assert_eq!(seal(&mut one), Err(SealError::NotSaved), "stored or not, those were set aside");
    let mut restored = Session::restore(saved.bytes()).unwrap();
    assert_eq!(seal(&mut restored), Err(SealError::NotSaved), "its own first save comes before");
    let again = restored.save();
    restored.confirm(&again);
    // It starts in a new epoch: the bytes sealed with the first key are unknown.
    assert_eq!(last, RESERVED_NUMBERS + 2);
    assert_eq!(seal(&mut restored), Ok(EPOCH_MESSAGES));
    // The running session continues once there is a newer state.
    let newer = one.save();
    one.confirm(&newer);
    assert_eq!(seal(&mut one).unwrap(), last + 1);
}

#[test]
fn a_state_that_is_not_confirmed_gives_no_numbers() {
    let [mut one, _] = pair();
    let first = one.save();
    one.confirm(&first);
    for _ in 0..RESERVED_NUMBERS {
        seal(&mut one).unwrap();
    }
    let _lost = one.save();
    assert_eq!(seal(&mut one), Err(SealError::NotSaved));
}

#[test]
fn an_early_rekey_stays_within_the_reserved_numbers() {
    let [mut one, mut two] = pair();
    let mut rekey = RekeyLimits::default();
    rekey.messages = 4;
    one.set_rekey(rekey);
    for _ in 0..20 {
        let mut message = Vec::new();
        if one.seal(b"", b"text", &mut message) == Err(SealError::NotSaved) {
            let saved = one.save();
            one.confirm(&saved);
            one.seal(b"", b"text", &mut message).unwrap();
        }
        two.open(b"", &message, &mut Vec::new()).unwrap();
        let saved = one.save();
        one = Session::restore(saved.bytes()).unwrap();
        one.set_rekey(rekey);
        assert_eq!(seal(&mut one), Err(SealError::NotSaved));
    }
}

#[test]
fn replays_are_detected_up_to_the_last_save() {
    let [mut one, mut two] = pair();
    let mut messages = Vec::new();
    for _ in 0..4 {
        let mut message = Vec::new();
        one.seal(b"", b"text", &mut message).unwrap();
        messages.push(message);
    }
    two.open(b"", &messages[1], &mut Vec::new()).unwrap();
    let mut two = Session::restore(two.save().bytes()).unwrap();
    let results: Vec<_> =
        messages.iter().map(|m| two.open(b"", m, &mut Vec::new()).err()).collect();
    assert_eq!(results, [None, Some(OpenError::Replayed), None, None]);
}

#[test]
fn damaged_states_and_unknown_versions_are_refused() {
    let [mut one, _] = pair();
    let bytes = one.save().bytes().to_vec();
    for len in 0..bytes.len() {
        assert_eq!(Session::restore(&bytes[..len]).err(), Some(StateError::Malformed), "{len}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Session::restore(&longer).err(), Some(StateError::Malformed));
    let mut other = bytes.clone();
    other[0] = 9;
    assert_eq!(Session::restore(&other).err(), Some(StateError::Version(9)));
    let mut far = bytes;
    far[42..50].fill(0xff);
    assert_eq!(Session::restore(&far).err(), Some(StateError::Malformed), "no window of its epoch");
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_session_or_none_and_never_a_panic(
        tail in proptest::collection::vec(any::<u8>(), 0..700),
        byte in 0usize..347,
    ) {
        let _ = Session::restore(&tail);
        let [mut one, mut two] = pair();
        let mut bytes = one.save().bytes().to_vec();
        bytes[byte] ^= tail.first().copied().unwrap_or(1);
        if let Ok(mut session) = Session::restore(&bytes) {
            let saved = session.save();
            session.confirm(&saved);
            let _ = seal(&mut session);
            let mut message = Vec::new();
            two.seal(b"", b"text", &mut message).unwrap();
            let _ = session.open(b"", &message, &mut Vec::new());
        }
    }
}
