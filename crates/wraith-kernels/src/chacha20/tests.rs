use data_encoding::HEXLOWER;

use super::avx512::{Cipher, Single, WIDE, apply, half};
use super::*;
use crate::tests::{bytes, unchecked};

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

fn counted() -> [u8; 32] {
    std::array::from_fn(|i| i as u8)
}

#[test]
fn a_quarter_round_is_that_of_rfc_8439_section_2_1_1() {
    let mut x = [0; 16];
    x[..4].copy_from_slice(&[0x1111_1111, 0x0102_0304, 0x9b8d_6f43, 0x0123_4567]);
    quarter(&mut x, [0, 1, 2, 3]);
    assert_eq!(x[..4], [0xea2a_92f4, 0xcb1c_f8ce, 0x4581_472e, 0x5881_c4bb]);
}

#[test]
fn a_block_is_that_of_rfc_8439_section_2_3_2() {
    let nonce = hex("000000090000004a00000000");
    assert_eq!(
        HEXLOWER.encode(&block(&counted(), 1, nonce.as_slice().try_into().unwrap())),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e\
         d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    );
}

#[test]
fn the_first_block_of_zeros_is_that_of_rfc_8439_appendix_a_1() {
    assert_eq!(
        HEXLOWER.encode(&block(&[0; 32], 0, &[0; 12])),
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
         da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    );
}

#[test]
fn hchacha20_is_that_of_the_draft_section_2_2_1() {
    let nonce = hex("000000090000004a0000000031415927");
    assert_eq!(
        HEXLOWER.encode(&*hchacha20(&counted(), nonce.as_slice().try_into().unwrap())),
        "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"
    );
}

/// Returns the stream from block 0 on.
fn stream(key: &[u8; 32], nonce: &[u8; 12], len: usize) -> Vec<u8> {
    let blocks = (0..len.div_ceil(BLOCK) as u32).flat_map(|i| block(key, i, nonce));
    blocks.take(len).collect()
}

fn is_available() -> bool {
    crate::chacha20_poly1305::features().is_some()
}

/// Xors the stream onto a text, with the layout that suits its last piece.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512ifma,bmi2")]
fn applied(key: &[u8; 32], nonce: &[u8; 12], text: &mut [u8], turns: &mut usize) {
    let mut cipher = Cipher::new(key, 0, nonce);
    let mut rest = text;
    while !rest.is_empty() {
        let beside = |turn: usize| *turns += turn + 1;
        match rest.len().div_ceil(BLOCK) {
            0..=4 => apply(cipher.fours::<1>(beside).as_flattened(), rest),
            5..=8 => apply(cipher.fours::<2>(beside).as_flattened(), rest),
            _ => apply(&cipher.sixteen(beside), rest),
        }
        let len = rest.len().min(WIDE);
        rest = &mut rest[len..];
    }
}

/// Returns the first half of block 0: from four blocks, and from a single one.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512ifma,bmi2")]
fn halves(key: &[u8; 32], nonce: &[u8; 12]) -> [[u128; 2]; 2] {
    let mut single = Single::new(key, nonce);
    for _ in 0..5 {
        single.four_rounds();
    }
    [half(Cipher::new(key, 0, nonce).fours::<1>(|_| ())[0][0]), single.half()]
}

/// Returns inputs for the vectors, or `None` if the processor has none.
fn key_and_nonce() -> Option<([u8; 32], [u8; 12])> {
    if !is_available() {
        unchecked("this processor has no AVX-512 IFMA");
        return None;
    }
    let random = bytes(44);
    let (key, nonce) = random.split_first_chunk().unwrap();
    Some((*key, nonce.try_into().unwrap()))
}

#[test]
#[allow(unsafe_code)]
fn vectors_make_the_portable_stream_at_every_length_and_alignment() {
    let Some((key, nonce)) = &key_and_nonce() else { return };
    let expected = stream(key, nonce, 2200);
    let mut room = vec![0; 2264];
    for len in (0..=2200).rev() {
        let at = len % 64;
        room.fill(0xee);
        room[at..at + len].fill(0);
        let mut turns = 0;
        // SAFETY: the test checked the processor's instructions.
        unsafe { applied(key, nonce, &mut room[at..at + len], &mut turns) };
        assert_eq!(room[at..at + len], expected[..len], "{len}");
        assert!(room[..at].iter().chain(&room[at + len..]).all(|byte| *byte == 0xee), "{len}");
        assert_eq!(turns, len.div_ceil(WIDE) * (1..=10).sum::<usize>());
    }
}

#[test]
#[allow(unsafe_code)]
fn the_first_half_of_block_0_is_the_same_alone_and_beside_others() {
    let Some((key, nonce)) = &key_and_nonce() else { return };
    let expected = block(key, 0, nonce);
    let expected =
        [0, 16].map(|at| u128::from_le_bytes(*expected[at..].first_chunk::<16>().unwrap()));
    // SAFETY: the test checked the processor's instructions.
    assert_eq!(unsafe { halves(key, nonce) }, [expected; 2]);
}
