//! Each implementation of AES-256-GCM compared with AWS-LC: every length of a packet, and the
//! memory around it.

use proptest::prelude::*;
use wraith_suite::{AeadKey, Implementation, TAG_BYTES, Unauthentic};

use crate::implementations::{OF_GCM, each, gcm_key};

/// Number of bytes on either side of a text, which must not change.
const AROUND: usize = 64;

/// Returns `len` bytes that look random and are the same in every run.
fn random(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Compares one text under both keys: sealed in place, sealed from two places that meet at `cut`,
/// opened, and opened with a wrong tag. The text begins `skew` bytes into its memory.
fn compare(
    [ours, library]: [&AeadKey; 2],
    nonce: [u8; 12],
    aad: &[u8],
    text: &[u8],
    cut: usize,
    skew: usize,
) {
    let len = text.len();
    let mut expected = text.to_vec();
    let tag = library.seal(nonce, aad, &mut expected);

    let room = skew..skew + len;
    let mut memory = vec![0xa5; skew + len + AROUND];
    memory[room.clone()].copy_from_slice(text);
    assert_eq!(ours.seal(nonce, aad, &mut memory[room.clone()]), tag, "{len} bytes");
    assert_eq!(memory[room.clone()], expected, "{len} bytes");

    memory[room.clone()][..cut].copy_from_slice(&text[..cut]);
    memory[room.clone()][cut..].fill(0xee);
    let source = text[cut..].to_vec();
    let gathered = ours.seal_from(nonce, aad, &mut memory[room.clone()], cut, &source);
    assert_eq!(gathered, tag, "{len} bytes, cut at {cut}");
    assert_eq!(memory[room.clone()], expected, "{len} bytes, cut at {cut}");
    assert_eq!(source, text[cut..]);
    assert!(memory[..skew].iter().chain(&memory[skew + len..]).all(|&byte| byte == 0xa5));

    let sealed = skew..skew + len + TAG_BYTES;
    memory[sealed.clone()][len..].copy_from_slice(&tag);
    let mut forged = memory.clone();
    assert_eq!(ours.open(nonce, aad, &mut memory[sealed.clone()]), Ok(()), "{len} bytes");
    assert_eq!(memory[room.clone()], *text, "{len} bytes");
    assert_eq!(memory[room.end..sealed.end], tag);
    assert!(memory[..skew].iter().chain(&memory[sealed.end..]).all(|&byte| byte == 0xa5));

    forged[sealed.clone()][len + len % TAG_BYTES] ^= 1 << (len % 8);
    assert_eq!(ours.open(nonce, aad, &mut forged[sealed]), Err(Unauthentic), "{len} bytes");
}

#[test]
fn every_length_of_a_packet_is_sealed_and_opened_as_the_library_does() {
    each("AES-256-GCM beside AWS-LC, lengths", |implementation| {
        let lengths = (0..=2048).chain([4095, 4096, 4097, 8972, 16_384, 65_507, 65_535]);
        lengths.inspect(|&len| check_length(implementation, len)).count()
    });
}

fn check_length(implementation: Implementation, len: usize) {
    let key: [u8; 32] = random(&format!("key {len}"), 32).try_into().unwrap();
    let keys = [gcm_key(&key, implementation), gcm_key(&key, Implementation::AwsLc)];
    let nonce = random(&format!("nonce {len}"), 12).try_into().unwrap();
    let aad = random(&format!("associated data {len}"), (len + 13) % 50);
    let text = random(&format!("text {len}"), len);
    for cut in [0, 1, 8, len / 2, len.saturating_sub(1), len] {
        compare(keys.each_ref(), nonce, &aad, &text, cut.min(len), AROUND + len % 32);
    }
}

proptest! {
    #[test]
    fn every_key_and_cut_gives_what_the_library_gives(
        key: [u8; 32], nonce: [u8; 12], aad in prop::collection::vec(any::<u8>(), 0..100),
        text in prop::collection::vec(any::<u8>(), 0..1500), cut: prop::sample::Index, skew in 0..64_usize,
    ) {
        let library = gcm_key(&key, Implementation::AwsLc);
        for implementation in OF_GCM.into_iter().filter(|each| each.is_available()) {
            let keys = [&gcm_key(&key, implementation), &library];
            compare(keys, nonce, &aad, &text, cut.index(text.len() + 1), skew);
        }
    }
}
