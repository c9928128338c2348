//! Both sides of a handshake while somebody who knows everything public damages what they say: a damaged datagram is
//! refused and changes nothing, so the true one that follows still works.

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::kdf;
use wraith_noise::{
    FinalHello, Initiator, InitiatorHello, MAC1_BYTES, MAC2_BYTES, Mac1Key, Responder,
    ResponderHello, SecretIdentity, Suite, h1_id,
};

use crate::input::Input;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let (alice, bob) = (SecretIdentity::from_seed([2; 32]), SecretIdentity::from_seed([3; 32]));
    let hello = InitiatorHello {
        suites: Suite::ALL,
        aes_hardware: input.byte() & 1 != 0,
        unix_seconds: input.u64(),
    };
    let len = usize::from(input.u16());
    let (mut initiator, h1) =
        Initiator::start(&alice, bob.node_id(), &hello, len, &mut rng).expect("a valid NodeId");
    let mac1 = Mac1Key::for_responder(bob.node_id());
    let first = kdf::derive("wraith/1 gate 1", bob.node_id().as_bytes());
    // mac2 is no part of the handshake, only a reason to answer.
    for damaged in damage(&mut input, &h1, first).iter().filter(|d| h1_id(d) != h1_id(&h1)) {
        assert!(Responder::read_h1(&bob, &mac1, damaged, &mut rng).is_err());
    }
    let (mut responder, heard) =
        Responder::read_h1(&bob, &mac1, &h1, &mut rng).expect("it is the true one");
    assert_eq!(heard, hello);

    let len = usize::from(input.u16());
    assert_eq!(initiator.read_cookie(input.bytes(len)), None);
    let answer = ResponderHello {
        suite: Suite::ChaCha20Poly1305,
        observed: SocketAddr::from(([127, 0, 0, 1], input.u16())),
        parameters: input.parameters(),
    };
    let h2 = responder.write_h2(&answer, usize::from(input.u16()));
    assert!(h2.len() <= h1.len(), "no amplification");
    let h1_hash = kdf::hash(&h1[..h1.len() - MAC1_BYTES - MAC2_BYTES]);
    let second = kdf::derive_parts("wraith/1 gate 2", &[bob.node_id().as_bytes(), &h1_hash]);
    for damaged in damage(&mut input, &h2, second) {
        assert!(initiator.read_h2(&damaged).is_err());
    }
    assert_eq!(initiator.read_h2(&h2), Ok(answer));

    let last = FinalHello { node_id: alice.node_id(), parameters: input.parameters() };
    let (h3, keys) = initiator.write_h3(&last, usize::from(input.u16()));
    let (id, h2_hash) = (bob.node_id(), kdf::hash(&h2));
    let third = kdf::derive_parts("wraith/1 gate 3", &[id.as_bytes(), &h1_hash, &h2_hash]);
    for damaged in damage(&mut input, &h3, third) {
        assert!(responder.read_h3(&damaged).is_err());
    }
    let (heard, peer_keys) = responder.read_h3(&h3).expect("it is the true one");
    assert_eq!(heard, last);
    assert!(keys.send == peer_keys.recv && keys.recv == peer_keys.send);
    assert!(responder.read_h3(&h3).is_err(), "keys are given out once");
}

/// Two damaged forms of a datagram: as it is, and with a mac1 that is right again.
fn damage(input: &mut Input<'_>, datagram: &[u8], mac1: [u8; 32]) -> Vec<Vec<u8>> {
    let mut bytes = datagram.to_vec();
    let (at, with) = (usize::from(input.u16()), input.byte());
    match with {
        0..8 => bytes.truncate(at % bytes.len()),
        8..16 => bytes.extend_from_slice(input.bytes(at % 400)),
        _ => {
            let end = bytes.len() - MAC1_BYTES;
            bytes[at % end] ^= with;
        }
    }
    let mut with_mac1 = bytes.clone();
    if let Some((body, mac1_bytes)) = with_mac1.split_last_chunk_mut::<MAC1_BYTES>() {
        mac1_bytes.copy_from_slice(&kdf::keyed(&mac1, body)[..MAC1_BYTES]);
    }
    [bytes, with_mac1].into_iter().filter(|damaged| *damaged != datagram).collect()
}
