//! Both sides of a handshake, with an on-path attacker that damages the datagrams of both. The
//! attacker also has an invitation (the key that permits a handshake).
//!
//! Invariant: a damaged datagram is refused and changes nothing, so the genuine one after it still
//! works.

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::kdf;
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, Initiator, InitiatorHello, MAC1_BYTES, MAC2_BYTES,
    PendingH1, Policy, Responder, ResponderHello, SecretIdentity, Suite, h1_id,
};

use crate::input::Input;

const CAPABILITY: [u8; 16] = [7; 16];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(input.u16()));
    let (alice, bob) = (SecretIdentity::from_seed([2; 32]), SecretIdentity::from_seed([3; 32]));
    let access_key = AccessKey::of_ticket(&CAPABILITY, bob.node_id());
    let [ours, theirs] = [(); 2].map(|()| EphemeralKey::generate(&mut rng));
    let hello = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: input.byte() & 1 != 0,
        unix_seconds: input.u64(),
    };
    let (mut initiator, h1) =
        Initiator::start(&alice, bob.node_id(), &access_key, &ours, &hello, &mut rng)
            .expect("a valid NodeId");
    let read = |h1: [&[u8]; 2], rng: &mut ChaCha20Rng| {
        let first = PendingH1::new(&access_key, h1[0])?;
        Responder::read_h1(&bob, &first, h1[1], &theirs, rng)
    };
    let [first, second] = mac1_keys_of_h1(&bob, &h1[0]);
    // mac2 is not part of the handshake; it only gives a reason to answer.
    for damaged in damage(&mut input, &h1[0], first).iter().filter(|d| h1_id(d) != h1_id(&h1[0])) {
        // An attacker with the access key can compute a matching second datagram.
        let mut fitting = h1[1].clone();
        write_mac1(&mut fitting, &mac1_keys_of_h1(&bob, damaged)[1]);
        for second in [&h1[1], &fitting] {
            assert!(read([damaged, second], &mut rng).is_err());
        }
    }
    for damaged in damage(&mut input, &h1[1], second) {
        assert!(read([&h1[0], &damaged], &mut rng).is_err());
    }
    let (mut responder, heard) = read([&h1[0], &h1[1]], &mut rng).expect("it is the true one");
    assert_eq!(heard, hello);

    let len = usize::from(input.u16());
    assert_eq!(initiator.read_cookie(input.bytes(len)), None);
    let answer = ResponderHello {
        suite: Suite::ChaCha20Poly1305,
        observed: SocketAddr::from(([127, 0, 0, 1], input.u16())),
        parameters: input.parameters(),
    };
    let h2 = responder.write_h2(&answer, &mut rng).expect("a valid key");
    assert!(h2.iter().zip(&h1).all(|(h2, h1)| h2.len() <= h1.len()), "no amplification");
    for part in &h2 {
        for damaged in damage(&mut input, part, [0; 32]) {
            assert!(initiator.read_h2(&damaged).is_err());
        }
    }
    assert_eq!(initiator.read_h2(&h2[1]), Ok(None));
    assert_eq!(initiator.read_h2(&h2[0]), Ok(Some(answer)));

    let last = FinalHello { node_id: alice.node_id(), parameters: input.parameters() };
    let (h3, keys) = initiator.write_h3(&last, &mut rng);
    for damaged in damage(&mut input, &h3, [0; 32]) {
        assert!(responder.read_h3(&damaged).is_err());
    }
    let (heard, peer_keys) = responder.read_h3(&h3).expect("it is the true one");
    assert_eq!(heard, last);
    assert!(keys.send == peer_keys.recv && keys.recv == peer_keys.send);
    assert!(responder.read_h3(&h3).is_err(), "keys are given out once");
}

/// Derives the mac1 keys of an H1 with this first datagram, as a holder of the access key can.
fn mac1_keys_of_h1(bob: &SecretIdentity, first: &[u8]) -> [[u8; 32]; 2] {
    let bob = bob.node_id();
    let parts: [&[u8]; 2] = [&CAPABILITY, bob.as_bytes()];
    let access_key = kdf::derive_parts("wraith/2 door of a ticket", &parts);
    let message = &first[..first.len().saturating_sub(MAC1_BYTES + MAC2_BYTES)];
    let parts: [&[u8]; 2] = [&access_key, &kdf::hash(message)];
    [
        kdf::derive("wraith/2 gate 1", &access_key),
        kdf::derive_parts("wraith/2 gate 1, second datagram", &parts),
    ]
}

fn write_mac1(datagram: &mut [u8], key: &[u8; 32]) {
    if let Some((body, mac1)) = datagram.split_last_chunk_mut::<MAC1_BYTES>() {
        mac1.copy_from_slice(&kdf::keyed(key, &kdf::hash(body))[..MAC1_BYTES]);
    }
}

/// Returns two damaged forms of a datagram: one as it is, and one with a mac1 that is valid under
/// `key`.
fn damage(input: &mut Input<'_>, datagram: &[u8], key: [u8; 32]) -> Vec<Vec<u8>> {
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
    write_mac1(&mut with_mac1, &key);
    [bytes, with_mac1].into_iter().filter(|damaged| *damaged != datagram).collect()
}
