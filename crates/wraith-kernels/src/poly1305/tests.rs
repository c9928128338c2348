use data_encoding::HEXLOWER_PERMISSIVE;

use super::*;
use crate::chacha20_poly1305::poly1305_tag;
use crate::tests::{bytes, unchecked};

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).unwrap()
}

fn check(key: &[u8; 32], message: &[u8], what: &str) {
    assert_eq!(
        tag(key, message),
        wraith_aws_lc::reference::poly1305(key, message),
        "portable, {what}"
    );
    check_vectors(key, message, what);
}

/// Checks that the vectors compute the same as the portable code.
fn check_vectors(key: &[u8; 32], message: &[u8], what: &str) {
    let expected = tag(key, message);
    if message.is_empty() || !message.len().is_multiple_of(BLOCK) {
        return;
    }
    for before in [0, BLOCK, 5 * BLOCK] {
        for piece in [1, 128, 400, 1024, 1 << 20] {
            if before < message.len() {
                let (before, text) = message.split_at(before);
                let (text, last) = text.split_last_chunk().unwrap();
                let Some(tag) = poly1305_tag(key, before, text, *last, piece) else {
                    return unchecked("this processor has no AVX-512 IFMA");
                };
                let before = before.len();
                assert_eq!(tag, expected, "{before} before, {piece}, {what}");
            }
        }
    }
}

#[test]
fn the_vector_of_rfc_8439_section_2_5_2_holds() {
    let key = hex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b");
    let tag = tag(key.as_slice().try_into().unwrap(), b"Cryptographic Forum Research Group");
    assert_eq!(tag.as_slice(), hex("a8061dc1305136c6c22b8baf0c0127a9"));
}

#[test]
fn the_edges_of_rfc_8439_appendix_a_3_hold() {
    let ones = "ffffffffffffffffffffffffffffffff";
    let zeros = "00000000000000000000000000000000";
    let two = "02000000000000000000000000000000";
    let one = "01000000000000000000000000000000";
    // r, s, blocks, tag: vectors 7 to 9, then 10 and 11, and two in which s is all ones or 2.
    let fb = "fbfefefefefefefefefefefefefefefe01010101010101010101010101010101";
    let steps = "e33594d7505e43b900000000000000003394d7505e4379cd010000000000000000000000000000000000000000000000";
    let vectors = [
        (two, zeros, ones.to_owned(), "03000000000000000000000000000000"),
        (two, ones, two.to_owned(), "03000000000000000000000000000000"),
        (
            one,
            zeros,
            format!("{ones}f0ffffffffffffffffffffffffffffff11000000000000000000000000000000"),
            "05000000000000000000000000000000",
        ),
        (one, zeros, format!("{ones}{fb}"), zeros),
        (
            two,
            zeros,
            "fdffffffffffffffffffffffffffffff".to_owned(),
            "faffffffffffffffffffffffffffffff",
        ),
        (
            "01000000000000000400000000000000",
            zeros,
            format!("{steps}{one}"),
            "14000000000000005500000000000000",
        ),
        (
            "01000000000000000400000000000000",
            zeros,
            steps.to_owned(),
            "13000000000000000000000000000000",
        ),
    ];
    for (r, s, message, tag) in vectors {
        let key: [u8; 32] = hex(&format!("{r}{s}")).try_into().unwrap();
        let message = hex(&message);
        assert_eq!(super::tag(&key, &message).as_slice(), hex(tag), "{tag}");
        check_vectors(&key, &message, tag);
        // Blocks of zeros in front, up to several groups, yield another edge case.
        for zeros in 1..40 {
            let long = [vec![0; zeros * BLOCK], message.clone()].concat();
            check_vectors(&key, &long, tag);
        }
    }
}

#[test]
fn extremes_of_keys_and_blocks_agree_with_the_library() {
    let keys = [[0xff; 32], [0; 32], {
        let mut r_most = [0xff; 32];
        r_most[16..].fill(0);
        r_most
    }];
    for key in keys {
        for block in [
            [0xff; 16],
            [0; 16],
            *b"\xfb\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            for blocks in 1..100 {
                check(&key, &block.repeat(blocks), &format!("{blocks} of {}", block[0]));
            }
        }
    }
}

#[test]
fn every_number_of_bytes_agrees_with_the_library() {
    let random = bytes(32 + 2600);
    let (key, message) = random.split_first_chunk().unwrap();
    for len in 0..=message.len() {
        check(key, &message[..len], &format!("{len} bytes"));
    }
}
