//! The handshake of two parties in memory, with all five datagrams. Also key agreement: by X25519,
//! with keys that look random, and by ML-KEM.

use std::hint::black_box;
use std::net::SocketAddr;

use criterion::Throughput;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::agree::{x25519, x25519_public};
use wraith_crypto::elligator::{self, EphemeralKey};
use wraith_crypto::ml_kem_768::{self as kem, DecapsulationKey};
use wraith_noise::{
    AccessKey, FinalHello, Initiator, InitiatorHello, Parameters, PendingH1, Policy, Responder,
    ResponderHello, SecretIdentity, Suite,
};

use crate::Criterion;

/// Both identities, five datagrams with padding and payload, and keys on both sides.
fn handshake(rng: &mut ChaCha20Rng) {
    let (alice, bob) = (SecretIdentity::from_seed([1; 32]), SecretIdentity::from_seed([2; 32]));
    let hello = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds: 1_700_000_000,
    };
    let answer = ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: SocketAddr::from(([192, 0, 2, 1], 4711)),
        parameters: Parameters::default(),
    };
    let last = FinalHello { node_id: alice.node_id(), parameters: Parameters::default() };
    let access_key = AccessKey::of_ticket(&[3; 16], bob.node_id());
    let [ours, theirs] = [(); 2].map(|()| EphemeralKey::generate(rng));
    let (mut initiator, h1) =
        Initiator::start(&alice, bob.node_id(), &access_key, &ours, &hello, rng)
            .expect("a valid NodeId");
    let first = PendingH1::new(&access_key, &h1[0]).expect("it is invited");
    let (mut responder, _) =
        Responder::read_h1(&bob, &first, &h1[1], &theirs, rng).expect("authentic");
    let h2 = responder.write_h2(&answer, rng).expect("a valid key");
    assert_eq!(initiator.read_h2(&h2[0]), Ok(None));
    initiator.read_h2(&h2[1]).expect("authentic").expect("both datagrams");
    let (h3, keys) = initiator.write_h3(&last, rng);
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
    group.bench_function("elligator_keypair", |b| b.iter(|| EphemeralKey::generate(&mut rng)));
    group.bench_function("elligator_decode", |b| {
        b.iter(|| elligator::decode(black_box(&[7; 32])));
    });
    group.bench_function("ml_kem_keypair", |b| {
        b.iter(|| DecapsulationKey::from_seed(black_box(&[8; 64])).encapsulation_key());
    });
    let key = DecapsulationKey::from_seed(&[8; 64]);
    let public = key.encapsulation_key();
    group.bench_function("ml_kem_encapsulate", |b| {
        b.iter(|| kem::encapsulate(black_box(&public), &[9; 32]).expect("a valid key"));
    });
    let (ciphertext, secret) = kem::encapsulate(&public, &[9; 32]).expect("a valid key");
    assert_eq!(key.decapsulate(&ciphertext), secret);
    group.bench_function("ml_kem_decapsulate", |b| {
        b.iter(|| key.decapsulate(black_box(&ciphertext)));
    });
    group.finish();
}
