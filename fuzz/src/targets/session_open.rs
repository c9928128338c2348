//! Messages of a session over a link that does what it likes: each that is genuine opens once, and nothing else changes anything.

use wraith_session::{OpenError, Session};

use crate::input::Input;
use crate::session_world::sessions;

const STEPS_MAX: u32 = 64;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let [mut one, mut two] = sessions();
    let mut sent: Vec<(Vec<u8>, bool)> = Vec::new();
    for step in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let choice = input.byte();
        if choice & 0x80 != 0 || sent.is_empty() {
            let mut message = Vec::new();
            one.seal(b"aad", &[step as u8], &mut message).expect("numbers are left");
            sent.push((message, false));
        }
        let pick = |choice: u8| usize::from(choice & 0x3f) % sent.len();
        let (which, other) = (pick(choice), pick(choice.wrapping_add(1)));
        let mut arrives = input.tampered(&sent[which].0, &sent[other].0);
        if choice & 0x40 != 0 && arrives.len() >= 8 {
            // A number that may be far ahead.
            arrives[..8].copy_from_slice(&input.u64().to_le_bytes());
        }
        let genuine = sent.iter_mut().find(|(message, _)| *message == arrives);
        arrive(&mut two, &arrives, genuine.map(|(_, opened)| opened));
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
            // Of an epoch before the last two.
            assert!(!is_new || why == OpenError::TooOld, "a genuine message does not open: {why}");
            assert_eq!(out, b"kept");
            assert!(session.save().bytes() == before.bytes(), "{why}");
        }
    }
}
