//! Setup shared by several tests.

use std::convert::Infallible;

use rand_chacha::ChaCha20Rng;
use rand_core::{SeedableRng, TryCryptoRng, TryRng};
use wraith_session::{Handshake, Protocol, ReadOutcome, SecretIdentity, Session, StaticKey};

/// Returns a generator with this seed.
pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A generator that returns exactly these bytes.
pub struct Given<'a>(pub &'a [u8]);

impl TryRng for Given<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("keys are drawn as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("keys are drawn as bytes")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        let (given, rest) = self.0.split_at(out.len());
        out.copy_from_slice(given);
        self.0 = rest;
        Ok(())
    }
}

impl TryCryptoRng for Given<'_> {}

pub fn identity(byte: u8) -> SecretIdentity {
    SecretIdentity::from_seed([byte; 32])
}

/// Returns both sides of a handshake between identities 1 and 2, with all inputs of the pattern.
pub fn handshake(protocol: Protocol) -> [Handshake; 2] {
    let [one, two] = [identity(1), identity(2)];
    let mut initiator = Handshake::initiator(protocol);
    if protocol.pattern != wraith_session::Pattern::NK {
        initiator = initiator.local(&StaticKey::of(&one));
    }
    if protocol.pattern.knows_responder() {
        initiator = initiator.peer(two.node_id());
    }
    let mut responder = Handshake::responder(protocol).local(&StaticKey::of(&two));
    if protocol.psk.is_some() {
        initiator = initiator.psk([7; 32].into());
        responder = responder.psk([7; 32].into());
    }
    [initiator.start(&mut rng(1)).unwrap(), responder.start(&mut rng(2)).unwrap()]
}

/// Runs a handshake to its end. Returns its messages.
pub fn run(sides: &mut [Handshake; 2]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut turn = 0;
    while !sides.iter().all(Handshake::is_finished) {
        let message = sides[turn].write(b"payload").unwrap();
        turn = 1 - turn;
        assert_eq!(sides[turn].read(&message), Ok(ReadOutcome::Payload(b"payload".to_vec())));
        messages.push(message);
    }
    messages
}

/// Returns the two ends of a session.
pub fn sessions(protocol: Protocol) -> [Session; 2] {
    let mut sides = handshake(protocol);
    run(&mut sides);
    sides.map(|mut side| side.split().unwrap())
}
