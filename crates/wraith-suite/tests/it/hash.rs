//! Hash functions: published vectors, comparison with AWS-LC, and messages in pieces.

use aws_lc_rs::digest;
use proptest::prelude::*;
use wraith_suite::hash::{self, Algorithm, Hash, Shake128, Shake256, Sm3};
use wraith_suite::kdf;

use crate::lines::{bytes, lines};

fn digest_of(algorithm: Algorithm, data: &[u8], len: usize) -> Vec<u8> {
    let mut hasher = algorithm.hasher();
    hasher.update(data);
    let mut out = vec![0; len];
    hasher.finish_into(&mut out);
    out
}

/// Checks the vectors of algorithms with names that begin with one of `prefixes`. There are
/// `count`.
fn check(prefixes: &[&str], count: usize) {
    let vectors = lines(include_str!("../vectors/hash.txt"));
    let vectors = vectors.filter(|v| prefixes.iter().any(|prefix| v[0].starts_with(prefix)));
    let mut checked = 0;
    for (i, vector) in vectors.enumerate() {
        let [name, message, digest] = vector[..] else { panic!("three fields") };
        let algorithm: Algorithm = name.parse().unwrap();
        let digest = bytes(digest);
        assert_eq!(digest_of(algorithm, &bytes(message), digest.len()), digest, "{name}, {i}");
        if !algorithm.is_extendable() {
            assert_eq!(hash::digest(algorithm, &bytes(message)), digest, "{name}, {i}");
        }
        checked += 1;
    }
    assert_eq!(checked, count, "every vector of {prefixes:?}");
}

#[test]
fn sha_1_and_sha_2_match_fips_180_and_cavp() {
    check(&["SHA-"], 33);
}

#[test]
fn sha_3_and_shake_match_cavp() {
    check(&["SHA3-", "SHAKE"], 42);
}

#[test]
fn blake2_matches_its_authors_vectors() {
    check(&["BLAKE2"], 74);
}

#[test]
fn md5_matches_rfc_1321() {
    check(&["MD5"], 7);
}

#[test]
fn sm3_matches_gb_t_32905_and_a_million_times_a() {
    check(&["SM3"], 3);
    let (mut hash, thousand) = (Sm3::new(), [b'a'; 1000]);
    (0..1000).for_each(|_| hash.update(&thousand));
    let expected = "c8aaf89429554029e231941a2acc0ad61ff2a5acd8fadd25847a3a732b3b02c3";
    assert_eq!(hash.finish(), *bytes(expected));
}

#[test]
fn blake3_matches_its_authors_vectors_in_all_three_modes() {
    let context = "BLAKE3 2019-12-27 16:29:52 test vectors context";
    let mut checked = 0;
    for vector in lines(include_str!("../vectors/blake3.txt")) {
        let [len, hash, keyed, derived] = vector[..] else { panic!("four fields") };
        let data: Vec<u8> = (0..len.parse().unwrap()).map(|i: usize| (i % 251) as u8).collect();
        assert_eq!(hash::digest(Algorithm::Blake3, &data), bytes(hash), "{len}");
        assert_eq!(hash::Blake3::digest(&data), *bytes(hash), "{len}");
        let key = b"whats the Elvish word for friend";
        assert_eq!(kdf::keyed(key, &data), *bytes(keyed), "{len}");
        assert_eq!(kdf::derive(context, &data), *bytes(derived), "{len}");
        checked += 1;
    }
    assert_eq!(checked, 35);
}

#[test]
fn every_length_has_the_digest_that_aws_lc_gives_it() {
    let pairs = [
        (Algorithm::Sha1, &digest::SHA1_FOR_LEGACY_USE_ONLY),
        (Algorithm::Sha224, &digest::SHA224),
        (Algorithm::Sha256, &digest::SHA256),
        (Algorithm::Sha384, &digest::SHA384),
        (Algorithm::Sha512, &digest::SHA512),
        (Algorithm::Sha512_256, &digest::SHA512_256),
        (Algorithm::Sha3_256, &digest::SHA3_256),
        (Algorithm::Sha3_384, &digest::SHA3_384),
        (Algorithm::Sha3_512, &digest::SHA3_512),
    ];
    let data: Vec<u8> = (0..4000u32).map(|i| ((i * i) >> 5) as u8).collect();
    for (algorithm, theirs) in pairs {
        for len in (0..700).chain((700..4000).step_by(61)) {
            let expected = digest::digest(theirs, &data[..len]);
            assert_eq!(
                hash::digest(algorithm, &data[..len]),
                expected.as_ref(),
                "{algorithm}, {len}"
            );
        }
    }
}

#[test]
fn an_extendable_digest_read_in_pieces_is_the_one_read_at_once() {
    let whole: [u8; 1000] = Shake128::digest(b"pieces");
    for piece in [1, 7, 8, 167, 168, 169, 400] {
        let mut hash = Shake128::new();
        hash.update(b"pieces");
        let (mut reader, mut out) = (hash.reader(), vec![0; 1000]);
        out.chunks_mut(piece).for_each(|part| reader.read(part));
        assert_eq!(out, whole, "{piece}");
    }
    assert_ne!(Shake128::digest::<32>(b""), Shake256::digest::<32>(b""));
}

#[test]
fn a_short_place_for_a_digest_is_refused() {
    for algorithm in Algorithm::ALL.iter().filter(|algorithm| !algorithm.is_extendable()) {
        let mut short = vec![0; algorithm.digest_bytes() - 1];
        let finished = std::panic::catch_unwind(move || algorithm.hasher().finish_into(&mut short));
        assert!(finished.is_err(), "{algorithm}");
    }
}

proptest! {
    #[test]
    fn pieces_and_clones_have_the_digest_of_the_whole(
        which in 0..Algorithm::ALL.len(),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..8),
    ) {
        let algorithm = Algorithm::ALL[which];
        let whole = hash::digest(algorithm, &pieces.concat());
        let mut hasher = algorithm.hasher();
        for piece in &pieces {
            // Change the original; the clone continues.
            let clone = hasher.clone();
            hasher.update(b"spoilt");
            hasher = clone;
            hasher.update(piece);
        }
        let mut out = vec![0; whole.len()];
        let boxed: Box<dyn Hash> = Hash::boxed_clone(&hasher);
        boxed.finish_into(&mut out);
        prop_assert_eq!(&out, &whole);
        hasher.finish_into(&mut out);
        prop_assert_eq!(out, whole);
    }
}
