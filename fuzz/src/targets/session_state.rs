//! A saved session that an attacker may have changed.
//!
//! Invariant: an accepted state saves to a state of the same length, stays within the limits, and
//! supports all operations of a session.

use wraith_session::Session;

use crate::input::Input;
use crate::session_world::sessions;

/// More than any state needs.
const STATE_BYTES_MAX: usize = 1024;

pub(crate) fn run(input: &[u8]) {
    let Ok(mut session) = Session::restore(input) else { return };
    let saved = session.save();
    assert!(saved.bytes().len() <= STATE_BYTES_MAX && saved.bytes().len() == input.len());
    assert!(session.seal(b"", b"", &mut Vec::new()).is_err(), "before it is stored");
    session.confirm(&saved);
    let mut again = Session::restore(saved.bytes()).expect("it was saved");
    assert_eq!(again.save().bytes().len(), saved.bytes().len());
    // The first message may need a new key, whose numbers are reserved only after the session has
    // requested them.
    if session.seal(b"", b"", &mut Vec::new()).is_err() {
        let saved = session.save();
        session.confirm(&saved);
    }
    let mut message = Vec::new();
    if let Ok(number) = session.seal(b"", b"text", &mut message) {
        let mut next = Vec::new();
        let following = session.seal(b"", b"text", &mut next);
        assert!(following.is_err() || following.is_ok_and(|following| following > number));
    }
    let [mut one, _] = sessions();
    let mut genuine = Vec::new();
    one.seal(b"", b"text", &mut genuine).expect("the first");
    // The last bytes of the input serve as an arbitrary message number.
    let mut ahead = genuine.clone();
    ahead[..8].copy_from_slice(&Input(&input[input.len() - 8..]).array::<8>());
    let saved = session.save();
    session.confirm(&saved);
    for message in [&message, &genuine, &ahead] {
        let before = session.save();
        if session.open(b"", message, &mut Vec::new()).is_err() {
            assert!(session.save().bytes() == before.bytes());
        }
    }
}
