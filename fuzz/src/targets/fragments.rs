//! Fragments of messages in any order, some of them genuine.
//!
//! Invariant: held memory is bounded, no message is longer than allowed, and a malformed fragment
//! changes nothing.

use wraith_session::fragment::{FragmentError, Reassembler, ReassemblyLimits, Splitter};

use crate::input::Input;
use crate::session_world::rng;

const LIMITS: ReassemblyLimits =
    ReassemblyLimits { message_bytes: 600, held_bytes: 1500, held_messages: 3 };

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let mut all = Reassembler::new(LIMITS);
    let mut splitter = Splitter::new(&mut rng(1));
    while !input.is_empty() {
        match input.byte() {
            // A message of an honest sender. A fresh reassembler, in which its id is unused,
            // returns the same bytes if it returns a message.
            0 => {
                let (room, len) = (18 + usize::from(input.byte()), usize::from(input.u16()) % 600);
                let message = vec![7; len];
                let pieces = splitter.split(&message, room).expect("there is room");
                let mut fresh = Reassembler::new(LIMITS);
                let mut whole = None;
                for piece in &pieces {
                    assert!(piece.len() <= room);
                    push(&mut all, piece);
                    whole = fresh.push(piece).expect("it is a piece").or(whole);
                }
                // The overhead of many small fragments may exceed the limit.
                assert!(whole.is_none_or(|whole| whole == message));
            }
            len => {
                let piece = input.bytes(usize::from(len));
                push(&mut all, piece);
            }
        }
    }
}

fn push(all: &mut Reassembler, piece: &[u8]) {
    let before = all.held_bytes();
    let pushed = all.push(piece);
    assert!(all.held_bytes() <= LIMITS.held_bytes);
    match pushed {
        Ok(Some(message)) => assert!(message.len() <= LIMITS.message_bytes),
        Ok(None) => {}
        Err(FragmentError::Malformed) => assert_eq!(all.held_bytes(), before),
        Err(FragmentError::TooLong(_)) => assert!(all.held_bytes() <= before),
        Err(why @ FragmentError::Room { .. }) => panic!("{why}"),
    }
}
