//! Handshakes, messages and ratchets of wraith-session beside snow and vodozemac, in turn in one
//! run: `cargo run --release -p wraith-sessions-race`. An argument selects the rows with that text
//! in their name.
//!
//! Every created message is opened or compared, because broken code may be fast. Published figures
//! of other projects follow the rows; they were not taken in the same run. They are the medians of
//! WRAITH-Protocol 2.3.7 on a machine of the same kind as ours, and the figures that
//! noise-mobile-rust publishes for its own machine.

mod contest;
mod messages;
mod ratchets;

use std::hint::black_box;

use contest::{Contestant, Row};
use rand_core::UnwrapErr;
use wraith_crypto::agree::{x25519, x25519_public};
use wraith_session::{Handshake, Pattern, Protocol, StaticKey};

/// Runs a row.
type Run = Box<dyn Fn() -> Row>;

const WRAITH: &str = "WRAITH-Protocol 2.3.7";
const MOBILE: &str = "noise-mobile-rust, on its machine";
/// Row, project, nanoseconds. The decryption row of noise-mobile-rust includes encryption.
const REFERENCES: [(&str, &str, f64); 10] = [
    ("handshake XX, both sides", WRAITH, 511_630.0),
    ("handshake XX, both sides", MOBILE, 395_000.0),
    ("seal 64 B", MOBILE, 224.4),
    ("seal 1 KiB", MOBILE, 1_800.0),
    ("seal 64 KiB", MOBILE, 108_040.0),
    ("open 64 B", MOBILE, 475.1),
    ("open 1 KiB", MOBILE, 3_630.0),
    ("open 64 KiB", MOBILE, 230_930.0),
    ("ratchet, encrypt 1 KiB", WRAITH, 2_781.5),
    // Each includes a turn of its ratchet: the project has no other row.
    ("ratchet, decrypt 1 KiB in the chain", WRAITH, 129_330.0),
];

/// Random bytes of the operating system, as a program would use them.
pub type SystemRng = UnwrapErr<getrandom::SysRng>;

pub fn system_rng() -> SystemRng {
    UnwrapErr(getrandom::SysRng)
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let rows: Vec<(&str, Run)> = vec![
        ("handshake XX, both sides", Box::new(handshake)),
        ("seal 64 B", Box::new(|| messages::seal(64))),
        ("seal 1 KiB", Box::new(|| messages::seal(1024))),
        ("seal 64 KiB", Box::new(|| messages::seal(65_519))),
        ("open 64 B", Box::new(|| messages::open(64))),
        ("open 1 KiB", Box::new(|| messages::open(1024))),
        ("open 64 KiB", Box::new(|| messages::open(65_519))),
        ("batch of 100 × 1 KiB", Box::new(messages::batch)),
        ("replay window, in order", Box::new(|| messages::window(false))),
        ("replay window, random", Box::new(|| messages::window(true))),
        ("ratchet, encrypt 1 KiB", Box::new(ratchets::encrypt)),
        ("ratchet, decrypt 1 KiB in the chain", Box::new(ratchets::decrypt)),
        ("ratchet, a message and its answer", Box::new(ratchets::turn)),
    ];
    println!("| what | contestant | ns | × the first |\n|---|---|---|---|");
    for (name, run) in rows {
        if !name.contains(&filter) {
            continue;
        }
        let row = run();
        let ours = row.results[0].1;
        for (contestant, time, ratio) in row.results {
            println!("| {} | {contestant} | {time:.0} | {ratio:.2} |", row.name);
        }
        for (_, contestant, time) in REFERENCES.iter().filter(|(of, ..)| *of == name) {
            println!(
                "| {name} | *{contestant}, not in this run* | {time:.0} | {:.2} |",
                time / ours
            );
        }
    }
}

fn ours(protocol: Protocol, keys: &[StaticKey; 2]) {
    let mut rng = system_rng();
    let mut one = Handshake::initiator(protocol).local(&keys[0]).start(&mut rng).expect("complete");
    let mut two = Handshake::responder(protocol).local(&keys[1]).start(&mut rng).expect("complete");
    two.read(&one.write(b"").expect("its turn")).expect("authentic");
    one.read(&two.write(b"").expect("its turn")).expect("authentic");
    two.read(&one.write(b"").expect("its turn")).expect("authentic");
    assert_eq!(one.hash(), two.hash());
    black_box((one.split().expect("over"), two.split().expect("over")));
}

fn snows(keys: &[snow::Keypair; 2]) {
    let builder = |key: &snow::Keypair| {
        let params = "Noise_XX_25519_ChaChaPoly_BLAKE2s".parse().expect("a name of snow");
        let private = key.private.clone();
        (params, private)
    };
    let (params, private) = builder(&keys[0]);
    let mut one = snow::Builder::new(params)
        .local_private_key(&private)
        .and_then(snow::Builder::build_initiator)
        .expect("complete");
    let (params, private) = builder(&keys[1]);
    let mut two = snow::Builder::new(params)
        .local_private_key(&private)
        .and_then(snow::Builder::build_responder)
        .expect("complete");
    let (mut message, mut payload) = ([0; 512], [0; 512]);
    for turn in 0..3 {
        let (from, to) = if turn == 1 { (&mut two, &mut one) } else { (&mut one, &mut two) };
        let len = from.write_message(&[], &mut message).expect("its turn");
        to.read_message(&message[..len], &mut payload).expect("authentic");
    }
    assert_eq!(one.get_handshake_hash(), two.get_handshake_hash());
    let one = one.into_stateless_transport_mode().expect("over");
    black_box((one, two.into_stateless_transport_mode().expect("over")));
}

/// The minimum work of XX: two ephemeral keys and three key agreements on each side.
fn agreements() {
    let publics = [[5; 32], [6; 32]].map(|secret| x25519_public(black_box(&secret)));
    for _ in 0..3 {
        let [one, two] = [([5; 32], publics[1]), ([6; 32], publics[0])]
            .map(|(secret, public)| x25519(black_box(&secret), black_box(&public)));
        assert_eq!(one, two);
    }
}

fn handshake() -> Row {
    let mut rng = system_rng();
    let keys = [(); 2].map(|()| StaticKey::generate(&mut rng));
    let snow_keys = [(); 2].map(|()| {
        let params = "Noise_XX_25519_ChaChaPoly_BLAKE2s".parse().expect("a name of snow");
        snow::Builder::new(params).generate_keypair().expect("there are random bytes")
    });
    let hybrid = Protocol::DEFAULT;
    let classical = Protocol { hybrid: false, pattern: Pattern::XX, ..hybrid };
    let contestants = vec![
        Contestant::new("wraith", || ours(classical, &keys)),
        Contestant::new("wraith, with ML-KEM-768", || ours(hybrid, &keys)),
        Contestant::new("snow, its own primitives", || snows(&snow_keys)),
        Contestant::new("the key agreement in it alone, by AWS-LC", agreements),
    ];
    contest::run("handshake XX, both sides", contestants)
}
