//! The generators of SP 800-90A: vectors of NIST's CAVP, and inputs that are refused.

use rand_core::TryRng;
use wraith_suite::hash::legacy::Sha1;
use wraith_suite::hash::{Sha224, Sha256, Sha384, Sha512};
use wraith_suite::rand::{CtrDrbg, Drbg, DrbgError, HashDrbg, HmacDrbg, REQUEST_BYTES_MAX};

use crate::lines::{bytes, lines};

fn start(kind: &str, name: &str, entropy: &[u8], nonce: &[u8], personal: &[u8]) -> Box<dyn Drbg> {
    macro_rules! of {
        ($type:ident) => {
            match name {
                "SHA-1" => Box::new($type::<Sha1>::new(entropy, nonce, personal).unwrap()),
                "SHA-224" => Box::new($type::<Sha224>::new(entropy, nonce, personal).unwrap()),
                "SHA-256" => Box::new($type::<Sha256>::new(entropy, nonce, personal).unwrap()),
                "SHA-384" => Box::new($type::<Sha384>::new(entropy, nonce, personal).unwrap()),
                "SHA-512" => Box::new($type::<Sha512>::new(entropy, nonce, personal).unwrap()),
                _ => panic!("{name}"),
            }
        };
    }
    match kind {
        "CTR" => Box::new(CtrDrbg::new(entropy.try_into().unwrap(), personal).unwrap()),
        "Hash" => of!(HashDrbg),
        "HMAC" => of!(HmacDrbg),
        _ => panic!("{kind}"),
    }
}

#[test]
fn the_generators_match_cavp() {
    let mut checked = 0;
    for vector in lines(include_str!("../vectors/drbg.txt")) {
        let inputs: Vec<_> = vector[2..].iter().map(|field| bytes(field)).collect();
        let [entropy, nonce, personal, reseed, reseed_data, first, second, expected] = &inputs[..]
        else {
            panic!("{vector:?}")
        };
        // With prediction resistance each request has its own seed, and the sixth field is that of
        // the second request.
        let (kind, resistant) = match vector[0].strip_suffix("-PR") {
            Some(kind) => (kind, true),
            None => (vector[0], false),
        };
        let mut drbg = start(kind, vector[1], entropy, nonce, personal);
        let mut out = vec![0; expected.len()];
        drbg.reseed(reseed, reseed_data).unwrap();
        if resistant {
            drbg.generate(&mut out, &[]).unwrap();
            drbg.reseed(first, &[]).unwrap();
        } else {
            drbg.generate(&mut out, first).unwrap();
        }
        drbg.generate(&mut out, second).unwrap();
        assert_eq!(out, *expected, "{vector:?}");
        checked += 1;
    }
    assert_eq!(checked, 21);
}

#[test]
fn personalization_and_additional_input_change_every_generator() {
    for (kind, name) in [("CTR", "AES-256"), ("Hash", "SHA-256"), ("HMAC", "SHA-256")] {
        let first = |personal: &[u8], data: &[u8]| {
            let mut out = [0; 40];
            start(kind, name, &[7; 48], &[], personal).generate(&mut out, data).unwrap();
            out
        };
        let plain = first(b"", b"");
        assert_eq!(first(b"", b""), plain, "{kind}");
        assert!(first(b"p", b"") != plain && first(b"", b"a") != plain, "{kind}");
        let mut drbg = start(kind, name, &[7; 48], &[], b"");
        let mut out = [[0; 40]; 2];
        out.iter_mut().for_each(|out| drbg.generate(out, b"").unwrap());
        assert!(out[0] == plain && out[1] != plain, "{kind}");
    }
}

#[test]
fn lengths_that_the_standard_does_not_allow_are_refused() {
    let refused = DrbgError::InputLength { min: 16, max: 1 << 16, found: 15 };
    assert_eq!(HashDrbg::<Sha256>::new(&[0; 15], &[], &[]).err(), Some(refused));
    assert_eq!(HmacDrbg::<Sha256>::new(&[0; 15], &[], &[]).err(), Some(refused));
    assert!(CtrDrbg::new(&[0; 48], &[0; 49]).is_err());
    for (kind, name) in [("CTR", "AES-256"), ("Hash", "SHA-256"), ("HMAC", "SHA-256")] {
        let mut drbg = start(kind, name, &[7; 48], &[], &[]);
        let mut long = vec![0; REQUEST_BYTES_MAX + 1];
        assert_eq!(drbg.generate(&mut long, &[]), Err(DrbgError::RequestLength), "{kind}");
        assert_eq!(drbg.generate(&mut long[1..], &[]), Ok(()), "{kind}");
        assert!(drbg.generate(&mut [0; 8], &vec![0; (1 << 16) + 1]).is_err(), "{kind}");
        assert!(drbg.reseed(&[0; 15], &[]).is_err(), "{kind}");
    }
}

#[test]
fn as_a_generator_of_rand_core_it_gives_any_length() {
    let mut drbg = HmacDrbg::<Sha256>::new(&[1; 32], &[2; 16], b"").unwrap();
    let mut long = vec![0; 3 * REQUEST_BYTES_MAX];
    drbg.try_fill_bytes(&mut long).unwrap();
    assert_ne!(long[..32], long[REQUEST_BYTES_MAX..][..32]);
    assert_ne!(drbg.try_next_u64().unwrap(), drbg.try_next_u64().unwrap());
    assert_eq!(format!("{drbg:?}"), "HmacDrbg { hash: Sha256, .. }");
}
