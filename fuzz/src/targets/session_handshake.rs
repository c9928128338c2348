//! Handshakes of `wraith-session`, of every pattern and on either side.
//!
//! Invariant: a forged message changes nothing at any point of the handshake, and the genuine
//! message is still read.
//!
//! The exception is the first message of XX and IX, which is not authenticated. A handshake with a
//! forged first message does not complete with the genuine side.

use wraith_session::{Handshake, HandshakeError, Pattern, ReadOutcome};

use crate::input::Input;
use crate::session_world::{handshakes, protocol};

/// Maximum number of attempts of one input: each one that fails costs as much as the handshake up
/// to that point.
const ATTEMPTS_MAX: u32 = 12;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let which = input.byte();
    let protocol = protocol(which);
    let mut sides = handshakes(protocol);
    // The target of the forgeries: the initiator or the responder.
    let victim = usize::from(which >> 7);
    let (mut turn, mut before, mut attempts) = (0, Vec::new(), 0);
    for number in 0.. {
        if sides.iter().all(Handshake::is_finished) {
            break;
        }
        let genuine = sides[turn].write(b"payload").expect("it is its turn");
        turn = 1 - turn;
        if turn == victim {
            while !input.is_empty() && attempts < ATTEMPTS_MAX {
                attempts += 1;
                let lie = input.tampered(&genuine, &before);
                if lie == genuine || lie == before {
                    continue;
                }
                if lied_to(&mut sides[victim], &lie) {
                    let open = matches!(protocol.pattern, Pattern::XX | Pattern::IX);
                    assert!(number == 0 && open, "message {number} of {protocol} was forged");
                    return fails(&mut sides);
                }
            }
        }
        assert_eq!(sides[turn].read(&genuine), Ok(ReadOutcome::Payload(b"payload".to_vec())));
        assert_eq!(sides[turn].read(&genuine), Ok(ReadOutcome::Repeated));
        before = genuine;
    }
    assert_eq!(sides[0].hash(), sides[1].hash());
    let [mut one, mut two] = sides.map(|mut side| side.split().expect("it is over"));
    let (mut message, mut text) = (Vec::new(), Vec::new());
    one.seal(b"", b"text", &mut message).expect("the first");
    assert_eq!((two.open(b"", &message, &mut text), &text[..]), (Ok(0), &b"text"[..]));
}

/// Returns whether the side accepts the forgery. If it does not, its state is unchanged.
fn lied_to(side: &mut Handshake, lie: &[u8]) -> bool {
    let state = |side: &Handshake| {
        (side.hash().to_vec(), side.is_my_turn(), side.peer(), side.remote_key())
    };
    let before = state(side);
    match side.read(lie) {
        Ok(read) => {
            assert!(matches!(read, ReadOutcome::Payload(payload) if payload.len() <= lie.len()));
            true
        }
        Err(why) => {
            assert_ne!(why, HandshakeError::Turn);
            assert!(state(side) == before, "{why}");
            false
        }
    }
}

/// Checks that the handshake fails after the responder has read a forged first message.
fn fails([initiator, responder]: &mut [Handshake; 2]) {
    let Ok(answer) = responder.write(b"payload") else { return };
    let hash = initiator.hash().to_vec();
    assert_eq!(initiator.read(&answer), Err(HandshakeError::Unauthentic));
    assert_eq!(initiator.hash(), hash);
}
