//! Memory that a handshake and its packets give back holds no secret of theirs any more.

use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_crypto::hash::Sha256;
use wraith_crypto::{agree, kdf};
use wraith_noise::*;
use zeroize::ZeroizeOnDrop;

use crate::memory::given_back;

fn identities() -> [SecretIdentity; 2] {
    [0xa, 0xb].map(|byte| SecretIdentity::from_seed([byte; 32]))
}

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

fn hmac(key: &[u8; 32], data: &[u8]) -> [u8; 32] {
    let keyed = |pad: u8, parts: &[u8]| {
        let mut hash = Sha256::new();
        hash.update(&std::array::from_fn::<u8, 64, _>(|i| key.get(i).unwrap_or(&0) ^ pad));
        hash.update(parts);
        hash.finish()
    };
    keyed(0x5c, &keyed(0x36, data))
}

/// Noise's `HKDF` with two outputs.
fn hkdf(chaining_key: &[u8; 32], input: &[u8]) -> [[u8; 32]; 2] {
    let key = hmac(chaining_key, input);
    let first = hmac(&key, &[1]);
    let mut second = [0; 33];
    second[..32].copy_from_slice(&first);
    second[32] = 2;
    [first, hmac(&key, &second)]
}

/// Every secret of a handshake with ephemeral keys from `rng(1)` and `rng(2)`, made from the definition of Noise XK: those
/// put in, what both sides agree on, chaining keys and message keys, and what `Split()` and SPEC §3.5 make of them. The
/// initiator's packet secret is the last.
fn secrets() -> Vec<[u8; 32]> {
    let statics = identities().map(|identity| *identity.noise_static());
    let ephemerals = [1, 2].map(|seed| {
        let mut secret = [0; 32];
        rng(seed).fill_bytes(&mut secret);
        secret
    });
    let agreed = |ours: [u8; 32], theirs: [u8; 32]| {
        *agree::x25519(&ours, &agree::x25519_public(&theirs)).unwrap()
    };
    let mut secrets = [statics, ephemerals].concat();
    let mut chaining_key = *b"Noise_XK_25519_ChaChaPoly_SHA256";
    for shared in [
        agreed(ephemerals[0], statics[1]),
        agreed(ephemerals[0], ephemerals[1]),
        agreed(statics[0], ephemerals[1]),
    ] {
        let mixed = hkdf(&chaining_key, &shared);
        secrets.push(shared);
        secrets.extend(mixed);
        chaining_key = mixed[0];
    }
    for split in hkdf(&chaining_key, &[]).into_iter().rev() {
        let secret = kdf::derive("wraith/1 packet secret", &split);
        let next = kdf::derive("wraith/1 next packet secret", &secret);
        secrets.push(split);
        secrets.extend([secret, next].map(|secret| kdf::derive("wraith/1 packet key", &secret)));
        for context in
            ["wraith/1 packet number mask", "wraith/1 connection ID mask", "wraith/1 connection ID"]
        {
            secrets.push(kdf::derive(context, &split));
        }
        secrets.extend([next, secret]);
    }
    secrets
}

/// A handshake, whose states lie on the heap as an endpoint's do, with a datagram on the way that is not the answer.
fn shake_hands() -> [SessionKeys; 2] {
    let [alice, bob] = identities();
    let hello =
        InitiatorHello { suites: Suite::ALL, aes_hardware: true, unix_seconds: 1_700_000_000 };
    let (initiator, h1) =
        Initiator::start(&alice, bob.node_id(), &hello, 900, &mut rng(1)).unwrap();
    let mut initiator = Box::new(initiator);
    let mac1 = Mac1Key::for_responder(bob.node_id());
    let (responder, _) = Responder::read_h1(&bob, &mac1, &h1, &mut rng(2)).unwrap();
    let mut responder = Box::new(responder);
    let hello = ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: "192.0.2.1:4711".parse().unwrap(),
        parameters: Parameters::default(),
    };
    let h2 = responder.write_h2(&hello, 900);
    assert!(initiator.read_h2(&h1).is_err());
    drop(black_box(Box::new(initiator.read_h2(&h2).unwrap())));
    let hello = FinalHello { node_id: alice.node_id(), parameters: Parameters::default() };
    let (h3, keys) = initiator.write_h3(&hello, 700);
    let (_, peer_keys) = responder.read_h3(&h3).unwrap();
    [keys, peer_keys]
}

/// Packets one way, in two key phases.
fn exchange(suite: Suite, [keys, peer_keys]: &[SessionKeys; 2]) {
    let mut sealer = Box::new(Sealer::new(suite, &keys.send));
    let mut opener = Box::new(Opener::new(suite, &peer_keys.recv));
    for pn in 0..2 {
        let mut packet = vec![0; 1400 + PACKET_OVERHEAD];
        sealer.seal(pn, &mut packet);
        opener.open(&mut packet).unwrap();
        sealer.advance_phase();
    }
    opener.forget_previous_phase();
}

#[test]
fn no_secret_is_left_in_memory_that_is_given_back() {
    let secrets = secrets();
    let [keys, _] = shake_hands();
    assert_eq!(secrets.last(), Some(&keys.send.secret), "these are the secrets of this handshake");
    let left = given_back(&secrets, || {
        let keys = black_box(Box::new(shake_hands()));
        exchange(Suite::Aes256Gcm, &keys);
        exchange(Suite::ChaCha20Poly1305, &keys);
    });
    assert_eq!(left, 0);
}

#[test]
fn what_holds_a_secret_wipes_it() {
    fn wipes<T: ZeroizeOnDrop>() {}
    wipes::<SecretIdentity>();
    wipes::<SessionKeys>();
    wipes::<DirectionKeys>();
    wipes::<Sealer>();
    wipes::<Opener>();
    wipes::<Initiator>();
    wipes::<Responder>();
    wipes::<Mac1Key>();
    wipes::<Cookie>();
    wipes::<CookieSecret>();
}
