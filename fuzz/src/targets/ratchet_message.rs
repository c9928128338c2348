//! Messages of a conversation over a link that does what it likes: each that is genuine opens once, and nothing else changes anything.
//!
//! The first byte says where in the conversation: in its middle, with an offer of ML-KEM, or with the answer to that.

use wraith_session::ratchet::{DecryptError, MAX_SKIPPED, Ratchet};

use crate::input::Input;
use crate::session_world::{conversation, encrypt};

const STEPS_MAX: u8 = 48;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let [mut sender, mut receiver] = conversation().pair(input.byte());
    let mut sent: Vec<(Vec<u8>, bool)> = Vec::new();
    for step in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let choice = input.byte();
        if choice & 0x80 != 0 || sent.is_empty() {
            sender.set_padding(choice & 0x40 != 0);
            sent.push((encrypt(&mut sender, step.into(), &[step; 3]), false));
        }
        let pick = |choice: u8| usize::from(choice & 0x3f) % sent.len();
        let (which, other) = (pick(choice), pick(choice.wrapping_add(1)));
        let arrives = input.tampered(&sent[which].0, &sent[other].0);
        let genuine = sent.iter_mut().find(|(message, _)| *message == arrives);
        arrive(&mut receiver, &arrives, genuine.map(|(_, opened)| opened));
    }
}

fn arrive(receiver: &mut Ratchet, message: &[u8], opened: Option<&mut bool>) {
    let before = receiver.save();
    let mut out = b"kept".to_vec();
    let result = receiver.decrypt(b"", message, &mut out);
    let is_new = opened.as_ref().is_some_and(|opened| !**opened);
    match result {
        Ok(()) => {
            assert!(is_new, "forged, or opened twice");
            assert_eq!(out.len(), 4 + 3);
            opened.into_iter().for_each(|opened| *opened = true);
            assert!(receiver.missing() <= MAX_SKIPPED);
            let saved = receiver.save();
            assert!(Ratchet::restore(&saved).is_ok_and(|again| again.save() == saved));
        }
        Err(why) => {
            assert!(!is_new, "a genuine message does not open: {why}");
            assert_ne!(why, DecryptError::Violation, "nobody authentic breaks the protocol");
            assert_eq!(out, b"kept");
            assert!(receiver.save() == before, "{why}");
        }
    }
}
