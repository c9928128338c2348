//! Memory freed by a handshake or by packet protection must not contain its secrets.

use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_crypto::hash::Sha256;
use wraith_crypto::ml_kem_768 as kem;
use wraith_crypto::{agree, kdf};
use wraith_noise::*;
use zeroize::ZeroizeOnDrop;

use crate::memory::found_in_freed_memory;

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
pub(crate) fn hkdf(chaining_key: &[u8; 32], input: &[u8]) -> [[u8; 32]; 2] {
    let key = hmac(chaining_key, input);
    let first = hmac(&key, &[1]);
    let mut second = [0; 33];
    second[..32].copy_from_slice(&first);
    second[32] = 2;
    [first, hmac(&key, &second)]
}

fn access_key() -> AccessKey {
    AccessKey::of_ticket(&[0xd; 16], identities()[1].node_id())
}

/// Returns every secret of a handshake with ephemeral keys and seeds from `rng(1)` and `rng(2)`,
/// computed from the definition of Noise XKhfs:
///
/// - the inputs and the shared secrets,
/// - chaining keys and message keys,
/// - the values derived from them by `Split()` and SPEC §3.5.
///
/// The initiator's packet secret is the last.
fn secrets() -> Vec<[u8; 32]> {
    let statics = identities().map(|identity| *identity.noise_static());
    let [mut ours, mut theirs] = [1, 2].map(rng);
    let ephemerals = [&mut ours, &mut theirs].map(|rng| *EphemeralKey::generate(rng).secret());
    let (mut key_seed, mut seed) = ([0; 64], [0; 32]);
    ours.fill_bytes(&mut key_seed);
    theirs.fill_bytes(&mut seed);
    let public = kem::DecapsulationKey::from_seed(&key_seed).encapsulation_key();
    let (_, encapsulated) = kem::encapsulate(&public, &seed).unwrap();
    let agreed = |ours: [u8; 32], theirs: [u8; 32]| {
        *agree::x25519(&ours, &agree::x25519_public(&theirs)).unwrap()
    };
    let mut secrets = [statics, ephemerals].concat();
    secrets.extend([*key_seed.first_chunk().unwrap(), *key_seed.last_chunk().unwrap(), seed]);
    let mut chaining_key = kdf_name();
    for shared in [
        agreed(ephemerals[0], statics[1]),
        agreed(ephemerals[0], ephemerals[1]),
        *encapsulated,
        agreed(statics[0], ephemerals[1]),
    ] {
        let mixed = hkdf(&chaining_key, &shared);
        secrets.push(shared);
        secrets.extend(mixed);
        chaining_key = mixed[0];
        // The inputs of the mac1 keys.
        secrets.extend(hkdf(&chaining_key, &[]));
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

/// Returns the first chaining key: the hash of the protocol name, which is longer than a hash.
fn kdf_name() -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256");
    hash.finish()
}

/// Performs a handshake, including one datagram that is not the answer. Its states lie on the heap,
/// as in an endpoint.
fn shake_hands() -> [SessionKeys; 2] {
    let [alice, bob] = identities();
    let [mut ours, mut theirs] = [1, 2].map(rng);
    let ephemerals = [&mut ours, &mut theirs].map(|rng| Box::new(EphemeralKey::generate(rng)));
    let hello = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds: 1_700_000_000,
    };
    let (initiator, h1) =
        Initiator::start(&alice, bob.node_id(), &access_key(), &ephemerals[0], &hello, &mut ours)
            .unwrap();
    let mut initiator = Box::new(initiator);
    let first = PendingH1::new(&access_key(), &h1[0]).unwrap();
    let (responder, _) =
        Responder::read_h1(&bob, &first, &h1[1], &ephemerals[1], &mut theirs).unwrap();
    let mut responder = Box::new(responder);
    let hello = ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: "192.0.2.1:4711".parse().unwrap(),
        parameters: Parameters::default(),
    };
    let h2 = responder.write_h2(&hello, &mut theirs).unwrap();
    assert!(initiator.read_h2(&h1[0]).is_err());
    assert_eq!(initiator.read_h2(&h2[0]), Ok(None));
    drop(black_box(Box::new(initiator.read_h2(&h2[1]).unwrap())));
    let hello = FinalHello { node_id: alice.node_id(), parameters: Parameters::default() };
    let (h3, keys) = initiator.write_h3(&hello, &mut ours);
    let (_, peer_keys) = responder.read_h3(&h3).unwrap();
    [keys, peer_keys]
}

/// Sends packets one way, in two key phases.
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
    let left = found_in_freed_memory(&secrets, || {
        let keys = black_box(Box::new(shake_hands()));
        for suite in Suite::ALL.into_iter().filter(|suite| suite.is_built()) {
            exchange(suite, &keys);
        }
    });
    assert_eq!(left, 0);
}

/// Returns every secret of a ratchet with `rng(3)` and `rng(4)`: its inputs, its shared secret, and
/// the keys derived from it for a direction with the secret `[5; 32]`. The shared secret is the
/// last.
fn secrets_of_a_ratchet() -> Vec<[u8; 32]> {
    let mut drawn = [[0; 32]; 5];
    let (ours, theirs) = drawn.split_at_mut(3);
    rng(3).fill_bytes(ours.as_flattened_mut());
    rng(4).fill_bytes(theirs.as_flattened_mut());
    let [share, d, z, their_share, seed] = drawn;
    let public = kem::DecapsulationKey::from_seed(&[d, z].concat().try_into().unwrap());
    let (ciphertext, encapsulated) = kem::encapsulate(&public.encapsulation_key(), &seed).unwrap();
    let shares = [share, their_share].map(|share| agree::x25519_public(&share));
    let dh = agree::x25519(&share, &shares[1]).unwrap();
    let key = public.encapsulation_key();
    let parts: [&[u8]; 6] = [&*dh, &*encapsulated, &shares[0], &key, &shares[1], &ciphertext];
    let agreed = kdf::derive_parts("wraith/2 ratchet", &parts);
    let next = |secret: [u8; 32]| kdf::derive("wraith/1 next packet secret", &secret);
    let key = |secret: &[u8; 32]| kdf::derive("wraith/1 packet key", secret);
    let chain = [[5; 32], next([5; 32]), next(next([5; 32]))];
    let parts: [&[u8]; 2] = [&chain[2], &agreed];
    let ratcheted = kdf::derive_parts("wraith/2 ratcheted packet secret", &parts);
    let keys = [key(&chain[0]), key(&chain[1]), key(&ratcheted)];
    let rest = [*dh, *encapsulated, chain[1], chain[2], ratcheted, agreed];
    [&drawn[..], &keys, &rest].concat()
}

#[test]
fn no_secret_of_a_ratchet_is_left_in_memory_that_is_given_back() {
    fn ratchet() -> [u8; 32] {
        let ratchet = Box::new(Ratchet::begin(&mut rng(3)));
        let (response, theirs) = respond_to_ratchet(ratchet.request(), &mut rng(4)).unwrap();
        let agreed = black_box(Box::new(ratchet.finish(&response).unwrap()));
        assert_eq!(**agreed, *theirs);
        let keys = Box::new(DirectionKeys {
            secret: [5; 32],
            pn_mask: [6; 32],
            cid: [7; 8],
            cid_mask: [8; 32],
        });
        for suite in Suite::ALL.into_iter().filter(|suite| suite.is_built()) {
            let mut sealer = Box::new(Sealer::new(suite, &keys));
            let mut opener = Box::new(Opener::new(suite, &keys));
            sealer.ratchet(&agreed);
            opener.ratchet(&agreed);
            for pn in 0..3 {
                let mut packet = vec![0; 100 + PACKET_OVERHEAD];
                sealer.seal(pn, &mut packet);
                opener.open(&mut packet).unwrap();
                sealer.advance_phase();
            }
        }
        **agreed
    }
    let secrets = secrets_of_a_ratchet();
    assert_eq!(secrets.last(), Some(&ratchet()), "these are the secrets of this ratchet");
    let left = found_in_freed_memory(&secrets, || {
        black_box(ratchet());
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
    wipes::<Ratchet>();
    wipes::<Initiator>();
    wipes::<Responder>();
    wipes::<AccessKey>();
    wipes::<EphemeralKey>();
    wipes::<Cookie>();
    wipes::<CookieSecret>();
}
