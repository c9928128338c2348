//! The public vectors of the Noise framework: those of cacophony and those of snow.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use wraith_session::{Handshake, Pattern, Protocol, ReadOutcome, Session, StaticKey};

use crate::support::Given;

/// Both collections, restricted to the supported patterns and curve.
const VECTORS: &str = include_str!("../vectors/noise.json");

#[derive(Deserialize)]
struct Vector {
    source: String,
    protocol_name: String,
    init_prologue: String,
    #[serde(default)]
    init_psks: Vec<String>,
    init_static: Option<String>,
    init_ephemeral: String,
    init_remote_static: Option<String>,
    resp_prologue: String,
    #[serde(default)]
    resp_psks: Vec<String>,
    resp_static: Option<String>,
    resp_ephemeral: Option<String>,
    handshake_hash: Option<String>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    payload: String,
    ciphertext: String,
}

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

fn key(text: &str) -> [u8; 32] {
    hex(text).try_into().unwrap()
}

fn side(initiator: bool, vector: &Vector) -> Handshake {
    let protocol: Protocol = vector.protocol_name.parse().unwrap();
    let (mut builder, own, psks, prologue, ephemeral) = match initiator {
        true => (
            Handshake::initiator(protocol),
            &vector.init_static,
            &vector.init_psks,
            &vector.init_prologue,
            Some(&vector.init_ephemeral),
        ),
        false => (
            Handshake::responder(protocol),
            &vector.resp_static,
            &vector.resp_psks,
            &vector.resp_prologue,
            vector.resp_ephemeral.as_ref(),
        ),
    };
    if let Some(secret) = own {
        builder = builder.local(&StaticKey::from_secret(key(secret).into()));
    }
    if let Some(remote) = vector.init_remote_static.as_ref().filter(|_| initiator) {
        builder = builder.remote(key(remote));
    }
    if let [psk] = &psks[..] {
        builder = builder.psk(key(psk).into());
    }
    let drawn = hex(ephemeral.unwrap());
    builder.prologue(&hex(prologue)).start(&mut Given(&drawn)).unwrap()
}

#[test]
fn the_published_vectors_are_reproduced_message_by_message() {
    let vectors: Vec<Vector> = serde_json::from_str(VECTORS).unwrap();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for vector in &vectors {
        let name = &vector.protocol_name;
        let protocol: Protocol = name.parse().unwrap();
        let mut sides = [side(true, vector), side(false, vector)];
        let mut split: Option<[Session; 2]> = None;
        let mut turn = 0;
        for message in &vector.messages {
            let (payload, expected) = (hex(&message.payload), hex(&message.ciphertext));
            match &mut split {
                None => {
                    assert_eq!(sides[turn].write(&payload).unwrap(), expected, "{name}");
                    let read = sides[1 - turn].read(&expected);
                    assert_eq!(read, Ok(ReadOutcome::Payload(payload)), "{name}");
                }
                // A session message is a Noise message with its number in front.
                Some(sessions) => {
                    let mut sealed = Vec::new();
                    let number = sessions[turn].seal(b"", &payload, &mut sealed).unwrap();
                    assert_eq!(sealed[..8], number.to_le_bytes());
                    assert_eq!(sealed[8..], expected, "{name}");
                    let mut opened = Vec::new();
                    assert_eq!(sessions[1 - turn].open(b"", &sealed, &mut opened), Ok(number));
                    assert_eq!(opened, payload);
                }
            }
            turn = 1 - turn;
            if split.is_none() && sides[0].is_finished() {
                if let Some(hash) = &vector.handshake_hash {
                    assert_eq!(HEXLOWER.encode(sides[0].hash()), *hash, "{name}");
                }
                assert_eq!(sides[0].hash(), sides[1].hash());
                split = Some(sides.each_mut().map(|side| side.split().unwrap()));
            }
        }
        assert!(split.is_some(), "{name} of {} has a whole handshake", vector.source);
        *seen.entry(format!("{} of {}", protocol.pattern.name(), vector.source)).or_default() += 1;
    }
    // Each pattern in both collections, with both ciphers and four hashes.
    for pattern in Pattern::ALL {
        let count = |source| seen.get(&format!("{} of {source}", pattern.name())).copied();
        assert!(count("cacophony") >= Some(8), "{seen:?}");
        assert!(seen.values().sum::<usize>() == vectors.len() && vectors.len() >= 130);
    }
}
