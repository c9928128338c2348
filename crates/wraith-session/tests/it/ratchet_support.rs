//! Setup shared by the tests of ratchets.

use rand_core::CryptoRng;
use wraith_crypto::Suite;
use wraith_session::ratchet::{DecryptError, OVERHEAD_BYTES, PreKeys, Ratchet};

use crate::support::identity;

/// Returns both sides of a conversation, before the second has received a message.
pub fn started(rng: &mut impl CryptoRng) -> (Ratchet, Ratchet) {
    started_with(rng, Suite::ChaCha20Poly1305)
}

pub fn started_with(rng: &mut impl CryptoRng, suite: Suite) -> (Ratchet, Ratchet) {
    let (alice, bob) = (identity(1), identity(2));
    let mut prekeys = PreKeys::generate(rng, &bob, 1);
    let mut alices =
        Ratchet::initiate_with(rng, &alice, &prekeys.bundle().unwrap(), suite).unwrap();
    let first = seal(&mut alices, rng, b"first");
    let (bobs, text) = Ratchet::respond(&bob, &mut prekeys, b"", &first).unwrap();
    assert_eq!(text, b"first");
    (alices, bobs)
}

/// Returns both sides of a conversation after one message in each direction.
pub fn established(rng: &mut impl CryptoRng) -> (Ratchet, Ratchet) {
    let (mut alice, mut bob) = started(rng);
    let answer = seal(&mut bob, rng, b"answer");
    assert_eq!(open(&mut alice, &answer).unwrap(), b"answer");
    (alice, bob)
}

pub fn seal(ratchet: &mut Ratchet, rng: &mut impl CryptoRng, text: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    ratchet.encrypt(rng, b"", text, &mut message).unwrap();
    message
}

pub fn open(ratchet: &mut Ratchet, message: &[u8]) -> Result<Vec<u8>, DecryptError> {
    let mut text = Vec::new();
    ratchet.decrypt(b"", message, &mut text).map(|()| text)
}

/// Passes one message each way.
pub fn turn(a: &mut Ratchet, b: &mut Ratchet, rng: &mut impl CryptoRng) {
    for _ in 0..2 {
        let message = seal(a, rng, b"turn");
        assert_eq!(open(b, &message).unwrap(), b"turn");
        let message = seal(b, rng, b"return");
        assert_eq!(open(a, &message).unwrap(), b"return");
    }
}

/// Plays turns until `a` offers an ML-KEM key. Returns the first message of that chain, which was
/// not delivered.
pub fn until_offer(a: &mut Ratchet, b: &mut Ratchet, rng: &mut impl CryptoRng) -> Vec<u8> {
    loop {
        let message = seal(a, rng, b"turn");
        if message.len() > OVERHEAD_BYTES + 4 {
            return message;
        }
        open(b, &message).unwrap();
        let message = seal(b, rng, b"return");
        open(a, &message).unwrap();
    }
}

/// Asserts that decryption fails with `error` and changes nothing.
pub fn refuses(ratchet: &mut Ratchet, aad: &[u8], message: &[u8], error: DecryptError) {
    let before = ratchet.save();
    let mut out = b"kept".to_vec();
    assert_eq!(ratchet.decrypt(aad, message, &mut out), Err(error));
    assert_eq!(out, b"kept");
    assert!(before == ratchet.save(), "a message that does not open changes nothing");
}
