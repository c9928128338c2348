//! The whole view of an open relay over many transfers between two identities.

use std::collections::HashMap;

use wraith_crypto::NodeId;

use crate::support::relay_recorder::{RelayRecorder, View};
use crate::support::{Process, World, rounds};

/// Transfers in every run; `WRAITH_TEST_ROUNDS` sets another number.
const TRANSFERS: u64 = 12;
/// Length of a value that could identify a client.
const WINDOW: usize = 16;
/// Bytes from 16 on in such a value, at least. A random value of 8 bytes almost always has as many; the
/// types, lengths and counters of frames have fewer.
const LARGE_BYTES_MIN: usize = 6;

fn contains(view: &View, value: &[u8]) -> bool {
    [&view.up, &view.down].into_iter().any(|bytes| bytes.windows(value.len()).any(|at| at == value))
}

#[test]
fn an_open_relay_sees_no_identity_and_cannot_link_two_transfers() {
    let world = World::new();
    let folder = world.path("relay");
    let mut command = world.wraith("server");
    command
        .args(["relay", "--json", "--listen", "127.0.0.1:0", "--no-udp", "--state"])
        .arg(&folder);
    let mut relay = Process::start("relay", &mut command);
    let address = relay.event("listening")["address"].as_str().unwrap().parse().unwrap();
    let recorder = RelayRecorder::start(address, &folder.join("relay.pem"));
    let server = recorder.address.to_string();
    let place = ["--relay", &server, "--relay-only", "--relay-identity"];
    let identities = ["sender", "receiver"].map(|side| world.node_id(side));
    let film = world.file("film.mov", 1, 100_000);
    // The transfer in which the relay saw each value from a client.
    let mut seen: HashMap<[u8; WINDOW], u64> = HashMap::new();
    for transfer in 0..rounds(TRANSFERS) {
        let mut command = world.wraith("sender");
        command.args(["send", "--json", "--ticket"]).args(place).arg(&film);
        let mut sender = Process::start("send", &mut command);
        world.receive_with(&sender.ticket(), &place).succeed();
        sender.succeed();
        let view = recorder.take();
        assert!(view.up.len() > 100_000, "the relay carried all: {}", view.up.len());
        for text in &identities {
            let node_id: NodeId = text.parse().unwrap();
            assert!(!contains(&view, node_id.as_bytes()), "transfer {transfer}");
            assert!(!contains(&view, text.as_bytes()), "transfer {transfer}");
        }
        for (at, window) in view.up.windows(WINDOW).enumerate() {
            if window.iter().filter(|byte| **byte >= 16).count() < LARGE_BYTES_MIN {
                continue;
            }
            let before = seen.insert(window.try_into().unwrap(), transfer);
            let is_new = before.is_none_or(|before| before == transfer);
            assert!(is_new, "byte {at} of {transfer} was in {before:?}: {window:02x?}");
        }
        std::fs::remove_file(world.target().join("film.mov")).unwrap();
    }
}
