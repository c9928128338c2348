//! SM2: signatures, encryption and key exchange, compared with OpenSSL, and all inputs that must be
//! refused.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use wraith_suite::agree::sm2::{Exchange, ExchangeError, PrivateKey, Role};
use wraith_suite::encrypt::sm2::{DecryptionKey, EncryptionKey, Layout};
use wraith_suite::encrypt::{DecryptionKey as _, EncryptError, EncryptionKey as _};
use wraith_suite::sign::sm2::{IDENTITY_MAX, SIGNATURE_BYTES, SigningKey, VerifyingKey};
use wraith_suite::sign::{SignError, SigningKey as _, VerifyingKey as _};

/// The order n, big-endian.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x72, 0x03, 0xdf, 0x6b, 0x21, 0xc6, 0x05, 0x2b, 0x53, 0xbb, 0xf4, 0x09, 0x39, 0xd5, 0x41, 0x23,
];

fn order_less(less: u8) -> [u8; 32] {
    let mut number = ORDER;
    number[31] -= less;
    number
}

#[test]
fn a_signature_is_of_one_key_one_message_and_one_identity() {
    let key = SigningKey::generate();
    let public = key.public();
    let signature = key.sign(b"message").unwrap();
    public.verify(b"message", &signature).unwrap();
    assert_ne!(signature, key.sign(b"message").unwrap(), "the nonce is not the message's alone");
    let other = SigningKey::generate().public();
    let renamed = public.clone().with_identity(b"TLSv1.3+GM+Cipher+Suite").unwrap();
    for (key, message) in [(&public, &b"massage"[..]), (&other, b"message"), (&renamed, b"message")]
    {
        assert_eq!(key.verify(message, &signature), Err(SignError::Unauthentic));
    }
    let signature = key.with_identity(b"TLSv1.3+GM+Cipher+Suite").unwrap().sign(b"m").unwrap();
    renamed.verify(b"m", &signature).unwrap();
    assert!(public.verify(b"m", &signature).is_err());
}

#[test]
fn every_changed_bit_of_a_signature_is_noticed() {
    let key = SigningKey::from_raw(&[7; 32]).unwrap();
    let public = key.public();
    let raw = key.sign_fixed(b"message");
    public.verify_fixed(b"message", &raw).unwrap();
    for bit in 0..8 * SIGNATURE_BYTES {
        let mut changed = raw;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(public.verify_fixed(b"message", &changed).is_err(), "{bit}");
    }
    for len in 0..SIGNATURE_BYTES {
        assert!(public.verify_fixed(b"message", &raw[..len]).is_err());
    }
    let der = key.sign(b"message").unwrap();
    for len in 0..der.len() {
        assert!(public.verify(b"message", &der[..len]).is_err());
    }
    assert!(public.verify(b"message", &[&der[..], &[0]].concat()).is_err());
}

#[test]
fn numbers_out_of_range_are_no_signature() {
    let key = SigningKey::from_raw(&[7; 32]).unwrap();
    let public = key.public();
    let raw = key.sign_fixed(b"message");
    let (r, s) = (&raw[..32], &raw[32..]);
    let mut minus_r = ORDER;
    let mut borrow = 0;
    for (byte, r) in minus_r.iter_mut().zip(r).rev() {
        let difference = i32::from(*byte) - i32::from(*r) - borrow;
        borrow = i32::from(difference < 0);
        *byte = difference as u8;
    }
    for [r, s] in [[&[0; 32], s], [r, &[0; 32]], [&ORDER, s], [r, &ORDER], [&[0xff; 32], s]] {
        assert!(public.verify_fixed(b"message", &[r, s].concat()).is_err());
    }
    assert!(public.verify_fixed(b"message", &[r, &minus_r].concat()).is_err(), "r + s = n");
}

#[test]
fn private_keys_are_from_1_to_n_less_2() {
    let mut one = [0; 32];
    one[31] = 1;
    for good in [one, order_less(2)] {
        let key = SigningKey::from_raw(&good).unwrap();
        let signature = key.sign(b"message").unwrap();
        key.public().verify(b"message", &signature).unwrap();
        assert_eq!(key.to_raw()[..], good);
    }
    for bad in [[0; 32], order_less(1), ORDER, [0xff; 32]] {
        assert!(matches!(SigningKey::from_raw(&bad), Err(SignError::InvalidKey { .. })));
        assert!(DecryptionKey::from_raw(&bad).is_err() && PrivateKey::from_raw(&bad).is_err());
    }
    assert!(SigningKey::from_raw(&[1; 31]).is_err() && SigningKey::from_raw(&[1; 33]).is_err());
}

#[test]
fn points_off_the_curve_and_at_infinity_are_no_keys() {
    let good = SigningKey::from_raw(&[7; 32]).unwrap().public().to_raw();
    VerifyingKey::from_raw(&good).unwrap();
    let mut off = good.clone();
    off[64] ^= 1;
    let mut form = good.clone();
    form[0] = 5;
    let mut large = good.clone();
    large[1..33].fill(0xff);
    for bad in [&[][..], &[0], &[0; 65], &[4; 64], &good[..64], &off, &form, &large, &[2; 34]] {
        assert!(VerifyingKey::from_raw(bad).is_err() && EncryptionKey::from_raw(bad).is_err());
    }
    let compressed = [&[2 | (good[64] & 1)], &good[1..33]].concat();
    assert_eq!(VerifyingKey::from_raw(&compressed).unwrap().to_raw(), good);
}

#[test]
fn a_damaged_ciphertext_gives_nothing() {
    for layout in [Layout::C1C3C2, Layout::C1C2C3, Layout::Der] {
        let key = DecryptionKey::from_raw(&[9; 32]).unwrap().with_layout(layout);
        let ciphertext = key.public().encrypt(b"a short message").unwrap();
        assert_eq!(&key.decrypt(&ciphertext).unwrap()[..], b"a short message");
        for at in 0..ciphertext.len() {
            let mut changed = ciphertext.clone();
            changed[at] ^= 0x10;
            assert_eq!(
                key.decrypt(&changed).err(),
                Some(EncryptError::Unopened),
                "{layout:?} {at}"
            );
            assert_eq!(key.decrypt(&ciphertext[..at]).err(), Some(EncryptError::Unopened));
        }
        let other = DecryptionKey::from_raw(&[8; 32]).unwrap().with_layout(layout);
        assert_eq!(other.decrypt(&ciphertext).err(), Some(EncryptError::Unopened));
    }
}

#[test]
fn keys_come_back_from_der() {
    let key = SigningKey::generate();
    let der = key.to_pkcs8();
    assert_eq!(SigningKey::from_pkcs8(&der).unwrap().to_raw(), key.to_raw());
    assert_eq!(DecryptionKey::from_pkcs8(&der).unwrap().to_raw(), key.to_raw());
    assert_eq!(PrivateKey::from_pkcs8(&der).unwrap().to_raw(), key.to_raw());
    let public = key.public();
    let spki = public.to_spki();
    assert_eq!(VerifyingKey::from_spki(&spki).unwrap().to_raw(), public.to_raw());
    assert_eq!(EncryptionKey::from_spki(&spki).unwrap().to_raw(), public.to_raw());
    for len in 0..der.len() {
        assert!(SigningKey::from_pkcs8(&der[..len]).is_err());
    }
    // The last bytes are the public half, which must match the private one.
    let mut foreign = der.to_vec();
    *foreign.last_mut().unwrap() ^= 1;
    assert!(SigningKey::from_pkcs8(&foreign).is_err());
    // Another curve.
    let at = spki.windows(2).position(|two| two == [0x82, 0x2d]).unwrap();
    let mut other = spki.clone();
    other[at + 1] ^= 1;
    assert!(VerifyingKey::from_spki(&other).is_err());
}

#[test]
fn an_identity_has_at_most_8191_bytes() {
    let key = SigningKey::generate();
    let long = vec![b'x'; IDENTITY_MAX + 1];
    key.clone().with_identity(&long[1..]).unwrap();
    let found = IDENTITY_MAX + 1;
    assert_eq!(key.with_identity(&long).err(), Some(SignError::Identity { found }));
    let key = PrivateKey::generate();
    let refused = Exchange::start(Role::Initiator, &key, &long);
    assert_eq!(refused.err(), Some(ExchangeError::Identity));
}

#[test]
fn both_sides_of_an_exchange_have_one_key_unless_they_differ_about_a_name() {
    let (a, b) = (PrivateKey::generate(), PrivateKey::generate());
    for (name, agree) in [(&b"alice"[..], true), (b"malice", false)] {
        let initiator = Exchange::start(Role::Initiator, &a, b"alice").unwrap();
        let responder = Exchange::start(Role::Responder, &b, b"bob").unwrap();
        let (ra, rb) = (initiator.ephemeral_key(), responder.ephemeral_key());
        let (mut ka, mut kb) = ([0; 100], [1; 100]);
        let ca = initiator.finish(&b.public_key(), b"bob", &rb, &mut ka).unwrap();
        let cb = responder.finish(&a.public_key(), name, &ra, &mut kb).unwrap();
        assert_eq!(ka == kb, agree);
        assert_eq!(ca.verify(cb.tag()), agree);
        assert_eq!(cb.verify(ca.tag()), agree);
    }
    let exchange = Exchange::start(Role::Initiator, &a, b"alice").unwrap();
    let mut off = b.public_key();
    off[64] ^= 1;
    let refused = exchange.finish(&b.public_key(), b"bob", &off, &mut [0; 16]);
    assert_eq!(refused.err(), Some(ExchangeError::InvalidPublicKey));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_message_of_any_key_is_opened_and_verified(
        raw in any::<[u8; 32]>(),
        message in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let Ok(key) = DecryptionKey::from_raw(&raw) else { return Ok(()) };
        for layout in [Layout::C1C3C2, Layout::C1C2C3, Layout::Der] {
            let key = key.clone().with_layout(layout);
            let ciphertext = key.public().encrypt(&message).unwrap();
            prop_assert_eq!(&key.decrypt(&ciphertext).unwrap()[..], &message[..]);
        }
        let key = SigningKey::from_raw(&raw).unwrap();
        let signature = key.sign(&message).unwrap();
        prop_assert_eq!(key.public().verify(&message, &signature), Ok(()));
    }
}

/// OpenSSL's program in its own directory, if it is installed and supports SM2.
struct OpenSsl(PathBuf);

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl OpenSsl {
    fn new() -> Option<Self> {
        let known = Command::new("openssl").args(["ecparam", "-list_curves"]).output();
        if !known.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("SM2")) {
            crate::skipped("there is no openssl, or one without SM2");
            return None;
        }
        let directory = std::env::temp_dir().join(format!("wraith-sm2-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Some(Self(directory))
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    fn run(&self, arguments: &str) -> bool {
        let mut command = Command::new("openssl");
        command.current_dir(&self.0).args(arguments.split(' '));
        command.stdin(Stdio::null()).output().unwrap().status.success()
    }
}

#[test]
fn openssl_and_we_accept_each_others_keys_and_results() {
    let Some(openssl) = OpenSsl::new() else { return };
    let key = SigningKey::generate();
    let public = key.public();
    openssl.write("key", &key.to_pkcs8());
    openssl.write("public", &public.to_spki());
    openssl.write("message", b"a message for both");
    openssl.write("signature", &key.sign(b"a message for both").unwrap());
    let signing = "-rawin -digest sm3 -pkeyopt distid:1234567812345678 -in message";
    let verify = "pkeyutl -verify -keyform DER -pubin -inkey public -sigfile signature";
    assert!(openssl.run(&format!("{verify} {signing}")));
    let sign = "pkeyutl -sign -keyform DER -inkey key -out theirs";
    assert!(openssl.run(&format!("{sign} {signing}")));
    public.verify(b"a message for both", &openssl.read("theirs")).unwrap();

    let key = DecryptionKey::from_raw(&key.to_raw()).unwrap().with_layout(Layout::Der);
    openssl.write("ciphertext", &key.public().encrypt(b"secret").unwrap());
    let digest = "-pkeyopt digest:sm3";
    let decrypt = "pkeyutl -decrypt -keyform DER -inkey key -in ciphertext -out opened";
    assert!(openssl.run(&format!("{decrypt} {digest}")));
    assert_eq!(openssl.read("opened"), b"secret");
    let encrypt = "pkeyutl -encrypt -keyform DER -pubin -inkey public -in message -out sealed";
    assert!(openssl.run(&format!("{encrypt} {digest}")));
    assert_eq!(&key.decrypt(&openssl.read("sealed")).unwrap()[..], b"a message for both");

    let generate = "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:SM2 -outform DER -out new";
    assert!(openssl.run(generate));
    let theirs = SigningKey::from_sec1(&openssl.read("new")).unwrap();
    assert!(openssl.run("pkcs8 -topk8 -nocrypt -inform DER -in new -outform DER -out new8"));
    assert_eq!(SigningKey::from_pkcs8(&openssl.read("new8")).unwrap().to_raw(), theirs.to_raw());
    assert!(openssl.run("pkey -inform DER -in new -pubout -outform DER -out newpublic"));
    assert_eq!(theirs.public().to_spki(), openssl.read("newpublic"));
}
