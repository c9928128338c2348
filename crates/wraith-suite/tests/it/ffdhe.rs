//! Finite-field Diffie-Hellman, compared with AWS-LC, OpenSSL's vectors and the program `openssl`.

use std::fs;
use std::path::Path;
use std::process::Command;

use data_encoding::HEXLOWER;
use wraith_aws_lc::reference;
use wraith_suite::agree::ffdhe::{Group, PrivateKey};
use wraith_suite::agree::{AgreeError, Algorithm, PrivateKey as _};
use wraith_suite::bignum::Uint;

fn hex(text: &str) -> Vec<u8> {
    HEXLOWER.decode(text.as_bytes()).unwrap()
}

#[test]
fn primes_are_those_that_aws_lc_has() {
    let mut found = 0;
    for group in Group::ALL {
        let name = group.algorithm().name();
        let bits = 8 * group.bytes();
        let prime = match name.starts_with("MODP") {
            true => reference::modp_prime(bits),
            false => reference::ffdhe_prime(bits),
        };
        let Some(prime) = prime else { continue };
        assert_eq!(*group.prime(), Uint::from_be_bytes(&prime).unwrap(), "{name}");
        found += 1;
    }
    assert_eq!(found, 7);
}

#[test]
fn openssl_s_vectors_agree() {
    let text = include_str!("../vectors/ffdhe.txt");
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let algorithm: Algorithm = fields[0].parse().unwrap();
        let group = Group::ALL.into_iter().find(|each| each.algorithm() == algorithm).unwrap();
        let [a, b] = [1, 2].map(|at| PrivateKey::from_raw(group, &hex(fields[at])).unwrap());
        assert_eq!(*a.agree(&b.public_key()).unwrap(), hex(fields[3]));
        assert_eq!(*b.agree(&a.public_key()).unwrap(), hex(fields[3]));
        assert_eq!(*a.to_raw(), hex(fields[1]));
        count += 1;
    }
    assert_eq!(count, 5);
}

/// Returns AWS-LC's power. `base` and `exponent` are big-endian.
fn aws_lc_power(base: &[u8], exponent: &[u8], group: Group) -> Vec<u8> {
    let power = reference::power(base, exponent, &group.prime().to_be_bytes());
    [vec![0; group.bytes() - power.len()], power].concat()
}

#[test]
fn both_sides_agree_on_what_aws_lc_computes() {
    for group in Group::ALL {
        let [a, b] = [(); 2].map(|()| PrivateKey::generate(group).unwrap());
        assert_eq!(a.public_key(), aws_lc_power(&[2], &a.to_raw(), group));
        let secret = a.agree(&b.public_key()).unwrap();
        assert_eq!(*secret, *b.agree(&a.public_key()).unwrap());
        assert_eq!(*secret, aws_lc_power(&b.public_key(), &a.to_raw(), group));
        assert_ne!(a.public_key(), b.public_key());
    }
}

#[test]
fn longer_exponents_of_others_are_taken_as_they_are() {
    let peer = Uint::from(3);
    for group in [Group::Ffdhe2048, Group::Modp3072] {
        let mut public = vec![0; group.bytes()];
        peer.write_be_bytes(&mut public).unwrap();
        for bytes in [1, group.exponent_bits().div_ceil(8), 40, group.bytes() - 1] {
            let raw = vec![0xa5; bytes];
            let key = PrivateKey::from_raw(group, &raw).unwrap();
            assert_eq!(key.public_key(), aws_lc_power(&[2], &raw, group), "{bytes}");
            assert_eq!(*key.agree(&public).unwrap(), aws_lc_power(&[3], &raw, group), "{bytes}");
        }
    }
}

#[test]
fn keys_of_small_order_or_of_another_length_are_refused() {
    for group in Group::ALL {
        let key = PrivateKey::generate(group).unwrap();
        let invalid = AgreeError::InvalidPublicKey { algorithm: group.algorithm() };
        let [zero, one, two] = [0, 1, 2].map(Uint::from);
        let prime = group.prime();
        let padded = |number: &Uint| {
            let mut bytes = vec![0; group.bytes()];
            number.write_be_bytes(&mut bytes).unwrap();
            bytes
        };
        let largest = vec![0xff; group.bytes()];
        let above = Uint::from_be_bytes(&largest).unwrap();
        for bad in
            [&zero, &one, &prime.sub(&one).unwrap(), prime, &prime.add(&one).unwrap(), &above]
        {
            assert_eq!(key.agree(&padded(bad)), Err(invalid), "{group:?} {bad:?}");
        }
        for good in [&two, &prime.sub(&two).unwrap()] {
            assert_eq!(key.agree(&padded(good)).unwrap().len(), group.bytes());
        }
        let public = key.public_key();
        assert_eq!(key.agree(&public[1..]), Err(invalid));
        assert_eq!(key.agree(&[&[0], &public[..]].concat()), Err(invalid));
        assert_eq!(key.agree(&[]), Err(invalid));
    }
}

#[test]
fn private_keys_are_from_one_to_the_order_less_one() {
    let group = Group::Ffdhe2048;
    let invalid = AgreeError::InvalidPrivateKey { algorithm: group.algorithm() };
    let order = group.prime().div_rem(&Uint::from(2)).unwrap().0;
    let last = order.sub(&Uint::from(1)).unwrap();
    assert!(PrivateKey::from_raw(group, &last.to_be_bytes()).is_ok());
    assert!(PrivateKey::from_raw(group, &[1]).is_ok());
    let long = vec![0; group.bytes() + 1];
    for bad in [&order.to_be_bytes()[..], &group.prime().to_be_bytes(), &[], &[0; 29], &long] {
        assert_eq!(PrivateKey::from_raw(group, bad).unwrap_err(), invalid);
    }
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [head, content.to_vec()].concat()
}

fn der_integer(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let sign: &[u8] = if bytes[zeros] >= 0x80 { &[0] } else { &[] };
    der(2, &[sign, &bytes[zeros..]].concat())
}

/// Encodes a public key as `openssl` reads it: dhKeyAgreement (PKCS #3), with the prime and 2.
fn der_public_key(group: Group, public: &[u8]) -> Vec<u8> {
    const DH_KEY_AGREEMENT: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x03\x01";
    let parameters =
        der(0x30, &[der_integer(&group.prime().to_be_bytes()), der_integer(&[2])].concat());
    let algorithm = der(0x30, &[DH_KEY_AGREEMENT, &parameters].concat());
    let key = der(3, &[&[0], &der_integer(public)[..]].concat());
    der(0x30, &[algorithm, key].concat())
}

fn openssl(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").current_dir(folder).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {said}");
    output.stdout
}

#[test]
fn the_program_openssl_agrees_on_the_same() {
    if Command::new("openssl").arg("version").output().is_err() {
        crate::skipped("there is no program openssl");
        return;
    }
    let folder = std::env::temp_dir().join(format!("wraith-ffdhe-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let named = [
        (Group::Ffdhe2048, "ffdhe2048"),
        (Group::Ffdhe3072, "ffdhe3072"),
        (Group::Ffdhe4096, "ffdhe4096"),
        (Group::Ffdhe6144, "ffdhe6144"),
        (Group::Ffdhe8192, "ffdhe8192"),
        (Group::Modp2048, "modp_2048"),
        (Group::Modp8192, "modp_8192"),
    ];
    for (group, name) in named {
        let ours = PrivateKey::generate(group).unwrap();
        fs::write(folder.join("ours.der"), der_public_key(group, &ours.public_key())).unwrap();
        let option = format!("group:{name}");
        openssl(
            &folder,
            &["genpkey", "-algorithm", "DH", "-pkeyopt", &option, "-out", "theirs.pem"],
        );
        let derive =
            "pkeyutl -derive -inkey theirs.pem -peerkey ours.der -peerform DER -pkeyopt dh_pad:1";
        let secret = openssl(&folder, &derive.split(' ').collect::<Vec<_>>());
        let text = openssl(&folder, &["pkey", "-in", "theirs.pem", "-noout", "-text_pub"]);
        let text = String::from_utf8(text).unwrap();
        let (_, rest) = text.split_once("public-key:").unwrap();
        let digits = rest.lines().skip(1).take_while(|line| line.starts_with("    "));
        let digits: String = digits.flat_map(str::chars).filter(char::is_ascii_hexdigit).collect();
        let mut theirs = vec![0; group.bytes()];
        Uint::from_hex(&digits).unwrap().write_be_bytes(&mut theirs).unwrap();
        assert_eq!(*ours.agree(&theirs).unwrap(), secret, "{name}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
