//! Elligator2 with published vectors, and compared with the crate `elligator2`, an independent
//! implementation.

use data_encoding::HEXLOWER;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_crypto::elligator::{EphemeralKey, decode, encode};

const VECTORS: &str = include_str!("../vectors/elligator2.txt");

fn bytes(hex: &str) -> [u8; 32] {
    HEXLOWER.decode(hex.as_bytes()).unwrap().try_into().unwrap()
}

/// Returns the words of each vector of `kind`.
fn vectors(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    VECTORS.lines().filter_map(move |line| {
        let words: Vec<_> = line.strip_prefix(kind)?.split_whitespace().collect();
        Some(words)
    })
}

fn random(rng: &mut ChaCha20Rng) -> [u8; 32] {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[test]
fn published_representatives_are_decoded() {
    let decoded = vectors("map ").inspect(|words| {
        let [representative, u] = words[..] else { panic!("{words:?}") };
        assert_eq!(HEXLOWER.encode(&decode(&bytes(representative))), u);
        for spare_bits in [0x40, 0x80, 0xc0] {
            let mut other = bytes(representative);
            other[31] |= spare_bits;
            assert_eq!(HEXLOWER.encode(&decode(&other)), u);
        }
    });
    assert_eq!(decoded.count(), 43);
}

#[test]
fn published_points_are_encoded_and_others_are_not() {
    let encoded = vectors("inverse ").inspect(|words| {
        let [u, tweak, representative] = words[..] else { panic!("{words:?}") };
        let found = encode(&bytes(u), u8::from_str_radix(tweak, 16).unwrap());
        let expected = (representative != "none").then(|| bytes(representative));
        assert_eq!(found, expected, "{u}");
    });
    assert_eq!(encoded.count(), 6);
}

#[test]
fn the_other_implementation_decodes_alike() {
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let drawn: Vec<_> = (0..2000).map(|_| random(&mut rng)).collect();
    for representative in [[0; 32], [0xff; 32]].iter().chain(&drawn) {
        assert_eq!(decode(representative), elligator2::from_representative(representative));
    }
}

#[test]
fn the_other_implementation_encodes_alike() {
    let mut rng = ChaCha20Rng::from_seed([2; 32]);
    let mut none = 0;
    for tweak in (0..=255).cycle().take(2000) {
        let u = wraith_crypto::agree::x25519_public(&random(&mut rng));
        let encoded = encode(&u, tweak);
        assert_eq!(encoded, elligator2::to_representative(&u, tweak));
        none += u32::from(encoded.is_none());
    }
    assert!((900..1100).contains(&none), "{none} of 2000");
}

#[test]
fn the_other_implementation_understands_generated_keys() {
    let mut rng = ChaCha20Rng::from_seed([3; 32]);
    for _ in 0..200 {
        let ours = EphemeralKey::generate(&mut rng);
        assert_eq!(elligator2::from_representative(ours.representative()), *ours.public());
        let theirs = elligator2::generate(&mut rng).unwrap();
        assert_eq!(decode(theirs.representative()), *theirs.point());
    }
}
