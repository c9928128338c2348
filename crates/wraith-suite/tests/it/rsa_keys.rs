//! Files of RSA keys with chosen numbers.

use wraith_suite::bignum::Uint;
use wraith_suite::encoding::der::asn1::{Any, AnyRef, UintRef};
use wraith_suite::encoding::der::{Decode as _, Encode as _};
use wraith_suite::encoding::oid;
use wraith_suite::encoding::pkcs8::PrivateKeyInfo;
use wraith_suite::encoding::spki::AlgorithmIdentifier;
use wraith_suite::encrypt::{DecryptionKey as _, rsa, rsa_pkcs1};
use wraith_suite::sign::rsa::{Scheme, SigningKey};
use wraith_suite::sign::{Algorithm, SigningKey as _, VerifyingKey as _};

/// Indices of the numbers in an RSAPrivateKey.
const VERSION: usize = 0;
const N: usize = 1;
const E: usize = 2;
const D: usize = 3;
const P: usize = 4;
const Q: usize = 5;
const D_P: usize = 6;
const D_Q: usize = 7;
const Q_INVERSE: usize = 8;

/// Returns the numbers of an RSAPrivateKey.
fn numbers(der: &[u8]) -> Vec<Uint> {
    let numbers = Vec::<UintRef<'_>>::from_der(der).unwrap();
    numbers.iter().map(|number| Uint::from_be_bytes(number.as_bytes()).unwrap()).collect()
}

fn pkcs1(numbers: &[Uint]) -> Vec<u8> {
    // The zero in front is for the number zero, which has no bytes.
    let bytes: Vec<_> = numbers.iter().map(|n| [&[0], &n.to_be_bytes()[..]].concat()).collect();
    let numbers: Vec<_> = bytes.iter().map(|bytes| UintRef::new(bytes).unwrap()).collect();
    numbers.to_der().unwrap()
}

/// Returns the numbers of a new key.
fn made() -> Vec<Uint> {
    numbers(&SigningKey::generate(Scheme::PssSha256, 2048).unwrap().to_raw())
}

/// Reads the key of these numbers from every format. Either all succeed or all fail.
fn read(numbers: &[Uint]) -> Option<SigningKey> {
    let der = pkcs1(numbers);
    let algorithm = AlgorithmIdentifier { oid: oid::RSA, parameters: Some(AnyRef::NULL) };
    let pkcs8 = PrivateKeyInfo::new(algorithm, &der).to_der();
    let key = SigningKey::from_pkcs1(Scheme::PssSha256, &der).ok();
    let is_read = [
        SigningKey::from_pkcs8(Scheme::PssSha256, &pkcs8).is_ok(),
        Algorithm::RsaPkcs1Sha512.signing_key_pkcs8(&pkcs8).is_ok(),
        rsa_pkcs1::DecryptionKey::from_pkcs8(&pkcs8).is_ok(),
        rsa::DecryptionKey::from_pkcs8(rsa::Hash::Sha256, &pkcs8).is_ok(),
    ];
    assert_eq!(is_read, [key.is_some(); 4]);
    key
}

#[test]
fn a_key_without_one_of_its_numbers_is_refused() {
    let made = made();
    assert!(read(&made).is_some());
    let without = |places: &[usize]| {
        let mut changed = made.clone();
        places.iter().for_each(|&at| changed[at] = Uint::zero());
        changed
    };
    for at in N..=Q_INVERSE {
        assert!(read(&without(&[at])).is_none(), "{at}");
        assert!(read(&[&made[..at], &made[at + 1..]].concat()).is_none(), "{at}");
    }
    // A key as Java strips it (a modulus and a private exponent), and parts of that.
    for places in [
        &[E, P, Q, D_P, D_Q, Q_INVERSE][..],
        &[P, Q, D_P, D_Q, Q_INVERSE],
        &[D_P, D_Q, Q_INVERSE],
        &[Q_INVERSE],
    ] {
        assert!(read(&without(places)).is_none(), "{places:?}");
    }
    assert!(read(&made[..=D]).is_none() && read(&made[..=Q]).is_none());
}

#[test]
fn a_key_of_three_primes_is_refused() {
    // An RSAPrivateKey of version 1 has a sequence of further primes; one of version 0 has none.
    let mut made = made();
    let with_others = |made: &[Uint]| {
        let mut values = Vec::<Any>::from_der(&pkcs1(made)).unwrap();
        values.push(Any::encode_from(&vec![vec![3u8, 1, 1]]).unwrap());
        values.to_der().unwrap()
    };
    let is_read = |der: &[u8]| SigningKey::from_pkcs1(Scheme::PssSha256, der).is_ok();
    assert!(is_read(&pkcs1(&made)) && !is_read(&with_others(&made)));
    made[VERSION] = Uint::from(1);
    assert!(!is_read(&pkcs1(&made)) && !is_read(&with_others(&made)));
}

/// Returns the least common multiple of p - 1 and q - 1, and their product.
fn orders(numbers: &[Uint]) -> [Uint; 2] {
    let [p, q] = [P, Q].map(|at| numbers[at].sub(&Uint::from(1)).unwrap());
    let product = p.mul(&q).unwrap();
    [product.div_rem(&p.gcd(&q).unwrap()).unwrap().0, product]
}

/// Checks that the key of the numbers `made` verifies signatures of `key`, and that `key` is
/// written as it was read.
fn is_of(key: &SigningKey, made: &[Uint], read: &[Uint]) {
    let public = SigningKey::from_pkcs1(Scheme::PssSha256, &pkcs1(made)).unwrap().public();
    public.verify(b"text", &key.sign(b"text").unwrap()).unwrap();
    assert_eq!(key.verifying_key().to_spki(), public.to_spki());
    assert_eq!(numbers(&key.to_raw()), read);
}

#[test]
fn a_private_exponent_is_below_the_modulus() {
    let made = made();
    let [least, product] = orders(&made);
    let with = |d: Uint| {
        let mut changed = made.clone();
        changed[D] = d;
        changed
    };
    // The least exponent, the one that old programs write, and the largest that fits.
    let room = made[N].sub(&made[D]).unwrap().sub(&Uint::from(1)).unwrap();
    let mut last = least.mul(&room.div_rem(&least).unwrap().0).unwrap();
    last = last.add(&made[D]).unwrap();
    for d in [&made[D], &made[E].mod_inverse(&product).unwrap(), &last] {
        let changed = with(d.clone());
        is_of(&read(&changed).unwrap(), &made, &changed);
    }
    for _ in 0..3 {
        last = last.add(&least).unwrap();
        assert!(read(&with(last.clone())).is_none());
    }
    for bits in [2048, 2049, 4096, 16_000] {
        let far = Uint::from_hex(&format!("1{}", "0".repeat(bits / 4))).unwrap();
        let d = made[D].add(&least.mul(&far).unwrap()).unwrap();
        assert!(read(&with(d)).is_none(), "{bits}");
    }
}

#[test]
fn either_prime_may_be_the_larger_one() {
    let made = made();
    let mut changed = made.clone();
    changed.swap(P, Q);
    changed.swap(D_P, D_Q);
    assert!(read(&changed).is_none(), "the inverse is of the other one");
    changed[Q_INVERSE] = made[P].mod_inverse(&made[Q]).unwrap();
    assert!(changed[P] < changed[Q]);
    is_of(&read(&changed).unwrap(), &made, &changed);
    let der = pkcs1(&changed);
    let algorithm = AlgorithmIdentifier { oid: oid::RSA, parameters: Some(AnyRef::NULL) };
    let pkcs8 = PrivateKeyInfo::new(algorithm, &der).to_der();
    let key = rsa_pkcs1::DecryptionKey::from_pkcs8(&pkcs8).unwrap();
    let sealed = key.encryption_key().encrypt(b"text").unwrap();
    assert_eq!(*key.decrypt(&sealed).unwrap(), *b"text");
}
