//! The handshake of two parties in memory, all three datagrams, and the key agreement in it.

use std::hint::black_box;
use std::net::SocketAddr;

use criterion::Throughput;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::agree::{x25519, x25519_public};
use wraith_noise::{
    FinalHello, Initiator, InitiatorHello, Mac1Key, Parameters, Responder, ResponderHello,
    SecretIdentity, Suite,
};

use crate::Criterion;

/// Both identities, three datagrams of padding and payload, keys on both sides.
fn handshake(rng: &mut ChaCha20Rng) {
    let (alice, bob) = (SecretIdentity::from_seed([1; 32]), SecretIdentity::from_seed([2; 32]));
    let hello =
        InitiatorHello { suites: Suite::ALL, aes_hardware: true, unix_seconds: 1_700_000_000 };
    let answer = ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: SocketAddr::from(([192, 0, 2, 1], 4711)),
        parameters: Parameters::default(),
    };
    let last = FinalHello { node_id: alice.node_id(), parameters: Parameters::default() };
    let (mut initiator, h1) =
        Initiator::start(&alice, bob.node_id(), &hello, 1000, rng).expect("a valid NodeId");
    let mac1 = Mac1Key::for_responder(bob.node_id());
    assert!(mac1.verifies(&h1));
    let (mut responder, _) = Responder::read_h1(&bob, &mac1, &h1, rng).expect("authentic");
    let h2 = responder.write_h2(&answer, 500);
    initiator.read_h2(&h2).expect("authentic");
    let (h3, keys) = initiator.write_h3(&last, 700);
    let (_, peer_keys) = responder.read_h3(&h3).expect("authentic");
    assert_eq!(keys.send, peer_keys.recv);
}

pub(crate) fn rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handshake");
    group.throughput(Throughput::Elements(1));
    let mut rng = ChaCha20Rng::from_seed([7; 32]);
    group.bench_function("both_sides", |b| b.iter(|| handshake(black_box(&mut rng))));
    let public = x25519_public(&[5; 32]);
    group.bench_function("x25519", |b| {
        b.iter(|| x25519(black_box(&[6; 32]), black_box(&public)).expect("a good point"));
    });
    group.finish();
}
