//! Memory and allocations of sessions: a server holds thousands of idle sessions, and a message
//! should allocate no more than its bytes.

use std::time::Duration;

use wraith_session::ratchet::{PreKeys, Ratchet};
use wraith_session::{SESSION_WINDOW, Session, Suite};

use crate::counting::{allocations, bytes_held};
use crate::support::{identity, rng};

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
fn an_idle_ratchet_holds_less_than_two_kibibytes() {
    let (_ratchet, bytes) = held(|| {
        let mut rng = rng(1);
        let mut prekeys = PreKeys::generate(&mut rng, &identity(2), 1);
        let mut one = Ratchet::initiate(&mut rng, &identity(1), &prekeys.bundle()).unwrap();
        let (mut message, mut text) = (Vec::new(), Vec::new());
        one.encrypt(&mut rng, b"", b"text", &mut message).unwrap();
        let (mut two, _) = Ratchet::respond(&identity(2), &mut prekeys, b"", &message).unwrap();
        message.clear();
        two.encrypt(&mut rng, b"", b"text", &mut message).unwrap();
        one.decrypt(b"", &message, &mut text).unwrap();
        one
    });
    println!("{bytes} bytes");
    assert!((500..2048).contains(&bytes), "{bytes}");
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
