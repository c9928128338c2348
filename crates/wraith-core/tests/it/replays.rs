//! The ephemeral key of one first handshake message (H1) cannot begin another handshake, in any
//! encoding (SPEC §3.4).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{
    AccessKey, Endpoint, HandshakeLog, LogResult, PathAddr, SharedHandshakeLog, Time, WallClock,
};
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
            config.door.access_keys_are_new = true;
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

/// A handshake log in memory, shared by the endpoints of several processes.
#[derive(Default)]
struct Log {
    ids: Mutex<HashSet<[u8; 16]>>,
    is_incomplete: AtomicBool,
}

impl HandshakeLog for Log {
    fn record(&self, _: &AccessKey, id: &[u8; 16]) -> LogResult {
        match self.ids.lock().unwrap().insert(*id) {
            false => LogResult::Known,
            true if self.is_incomplete.load(Ordering::Relaxed) => LogResult::Unknown,
            true => LogResult::New,
        }
    }
}

/// Returns the responder of a new process with this log, under an access key with a past.
fn process(log: &Arc<Log>, ours: u64) -> Endpoint {
    responder(|config| {
        config.door.handshake_log = SharedHandshakeLog::new(Arc::clone(log) as _);
        config.wall_clock = WallClock::starting_at(ours);
    })
}

#[test]
fn with_a_complete_log_an_initiator_may_have_any_clock_and_a_later_process_stays_silent() {
    let log = Arc::new(Log::default());
    let mut replays = Vec::new();
    for (i, theirs) in CLOCKS.into_iter().enumerate() {
        let h1 = h1_at(i as u8, theirs);
        let mut endpoint = process(&log, 1_800_000_000);
        assert!(answer(&mut endpoint, Time::ZERO, from(i), &h1).is_some());
        assert!(endpoint.poll_clock_difference().is_none());
        replays.push(h1);
    }
    // The clock of the later process shows the time of the replay.
    for (i, (h1, ours)) in replays.iter().zip(CLOCKS).enumerate() {
        let mut later = process(&log, ours);
        assert!(answer(&mut later, Time::ZERO, from(i), h1).is_none());
        assert!(answer(&mut later, Time::ZERO, from(100 + i), h1).is_none(), "a copy of it");
        assert!(later.poll_clock_difference().is_none(), "a replay says nothing about clocks");
    }
}

#[test]
fn without_a_complete_log_the_time_decides_and_the_difference_is_reported_once() {
    let log = Arc::new(Log::default());
    log.is_incomplete.store(true, Ordering::Relaxed);
    let mut endpoint = process(&log, 1_800_000_000);
    for (i, seconds) in [91_i64, -91, 10_800, -1_800_000_000].into_iter().enumerate() {
        let h1 = h1_at(i as u8, 1_800_000_000_u64.wrapping_add_signed(seconds));
        for copy in [i, i, 100 + i] {
            assert!(answer(&mut endpoint, Time::ZERO, from(copy), &h1).is_none());
        }
        let reported = endpoint.poll_clock_difference().expect("a report");
        assert_eq!(reported.seconds, seconds);
        assert!(reported.access_key == access_key());
        assert!(endpoint.poll_clock_difference().is_none());
    }
    let h1 = h1_at(50, 1_800_000_090);
    assert!(answer(&mut endpoint, Time::ZERO, from(50), &h1).is_some());
}

#[test]
fn unread_reports_are_bounded() {
    let mut endpoint = responder(|config| {
        config.wall_clock = WallClock::starting_at(1_800_000_000);
    });
    for i in 0..40 {
        let late = Time::ZERO + Duration::from_secs(20 * u64::from(i));
        assert!(answer(&mut endpoint, late, from(i.into()), &h1_at(i, 0)).is_none());
    }
    let mut reports = 0;
    while endpoint.poll_clock_difference().is_some() {
        reports += 1;
    }
    assert_eq!(reports, 16);
}

/// Strangers have the public access key, and could fill the log.
#[test]
fn handshakes_under_the_public_access_key_are_not_logged() {
    let (log, public) = (Arc::new(Log::default()), AccessKey::public(responder_id()));
    let mut endpoint = responder(|config| {
        config.door.access_keys = vec![public.clone()];
        config.door.handshake_log = SharedHandshakeLog::new(Arc::clone(&log) as _);
        config.wall_clock = WallClock::starting_at(1_800_000_000);
    });
    let us = SecretIdentity::from_seed([1; 32]);
    let ephemeral = EphemeralKey::generate(&mut ChaCha20Rng::from_seed([1; 32]));
    let suites = Policy::Default.packet_suites();
    let hello = InitiatorHello { suites, aes_hardware: true, unix_seconds: 1_800_000_000 };
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let (_, h1) =
        Initiator::start(&us, responder_id(), &public, &ephemeral, &hello, &mut rng).unwrap();
    assert!(answer(&mut endpoint, Time::ZERO, from(1), &h1.to_vec()).is_some());
    assert!(log.ids.lock().unwrap().is_empty());
}
