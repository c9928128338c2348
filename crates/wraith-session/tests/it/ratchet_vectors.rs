//! Known-answer test: a conversation with known random bytes, from prekeys to the second chain
//! after a hybrid step.
//!
//! `tests/vectors/ratchet.json` holds the messages. `tests/ratchet_reference.py` computes them
//! independently, in another language and with other libraries. A change of the format requires a
//! new version; then run:
//!
//! ```text
//! $ WRAITH_BLESS=1 cargo test -p wraith-session --test it ratchet_vectors
//! $ python3 crates/wraith-session/tests/ratchet_reference.py
//! ```

use std::convert::Infallible;

use data_encoding::HEXLOWER;
use rand_core::{TryCryptoRng, TryRng};
use serde::{Deserialize, Serialize};
use wraith_crypto::{Suite, kdf};
use wraith_session::ratchet::*;

use crate::support::identity;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/ratchet.json");

/// The stream keyed(seed, 0) ‖ keyed(seed, 1) ‖ …, with 64-bit little-endian counters.
struct Stream {
    seed: [u8; 32],
    drawn: u64,
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("keys are drawn as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        unreachable!("keys are drawn as bytes")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        for byte in out {
            let block = kdf::keyed(&self.seed, &(self.drawn / 32).to_le_bytes());
            *byte = block[self.drawn as usize % 32];
            self.drawn += 1;
        }
        Ok(())
    }
}

impl TryCryptoRng for Stream {}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Message {
    /// Index among all messages, from 0. Messages not listed are `turn` from each side, without
    /// associated data.
    number: usize,
    from: String,
    padded: bool,
    aad: String,
    text: String,
    message: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vector {
    suite: String,
    seed: String,
    bundle: String,
    binding: String,
    messages: Vec<Message>,
}

struct Player {
    rng: Stream,
    alice: Ratchet,
    number: usize,
    listed: Vec<Message>,
}

impl Player {
    fn seal(&mut self, bob: Option<&mut Ratchet>, aad: &str, text: &str, listed: bool) -> Vec<u8> {
        let from = if bob.is_some() { "bob" } else { "alice" };
        let padded = text.starts_with("padded");
        let ratchet = bob.unwrap_or(&mut self.alice);
        ratchet.set_padding(padded);
        let mut message = Vec::new();
        ratchet.encrypt(&mut self.rng, aad.as_bytes(), text.as_bytes(), &mut message).unwrap();
        if listed {
            self.listed.push(Message {
                number: self.number,
                from: from.to_owned(),
                padded,
                aad: aad.to_owned(),
                text: text.to_owned(),
                message: HEXLOWER.encode(&message),
            });
        }
        self.number += 1;
        message
    }
}

fn open(ratchet: &mut Ratchet, aad: &str, text: &str, message: &[u8]) {
    let mut opened = Vec::new();
    ratchet.decrypt(aad.as_bytes(), message, &mut opened).unwrap();
    assert_eq!(opened, text.as_bytes());
}

fn play(suite: Suite) -> Vector {
    let seed = [suite.to_wire(); 32];
    let mut rng = Stream { seed, drawn: 0 };
    let mut prekeys = PreKeys::generate(&mut rng, &identity(2), 1);
    let bundle = prekeys.bundle().unwrap();
    let alice = Ratchet::initiate_with(&mut rng, &identity(1), &bundle, suite).unwrap();
    let mut player = Player { rng, alice, number: 0, listed: Vec::new() };

    let first = player.seal(None, "one", "first", true);
    let second = player.seal(None, "two", "padded second", true);
    let (mut bob, text) = Ratchet::respond(&identity(2), &mut prekeys, b"two", &second).unwrap();
    assert_eq!(text, b"padded second");
    open(&mut bob, "one", "first", &first);
    let answer = player.seal(Some(&mut bob), "three", "answer", true);
    open(&mut player.alice, "three", "answer", &answer);
    for turn in 1..=KEM_INTERVAL + 1 {
        let listed = turn >= KEM_INTERVAL;
        let message = player.seal(None, "", "turn", listed);
        open(&mut bob, "", "turn", &message);
        let message = player.seal(Some(&mut bob), "", "turn", listed);
        open(&mut player.alice, "", "turn", &message);
    }
    Vector {
        suite: suite.name().to_owned(),
        seed: HEXLOWER.encode(&seed),
        bundle: HEXLOWER.encode(&bundle.encode()),
        binding: HEXLOWER.encode(bob.binding()),
        messages: player.listed,
    }
}

#[test]
fn a_conversation_of_known_random_bytes_has_the_known_messages() {
    let played = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305].map(play);
    if std::env::var_os("WRAITH_BLESS").is_some() {
        let mut text = serde_json::to_string_pretty(&played).unwrap();
        text.push('\n');
        std::fs::write(FILE, text).unwrap();
    }
    let known: [Vector; 2] = serde_json::from_slice(&std::fs::read(FILE).unwrap()).unwrap();
    for (played, known) in played.iter().zip(&known) {
        assert!(played == known, "{}: the format has changed", known.suite);
    }
    // They include an offer and an answer of ML-KEM, and an ordinary chain after them.
    let extra = known[0]
        .messages
        .iter()
        .map(|sealed| sealed.message.len() / 2 - sealed.text.len() - OVERHEAD_BYTES);
    assert_eq!(extra.collect::<Vec<_>>(), [1161, 1162, 0, 1200, 1104, 0, 0]);
}
