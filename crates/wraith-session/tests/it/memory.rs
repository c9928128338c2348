//! Memory and allocations of sessions: a server holds thousands of idle sessions, and a message
//! should allocate no more than its bytes.

use std::time::Duration;

use wraith_session::ratchet::{
    COMPLETE_CHAINS_MAX, FORGOTTEN_CHAINS_MAX, MISSING_CHAINS_MAX, SKIPPED_MAX,
};
use wraith_session::{SESSION_WINDOW, Session, Suite};

use crate::counting::{allocations, bytes_held};
use crate::ratchet_support::*;
use crate::support::rng;

/// Returns the bytes that `make` leaves allocated, including its boxed result.
fn held<T>(make: impl FnOnce() -> T) -> (Box<T>, i64) {
    let before = bytes_held();
    let made = Box::new(make());
    (made, bytes_held() - before)
}

fn pair(suite: Suite) -> [Session; 2] {
    [Session::new(suite, &[1; 32], &[2; 32]), Session::new(suite, &[2; 32], &[1; 32])]
}

#[test]
fn an_idle_session_holds_less_than_a_kibibyte() {
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let (_session, bytes) = held(|| {
            let [mut one, mut two] = pair(suite);
            two.set_time(Duration::from_secs(1));
            for _ in 0..10 {
                let mut message = Vec::new();
                one.seal(b"", b"text", &mut message).unwrap();
                two.open(b"", &message, &mut Vec::new()).unwrap();
                two.seal(b"", b"text", &mut Vec::new()).unwrap();
            }
            two.set_time(Duration::from_secs(11));
            two
        });
        println!("{}: {bytes} bytes", suite.name());
        assert!((500..1024).contains(&bytes), "{suite:?}: {bytes}");
    }
}

#[test]
fn an_idle_ratchet_holds_less_than_four_and_a_half_kibibytes() {
    let after = |turns: usize| {
        held(|| {
            let mut rng = rng(1);
            let (mut one, mut two) = established(&mut rng);
            for _ in 0..turns {
                turn(&mut one, &mut two, &mut rng);
            }
            one
        })
        .1
    };
    let (new, used) = (after(0), after(2 * COMPLETE_CHAINS_MAX));
    println!("{new} bytes, later {used} bytes");
    assert!((500..2560).contains(&new), "{new}");
    assert!((500..4608).contains(&used), "{used}");
}

#[test]
fn a_ratchet_with_as_many_losses_as_it_remembers_holds_less_than_200_kib() {
    let (_ratchet, bytes) = held(|| {
        let mut rng = rng(2);
        let (mut one, mut two) = established(&mut rng);
        // Chains with forgotten messages, and then as many missing messages as are remembered.
        for _ in 0..MISSING_CHAINS_MAX + FORGOTTEN_CHAINS_MAX {
            for _ in 0..SKIPPED_MAX.div_ceil(MISSING_CHAINS_MAX) {
                seal(&mut two, &mut rng, b"lost");
            }
            turn(&mut two, &mut one, &mut rng);
        }
        for _ in 0..COMPLETE_CHAINS_MAX {
            turn(&mut two, &mut one, &mut rng);
        }
        assert_eq!(one.missing(), SKIPPED_MAX);
        one
    });
    println!("{bytes} bytes");
    assert!((100_000..200 << 10).contains(&bytes), "{bytes}");
}

#[test]
fn messages_are_sealed_and_opened_without_an_allocation() {
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let [mut one, mut two] = pair(suite);
        let mut buffer = vec![0; 1024 + 24];
        // The first message expands the keys.
        one.seal_into(b"", b"", &mut buffer).unwrap();
        two.open_in_place(b"", &mut buffer[..24]).unwrap();
        let before = allocations();
        for _ in 0..2 * SESSION_WINDOW {
            one.seal_into(b"", &[7; 1024], &mut buffer).unwrap();
            let (_, text) = two.open_in_place(b"", &mut buffer).unwrap();
            assert_eq!(text[..4], [7; 4]);
        }
        assert_eq!(allocations(), before, "{suite:?}");
    }
}

#[test]
fn forged_messages_hold_nothing_but_the_keys_they_ask_for() {
    let [mut one, mut two] = pair(Suite::Aes256Gcm);
    let mut message = Vec::new();
    one.seal(b"", b"", &mut message).unwrap();
    two.open(b"", &message, &mut Vec::new()).unwrap();
    let before = bytes_held();
    for number in (0..4096u64).map(|i| i << 20 | i) {
        let mut forged = number.to_le_bytes().to_vec();
        forged.extend_from_slice(&[9; 40]);
        assert!(two.open(b"", &forged, &mut Vec::new()).is_err());
        drop(forged);
        assert!(bytes_held() - before <= 2048, "after {number:#x}");
    }
}
