//! First messages to a peer with published prekeys. Invariant: only a message of the initiator
//! starts a conversation, only once, and nothing else changes the prekeys.

use wraith_session::ratchet::{PreKeys, Ratchet};

use crate::input::Input;
use crate::session_world::{alice, bob, conversation};

/// Maximum number of messages of one input: a message that names good prekeys costs four key
/// agreements and ML-KEM.
const MESSAGES_MAX: u32 = 16;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let world = conversation();
    let mut prekeys = PreKeys::restore(&world.prekeys).expect("they were saved");
    let mut started = false;
    for _ in 0..MESSAGES_MAX {
        if input.is_empty() {
            break;
        }
        let which = usize::from(input.byte() & 1);
        let message = input.tampered(&world.first[which], &world.first[1 - which]);
        let initiator = Ratchet::initiator_of(&message);
        let before = prekeys.save();
        match Ratchet::respond(&bob(), &mut prekeys, b"", &message) {
            Ok((ratchet, text)) => {
                assert!(world.first.contains(&message) && !started, "forged, or started twice");
                assert!([&b"first"[..], b"second"].contains(&&text[..]));
                assert_eq!(initiator, Some(alice().node_id()));
                assert_eq!(ratchet.peer(), alice().node_id());
                let saved = ratchet.save();
                assert!(Ratchet::restore(&saved).is_ok_and(|again| again.save() == saved));
                started = true;
            }
            Err(why) => {
                assert!(started || !world.first.contains(&message), "{why}");
                assert!(prekeys.save() == before, "{why}");
            }
        }
    }
}
