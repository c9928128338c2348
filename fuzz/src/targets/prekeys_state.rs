//! Saved prekeys that an attacker may have changed.
//!
//! Invariant: an accepted state saves to the same bytes, stays within the limits, and supports all
//! operations of prekeys. After each step it saves to a state that is accepted.

use wraith_session::ratchet::{BUNDLE_BYTES_MAX, ONE_TIME_MAX, PreKeys, Ratchet};

use crate::session_world::{alice, bob, conversation, rng};

pub(crate) fn run(input: &[u8]) {
    let Ok(mut prekeys) = PreKeys::restore(input) else { return };
    assert!(prekeys.save()[..] == *input, "a state has one form");
    for first in &conversation().first {
        let before = prekeys.save();
        match Ratchet::respond(&bob(), &mut prekeys, b"", first) {
            Ok((ratchet, _)) => assert_eq!(ratchet.peer(), alice().node_id()),
            Err(why) => assert!(prekeys.save() == before, "{why}"),
        }
        holds(&prekeys);
    }
    let remaining = prekeys.remaining();
    let bundle = prekeys.bundle().expect("no vault can fail");
    assert!(bundle.encode().len() <= BUNDLE_BYTES_MAX);
    assert_eq!(prekeys.remaining(), remaining.saturating_sub(1));
    assert_eq!(bundle.has_one_time(), remaining > 0);
    holds(&prekeys);
    let wanted = prekeys.remaining() + 2;
    match prekeys.replenish(&mut rng(1), &bob(), wanted) {
        Ok(()) => assert_eq!(prekeys.remaining(), wanted.min(ONE_TIME_MAX)),
        Err(_) => assert!(prekeys.remaining() <= ONE_TIME_MAX),
    }
    holds(&prekeys);
    let _ = prekeys.rotate(&mut rng(2), &bob());
    holds(&prekeys);
}

fn holds(prekeys: &PreKeys) {
    let saved = prekeys.save();
    assert!(prekeys.remaining() <= ONE_TIME_MAX);
    assert!(saved.len() <= 434 << 10, "more than is promised");
    let again = PreKeys::restore(&saved).expect("a saved state is accepted");
    assert!(again.save() == saved);
}
