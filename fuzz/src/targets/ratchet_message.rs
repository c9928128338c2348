//! Messages of a conversation over a hostile link. Invariant: each genuine message opens once, and
//! nothing else changes the state.
//!
//! The first byte selects the stage of the conversation: its middle, an offer of ML-KEM, or the
//! answer to the offer.

use wraith_session::ratchet::{DecryptError, Ratchet, SKIPPED_MAX};

use crate::input::Input;
use crate::session_world::{conversation, encrypt};

const MESSAGES: u8 = 16;
const STEPS_MAX: u32 = 48;

/// A message that is encrypted before anything arrives, so an input may contain one that is not
/// sent yet.
struct Message {
    bytes: Vec<u8>,
    is_opened: bool,
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let [mut sender, mut receiver] = conversation().pair(input.byte());
    let mut encrypt = |number: u8| {
        sender.set_padding(number % 4 == 3);
        let bytes = encrypt(&mut sender, number.into(), &[number; 3]);
        Message { bytes, is_opened: false }
    };
    let mut messages: Vec<_> = (0..MESSAGES).map(&mut encrypt).collect();
    let mut sent = 0;
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let choice = input.byte();
        if choice & 0x80 != 0 || sent == 0 {
            sent = (sent + 1).min(messages.len());
        }
        let pick = |choice: u8| &messages[usize::from(choice & 0x3f) % sent].bytes;
        let arrives = input.tampered(pick(choice), pick(choice.wrapping_add(1)));
        let genuine = messages.iter_mut().find(|message| message.bytes == arrives);
        arrive(&mut receiver, &arrives, genuine.map(|message| &mut message.is_opened));
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
            assert!(receiver.missing() <= SKIPPED_MAX);
            let saved = receiver.save();
            assert!(Ratchet::restore(&saved).is_ok_and(|again| again.save() == saved));
        }
        Err(why) => {
            assert!(!is_new, "a genuine message does not open: {why}");
            assert_ne!(why, DecryptError::Violation, "an authentic peer keeps the protocol");
            assert_eq!(out, b"kept");
            assert!(receiver.save() == before, "{why}");
        }
    }
}
