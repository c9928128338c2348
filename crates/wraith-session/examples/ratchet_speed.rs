//! Measures the cost of a 1 KiB message under the Double Ratchet: a further message of the same
//! sender, and the first message after the sender changed (a turn). Prints medians in nanoseconds.
//!
//! `cargo run --release -p wraith-session --example ratchet_speed`

use std::hint::black_box;
use std::time::Instant;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::{SecretIdentity, Suite};
use wraith_session::ratchet::{PreKeys, Ratchet};

const TEXT: [u8; 1024] = [7; 1024];
/// Messages per sample within a chain.
const MESSAGES: usize = 200;
const SAMPLES: usize = 301;

/// Prints the median of `samples`, each of `each` calls.
fn row(what: &str, mut samples: Vec<u128>, each: usize) {
    samples.sort_unstable();
    println!("{what:<44} {:>8}", samples[samples.len() / 2] / each as u128);
}

/// Returns both sides of an established conversation.
fn established(rng: &mut ChaCha20Rng, suite: Suite) -> (Ratchet, Ratchet) {
    let (alice, bob) = (SecretIdentity::from_seed([1; 32]), SecretIdentity::from_seed([2; 32]));
    let mut prekeys = PreKeys::generate(rng, &bob, 1);
    let bundle = prekeys.bundle().expect("no vault can fail");
    let mut alices =
        Ratchet::initiate_with(rng, &alice, &bundle, suite).expect("these are good prekeys");
    let mut message = Vec::new();
    alices.encrypt(rng, b"", b"", &mut message).expect("it is short");
    let (mut bobs, _) =
        Ratchet::respond(&bob, &mut prekeys, b"", &message).expect("it is authentic");
    turn(rng, &mut bobs, &mut alices);
    (alices, bobs)
}

/// Passes one message from `from` to `to`.
fn turn(rng: &mut ChaCha20Rng, from: &mut Ratchet, to: &mut Ratchet) {
    let (mut message, mut text) = (Vec::new(), Vec::new());
    from.encrypt(rng, b"", &TEXT, &mut message).expect("it is short");
    to.decrypt(b"", &message, &mut text).expect("it is authentic");
}

fn in_chain(rng: &mut ChaCha20Rng, suite: Suite) {
    let (mut alice, mut bob) = established(rng, suite);
    let mut messages: Vec<_> = (0..MESSAGES).map(|_| Vec::with_capacity(2048)).collect();
    let mut text = Vec::with_capacity(2048);
    let (mut sealing, mut opening) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for message in &mut messages {
            message.clear();
            alice.encrypt(rng, b"", black_box(&TEXT), message).expect("it is short");
        }
        sealing.push(start.elapsed().as_nanos());
        let start = Instant::now();
        for message in &messages {
            text.clear();
            bob.decrypt(b"", black_box(message), &mut text).expect("it is authentic");
        }
        opening.push(start.elapsed().as_nanos());
    }
    row(&format!("{}: encrypt, in a chain", suite.name()), sealing, MESSAGES);
    row(&format!("{}: decrypt, in a chain", suite.name()), opening, MESSAGES);
    let message = [0x20; 1100];
    let forged = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..MESSAGES {
                text.clear();
                bob.decrypt(b"", black_box(&message), &mut text).expect_err("it is forged");
            }
            start.elapsed().as_nanos()
        })
        .collect();
    row(&format!("{}: decrypt, forged", suite.name()), forged, MESSAGES);
}

fn ping_pong(rng: &mut ChaCha20Rng, suite: Suite) {
    let (mut alice, mut bob) = established(rng, suite);
    let both = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            turn(rng, &mut alice, &mut bob);
            turn(rng, &mut bob, &mut alice);
            start.elapsed().as_nanos()
        })
        .collect();
    row(&format!("{}: encrypt and decrypt, each a turn", suite.name()), both, 2);
}

fn main() {
    let mut rng = ChaCha20Rng::from_seed([3; 32]);
    println!("{:<44} {:>8}", "1 KiB", "ns");
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        in_chain(&mut rng, suite);
        ping_pong(&mut rng, suite);
    }
    let starts = (0..51)
        .map(|_| {
            let start = Instant::now();
            black_box(established(&mut rng, Suite::Aes256Gcm));
            start.elapsed().as_nanos()
        })
        .collect();
    row("prekeys, start and first answer", starts, 1);
}
