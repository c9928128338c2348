//! The ephemeral key of one first handshake message (H1) cannot begin another handshake, in any
//! encoding (SPEC §3.4).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{Endpoint, PathAddr, Time, WallClock};
use wraith_crypto::elligator::{decode, encode};
use wraith_crypto::identity::SecretIdentity;
use wraith_noise::{EphemeralKey, Initiator, InitiatorHello, Policy};

use crate::half_open::{
    H1, access_key, answer, computed_more, h1, responder, responder_id, rewrite_mac1s,
};
use crate::pair::ip;

/// Returns an authentic H1 with `ephemeral`; they differ by seed.
fn h1_with(ephemeral: &EphemeralKey, seed: u8) -> H1 {
    dated(ephemeral, seed, 0)
}

/// Returns an authentic H1 of an initiator with this clock.
fn dated(ephemeral: &EphemeralKey, seed: u8, unix_seconds: u64) -> H1 {
    let us = SecretIdentity::from_seed([1; 32]);
    let hello = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds,
    };
    let mut rng = ChaCha20Rng::from_seed([seed; 32]);
    let started = Initiator::start(&us, responder_id(), &access_key(), ephemeral, &hello, &mut rng);
    started.expect("a valid NodeId").1.to_vec()
}

/// Returns copies of `h1` with other representatives of the same key: other spare bits, and the
/// other one of the key's two roots. Their mac1 values are valid, which requires the access key.
fn reencoded(h1: &H1) -> Vec<H1> {
    let representative: [u8; 32] = *h1[0].first_chunk().expect("it is longer");
    let key = decode(&representative);
    let tweaks = [0, 0x40, 0x80, 0xc0].into_iter().flat_map(|bits| [bits, bits | 1]);
    let others = tweaks.filter_map(|tweak| encode(&key, tweak)).filter(|r| *r != representative);
    let of = |other: [u8; 32]| {
        assert_eq!(decode(&other), key);
        let mut h1 = h1.clone();
        h1[0][..32].copy_from_slice(&other);
        rewrite_mac1s(&mut h1);
        h1
    };
    others.map(of).collect()
}

fn from(i: usize) -> PathAddr {
    ip([192, 0, 2, 1 + i as u8], 1)
}

#[test]
fn the_same_key_in_other_bits_gets_silence_and_no_curve_work() {
    let mut pair = [responder(|_| {}), responder(|_| {})];
    let h1 = h1(10);
    let others = reencoded(&h1);
    assert_eq!(others.len(), 7, "four times two, and one is the true one");
    for endpoint in &mut pair {
        assert!(answer(endpoint, Time::ZERO, from(0), &h1).is_some());
    }
    let [responder, twin] = &mut pair;
    for (i, other) in others.iter().enumerate() {
        assert!(answer(responder, Time::ZERO, from(1 + i), other).is_none());
    }
    assert!(!computed_more(responder, twin));
}

#[test]
fn a_reused_ephemeral_key_is_answered_once() {
    let ephemeral = EphemeralKey::generate(&mut ChaCha20Rng::from_seed([1; 32]));
    let mut responder = responder(|_| {});
    let answered = |endpoint: &mut Endpoint, seed: u8| {
        answer(endpoint, Time::ZERO, from(seed.into()), &h1_with(&ephemeral, seed)).is_some()
    };
    assert!(answered(&mut responder, 1));
    assert!(!answered(&mut responder, 2) && !answered(&mut responder, 3));
}

/// Returns an authentic H1 with a key of its own, of an initiator with this clock.
fn h1_at(seed: u8, unix_seconds: u64) -> H1 {
    dated(&EphemeralKey::generate(&mut ChaCha20Rng::from_seed([seed; 32])), seed, unix_seconds)
}

const CLOCKS: [u64; 5] = [0, 1_800_000_000, 1 << 31, 1 << 32, u64::MAX];

#[test]
fn under_new_access_keys_an_initiator_may_have_any_clock_and_a_replay_gets_silence() {
    for ours in CLOCKS {
        let mut responder = responder(|config| {
            config.access_keys_are_new = true;
            config.wall_clock = WallClock::starting_at(ours);
        });
        let much_later = Time::ZERO + Duration::from_secs(366 * 24 * 3600);
        for (i, theirs) in CLOCKS.into_iter().enumerate() {
            let h1 = h1_at(i as u8, theirs);
            assert!(answer(&mut responder, Time::ZERO, from(i), &h1).is_some());
            assert!(answer(&mut responder, much_later, from(i), &h1).is_none());
            assert!(answer(&mut responder, much_later, from(100 + i), &h1).is_none());
        }
    }
}

#[test]
fn under_access_keys_with_a_past_clocks_differ_by_at_most_ninety_seconds() {
    let clock = Arc::new(AtomicU64::new(1_800_000_000));
    let read = Arc::clone(&clock);
    let mut responder = responder(|config| {
        config.wall_clock = WallClock::new(move |_| read.load(Ordering::Relaxed));
    });
    let mut seed = 0;
    let mut is_answered = |theirs| {
        seed += 1;
        answer(&mut responder, Time::ZERO, from(seed.into()), &h1_at(seed, theirs)).is_some()
    };
    // The clock is read for each H1: a step takes effect at once, without a restart.
    for ours in [1_800_000_000, 1_800_086_400, 1_800_000_000, 1 << 32, 90] {
        clock.store(ours, Ordering::Relaxed);
        assert!(is_answered(ours + 90) && is_answered(ours - 90));
        assert!(!is_answered(ours + 91) && !is_answered(ours.wrapping_sub(91)));
    }
}
