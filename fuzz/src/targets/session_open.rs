//! Messages of a session over a hostile link. Invariant: each genuine message opens once, and
//! nothing else changes the state.

use wraith_session::{OpenError, Session};

use crate::input::Input;
use crate::session_world::sessions;

const MESSAGES: u8 = 32;
const STEPS_MAX: u32 = 64;

/// A message that is sealed before anything arrives, so an input may contain one that is not sent
/// yet.
struct Message {
    bytes: Vec<u8>,
    is_opened: bool,
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let [mut one, mut two] = sessions();
    let seal = |number: u8| {
        let mut bytes = Vec::new();
        one.seal(b"aad", &[number], &mut bytes).expect("numbers are left");
        Message { bytes, is_opened: false }
    };
    let mut messages: Vec<_> = (0..MESSAGES).map(seal).collect();
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
        let mut arrives = input.tampered(pick(choice), pick(choice.wrapping_add(1)));
        if choice & 0x40 != 0 && arrives.len() >= 8 {
            // A message number that may be far ahead.
            arrives[..8].copy_from_slice(&input.u64().to_le_bytes());
        }
        let genuine = messages.iter_mut().find(|message| message.bytes == arrives);
        arrive(&mut two, &arrives, genuine.map(|message| &mut message.is_opened));
    }
}

fn arrive(session: &mut Session, message: &[u8], opened: Option<&mut bool>) {
    let before = session.save();
    let mut out = b"kept".to_vec();
    let result = session.open(b"aad", message, &mut out);
    let is_new = opened.as_ref().is_some_and(|opened| !**opened);
    match result {
        Ok(_) => {
            assert!(is_new, "forged, or opened twice");
            assert_eq!(out.len(), 5);
            opened.into_iter().for_each(|opened| *opened = true);
        }
        Err(why) => {
            // The message may belong to an epoch before the last two.
            assert!(!is_new || why == OpenError::TooOld, "a genuine message does not open: {why}");
            assert_eq!(out, b"kept");
            assert!(session.save().bytes() == before.bytes(), "{why}");
        }
    }
}
