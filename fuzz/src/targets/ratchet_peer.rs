//! A lying peer of a conversation, with genuine keys. The input changes its state, and its messages
//! are then authentic.
//!
//! Invariant: a refused message changes nothing, and the held state stays bounded.

use wraith_session::ratchet::{DecryptError, Ratchet};

use super::ratchet_state::holds;
use crate::input::Input;
use crate::session_world::{conversation, rng};

const STEPS_MAX: u64 = 24;
/// Maximum number of messages lost in one step: more than may be missing.
const LOST_MAX: u16 = 1100;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let [mut liar, mut victim] = conversation().pair(input.byte());
    for step in 0..STEPS_MAX {
        if input.is_empty() {
            return;
        }
        match input.byte() % 4 {
            0 => {
                if let Some(message) = encrypt(&mut liar, step) {
                    arrive(&mut victim, &message);
                }
            }
            1 => {
                for _ in 0..input.u16() % LOST_MAX {
                    encrypt(&mut liar, step);
                }
            }
            2 => {
                // The victim can always answer.
                let message = encrypt(&mut victim, step).expect("no key was taken that is none");
                arrive(&mut liar, &message);
            }
            _ => {
                let mut state = liar.save().to_vec();
                let at = usize::from(input.u16()) % state.len();
                let end = (at + usize::from(input.byte() % 36)).min(state.len());
                let len = usize::from(input.u16() % 1200);
                state.splice(at..end, input.bytes(len).iter().copied());
                if let Ok(changed) = Ratchet::restore(&state) {
                    liar = changed;
                }
            }
        }
    }
}

fn encrypt(ratchet: &mut Ratchet, seed: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    ratchet.encrypt(&mut rng(seed), b"", b"text", &mut out).ok().map(|()| out)
}

fn arrive(ratchet: &mut Ratchet, message: &[u8]) {
    let (before, mut out) = (ratchet.save(), Vec::new());
    match ratchet.decrypt(b"", message, &mut out) {
        Ok(()) => holds(ratchet),
        Err(why) => {
            assert!(ratchet.save() == before && out.is_empty(), "{why}");
            assert!(!matches!(why, DecryptError::TooLong));
        }
    }
}
