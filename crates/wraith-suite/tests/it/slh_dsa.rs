//! SLH-DSA with the vectors of NIST, and signatures that must not verify.

use data_encoding::HEXLOWER;
use wraith_suite::hash::Sha256;
use wraith_suite::sign::slh_dsa::{SigningKey, VerifyingKey, signature_bytes};
use wraith_suite::sign::{Algorithm, CONTEXT_MAX, SignError, SigningKey as _, VerifyingKey as _};

use super::acvp;

const VECTORS: &str = include_str!("../vectors/slh_dsa.txt");

fn bytes(hex: &str) -> Vec<u8> {
    if hex == "-" { Vec::new() } else { HEXLOWER.decode(hex.as_bytes()).unwrap() }
}

/// Returns the fields of the lines that begin with `kind`.
fn vectors(kind: &str) -> impl Iterator<Item = (Algorithm, Vec<&'static str>)> {
    VECTORS.lines().filter(move |line| line.split(' ').next() == Some(kind)).map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields[1].parse().unwrap(), fields[2..].to_vec())
    })
}

fn sets() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.iter().copied().filter(|each| signature_bytes(*each).is_some())
}

fn key(algorithm: Algorithm) -> SigningKey {
    let raw = vectors("keygen").find(|(each, _)| *each == algorithm).unwrap().1[2];
    SigningKey::from_raw(algorithm, &bytes(raw)).unwrap()
}

#[test]
fn keys_of_the_acvp_seeds_are_the_published_ones() {
    let mut seen = 0;
    for (algorithm, fields) in vectors("keygen") {
        let key = SigningKey::from_seeds(algorithm, &bytes(fields[1])).unwrap();
        assert_eq!(*key.to_raw(), bytes(fields[2]), "{algorithm}");
        seen += 1;
    }
    assert_eq!((seen, sets().count()), (12, 12));
}

#[test]
fn signatures_are_those_of_acvp_and_verify() {
    let mut seen = 0;
    for (algorithm, fields) in vectors("sign") {
        let [id, interface, secret, randomness, context, message, digest] = fields[..] else {
            panic!("seven fields")
        };
        let key = SigningKey::from_raw(algorithm, &bytes(secret)).unwrap();
        let (context, message) = (bytes(context), bytes(message));
        let randomness = Some(bytes(randomness)).filter(|bytes| !bytes.is_empty());
        let external = interface == "external";
        let prefix = [0, context.len() as u8];
        let whole =
            if external { [&prefix[..], &context, &message].concat() } else { message.clone() };
        let signature = key.sign_internal(&whole, randomness.as_deref()).unwrap();
        assert_eq!(HEXLOWER.encode(&Sha256::digest(&signature)), digest, "{algorithm} {id}");
        key.public().verify_internal(&whole, &signature).unwrap();
        if external {
            key.public().verify_with_context(&context, &message, &signature).unwrap();
            if randomness.is_none() {
                assert_eq!(
                    key.sign_deterministic_with_context(&context, &message).unwrap(),
                    signature
                );
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 48);
}

#[test]
fn verification_passes_nists_acvp() {
    let verdicts = acvp::check_verifications("SLH-DSA-", |vector| {
        let key = VerifyingKey::from_raw(vector.set.parse().unwrap(), &vector.public).unwrap();
        key.verify_internal(&vector.message, &vector.signature).is_ok()
    });
    assert_eq!(verdicts, [12, 2]);
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    for algorithm in sets().filter(|each| each.name().ends_with('f')) {
        let key = key(algorithm);
        let signature = key.sign_with_context(b"context", b"message").unwrap();
        let refused = |context: &[u8], message: &[u8], signature: &[u8]| {
            let result = key.public().verify_with_context(context, message, signature);
            assert_eq!(result, Err(SignError::Unauthentic), "{algorithm}");
        };
        key.public().verify_with_context(b"context", b"message", &signature).unwrap();
        // The step divides none of the lengths of the parts. So the positions cover the randomizer,
        // the secrets and paths of FORS, and the chains and paths of every layer.
        let len = signature.len();
        for at in (0..len).step_by(997).chain([15, 16, len - 1]) {
            let mut other = signature.clone();
            other[at] ^= 1 << (at % 8);
            refused(b"context", b"message", &other);
        }
        for len in [0, 1, len - 1] {
            refused(b"context", b"message", &signature[..len]);
        }
        refused(b"context", b"message", &[&signature[..], &[0]].concat());
        refused(b"contex", b"tmessage", &signature);
        refused(b"", b"message", &signature);
        refused(b"context", b"massage", &signature);
    }
}

#[test]
fn hedged_signatures_differ_and_verify_by_name_too() {
    let key = key(Algorithm::SlhDsaSha2_128f);
    let (first, second) = (key.sign(b"message").unwrap(), key.sign(b"message").unwrap());
    assert_ne!(first, second);
    for signature in [first, second] {
        key.verifying_key().verify(b"message", &signature).unwrap();
    }
    let other = SigningKey::generate(Algorithm::SlhDsaSha2_128f).unwrap();
    let signature = other.sign(b"message").unwrap();
    assert!(key.public().verify(b"message", &signature).is_err());
    assert!(other.public().verify(b"message", &signature).is_ok());
}

#[test]
fn a_context_of_255_bytes_is_the_longest() {
    let key = key(Algorithm::SlhDsaShake128f);
    let context = [7; CONTEXT_MAX + 1];
    let signature = key.sign_with_context(&context[1..], b"message").unwrap();
    key.public().verify_with_context(&context[1..], b"message", &signature).unwrap();
    let long = SignError::Context { found: 256 };
    assert_eq!(key.sign_with_context(&context, b"message"), Err(long));
    assert_eq!(key.sign_deterministic_with_context(&context, b"message"), Err(long));
    assert_eq!(key.public().verify_with_context(&context, b"message", &signature), Err(long));
}

#[test]
fn keys_come_back_from_their_encodings_and_only_from_their_own() {
    let others: Vec<Algorithm> = sets().collect();
    for (i, algorithm) in sets().enumerate() {
        let key = key(algorithm);
        let other = others[(i + 1) % others.len()];
        let (secret, public) = (key.to_pkcs8(), key.public().to_spki());
        let again = SigningKey::from_pkcs8(algorithm, &secret).unwrap();
        assert_eq!(again.to_raw(), key.to_raw());
        let again = VerifyingKey::from_spki(algorithm, &public).unwrap();
        assert_eq!(again.to_raw(), key.public().to_raw());
        assert!(SigningKey::from_pkcs8(other, &secret).is_err());
        assert!(VerifyingKey::from_spki(other, &public).is_err());
        assert!(SigningKey::from_pkcs8(algorithm, &secret[..secret.len() - 1]).is_err());

        let raw = key.to_raw();
        for wrong in [&[][..], &raw[1..], &[&raw[..], &[0]].concat()] {
            assert!(SigningKey::from_raw(algorithm, wrong).is_err());
            assert!(SigningKey::from_seeds(algorithm, wrong).is_err());
            assert!(VerifyingKey::from_raw(algorithm, wrong).is_err());
        }
    }
    assert!(SigningKey::generate(Algorithm::Ed25519).is_err());
}

#[test]
fn the_object_identifier_is_the_one_of_rfc_9909() {
    // 2.16.840.1.101.3.4.3.20, id-slh-dsa-sha2-128s.
    let spki = key(Algorithm::SlhDsaSha2_128s).public().to_spki();
    let start = [0x30, 0x30, 0x30, 0x0b, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, 20, 3, 0x21, 0];
    assert_eq!(spki[..18], start);
    assert_eq!(spki.len(), 50);
}

#[test]
fn debug_shows_no_secret() {
    let text = format!("{:?}", key(Algorithm::SlhDsaSha2_128f));
    assert_eq!(text, "SigningKey { algorithm: SlhDsaSha2_128f, .. }");
}
