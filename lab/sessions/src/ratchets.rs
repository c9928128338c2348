//! The Double Ratchet beside vodozemac's Olm, which has neither header encryption nor ML-KEM.

use std::hint::black_box;

use vodozemac::olm::{Account, OlmMessage, Session, SessionConfig};
use wraith_session::SecretIdentity;
use wraith_session::ratchet::{PreKeys, Ratchet};

use crate::contest::{self, Contestant, Row};
use crate::system_rng;

const TEXT: [u8; 1024] = [7; 1024];

/// Two sides that have both sent messages.
fn ours() -> [Ratchet; 2] {
    let mut rng = system_rng();
    let [alice, bob] = [1, 2].map(|byte| SecretIdentity::from_seed([byte; 32]));
    let mut prekeys = PreKeys::generate(&mut rng, &bob, 1);
    let bundle = prekeys.bundle().expect("no vault can fail");
    let mut one = Ratchet::initiate(&mut rng, &alice, &bundle).expect("a good bundle");
    let (mut message, mut text) = (Vec::new(), Vec::new());
    one.encrypt(&mut rng, b"", b"", &mut message).expect("short");
    let (mut two, _) = Ratchet::respond(&bob, &mut prekeys, b"", &message).expect("authentic");
    message.clear();
    two.encrypt(&mut rng, b"", b"", &mut message).expect("short");
    one.decrypt(b"", &message, &mut text).expect("authentic");
    message.clear();
    one.encrypt(&mut rng, b"", b"", &mut message).expect("short");
    two.decrypt(b"", &message, &mut text).expect("authentic");
    [one, two]
}

fn olm() -> [Session; 2] {
    let (alice, mut bob) = (Account::new(), Account::new());
    bob.generate_one_time_keys(1);
    let key = *bob.one_time_keys().values().next().expect("one was made");
    let mut one = alice
        .create_outbound_session(SessionConfig::version_1(), bob.curve25519_key(), key)
        .expect("good keys");
    let OlmMessage::PreKey(first) = one.encrypt("").expect("it is new") else {
        unreachable!("the first message has keys")
    };
    let created = bob
        .create_inbound_session(SessionConfig::version_1(), alice.curve25519_key(), &first)
        .expect("authentic");
    let mut two = created.session;
    let answer = two.encrypt("").expect("it is new");
    one.decrypt(&answer).expect("authentic");
    let last = one.encrypt("").expect("its turn");
    two.decrypt(&last).expect("authentic");
    [one, two]
}

pub fn encrypt() -> Row {
    let ([mut one, _], [mut olm_one, _]) = (ours(), olm());
    let mut rng = system_rng();
    let mut out = Vec::new();
    let contestants = vec![
        Contestant::new("wraith", || {
            out.clear();
            one.encrypt(&mut rng, b"", &TEXT, &mut out).expect("short");
            black_box(&out);
        }),
        Contestant::new("vodozemac", || {
            black_box(olm_one.encrypt(TEXT).expect("it can"));
        }),
    ];
    contest::run("ratchet, encrypt 1 KiB", contestants)
}

pub fn decrypt() -> Row {
    let ([mut one, mut two], [mut olm_one, mut olm_two]) = (ours(), olm());
    let mut rng = system_rng();
    let mut text = Vec::new();
    let contestants = vec![
        Contestant::prepared(
            "wraith",
            |count| {
                let seal = |_| {
                    let mut message = Vec::new();
                    one.encrypt(&mut rng, b"", &TEXT, &mut message).expect("short");
                    message
                };
                (0..count).map(seal).collect()
            },
            |message: Vec<u8>| {
                text.clear();
                two.decrypt(b"", &message, &mut text).expect("authentic");
                assert_eq!(text.len(), TEXT.len());
            },
        ),
        Contestant::prepared(
            "vodozemac",
            |count| (0..count).map(|_| olm_one.encrypt(TEXT).expect("it can")).collect(),
            |message: OlmMessage| {
                assert_eq!(olm_two.decrypt(&message).expect("authentic").len(), TEXT.len());
            },
        ),
    ];
    contest::run("ratchet, decrypt 1 KiB in the chain", contestants)
}

/// Both sides send once: two turns of the ratchet, and every fiftieth with ML-KEM.
pub fn turn() -> Row {
    let ([mut one, mut two], [mut olm_one, mut olm_two]) = (ours(), olm());
    let mut rng = system_rng();
    let (mut message, mut text) = (Vec::new(), Vec::new());
    let contestants = vec![
        Contestant::new("wraith", || {
            let mut say = |from: &mut Ratchet, to: &mut Ratchet| {
                message.clear();
                text.clear();
                from.encrypt(&mut rng, b"", &TEXT, &mut message).expect("short");
                to.decrypt(b"", &message, &mut text).expect("authentic");
            };
            say(&mut two, &mut one);
            say(&mut one, &mut two);
        }),
        Contestant::new("vodozemac", || {
            let message = olm_two.encrypt(TEXT).expect("it can");
            olm_one.decrypt(&message).expect("authentic");
            let message = olm_one.encrypt(TEXT).expect("it can");
            olm_two.decrypt(&message).expect("authentic");
        }),
    ];
    contest::run("ratchet, a message and its answer", contestants)
}
