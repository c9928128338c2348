//! A saved ratchet that an attacker may have changed.
//!
//! Invariant: an accepted state saves to the same bytes, stays within the limits, and supports all
//! operations of a ratchet. After each step it saves to a state that is accepted.

use wraith_session::ratchet::{Ratchet, SKIPPED_MAX};

use crate::session_world::{conversation, encrypt, rng};

/// Upper bound of a saved state, which `docs/SESSIONS.md` promises: two keys of ML-KEM, the initial
/// part, all keys of missing messages, and those of old headers.
const STATE_BYTES_MAX: usize = 170_000;

pub(crate) fn run(input: &[u8]) {
    let Ok(mut ratchet) = Ratchet::restore(input) else { return };
    assert!(ratchet.save()[..] == *input, "a state has one form");
    holds(&ratchet);
    let world = conversation();
    for which in 0..3 {
        let [mut sender, _] = world.pair(which);
        let genuine = encrypt(&mut sender, which.into(), b"text");
        let before = ratchet.save();
        let mut out = Vec::new();
        match ratchet.decrypt(b"", &genuine, &mut out) {
            Ok(()) => holds(&ratchet),
            Err(_) => assert!(ratchet.save() == before && out.is_empty()),
        }
        let before = ratchet.save();
        match ratchet.encrypt(&mut rng(4), b"", b"text", &mut out) {
            Ok(()) => holds(&ratchet),
            Err(why) => assert!(ratchet.save() == before, "{why}"),
        }
    }
    ratchet.set_time(std::time::Duration::MAX);
    holds(&ratchet);
}

pub(crate) fn holds(ratchet: &Ratchet) {
    let saved = ratchet.save();
    assert!(ratchet.missing() <= SKIPPED_MAX && saved.len() <= STATE_BYTES_MAX);
    let again = Ratchet::restore(&saved).expect("a saved state is accepted");
    assert!(again.save() == saved);
}
