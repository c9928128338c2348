//! Big integers, whose sums, products and powers take constant time for numbers of one length, and
//! the encodings of private keys.

use std::hint::black_box;

use wraith_suite::agree::ffdhe::Group;
use wraith_suite::bignum::Uint;
use wraith_suite::encoding::pem;
use wraith_suite::encoding::pkcs8::PrivateKeyInfo;
use wraith_suite::sign;

use crate::count::secrets::{Draw, Secret};
use crate::count::{Operation, prepared};

/// Bytes of the numbers: 2048 bits.
const BYTES: usize = 256;
const LABEL: &str = "PRIVATE KEY";

pub(super) fn all() -> Vec<Operation> {
    let mut all = sums_and_products();
    all.push(Operation::new("bignum/power", |draw| {
        let base = number(&lengthened(draw.random_bytes(BYTES), 0x7f));
        prepared(exponents(draw), move |exponent| {
            black_box(base.mod_exp(&number(exponent), Group::Ffdhe2048.prime()).expect("odd"));
        })
    }));
    all.push(Operation::new("bignum/base-of-power", |draw| {
        let exponent = Uint::from(65_537);
        prepared(numbers(draw), move |base| {
            black_box(number(base).mod_exp(&exponent, Group::Ffdhe2048.prime()).expect("odd"));
        })
    }));
    all.extend(encodings());
    all
}

fn number(bytes: &[u8]) -> Uint {
    Uint::from_be_bytes(bytes).expect("short enough")
}

/// Sets the highest bit but one, which fixes the number of limbs, and clears the highest. Sums then
/// have no more limbs, and the numbers are below the prime.
fn lengthened(mut bytes: Vec<u8>, mask: u8) -> Vec<u8> {
    bytes[0] = bytes[0] & mask | 0x40;
    bytes
}

fn numbers(draw: &mut Draw) -> Vec<Secret> {
    let mut secrets = draw.bytes(BYTES);
    for Secret { bytes, .. } in &mut secrets {
        *bytes = lengthened(std::mem::take(bytes), 0x7f);
    }
    secrets
}

fn exponents(draw: &mut Draw) -> Vec<Secret> {
    let mut secrets = draw.bytes(32);
    for Secret { bytes, .. } in &mut secrets {
        *bytes = lengthened(std::mem::take(bytes), 0xff);
    }
    secrets
}

fn sums_and_products() -> Vec<Operation> {
    type Combine = fn(&Uint, &Uint) -> Uint;
    let functions: [(&str, Combine); 3] = [
        ("bignum/sum", |a, b| a.add(b).expect("short enough")),
        ("bignum/product", |a, b| a.mul(b).expect("short enough")),
        // The difference from the largest number of this length has as many limbs.
        ("bignum/difference", |a, _| {
            let largest = Uint::from_limbs(vec![u64::MAX; BYTES / 8]).expect("short enough");
            largest.sub(a).expect("positive")
        }),
    ];
    let operations = functions.map(|(name, combine)| {
        Operation::new(name, move |draw| {
            let other = number(&lengthened(draw.random_bytes(BYTES), 0x7f));
            prepared(numbers(draw), move |bytes| {
                black_box(combine(&number(bytes), &other));
            })
        })
    });
    operations.into()
}

fn encodings() -> Vec<Operation> {
    vec![
        Operation::new("encoding/pem/encode", |draw| {
            prepared(draw.bytes(100), |der| {
                black_box(pem::encode(LABEL, der));
            })
        }),
        Operation::new("encoding/pem/decode", |draw| {
            let mut secrets = draw.bytes(100);
            for Secret { bytes, .. } in &mut secrets {
                *bytes = pem::encode(LABEL, bytes).as_bytes().to_vec();
            }
            prepared(secrets, |text| {
                let text = std::str::from_utf8(text).expect("PEM");
                black_box(pem::decode(LABEL, text).expect("PEM"));
            })
        }),
        Operation::new("encoding/pkcs8", |draw| {
            let mut secrets = draw.bytes(32);
            for Secret { bytes, .. } in &mut secrets {
                let key = sign::Algorithm::Ed25519.signing_key(bytes).expect("a seed");
                *bytes = key.to_pkcs8().to_vec();
            }
            prepared(secrets, |der| {
                let info = PrivateKeyInfo::from_der(der).expect("DER");
                black_box(info.to_der());
            })
        }),
        Operation::new("encoding/hex", |draw| {
            prepared(numbers(draw), |bytes| {
                black_box(number(bytes).to_hex());
            })
        }),
    ]
}
