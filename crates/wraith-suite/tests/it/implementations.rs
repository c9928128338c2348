//! Runs every implementation in turn, each forced, and prints which ones ran.
//!
//! The printed line bypasses the test harness, which captures the output of passing tests. For a
//! missing processor feature the line does not contain the word `skipped`, on which CI fails: no
//! installation could provide the feature.

use std::io::Write;

use wraith_suite::aead;
use wraith_suite::{AeadKey, Implementation, Suite, Unauthentic};

/// The implementations of AES-256-GCM, the fastest first.
pub(crate) const OF_GCM: [Implementation; 3] =
    [Implementation::Vaes512, Implementation::Vaes256, Implementation::AwsLc];

/// Runs `check` with each implementation of AES-256-GCM that this processor supports. `check`
/// returns its number of cases.
pub(crate) fn each(what: &str, check: impl Fn(Implementation) -> usize) {
    for implementation in [Implementation::Vaes512, Implementation::Vaes256, Implementation::AwsLc]
    {
        if implementation.is_available() {
            let cases = check(implementation);
            say(&format!("checked: {what}: {cases} with {implementation}"));
        } else {
            say(&format!("unchecked: {what}: this processor cannot do {implementation}"));
        }
    }
}

/// Returns a key of AES-256-GCM for `implementation`, which this processor supports.
pub(crate) fn gcm_key(key: &[u8; 32], implementation: Implementation) -> AeadKey {
    let key = AeadKey::with_implementation(Suite::Aes256Gcm, key, implementation).unwrap();
    assert_eq!(
        key.implementation(),
        implementation,
        "the one that was asked for is the one that runs"
    );
    key
}

fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn a_key_uses_the_fastest_supported_implementation_by_default() {
    for (suite, all) in [
        (Suite::Aes256Gcm, &OF_GCM[..]),
        (Suite::ChaCha20Poly1305, &[Implementation::Ifma, Implementation::AwsLc]),
        (Suite::Sm4Gcm, &[Implementation::Sm4]),
    ] {
        let first = all.iter().find(|each| each.is_available()).unwrap();
        assert_eq!(AeadKey::new(suite, &[1; 32]).implementation(), *first);
    }
}

#[test]
fn a_packet_of_chacha20_poly1305_is_the_same_from_ours_and_from_aws_lc() {
    let suite = Suite::ChaCha20Poly1305;
    let Some(ours) = AeadKey::with_implementation(suite, &[9; 32], Implementation::Ifma) else {
        return say("unchecked: this processor has no AVX-512 IFMA");
    };
    let library = AeadKey::with_implementation(suite, &[9; 32], Implementation::AwsLc).unwrap();
    for len in 0..1500 {
        let text: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let (mut sealed, mut expected) = (vec![0; len], text.clone());
        let (filled, nonce) = (len / 3, [len as u8; 12]);
        sealed[..filled].copy_from_slice(&text[..filled]);
        let tag = ours.seal_from(nonce, b"header", &mut sealed, filled, &text[filled..]);
        assert_eq!(tag, library.seal(nonce, b"header", &mut expected));
        assert_eq!(sealed, expected);
        sealed.extend(tag);
        let mut damaged = sealed.clone();
        damaged[len * 5 % (len + 16)] ^= 1;
        assert_eq!(ours.open(nonce, b"header", &mut damaged), Err(Unauthentic));
        library.open(nonce, b"header", &mut sealed.clone()).unwrap();
        ours.open(nonce, b"header", &mut sealed).unwrap();
        assert_eq!(sealed[..len], text);
    }
}

#[test]
fn a_packet_of_the_suite_sm4_gcm_is_what_the_algorithm_by_its_name_makes_of_half_the_key() {
    let key: [u8; 32] = std::array::from_fn(|i| i as u8);
    let suite = AeadKey::new(Suite::Sm4Gcm, &key);
    let by_name = aead::Algorithm::Sm4Gcm.key(&key[..16]).unwrap();
    for len in [0, 1, 16, 100, 1400, 9000] {
        let text = vec![len as u8; len];
        let mut sealed = text.clone();
        let tag = suite.seal([7; 12], b"header", &mut sealed);
        sealed.extend(tag);
        assert_eq!(sealed, by_name.seal(&[7; 12], b"header", &text).unwrap());
        suite.open([7; 12], b"header", &mut sealed).unwrap();
        assert_eq!(sealed[..len], text);
    }
}

#[test]
fn an_unsupported_implementation_makes_no_key() {
    for implementation in Implementation::ALL {
        let of = |suite| AeadKey::with_implementation(suite, &[1; 32], implementation);
        let [gcm, chacha, sm4] = match implementation {
            Implementation::AwsLc => [true, true, false],
            Implementation::Sm4 => [false, false, true],
            Implementation::Ifma => [false, implementation.is_available(), false],
            _ => [implementation.is_available(), false, false],
        };
        assert_eq!(of(Suite::Aes256Gcm).is_some(), gcm);
        assert_eq!(of(Suite::ChaCha20Poly1305).is_some(), chacha);
        assert_eq!(of(Suite::Sm4Gcm).is_some(), sm4);
    }
}
